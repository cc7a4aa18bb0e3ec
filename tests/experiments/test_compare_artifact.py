"""Ours against a published baseline: the best point of a cell, ratios, bars, exit codes."""

import math
from pathlib import Path

import pandas as pd
import pytest
from calls import error_of
from card import line, row

from experiments.compare import artifact
from experiments.driver import store
from xcorr.paths import ROOT

CELL = {"form": "one-to-one", "left_rows": 16, "lefts": 1, "rights": 1}  # theirs: fft 14.341 us
SLOW = {"compute_us": 18.0, "forward_us": 6.0, "hadamard_us": 3.0, "inverse_us": 5.0}
FAST = {"compute_us": 12.0, "forward_us": 5.0, "inverse_us": 6.0}  # the product is inside the inverse


def call(root: Path, *options: str) -> int:
    return artifact.main(["--results", str(root), *options])


def test_the_baseline_is_whole_and_adds_up():
    what, baseline = artifact.load_baseline("h200_artifact")
    assert len(baseline) == 53
    for theirs in baseline.values():
        parts = sum(float(theirs[f"fft_{name}"]) for name in artifact.PHASES)
        assert math.isclose(parts, float(theirs["fft_us"]), abs_tol=2e-3)
        assert float(theirs["plan_us"]) > 0 and float(theirs["best_definition_us"]) > 0
    assert what["fft"]["phases_bar"] == 1.0 and what["fft"]["compute_bar"] == 1.3
    assert what["naive"]["compute_bar"] == 1.0 and what["definition"]["compute_bar"] == 1.1
    forms = {cell[0] for cell in baseline}
    folders = {path.name for path in (ROOT / "algorithms").iterdir()}
    assert {*what["definition"]["clear"]["forms"], *what["definition"]["host"]["forms"]} < forms
    assert set(what["definition"]["families"]) < folders


def test_best_point_of_a_cell_and_its_ratios(results, capsys):
    bare = SLOW | {"forward_us": 4.0, "hadamard_us": 2.0, "inverse_us": 4.0}  # fast but for the layout
    root = results(
        *(row("cufft", k, params="callbacks=none", **bare) for k in range(3)),
        *(row("cufft", k, params="callbacks=all", **FAST) for k in range(3)),
        row("overlap_wise", compute_us=8.4785),
        row("warp_shuffle", compute_us=3.139, params="warps_per_block=8"),
        row("cufft", mode="graph", params="callbacks=all", compute_us=1.0),
    )
    assert call(root, "--markdown") == 0
    fft, naive, definition = capsys.readouterr().out.split("| form ")[1:]
    cells = line(fft, "one-to-one", "16", "1:1")
    assert cells[3:7] == ["14.3", "10.0", "0.70", "callbacks=none"]
    assert cells[7:] == ["12.0", "0.84", "callbacks=all"]
    assert line(fft, "one-to-one", "24", "1:1")[4:6] == ["-", "missing"]
    assert line(fft, "geometric mean")[5] == "0.70"
    assert line(naive, "one-to-one", "16", "1:1")[3:] == ["17.0", "8.5", "0.50"]
    assert line(naive, "n-to-mn", "16", "2:8")[3:] == ["-", "-", "-"]
    assert line(definition, "one-to-one", "16", "1:1")[3:] == "- 3.1 3.1 - 1.00 warp_shuffle warps_per_block=8".split()
    assert "families without a row in this set: warp_per_overlap\n" in definition
    assert "host enqueue rates" in artifact.EPILOG


@pytest.mark.parametrize(
    "part, rows, flagged",
    [
        ("fft", [row("cufft", params="p=1", **SLOW | {"forward_us": 9.0})], "1.19 !"),
        ("fft", [row("cufft", params="p=1", **SLOW | {"compute_us": 20.0})], "1.39 !"),
        ("naive", [row("overlap_wise", compute_us=20.0)], "1.18 !"),
        ("definition", [row("split_row", compute_us=3.139 * 1.11)], "1.11 !"),
    ],
)
def test_above_a_bar_is_flagged_and_exits_1(results, capsys, part, rows, flagged):
    assert call(results(*rows), "--part", part) == 1
    said = capsys.readouterr()
    assert flagged in said.out and "1 above the bar" in said.out and said.err == ""


