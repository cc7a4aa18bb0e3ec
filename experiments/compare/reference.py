"""Prints measured rows against the kernel rows of a published artifact, one by one."""

from __future__ import annotations

import csv
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.compare.artifact import FOLDER, add_set, choose_set, comparable
from experiments.compare.markdown import printed
from experiments.driver import store
from xcorr.errors import Parser, UserError, command
from xcorr.files import load_toml
from xcorr.native.variants import assignments

if TYPE_CHECKING:
    import pandas as pd

NAMES = FOLDER / "reference_names.toml"
COLUMNS = ("form", "size", "lefts", "rights", "artifact_algorithm", "params", "phase", "median_us")
EPILOG = """example:
  python3 -m experiments.compare.reference --reference h200_jpdc_artifact.csv --variants split_row --above 1.1

The file has the columns form, size, lefts, rights, artifact_algorithm, params (key=value;...), phase (kernel:
compared), median_us. Of each of its rows the counterpart is the same algorithm, problem and parameters; where ours
has more parameters, the fastest point. A ratio is ours / the artifact's: below 1 ours is faster. Notes say where the
artifact's timer differs: `clear` leaves the clear of the output out, so ours is compared without it; `host` waits
for the device after every call. The rows are followed by a summary of each variant and form, and the last line is all
of it in one. Exit code: 0; 1 when a row has no counterpart or the median is above 1; 2 for a mistake in the request."""
ABOVE = 1.1  # a row that is slower than this is counted

Problem = tuple[str, int, int, int]  # form, size, lefts, rights


@dataclass(frozen=True)
class Reference:
    """One kernel row of the artifact, in our names."""

    problem: Problem
    variant: str
    params: dict[str, str]
    note: str
    median_us: float


def read_reference(path: Path) -> list[Reference]:
    """The kernel rows of a reference file. UserError for a file or a name that is not known."""
    names = load_toml(NAMES)
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    except OSError as error:
        raise UserError(f"reference {path}: {error.strerror}; give the file with --reference") from error
    reader = csv.DictReader(lines)
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
    if missing:
        raise UserError(f"reference {path}: column {missing[0]} is missing; see --help for the columns")
    found = []
    for row in reader:
        if row["phase"] != "kernel":
            continue
        algorithm = names["algorithms"].get(row["artifact_algorithm"])
        if algorithm is None:
            name = row["artifact_algorithm"]
            raise UserError(f"reference {path}: algorithm {name} has no name in {NAMES.name}; add it")
        params = {}
        for key, value in assignments(row["params"]).items():
            if key not in names["params"]:
                raise UserError(f"reference {path}: parameter {key} has no name in {NAMES.name}; add it")
            params[names["params"][key]] = names["values"].get(value, value)
        problem = (row["form"].replace("_", "-"), int(row["size"]), int(row["lefts"]), int(row["rights"]))
        note = algorithm.get("note", "")
        found.append(Reference(problem, algorithm["variant"], params, note, float(row["median_us"])))
    if not found:
        raise UserError(f"reference {path}: no row with phase kernel; give a file of kernel times")
    return found


Point = tuple[dict[str, str], float, float]  # params, compute_us, clear_us


def measured(frame: pd.DataFrame) -> dict[tuple[str, Problem], list[Point]]:
    """Points by variant and problem: parameters, medians of compute_us and clear_us (0: not marked)."""
    rows = comparable(frame)
    point = ["variant", "form", "left_rows", "lefts", "rights", "params"]
    medians = rows.groupby(point)[["compute_us", "clear_us"]].median().reset_index()
    found: dict[tuple[str, Problem], list[Point]] = defaultdict(list)
    for row in medians.fillna({"clear_us": 0.0}).to_dict("records"):
        params = assignments(row["params"])
        problem = (row["form"], row["left_rows"], row["lefts"], row["rights"])
        found[row["variant"], problem].append((params, row["compute_us"], row["clear_us"]))
    return found


def counterpart(reference: Reference, points: list[Point]) -> float | None:
    """Time of the fastest point that has the reference's parameters."""
    fitting = [
        compute - (clear if reference.note == "clear" else 0.0)
        for params, compute, clear in points
        if all(params.get(key) == value for key, value in reference.params.items())
    ]
    return min(fitting, default=None)


