"""Which families were not asked in a cell, and how the tables say so."""

import csv
import io

from fixtures import sets

from plots import tidy
from plots.tables import best_table, coverage


def row(variant, family, side, us=10.0, **cells):
    return sets.row(variant=variant, family=family, backend="cuda", compute_us=us, **{**sets.square(side), **cells})


def table(rows):
    frame = sets.frame(rows)
    return best_table.best_table(tidy.tidy(frame), frame)


def missing(*rows):
    """Names by size, accounting compute."""
    found = table(rows)
    return found[found["accounting"] == "compute"].set_index("size")["missing_families"].to_dict()


FFT = [row("cufft", "fft", 16, 30.0), row("cufft", "fft", 64, 30.0)]
TILED = row("tiled_direct", "tiled", 16, 3.0)


def test_a_family_with_times_elsewhere_and_none_here_is_missing():
    assert missing(*FFT, TILED) == {"16x16": "", "64x64": "tiled"}
    assert missing(*FFT, TILED, row("tiled_direct", "tiled", 64, 90.0)) == {"16x16": "", "64x64": ""}
    other_form = row("warp_shuffle", "warp_shuffle", 16, form="n-to-m", lefts=2, rights=2)
    assert missing(*FFT, other_form)["64x64"] == "", "a family that never computed this form is not asked for it"


def test_a_reason_in_the_rows_is_an_answer():
    def with_reason(outcome, reason="", us=None):
        return missing(*FFT, TILED, row("tiled_direct", "tiled", 64, us, outcome=outcome, reason=reason))["64x64"]

    for outcome in coverage.REASONS:
        assert with_reason(outcome) == "", outcome
    for outcome in ("failed", "incorrect"):
        assert with_reason(outcome) == "tiled", outcome
    slower = "predicted 0.6 s per launch, preset quick selects up to 0.5 s on cuda"
    assert with_reason("not_selected", slower) == ""
    assert with_reason("not_selected", slower.replace("0.6", "2e-05")) == "tiled", "20 us would have won"
    assert with_reason("not_selected", "predicted 90 s with its verification, preset smoke") == "tiled"


def test_every_variant_of_the_family_that_belongs_there_must_have_a_reason():
    rows = [*FFT, TILED, row("tiled_direct_split", "tiled", 16, 4.0)]
    rows.append(row("tiled_direct", "tiled", 64, None, outcome="not_supported"))
    assert missing(*rows)["64x64"] == "tiled"
    rows.append(row("tiled_direct_split", "tiled", 64, None, outcome="not_supported"))
    assert missing(*rows)["64x64"] == ""


def test_a_definition_that_a_transform_overtook_at_a_smaller_size_is_settled():
    assert missing(*FFT, row("tiled_direct", "tiled", 16, 31.0))["64x64"] == ""
    # Another transform is never settled, and a definition is not where a definition wins.
    assert missing(*FFT, row("fused_fft_grid", "fused_fft", 16, 31.0))["64x64"] == "fused_fft"
    slow = row("tiled_direct", "tiled", 16, 31.0)
    assert missing(*FFT, slow, row("warp_shuffle", "warp_shuffle", 64, 20.0))["64x64"] == "tiled"


def test_settled_goes_by_the_accounting():
    rows = [row("cufft", "fft", 16, 30.0, plan_us=100.0), row("cufft", "fft", 64, 30.0, plan_us=100.0)]
    lines = table([*rows, row("tiled_direct", "tiled", 16, 31.0)]).set_index(["accounting", "size"])["missing_families"]
    assert lines["compute", "64x64"] == "" and lines["compute + plan", "64x64"] == "tiled"


def test_modes_are_asked_by_themselves():
    rows = [*FFT, TILED, row("cufft", "fft", 64, 9.0, mode="latency")]
    found = table(rows).set_index(["mode", "size"])["missing_families"]
    assert found["latency", "64x64"] == "" and found["stream", "64x64"] == "tiled"


def test_signs_and_footnotes():
    rows = [*FFT, TILED, row("wrong_peak", "fft", 16, 40.0, argmax_agrees="false")]
    found = table(rows)
    lines = found[found["accounting"] == "compute"]
    shown = best_table.readable(lines).set_index("Size")["Best variant"]
    assert shown["64x64"].endswith(" †") and shown["16x16"].endswith(" ‡")
    assert best_table.overview(lines)["64x64"].item().endswith(" µs †")
    unasked, peak = best_table.footnotes(lines)
    assert unasked.startswith("† The set has no time of at least one family that computes") and unasked.endswith(
        ": one-to-one 1-to-1 at 64x64 (tiled)."
    )
    assert peak.startswith("‡") and peak.endswith(": one-to-one 1-to-1 at 16x16.")
    text = best_table.page(found).markdown()
    assert unasked in text and peak in text
    csv_lines = csv.DictReader(io.StringIO(best_table.page(found).more["best_algorithm.csv"]))
    by_size = {line["size"]: line for line in csv_lines}
    assert by_size["64x64"]["missing_families"] == "tiled" and by_size["16x16"]["peak_disagrees"] == "wrong_peak"
    tex = best_table.page(found).more["best_algorithm.tex"]
    assert r"$\dagger$" in tex and r"$\ddagger$" in tex and "†" not in tex
    assert best_table.footnotes(lines, places=False) == [one.rpartition(": ")[0] + "." for one in (unasked, peak)]
    clean = table([*FFT, TILED, row("tiled_direct", "tiled", 64, 90.0)])
    assert not best_table.footnotes(clean) and "†" not in best_table.page(clean).markdown()


def test_a_winner_whose_own_peak_disagrees_is_said():
    lines = table([row("cufft", "fft", 16, 5.0, argmax_agrees="false")])
    assert best_table.footnotes(lines)[0].endswith("at 16x16 (the winner too).")


def test_the_footnote_joins_counts_of_the_same_sizes():
    rows = [
        row("cufft", "fft", side, 30.0, form="one-to-many", rights=rights) for side in (16, 64) for rights in (2, 8)
    ]
    rows += [row("tiled_direct", "tiled", 16, 3.0, form="one-to-many", rights=rights) for rights in (2, 8)]
    assert best_table.footnotes(table(rows))[0].endswith(": one-to-many 1-to-2, 1-to-8 at 64x64 (tiled).")


def test_a_tie_of_many_names_three_and_counts_the_rest():
    found = table([row(f"v{n}", "tiled", 16, 3.0 + n / 100) for n in range(6)])
    assert best_table.readable(found)["Best variant"].item() == "v0 = v1 = v2 = 3 more"
    assert found["tied_with"].item() == "v1;v2;v3;v4;v5"