def test_the_best_definition_is_of_the_papers_families_and_at_most_1_1(results, capsys):
    root = results(
        row("split_row", params="rows_per_thread=1", compute_us=4.0, clear_us=2.0),  # its clear counts in this form
        row("split_row", params="rows_per_thread=2", compute_us=3.4),
        row("tensor", compute_us=1.0),
        row("cufft", compute_us=1.0),
        row("cpu_definition", backend="cpu", compute_us=1.0),
        row("warp_per_overlap", left_rows=24, compute_us=3.816 / 2),
    )
    assert call(root, "--part", "definition", "--markdown") == 0
    text = capsys.readouterr().out
    assert line(text, "one-to-one", "16", "1:1")[5:] == ["3.4", "-", "1.08", "split_row", "rows_per_thread=2"]
    assert line(text, "one-to-one", "32", "1:1")[5:] == ["-", "-", "missing", "-", "-"]
    assert "(bar 1.1): 2 cells, geometric mean 0.74, worst 1.08, 0 above the bar, 51 not compared" in text
    assert text.count("| form ") == 1


def test_the_definition_leaves_the_clear_out_where_the_artifact_does(results, capsys):
    cell = {"form": "n-to-m", "lefts": 2, "rights": 2}  # theirs: 3.212 us
    split = "multi_matrix_both_split_row"
    root = results(
        *(row(split, k, params="p=1", compute_us=5.0 + k, clear_us=2.0 + k, **cell) for k in range(3)),
        row("warp_shuffle", compute_us=4.0, **cell),
        row("warp_shuffle", left_rows=32, compute_us=4.588, **cell),  # as theirs; clears nothing
        row("split_row", form="n-to-mn", lefts=2, rights=8, compute_us=8.397, clear_us=4.0),  # theirs: 16.794 us
    )
    assert call(root, "--part", "definition", "--markdown") == 0
    text = capsys.readouterr().out
    assert line(text, "n-to-m", "16", "2:2")[3:] == ["clear", "3.2", "6.0", "3.0", "0.93", split, "p=1"]
    assert line(text, "n-to-m", "32", "2:2")[5:8] == ["4.6", "4.6", "1.00"]
    assert line(text, "n-to-mn", "16", "2:8")[3:9] == ["host", "16.8", "8.4", "-", "0.50", "split_row"]
    assert "- clear: the artifact's split-row kernels leave" in text and "- host: " in text


def test_a_part_of_which_no_cell_is_measured_exits_1(results, capsys):
    root = results(row("cufft", params="p=1", **SLOW))
    assert call(root, "--part", "fft") == 0
    capsys.readouterr()
    assert call(root) == 1
    assert error_of(capsys).startswith("error: set card: no cell of naive, definition can be compared; ")


def test_rows_that_did_not_pass_or_are_other_problems_do_not_count(results, capsys):
    root = results(
        row("cufft", outcome="incorrect", params="p=1", **SLOW),
        row("cufft", window="valid", params="p=2", **SLOW),
        row("cufft", precision="fp64", params="p=3", **SLOW),
        row("split_row", left_rows=17, compute_us=1.0),
    )
    assert call(root) == 1
    assert "no cell of fft, naive, definition can be compared" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options, says",
    [
        (["--set", "cart"], "did you mean card?"),
        (["--baseline", "h200_artefact"], "did you mean h200_artifact?"),
        (["--local"], "name one with --set"),
        (["--what"], "see --help"),
        (["--part", "naiv"], "see --help"),
    ],
)
def test_mistakes_end_in_one_line(results, capsys, options, says):
    assert call(results(row("cufft", params="p=1", **SLOW)), *options) == 2
    assert says in error_of(capsys)


def test_a_side_experiment_does_not_move_the_median_of_a_main_one():
    rows = [
        row("cufft", compute_us=10.0),
        row("cufft", compute_us=30.0, experiment="modes"),
        row("cufft", compute_us=5.0, params="k=1", experiment="modes"),
    ]
    for one in rows:
        one |= {name: float(one[name] or "nan") for name in store.FLOATS}
        one |= {name: int(one[name] or 0) for name in store.INTEGERS}
    kept = artifact.comparable(pd.DataFrame(rows))
    assert kept["compute_us"].tolist() == [10.0, 5.0], "what nothing else measured stays"
