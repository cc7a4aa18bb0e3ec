"""Prints the times of measured rows beside those of a published baseline, and marks each ratio above its bar."""

from __future__ import annotations

import csv
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments import folders
from experiments.compare.markdown import printed
from experiments.driver import store
from experiments.driver.schema import studies
from xcorr.errors import Parser, UserError, command, nearest
from xcorr.files import load_toml

if TYPE_CHECKING:
    import pandas as pd

FOLDER = folders.FOLDER / "jpdc" / "artifact"  # what the published artifact measured
EPILOG = """example:
  python3 -m experiments.compare.artifact --set nvidia-h200-132-sm-140-gib --part definition --markdown

A ratio is our time / the baseline's time: below 1 ours is faster. ! marks a ratio above its bar. `missing` marks a cell
that we have not measured. Parts:
  fft         `phases` is forward + hadamard + inverse of the point that is fastest in this sum; `compute` is the whole
              time of the fastest point, padding and layout included. Both are compared with the baseline's three phases,
              whose transforms are host enqueue rates
  naive       our kernel with a thread per output element against the baseline's
  definition  the fastest point of the paper's families of algorithms against the baseline's fastest. Notes say where the
              baseline's timer differs: `clear` excludes the clear of the output, and ours is compared without it; `host`
              waits for the device after every call
Exit code: 0; 1 when a cell is above a bar or no cell of a part can be compared; 2 for a mistake in the request."""
PHASES = ("forward_us", "hadamard_us", "inverse_us")
WORDS = "outcome=passed backend=cuda mode=stream precision=fp32 window=full input=uniform"
COMPARED = dict(word.split("=") for word in WORDS.split())  # of a row that a baseline's cells can be compared with
NOTES = ("clear", "host")

Cell = tuple[str, int, int, int]  # form, size, lefts, rights
Baseline = dict[Cell, dict[str, str]]


def load_baseline(name: str) -> tuple[dict[str, Any], Baseline]:
    """What a baseline is compared with, and its rows by cell. UserError where there is no such baseline."""
    path = FOLDER / f"{name}.toml"
    if not path.is_file():
        known = [found.stem for found in FOLDER.glob("*.toml")]
        raise UserError(f"baseline {name}: unknown; {nearest(name, known)}")
    what = load_toml(path)
    lines = (FOLDER / what["rows"]).read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return what, {(row["form"], int(row["size"]), int(row["lefts"]), int(row["rights"])): row for row in rows}


def choose_set(root: Path, machine: str | None, local: bool, wanted: Callable[[store.Row], bool]) -> Path:
    """The folder of the set `machine`, by default of the only set that has `wanted` rows."""
    folder = root / ("local" if local else "published")
    sets = sorted(path for path in folder.glob("*") if path.is_dir())
    if machine is not None:
        if folder / machine not in sets:
            raise UserError(f"set {machine}: not in {folder}; {nearest(machine, [p.name for p in sets])}")
        return folder / machine
    fitting = [path for path in sets if any(map(wanted, store.read_rows(path)))]
    if len(fitting) != 1:
        found = ", ".join(path.name for path in fitting) or "none"
        raise UserError(f"sets with rows to compare in {folder}: {found}; name one with --set")
    return fitting[0]


def best_points(frame: pd.DataFrame, time: str = "compute_us") -> dict[Cell, dict[str, Any]]:
    """For each cell the times, variant and params of the point with the smallest median `time`.

    `frame` holds rows of read_set, one per repetition. `phases_us` is NaN where forward or inverse was not timed. A
    missing Hadamard time counts as 0: the product is then part of the inverse transform. `unclear_us` is compute_us -
    clear_us. Cells whose points all lack `time` are left out.
    """
    point = ["form", "left_rows", "lefts", "rights", "variant", "params", "preset"]
    medians = frame.groupby(point)[["compute_us", "clear_us", *PHASES]].median().reset_index()
    medians["phases_us"] = medians["forward_us"] + medians["hadamard_us"].fillna(0) + medians["inverse_us"]
    medians["unclear_us"] = medians["compute_us"] - medians["clear_us"].fillna(0)
    fastest = medians.dropna(subset=[time]).sort_values(time, kind="stable").drop_duplicates(point[:4])
    return {tuple(row[name] for name in point[:4]): row for row in fastest.to_dict("records")}