def parser() -> Parser:
    """The command line."""
    made = Parser(prog="python3 -m experiments.compare.reference", description=__doc__, epilog=EPILOG)
    made.add_argument("--reference", type=Path, required=True, metavar="FILE", help="CSV of the artifact's medians")
    made.add_argument("--variants", default="", metavar="A,B", help="only these variants of ours (default: all)")
    add_set(made)
    rows = made.add_mutually_exclusive_group()
    rows.add_argument("--summary", action="store_true", help="print the summary, no rows")
    rows.add_argument(
        "--above",
        type=float,
        metavar="RATIO",
        help=f"print and count only rows above this (default: all, count above {ABOVE:g})",
    )
    made.add_argument("--markdown", action="store_true", help="print Markdown tables")
    return made


@dataclass(frozen=True)
class Compared:
    """A row of the artifact beside ours; None where there is no counterpart."""

    reference: Reference
    ours_us: float | None

    @property
    def ratio(self) -> float | None:
        return None if self.ours_us is None else self.ours_us / self.reference.median_us

    def cells(self) -> list[str]:
        one = self.reference
        form, size, lefts, rights = one.problem
        asked = ";".join(f"{key}={value}" for key, value in sorted(one.params.items()))
        return [
            form,
            str(size),
            f"{lefts}:{rights}",
            one.variant,
            asked or "-",
            one.note or "-",
            f"{one.median_us:.1f}",
            "-" if self.ours_us is None else f"{self.ours_us:.1f}",
            "-" if self.ratio is None else f"{self.ratio:.2f}",
        ]


def compare(references: list[Reference], points: dict[tuple[str, Problem], list[Point]]) -> list[Compared]:
    """Each row beside its counterpart."""
    return [Compared(one, counterpart(one, points.get((one.variant, one.problem), []))) for one in references]


def summary(compared: list[Compared], above: float) -> list[list[str]]:
    """Of each variant, form and note: rows, median, worst, how many are above; then of all."""
    groups: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for one in compared:
        if one.ratio is not None:
            groups[one.reference.variant, one.reference.problem[0], one.reference.note or "-"].append(one.ratio)
    groups = dict(sorted(groups.items()))
    groups["all", "", ""] = [ratio for ratios in groups.values() for ratio in ratios]
    return [[*group, *figures(ratios, above)] for group, ratios in groups.items()]


def figures(ratios: list[float], above: float) -> list[str]:
    """How many, median, worst, how many above."""
    many = sum(ratio > above for ratio in ratios)
    return [str(len(ratios)), f"{statistics.median(ratios):.2f}", f"{max(ratios):.2f}", str(many)]


def run(argv: Sequence[str]) -> int:
    """Compares and prints; the exit code."""
    asked = parser().parse_args(argv)
    references = read_reference(asked.reference)
    wanted = set(filter(None, asked.variants.split(",")))
    unknown = wanted - {reference.variant for reference in references}
    if unknown:
        raise UserError(f"variant {min(unknown)}: has no row in {asked.reference}; see {NAMES.name} for the names")
    references = [one for one in references if not wanted or one.variant in wanted]
    variants = {one.variant for one in references}
    folder = choose_set(asked.results, asked.machine, asked.local, lambda row: row["variant"] in variants)
    compared = compare(references, measured(store.read_set(folder)))
    ratios = [one.ratio for one in compared if one.ratio is not None]
    if not ratios:
        raise UserError(f"set {folder.name}: no row of the reference is measured; run the experiments first")
    print(f"{folder.name} against {asked.reference.name}\n")
    above = ABOVE if asked.above is None else asked.above
    if not asked.summary:
        shown = [one.cells() for one in compared if asked.above is None or (one.ratio or 0) > above]
        headers = ["form", "size", "counts", "variant", "params", "note", "artifact us", "ours us", "ratio"]
        print(printed(shown, headers, asked.markdown) + "\n")
    headers = ["variant", "form", "note", "rows", "median ratio", "worst", f"above {above:g}"]
    print(printed(summary(compared, above), headers, asked.markdown) + "\n")
    without = len(compared) - len(ratios)
    rows, median, worst, many = figures(ratios, above)
    print(f"{rows} rows, median ratio {median}, worst {worst}, {many} above {above:g}, {without} without a counterpart")
    return int(without > 0 or statistics.median(ratios) > 1)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; every mistake of the user is one line."""
    return command(run, argv)


if __name__ == "__main__":
    sys.exit(main())
