"""Ours against a published baseline: the best point of a cell, ratios, bars, exit codes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from experiments import compare_artifact, store

RUN = "20260101T000000-aaaaaa"
CELL = {"form": "one-to-one", "left_rows": 16, "lefts": 1, "rights": 1}  # theirs: fft 14.341 us
SLOW = {"compute_us": 18.0, "forward_us": 6.0, "hadamard_us": 3.0, "inverse_us": 5.0}
FAST = {"compute_us": 12.0, "forward_us": 5.0, "inverse_us": 6.0}  # the product is inside the inverse


def row(variant: str, repetition: int = 0, **cells: object) -> store.Row:
    made = dict.fromkeys(store.COLUMNS, "")
    size = cells.get("left_rows", 16)
    cells = {
        "run": RUN, "experiment": "one-to-one", "machine_key": "card", "input": "uniform",
        "variant": variant, "family": "fft" if "fft" in variant else "overlap_wise",
        "backend": "cuda", "precision": "fp32", "form": "one-to-one", "left_rows": size, "left_cols": size,
        "right_rows": size, "right_cols": size, "lefts": 1, "rights": 1, "window": "full",
        "mode": "stream", "preset": "quick", "repetition": repetition, "iterations": 9,
        "outcome": "passed", "source_hash": "h" * 16, **cells,
    }  # fmt: skip
    return made | {name: store.text_of(value) for name, value in cells.items()}


@pytest.fixture
def results(tmp_path: Path):
    """A function that publishes rows as the set `card` and returns the root of the results."""

    def publish(*rows: store.Row) -> Path:
        folder = tmp_path / "published" / "card"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "one-to-one.csv.gz").write_bytes(store.encode(rows))
        return tmp_path

    return publish


def call(root: Path, *options: str) -> int:
    return compare_artifact.main(["--results", str(root), *options])


def line(text: str, *start: str) -> list[str]:
    """Cells of the Markdown line that starts with these cells."""
    for found in text.splitlines():
        cells = [cell.strip() for cell in found.strip("|").split("|")]
        if tuple(cells[: len(start)]) == start:
            return cells
    raise AssertionError(f"no line {start} in {text}")


def test_the_baseline_is_whole_and_adds_up() -> None:
    what, baseline = compare_artifact.load_baseline("h200_artifact")
    assert len(baseline) == 53
    for theirs in baseline.values():
        parts = sum(float(theirs[f"fft_{name}"]) for name in compare_artifact.PHASES)
        assert math.isclose(parts, float(theirs["fft_us"]), abs_tol=2e-3)
        assert float(theirs["plan_us"]) > 0 and float(theirs["best_definition_us"]) > 0
    assert what["fft"]["phases_bar"] == 1.0 and what["fft"]["compute_bar"] == 1.3


def test_best_point_of_a_cell_and_its_ratios(results, capsys: pytest.CaptureFixture[str]) -> None:
    bare = SLOW | {"forward_us": 4.0, "hadamard_us": 2.0, "inverse_us": 4.0}  # fast but for the layout
    root = results(
        *(row("cufft", k, params="callbacks=none", **bare) for k in range(3)),
        *(row("cufft", k, params="callbacks=all", **FAST) for k in range(3)),
        row("overlap_wise", compute_us=8.4785),
        row("cufft", mode="graph", params="callbacks=all", compute_us=1.0),
    )
    assert call(root, "--markdown") == 0
    text = capsys.readouterr().out
    cells = line(text, "one-to-one", "16", "1:1")
    assert cells[3:7] == ["14.3", "10.0", "0.70", "callbacks=none"]
    assert cells[7:] == ["12.0", "0.84", "callbacks=all", "8.5", "0.50", "8.5", "2.70"]
    assert line(text, "one-to-one", "24", "1:1")[4:6] == ["-", "-"]
    assert line(text, "geometric mean")[5] == "0.70"
    assert "host enqueue rates" in compare_artifact.EPILOG


@pytest.mark.parametrize(
    "rows, flagged",
    [
        ([row("cufft", params="p=1", **SLOW | {"forward_us": 9.0})], "1.19 !"),
        ([row("cufft", params="p=1", **SLOW | {"compute_us": 20.0})], "1.39 !"),
        ([row("overlap_wise", compute_us=20.0)], "1.18 !"),
    ],
)
def test_above_a_bar_is_flagged_and_exits_1(
    results, capsys: pytest.CaptureFixture[str], rows: list[store.Row], flagged: str
) -> None:
    assert call(results(*rows)) == 1
    out = capsys.readouterr().out
    assert flagged in out and "1 above the bar" in out


def test_rows_that_did_not_pass_or_are_other_problems_do_not_count(
    results, capsys: pytest.CaptureFixture[str]
) -> None:
    root = results(
        row("cufft", outcome="incorrect", params="p=1", **SLOW),
        row("cufft", window="valid", params="p=2", **SLOW),
        row("cufft", precision="fp64", params="p=3", **SLOW),
    )
    assert call(root) == 2
    assert "no cell of the baseline is measured" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options, says",
    [
        (["--set", "cart"], "did you mean card?"),
        (["--baseline", "h200_artefact"], "did you mean h200_artifact?"),
        (["--local"], "name one with --set"),
        (["--what"], "see --help"),
    ],
)
def test_mistakes_end_in_one_line(
    results, capsys: pytest.CaptureFixture[str], options: list[str], says: str
) -> None:
    assert call(results(row("cufft", params="p=1", **SLOW)), *options) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and says in error and error.count("\n") == 1