def comparable(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that a baseline's cells can be compared with: CUDA, fp32, full window, equal squares. A row of a side
    experiment stays only where no other experiment measured the point."""
    kept = (frame[["left_cols", "right_rows", "right_cols"]].eq(frame["left_rows"], axis=0)).all(axis=1)
    for name, value in COMPARED.items():
        kept &= frame[name] == value
    rows = frame[kept]
    side = rows["experiment"].isin(studies())
    point = [rows[name] for name in ("variant", "params", "form", "left_rows", "lefts", "rights")]
    return rows[~side | side.groupby(point).transform("all")]


class Column:
    """Ratios of one comparison; counts what is above the bar and what is missing."""

    def __init__(self, title: str, bar: float) -> None:
        self.title, self.bar = title, bar
        self.ratios: list[float] = []
        self.missing = 0

    def cell(self, ours: dict[str, Any] | None, time: str, theirs: str) -> str:
        """The ratio as text; - where the baseline has no time."""
        if not theirs:
            return "-"
        if ours is None:
            self.missing += 1
            return "missing"
        ratio = ours[time] / float(theirs)
        self.ratios.append(ratio)
        return f"{ratio:.2f}" + (" !" if ratio > self.bar else "")

    def above(self) -> int:
        return sum(ratio > self.bar for ratio in self.ratios)

    def mean(self) -> str:
        """Geometric mean."""
        return f"{statistics.geometric_mean(self.ratios):.2f}" if self.ratios else "-"

    def summary(self) -> str:
        worst = f"{max(self.ratios):.2f}" if self.ratios else "-"
        missing = f", {self.missing} not compared" if self.missing else ""
        return (
            f"{self.title} (bar {self.bar:g}): {len(self.ratios)} cells, geometric mean {self.mean()}, "
            f"worst {worst}, {self.above()} above the bar{missing}"
        )


@dataclass(frozen=True)
class Part:
    """One comparison. `lines`: the cells of the columns in `headers`, by cell. `means`: their geometric means."""

    headers: str  # separated by commas
    lines: dict[Cell, list[str]]
    means: list[str]
    columns: list[Column]
    notes: list[str] = field(default_factory=list)

    def printed(self, markdown: bool) -> str:
        lines = [[form, size, f"{lefts}:{rights}", *line] for (form, size, lefts, rights), line in self.lines.items()]
        headers = ["form", "size", "counts", *self.headers.split(", ")]
        return printed([*lines, ["geometric mean", "", "", *self.means]], headers, markdown)


def text(point: dict[str, Any] | None, value: str) -> str:
    """A time or a word of a point; - without a point."""
    if point is None:
        return "-"
    return f"{point[value]:.1f}" if value.endswith("_us") else point[value] or "-"


def compare_fft(what: dict[str, Any], baseline: Baseline, rows: pd.DataFrame) -> Part:
    """The transform pipeline: its three phases, and all of it."""
    mine = rows[rows["variant"] == what["variant"]]
    bare, whole = best_points(mine, "phases_us"), best_points(mine)
    phases, compute = Column("phases", what["phases_bar"]), Column("compute", what["compute_bar"])
    lines = {}
    for cell, theirs in baseline.items():
        fast, ours, time = bare.get(cell), whole.get(cell), theirs["fft_us"]
        of_phases = [text(fast, "phases_us"), phases.cell(fast, "phases_us", time), text(fast, "params")]
        of_all = [text(ours, "compute_us"), compute.cell(ours, "compute_us", time), text(ours, "params")]
        lines[cell] = [f"{float(time):.1f}", *of_phases, *of_all]
    headers = "their fft us, phases us, ratio, of params, compute us, ratio, params"
    return Part(headers, lines, ["", "", phases.mean(), "", "", compute.mean(), ""], [phases, compute])


def compare_naive(what: dict[str, Any], baseline: Baseline, rows: pd.DataFrame) -> Part:
    """A thread per output element."""
    best = best_points(rows[rows["variant"] == what["variant"]])
    column = Column("overlap-wise", what["compute_bar"])
    lines = {}
    for cell, theirs in baseline.items():
        ours, time = best.get(cell), theirs["overlap_wise_us"]
        shown = f"{float(time):.1f}" if time else "-"
        lines[cell] = [shown, text(ours, "compute_us"), column.cell(ours, "compute_us", time)]
    return Part("their overlap-wise us, overlap-wise us, ratio", lines, ["", "", column.mean()], [column])


def compare_definition(what: dict[str, Any], baseline: Baseline, rows: pd.DataFrame) -> Part:
    """The fastest point of the paper's algorithms, without the output's clear where the baseline excludes it."""
    mine = rows[rows["family"].isin(what["families"])]
    best = {"compute_us": best_points(mine), "unclear_us": best_points(mine, "unclear_us")}
    column = Column("best definition", what["compute_bar"])
    lines = {}
    for cell, theirs in baseline.items():
        notes = [note for note in NOTES if cell[0] in what[note]["forms"]]
        time, baseline_us = "unclear_us" if "clear" in notes else "compute_us", theirs["best_definition_us"]
        ours = best[time].get(cell)
        unclear = text(ours, time) if "clear" in notes else "-"
        times = [f"{float(baseline_us):.1f}", text(ours, "compute_us"), unclear, column.cell(ours, time, baseline_us)]
        lines[cell] = [", ".join(notes) or "-", *times, text(ours, "variant"), text(ours, "params")]
    headers = "note, their definition us, ours us, without clear us, ratio, variant, params"
    notes = [f"{note}: {what[note]['reason']}" for note in NOTES]
    absent = [family for family in what["families"] if family not in set(mine["family"])]
    if absent:
        notes.append(f"families without a row in this set: {', '.join(absent)}")
    return Part(headers, lines, ["", "", "", "", column.mean(), "", ""], [column], notes)


COMPARE = {"fft": compare_fft, "naive": compare_naive, "definition": compare_definition}


def run(argv: Sequence[str]) -> int:
    made = Parser(prog="python3 -m experiments.compare.artifact", description=__doc__, epilog=EPILOG)
    add = made.add_argument
    made.add_results()
    set_help = "machine key of the set (default: the only set with these variants)"
    add("--set", metavar="MACHINE_KEY", dest="machine", help=set_help)
    add("--local", action="store_true", help="read the local set, not the published one")
    add("--part", choices=("all", *COMPARE), default="all", help="print only this comparison (default: all)")
    add("--baseline", default="h200_artifact", help="a file of experiments/jpdc/artifact/")
    add("--markdown", action="store_true", help="print a Markdown table")
    asked = made.parse_args(argv)
    names = [asked.part] if asked.part in COMPARE else list(COMPARE)
    what, baseline = load_baseline(asked.baseline)
    variants = {what[name].get("variant") for name in names}
    families = {family for name in names for family in what[name].get("families", [])}
    folder = choose_set(
        asked.results, asked.machine, asked.local, lambda row: row["variant"] in variants or row["family"] in families
    )
    rows = comparable(store.read_set(folder))
    parts = {name: COMPARE[name](what[name], baseline, rows) for name in names}
    print(f"{folder.name} against: {what['title']}\n")
    item = "- " if asked.markdown else ""
    for part in parts.values():
        print(part.printed(asked.markdown) + "\n")
        for line in [*part.notes, *(column.summary() for column in part.columns)]:
            print(item + line)
        print()
    empty = [name for name, part in parts.items() if not any(column.ratios for column in part.columns)]
    if empty:
        reason = f"no cell of {', '.join(empty)} can be compared; run the experiments first or choose another --part"
        print(f"error: set {folder.name}: {reason}", file=sys.stderr)
    return int(bool(empty) or any(column.above() for part in parts.values() for column in part.columns))


main = partial(command, run)

if __name__ == "__main__":
    sys.exit(main())
