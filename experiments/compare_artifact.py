"""Prints measured rows against a published baseline, cell by cell, and flags what is above the bars."""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from experiments import store
from experiments.errors import UserError, nearest
from experiments.points import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import pandas as pd

FOLDER = Path(__file__).resolve().parent / "baselines"
EPILOG = """example:
  python3 -m experiments.compare_artifact --set nvidia-h200-132-sm-141-gb --markdown

A ratio is ours / the baseline's: below 1 ours is faster; ! marks what is above its bar. `phases` is forward +
hadamard + inverse (the baseline's two transforms are host enqueue rates) of the point that is fastest in them,
`compute` all of the fastest point, padding and layout included, against the same time. Exit code: 0; 1 when a cell is above a bar; 2 for a mistake in the request."""
PHASES = ("forward_us", "hadamard_us", "inverse_us")

Cell = tuple[str, int, int, int]  # form, size, lefts, rights


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UserError(f"command line: {message}; see --help")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = _Parser(
        prog="python3 -m experiments.compare_artifact", description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    made.add_argument("--results", type=Path, default=ROOT / "results", metavar="DIR",
                      help="root of the results (default: results)")  # fmt: skip
    made.add_argument("--set", metavar="MACHINE_KEY", dest="machine",
                      help="which published set (default: the only one with these variants)")  # fmt: skip
    made.add_argument("--local", action="store_true", help="read the local set, not the published one")
    made.add_argument("--baseline", default="h200_artifact", help="a file of experiments/baselines/")
    made.add_argument("--markdown", action="store_true", help="print a Markdown table")
    return made


def load_baseline(name: str) -> tuple[dict[str, Any], dict[Cell, dict[str, str]]]:
    """What a baseline is compared with, and its rows by cell. UserError when there is none."""
    path = FOLDER / f"{name}.toml"
    if not path.is_file():
        known = [found.stem for found in FOLDER.glob("*.toml")]
        raise UserError(f"baseline {name}: unknown; {nearest(name, known)}")
    what = tomllib.loads(path.read_text(encoding="utf-8"))
    lines = (FOLDER / what["rows"]).read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return what, {
        (row["form"], int(row["size"]), int(row["lefts"]), int(row["rights"])): row for row in rows
    }


def choose_set(root: Path, machine: str | None, local: bool, variants: set[str]) -> Path:
    """The folder of the set; without a name the only one that has rows of `variants`."""
    folder = root / ("local" if local else "published")
    sets = sorted(path for path in folder.glob("*") if path.is_dir())
    if machine is not None:
        if folder / machine not in sets:
            raise UserError(f"set {machine}: not in {folder}; {nearest(machine, [p.name for p in sets])}")
        return folder / machine
    fitting = [path for path in sets if any(row["variant"] in variants for row in store.read_rows(path))]
    if len(fitting) != 1:
        found = ", ".join(path.name for path in fitting) or "none"
        raise UserError(f"sets with rows to compare in {folder}: {found}; name one with --set")
    return fitting[0]


def best_points(frame: pd.DataFrame, time: str = "compute_us") -> dict[Cell, dict[str, Any]]:
    """Of each cell the point with the least median `time`: its times, variant and params.

    `frame` holds rows of read_set, one per repetition. `phases_us` is NaN where forward or inverse was not
    marked; a Hadamard product inside the inverse transform counts as no time of its own. Cells whose points
    all lack `time` are left out.
    """
    point = ["form", "left_rows", "lefts", "rights", "variant", "params", "preset"]
    medians = frame.groupby(point)[["compute_us", *PHASES]].median().reset_index()
    medians["phases_us"] = medians["forward_us"] + medians["hadamard_us"].fillna(0) + medians["inverse_us"]
    best: dict[Cell, dict[str, Any]] = {}
    for row in medians.dropna(subset=[time]).sort_values(time, kind="stable").to_dict("records"):
        best.setdefault((row["form"], row["left_rows"], row["lefts"], row["rights"]), row)
    return best


def comparable(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that a baseline's cells can be compared with: CUDA, fp32, full window, equal squares."""
    square = (
        (frame["left_rows"] == frame["left_cols"])
        & (frame["left_rows"] == frame["right_rows"])
        & (frame["left_rows"] == frame["right_cols"])
    )
    return frame[
        square & (frame["outcome"] == "passed") & (frame["backend"] == "cuda") & (frame["mode"] == "stream")
        & (frame["precision"] == "fp32") & (frame["window"] == "full") & (frame["input"] == "uniform")
    ]  # fmt: skip


class Column:
    """Ratios of one comparison; counts what is above the bar."""

    def __init__(self, title: str, bar: float | None) -> None:
        self.title = title if bar is None else f"{title} (bar {bar:g})"
        self.bar = bar
        self.ratios: list[float] = []

    def cell(self, ours: float | None, theirs: str) -> str:
        """The ratio as text, or - where one side is missing."""
        if ours is None or math.isnan(ours) or not theirs:
            return "-"
        ratio = ours / float(theirs)
        self.ratios.append(ratio)
        return f"{ratio:.2f}" + (" !" if self.above(ratio) else "")

    def above(self, ratio: float) -> bool:
        return self.bar is not None and ratio > self.bar

    def mean(self) -> str:
        """Geometric mean."""
        if not self.ratios:
            return "-"
        return f"{math.exp(sum(math.log(ratio) for ratio in self.ratios) / len(self.ratios)):.2f}"

    def summary(self) -> str:
        count = sum(self.above(ratio) for ratio in self.ratios)
        bar = f", {count} above the bar" if self.bar is not None else ""
        return f"{self.title}: {len(self.ratios)} cells, geometric mean {self.mean()}{bar}"


def compare(what: dict[str, Any], baseline: dict[Cell, dict[str, str]],
            frame: pd.DataFrame) -> tuple[list[list[str]], list[str], list[Column]]:  # fmt: skip
    """Lines of the table, its headers, and the four columns of ratios."""
    rows = comparable(frame)
    fft = best_points(rows[rows["variant"] == what["fft"]["variant"]])
    phases = best_points(rows[rows["variant"] == what["fft"]["variant"]], "phases_us")
    naive = best_points(rows[rows["variant"] == what["naive"]["variant"]])
    definition = best_points(rows[~rows["family"].isin(what["transform_families"])])
    columns = [
        Column("phases", what["fft"]["phases_bar"]), Column("compute", what["fft"]["compute_bar"]),
        Column("overlap-wise", what["naive"]["compute_bar"]), Column("best definition", None),
    ]  # fmt: skip

    def text(point: dict[str, Any] | None, time: str) -> str:
        return "-" if point is None or math.isnan(point[time]) else f"{point[time]:.1f}"

    lines = []
    for cell, theirs in baseline.items():
        form, size, lefts, rights = cell
        ours, bare = fft.get(cell), phases.get(cell)
        slow, direct = naive.get(cell), definition.get(cell)
        lines.append([
            form, str(size), f"{lefts}:{rights}", f"{float(theirs['fft_us']):.1f}",
            text(bare, "phases_us"), columns[0].cell(bare and bare["phases_us"], theirs["fft_us"]),
            bare["params"] if bare else "-", text(ours, "compute_us"), columns[1].cell(ours and ours["compute_us"], theirs["fft_us"]),
            ours["params"] if ours else "-",
            text(slow, "compute_us"), columns[2].cell(slow and slow["compute_us"], theirs["overlap_wise_us"]),
            text(direct, "compute_us"),
            columns[3].cell(direct and direct["compute_us"], theirs["best_definition_us"]),
        ])  # fmt: skip
    lines.append(["geometric mean", "", "", "", "", columns[0].mean(), "", "", columns[1].mean(), "",
                  "", columns[2].mean(), "", columns[3].mean()])  # fmt: skip
    headers = ["form", "size", "counts", "their fft us", "phases us", "ratio", "of params", "compute us", "ratio", "params",
               "overlap-wise us", "ratio", "best definition us", "ratio"]  # fmt: skip
    return lines, headers, columns


def run(argv: Sequence[str]) -> int:
    """Compares and prints; the exit code."""
    asked = parser().parse_args(argv)
    what, baseline = load_baseline(asked.baseline)
    variants = {what["fft"]["variant"], what["naive"]["variant"]}
    folder = choose_set(asked.results, asked.machine, asked.local, variants)
    lines, headers, columns = compare(what, baseline, store.read_set(folder))
    print(f"{folder.name} against: {what['title']}\n")
    form = "github" if asked.markdown else "simple"
    print(tabulate(lines, headers, tablefmt=form, disable_numparse=True) + "\n")
    print("\n".join(("- " if asked.markdown else "") + column.summary() for column in columns))
    if not any(column.ratios for column in columns):
        raise UserError(f"set {folder.name}: no cell of the baseline is measured; run the experiments first")
    return int(any(column.above(ratio) for column in columns for ratio in column.ratios))


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; every mistake of the user is one line."""
    try:
        return run(sys.argv[1:] if argv is None else argv)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
