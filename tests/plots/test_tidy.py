"""Outlier rule, statistics and which rows reach the tidy frame."""

import math

import numpy as np
import pandas as pd
import pytest
from fixtures import sets
from fixtures.sets import points

from experiments.driver import schema
from plots import tidy

OLD, NEW = "20250101T000000-aaaaaa", "20250201T000000-aaaaaa"


def repeated(times, **cells):
    return [sets.row(repetition=i, compute_us=t, **cells) for i, t in enumerate(times)]


def kept(*samples: float) -> list[bool]:
    """The mask of samples of one point, beside another point that must not matter."""
    both = pd.Series([*samples, 1e6, 2e6], dtype=float)
    labels = pd.Series([0] * len(samples) + [1, 1])
    return tidy.drop_outliers(both, labels).tolist()[:-2]


def test_outliers_by_hand():
    # Q1 = 10.375, Q3 = 12.25 by linear interpolation, IQR = 1.875: kept within [7.5625, 15.0625]
    samples = [10, 11, 12, 10, 13, 50, 10.5, 12]
    q1, q3 = np.quantile(samples, [0.25, 0.75])
    assert (q1, q3) == (10.375, 12.25)
    assert kept(*samples) == [True] * 5 + [False] + [True] * 2


def test_bounds_of_the_outlier_rule_are_inclusive():
    # quartiles 1 and 3 of 0 1 2 3 4: bounds -2 and 6
    assert all(kept(0, 1, 2, 3, 4))
    assert kept(2, 2, 2, 2, 2.001) == [True] * 4 + [False]


def test_fewer_than_four_samples_are_all_kept():
    assert all(kept(1, 1, 99))


def test_statistics_by_hand():
    frame = points(repeated([10.0, 12.0, 11.0, 11.0, 500.0], forward_us=2.0, build_us=3.0))
    (line,) = frame.to_dict("records")
    assert line["n"] == 4 and line["dropped"] == 1
    assert line["compute_us"] == 11.0 and line["median_us"] == 11.0
    assert line["sd_us"] == pytest.approx(math.sqrt(2 / 3))
    assert line["forward_us"] == 2.0 and line["build_us"] == 3.0 and math.isnan(line["hadamard_us"])
    assert line["size"] == "16x16" and line["counts"] == "1-to-1" and line["side"] == 16
    assert line["outputs"] == 31 * 31 and line["pairs"] == 1


def test_a_single_sample_has_no_spread():
    (line,) = points([sets.row()]).to_dict("records")
    assert line["n"] == 1 and math.isnan(line["sd_us"])


@pytest.mark.parametrize(
    "outcome", ["incorrect", "not_supported", "not_selected", "out_of_memory", "timeout", "failed"]
)
def test_only_passed_and_published_rows_are_kept(outcome):
    rows = [sets.row(), sets.row(variant="bad", outcome=outcome, compute_us=1.0)]
    assert points(rows)["variant"].tolist() == ["some_variant"]
    rows.append(sets.row(variant="elsewhere", outcome="published"))
    assert set(points(rows)["outcome"]) == {"passed", "published"}


def test_the_more_thorough_preset_wins_then_the_newest_run():
    old, new = "20250101T000000-aaaaaa", "20250201T000000-aaaaaa"
    rows = [
        sets.row(preset="paper", compute_us=5.0, run=old),
        sets.row(preset="quick", compute_us=9.0, run=new),
        sets.row(preset="smoke", compute_us=7.0, run=new),
    ]
    (line,) = points(rows).to_dict("records")
    assert (line["preset"], line["compute_us"], line["n"]) == ("paper", 5.0, 1)
    rows.append(sets.row(preset="paper", compute_us=6.0, run=new, experiment="again"))
    (line,) = points(rows).to_dict("records")
    assert (line["compute_us"], line["experiments"]) == (6.0, "again;one-to-one")


def test_a_side_experiment_never_replaces_the_rows_of_a_main_one():
    old, new = "20250101T000000-aaaaaa", "20250201T000000-aaaaaa"
    rows = [
        sets.row(compute_us=3.0, run=old),
        sets.row(compute_us=5.0, run=new, experiment="modes", preset="paper", energy_uj=7.0, argmax_agrees="false"),
        sets.row(compute_us=2.0, run=new, experiment="modes", mode="graph"),
        sets.row(compute_us=9.0, run=new, experiment="modes", variant="nowhere_else"),
    ]
    frame = tidy.tidy(sets.frame(rows), {"modes"}).set_index(["variant", "mode"])
    main = frame.loc["some_variant", "stream"]
    assert (main["compute_us"], main["preset"], main["experiments"]) == (3.0, "quick", "modes;one-to-one")
    assert main["energy_uj"] == 7.0, "counted by the side experiment, whichever run gives the time"
    assert main["argmax_agrees"] == "false"
    assert frame.loc[("some_variant", "graph"), "compute_us"] == 2.0
    assert frame.loc[("nowhere_else", "stream"), "compute_us"] == 9.0
    assert points(rows).set_index(["variant", "mode"]).loc[("some_variant", "stream"), "compute_us"] == 5.0


