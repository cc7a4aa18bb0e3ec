"""The table of speed-ups over the paper's best: what that is, what is missing, when the bars are reached."""

import math

import pandas as pd
import pytest
from fixtures import sets

from plots import tidy
from plots.ceilings import Ceilings
from plots.tables import beyond
from plots.tables.table import readable

WHAT = {"families": ["warp_shuffle"], "variants": ["cufft_paper"], "new_families": ["fused"]}
BASELINE = {
    ("one-to-one", 64, 1, 1): {"best_definition_us": "20", "fft_us": "16"},
    ("one-to-one", 128, 1, 1): {"best_definition_us": "130", "fft_us": "15"},
}
BARS = beyond.Bars(2.0, 0.97)
CEILINGS = Ceilings(4e12, 4e12, 5e13, launch_stream_us=2.0, launch_graph_us=1.5)


def row(variant, side, us, family="warp_shuffle", **cells):
    return sets.row(variant=variant, family=family, backend="cuda", compute_us=us, **{**sets.square(side), **cells})


def lines(*rows, ceilings=CEILINGS):
    return beyond.table(sets.points(rows), WHAT, BASELINE, ceilings)


def summary(found, modes=()):
    frame = pd.DataFrame(modes, columns=beyond.MODE_COLUMNS)
    return " ".join(beyond.summary(beyond.Beyond(found, frame, BARS, "the artifact", "An aside.")))


def test_the_papers_best_is_the_faster_of_the_baseline_and_our_rows_of_its_algorithms():
    found = lines(row("split_row", 64, 12.0), row("new", 64, 4.0, "fused"), row("new", 128, 5.0, "fused"))
    assert list(found["paper_us"]) == [12.0, 15.0] and list(found["paper_by"]) == ["split_row", "baseline"]
    assert list(found["speedup"]) == [3.0, 3.0] and list(found["variant"]) == ["new", "new"]
    assert found["distance"][0] == pytest.approx(4.0 / found["floor_us"][0]) and found["floor_us"][0] >= 2.0
    assert beyond.reached(found, BARS)


def test_our_rows_of_the_papers_algorithms_are_no_speed_up():
    found = lines(row("split_row", 64, 12.0), row("split_row", 128, 14.0))
    assert list(found["speedup"]) == [1.0, 1.0] and not beyond.reached(found, BARS)


def test_a_cell_without_rows_is_named_and_keeps_the_bars_from_being_reached():
    found = lines(row("new", 64, 1.0, "fused"))
    assert math.isnan(found["speedup"][1]) and not beyond.reached(found, BARS)
    assert "not measured" in list(readable(found, beyond.SHOWN)["Variant"])
    assert "On 1 of 2 problems" in summary(found)


def test_one_slow_cell_is_below_the_bar_whatever_the_mean():
    found = lines(row("new", 64, 1.0, "fused"), row("new", 128, 16.0, "fused"))
    assert not beyond.reached(found, BARS) and "1 of the problems are below 0.97x" in summary(found)


def test_other_conditions_and_machines_do_not_take_part():
    odd = [row("new", 64, 1.0, "fused", mode="graph"), row("new", 64, 1.0, "fused", right_rows=32)]
    assert lines(*odd, row("split_row", 64, 12.0))["ours_us"][0] == 12.0
    raw = sets.frame([row("new", 64, 1.0, "fused")])
    assert sets.files(beyond, tidy.ResultSet("another", "published", None, raw, tidy.tidy(raw), {}, {})) == {}


def test_new_variants_are_judged_alone_too():
    found = lines(row("split_row", 64, 3.0), row("new", 64, 4.0, "fused"), row("new", 128, 5.0, "fused"))
    assert list(found["speedup"]) == [1.0, 3.0] and list(found["new_speedup"]) == [0.75, 3.0]
    said = summary(found)
    alone = "Of the new variants alone, the fastest is 1.500 times as fast on 2 problems. The least speed-up is 0.75x."
    assert alone in said
    assert f"Against the artifact's times alone the speed-up is {math.sqrt(16 / 3 * 3):.2f}x. An aside." in said


def test_a_speed_up_within_noise_is_a_tie():
    found = lines(row("split_row", 64, 3.2), row("new", 64, 3.0, "fused"), row("new", 128, 14.9, "fused"))
    assert list(found["is_tie"]) == [True, True], "29 % below 4 us; 1 % above 8 us"
    assert list(readable(found, beyond.SHOWN)["Speed-up"]) == ["1.07x (tie)", "1.01x (tie)"]
    assert "2 are ties within the noise" in summary(found)
    assert not lines(row("new", 64, 4.0, "fused"))["is_tie"].any(), "neither the wide lead nor the cell without rows"


def test_modes_stand_side_by_side():
    stream = [row("split_row", 64, 8.0), row("new", 64, 4.0, "fused")]
    others = []
    for mode, us in {"graph": 5.0, "cold": 5.0, "latency": 9.0}.items():
        others += [row("split_row", 64, 6.0, mode=mode), row("new", 64, us, "fused", mode=mode)]
    stream_only = [row("split_row", 128, 90.0), row("new", 128, 1.0, "fused")]
    modes = beyond.by_mode(sets.points([*stream, *others, *stream_only]), ["fused"])
    assert modes.set_index("mode")["speedup"].to_dict() == {"stream": 2.0, "graph": 1.2, "cold": 1.2, "latency": 1.0}
    assert modes.set_index("mode").loc["latency", "best"] == "split_row"
    said = beyond.mode_line(modes)
    assert "on the 1 problems" in said and "stream (launches back to back) 2.00x" in said
    assert "latency (a wait after each launch) 1.00x" in said
    assert list(beyond.mode_table(modes)["Geometric mean"]) == ["2.00x", "1.20x", "1.20x", "1.00x"]
    assert beyond.mode_line(beyond.by_mode(sets.points(stream), ["fused"])) == ""


def test_without_ceilings_there_is_no_distance():
    assert lines(row("new", 64, 1.0, "fused"), ceilings="no ceilings.json")["distance"].isna().all()
