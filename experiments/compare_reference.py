"""Prints measured rows against the kernel rows of a published artifact, one by one."""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from experiments import store
from experiments.compare_artifact import FOLDER, choose_set, comparable
from experiments.errors import UserError
from experiments.points import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import pandas as pd

NAMES = FOLDER / "reference_names.toml"
COLUMNS = ("form", "size", "lefts", "rights", "artifact_algorithm", "params", "phase", "median_us")
EPILOG = """example:
  python3 -m experiments.compare_reference --reference h200_jpdc_artifact.csv --variants split_row

The file has the columns form, size, lefts, rights, artifact_algorithm, params (key=value;...), phase (kernel: compared),
median_us. Of each of its rows the counterpart is the same algorithm, problem and parameters; where ours has more
parameters, the fastest point. A ratio is ours / the artifact's: below 1 ours is faster. Notes say where the
artifact's timer differs: `clear` leaves the clear of the output out, so ours is compared without it; `host` waits
for the device after every call. Exit code: 0; 1 when a row has no counterpart or the median is above 1; 2 for a
mistake in the request."""

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
    names = tomllib.loads(NAMES.read_text(encoding="utf-8"))
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
            raise UserError(f"reference {path}: algorithm {row['artifact_algorithm']} has no name in {NAMES.name}; add it")
        params = {}
        for pair in filter(None, row["params"].split(";")):
            key, _, value = pair.partition("=")
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
        params = dict(pair.split("=", 1) for pair in row["params"].split(";") if pair)
        problem = (row["form"], row["left_rows"], row["lefts"], row["rights"])
        found[row["variant"], problem].append((params, row["compute_us"], row["clear_us"]))
    return found


def counterpart(reference: Reference, points: list[Point]) -> tuple[float, dict[str, str]] | None:
    """Time and parameters of the fastest point that has the reference's parameters."""
    fitting = [
        (compute - (clear if reference.note == "clear" else 0.0), params)
        for params, compute, clear in points
        if all(params.get(key) == value for key, value in reference.params.items())
    ]
    return min(fitting, key=lambda found: found[0], default=None)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python3 -m experiments.compare_reference", description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    made.add_argument("--reference", type=Path, required=True, metavar="FILE", help="CSV of the artifact's medians")
    made.add_argument("--variants", default="", metavar="A,B", help="only these variants of ours (default: all)")
    made.add_argument("--results", type=Path, default=ROOT / "results", metavar="DIR",
                      help="root of the results (default: results)")  # fmt: skip
    made.add_argument("--set", metavar="MACHINE_KEY", dest="machine",
                      help="which set (default: the only one with these variants)")  # fmt: skip
    made.add_argument("--local", action="store_true", help="read the local set, not the published one")
    made.add_argument("--summary", action="store_true", help="print one line a variant, not each row")
    made.add_argument("--markdown", action="store_true", help="print Markdown tables")
    return made


def compare(references: list[Reference], points: dict[tuple[str, Problem], list[Point]]) -> tuple[list[list[str]], dict[str, list[float]], int]:
    """Lines of the table, ratios by variant and note, and how many rows have no counterpart."""
    lines, ratios, without = [], defaultdict(list), 0
    for reference in references:
        form, size, lefts, rights = reference.problem
        ours = counterpart(reference, points.get((reference.variant, reference.problem), []))
        without += ours is None
        ratio = None if ours is None else ours[0] / reference.median_us
        if ratio is not None:
            ratios[f"{reference.variant} {reference.note}".strip()].append(ratio)
        asked = ";".join(f"{key}={value}" for key, value in sorted(reference.params.items()))
        lines.append([
            form, str(size), f"{lefts}:{rights}", reference.variant, asked or "-", reference.note or "-",
            f"{reference.median_us:.1f}", "-" if ours is None else f"{ours[0]:.1f}",
            "-" if ratio is None else f"{ratio:.2f}",
        ])  # fmt: skip
    return lines, ratios, without


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
    lines, ratios, without = compare(references, measured(store.read_set(folder)))
    style: dict[str, Any] = {"tablefmt": "github" if asked.markdown else "simple", "disable_numparse": True}
    print(f"{folder.name} against {asked.reference.name}\n")
    if not asked.summary:
        headers = ["form", "size", "counts", "variant", "params", "note", "artifact us", "ours us", "ratio"]
        print(tabulate(lines, headers, **style) + "\n")
    summary = [
        [name, str(len(values)), f"{statistics.median(values):.2f}", f"{max(values):.2f}",
         str(sum(value > 1 for value in values))]
        for name, values in sorted(ratios.items())
    ]  # fmt: skip
    every = [value for values in ratios.values() for value in values]
    if not every:
        raise UserError(f"set {folder.name}: no row of the reference is measured; run the experiments first")
    summary.append(["all", str(len(every)), f"{statistics.median(every):.2f}", f"{max(every):.2f}",
                    str(sum(value > 1 for value in every))])  # fmt: skip
    print(tabulate(summary, ["variant", "rows", "median ratio", "worst", "above 1"], **style))
    print(f"\nrows without a counterpart: {without}")
    return int(without > 0 or statistics.median(every) > 1)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; every mistake of the user is one line."""
    try:
        return run(sys.argv[1:] if argv is None else argv)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