def test_side_experiments_feed_their_own_figures_with_their_own_rows(tmp_path):
    rows = [
        sets.row(compute_us=3.0),
        sets.row(compute_us=5.0, experiment="modes"),
        sets.row(compute_us=2.0, experiment="modes", mode="graph"),
    ]
    sets.write_set(tmp_path, rows)
    loaded = tidy.load(tmp_path / "published" / sets.KEY, sets.KEY, "published")
    assert loaded.feeding("replay").set_index("mode")["compute_us"].to_dict() == {"graph": 2.0, "stream": 5.0}
    assert loaded.feeding("comparison")["compute_us"].tolist() == [3.0]
    assert set(loaded.points["compute_us"]) == {2.0, 3.0}


def test_no_rows_give_an_empty_frame_with_all_columns():
    frame = points([])
    assert frame.empty and {"compute_us", "size", "pairs", "experiments"} <= set(frame.columns)


def test_pairs_shapes_and_windows():
    rows = [
        sets.row(form="n-to-m", lefts=3, rights=5),
        sets.row(form="n-to-mn", lefts=2, rights=8),
        sets.row(left_rows=8, left_cols=8, right_rows=32, right_cols=64, window="valid"),
        sets.row(left_rows=8, left_cols=8, right_rows=32, right_cols=64, window="sy:-2..3,sx:0..0"),
    ]
    frame = points(rows).set_index(["form", "window"])
    assert frame.loc[("n-to-m", "full"), "pairs"].item() == 15
    assert frame.loc[("n-to-mn", "full"), "pairs"].item() == 8
    assert frame.loc[("one-to-one", "valid"), "outputs"].item() == 25 * 57
    assert frame.loc[("one-to-one", "sy:-2..3,sx:0..0"), "outputs"].item() == 6
    assert frame.loc[("one-to-one", "valid"), "size"] == "8x8:32x64"


def test_best_parameters_per_point():
    rows = [
        sets.row(params="threads=1", compute_us=10.0, plan_us=1.0),
        sets.row(params="threads=all", compute_us=8.0, plan_us=5.0),
        sets.row(params="threads=1", compute_us=3.0, left_rows=8, right_rows=8),
    ]
    frame = points(rows)
    assert tidy.best_parameters(frame)["params"].tolist() == ["threads=1", "threads=all"]
    by = frame["compute_us"] + frame["plan_us"].fillna(0)
    assert tidy.best_parameters(frame, by)["params"].tolist() == ["threads=1", "threads=1"]


def test_experiments_feed_only_what_they_say(tmp_path):
    (tmp_path / "a.toml").write_text('title = "A"\nfeeds = ["comparison"]\n')
    (tmp_path / "presets.toml").write_text("[smoke]\nrepetitions = 2\n")
    feeds = schema.feeds(tmp_path)
    assert feeds == {"a": ["comparison"]}
    frame = points([sets.row(experiment="a"), sets.row(experiment="gone", variant="other")])
    results = tidy.ResultSet("k", "local", tmp_path, sets.frame([]), frame, {}, feeds)
    assert len(results.feeding("comparison")) == 2
    assert results.feeding("phases")["variant"].tolist() == ["other"]


def test_load_reads_published_and_local_sets_alike(tmp_path):
    rows = sets.model_rows(sizes=[16], counts={"one-to-one": [(1, 1)]})
    frames = []
    for kind in ("published", "local"):
        folder = sets.write_set(tmp_path, rows, kind=kind)
        loaded = tidy.load(folder, sets.KEY, kind)
        assert set(loaded.runs) == {"20250101T000000-abcdef"}
        frames.append(loaded.points)
    assert len(frames[0]) == 5 and frames[0].equals(frames[1])


def test_a_problem_has_the_rows_of_its_newest_block_alone():
    first = [
        sets.row(variant=v, compute_us=us, run=OLD, preset="evaluation", block=f"{OLD}.0")
        for v, us in (("a", 10.0), ("b", 11.0))
    ]
    again = [sets.row(variant="a", compute_us=12.0, run=NEW, preset="evaluation", block=f"{NEW}.3")]
    other = [sets.row(variant="c", compute_us=1.0, run=NEW, preset="paper")]
    elsewhere = [
        sets.row(
            variant="d", compute_us=5.0, run=OLD, preset="quick", left_rows=8, left_cols=8, right_rows=8, right_cols=8
        )
    ]
    short = [sets.row(variant="e", run=NEW, preset="select", left_rows=n, right_rows=n) for n in (16, 4)]
    found = points([*first, *again, *other, *elsewhere, *short])
    assert dict(zip(found["variant"], found["compute_us"])) == {"a": 12.0, "d": 5.0}
    assert set(found.loc[found["variant"] == "a", "block"]) == {f"{NEW}.3"}
