"""Compares the relative L2 errors of stored rows with the bound that the program checks now.

Older rows have passed without this bound. A row whose stored error exceeds it should be measured again.
"""

import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from experiments.driver import store
from experiments.driver.store import Row
from xcorr.errors import Parser, UserError, command
from xcorr.native.precisions import ROUNDOFF
from xcorr.native.variants import is_transform
from xcorr.paths import ROOT
from xcorr.problem import Problem

EPILOG = """example:
  python3 -m experiments.published.l2_errors
  python3 -m experiments.published.l2_errors results/published/nvidia-h200-132-sm-140-gib

Exit code: 0 when no row is above its bound; 1 when one is, each point of such rows in a line; 2 for a mistake in the
request. `error / bound` is said of the row that comes nearest."""

SYSTEMATIC = ("offset", "alternating", "constant")  # inputs whose rounding errors have one sign


def l2_bound(row: Row) -> float:
    """The bound of a row by its variant's class, precision, input and problem. For a partial window it is the stored
    bound, which depends on the whole result; without a stored bound the value is a lower limit."""
    problem = Problem.of_row(row)
    stored = float(row.get("rel_l2_bound") or 0)
    if problem.window not in ("full", "valid") and stored > 0:
        return stored
    terms = math.prod(map(min, problem.left, problem.right))
    points = math.prod(a + b - 1 for a, b in zip(problem.left, problem.right))
    outputs = points if problem.window == "valid" else math.prod(problem.output)  # all outputs give the smallest bound
    roundoff = ROUNDOFF[row["precision"]]

    def sums(unit: float) -> float:
        return ((0.5 * terms if row["input"] in SYSTEMATIC else 0.8 * math.sqrt(terms)) + 4.0) * unit

    own = (1.2 * max(1.0, math.log2(points)) + 4.0) * roundoff if is_transform(row["variant"]) else sums(roundoff)
    return (1.0 + 8.0 / math.sqrt(outputs)) * (own + sums(ROUNDOFF["fp64"]))


def above(rows: Iterable[Row]) -> list[tuple[float, Row]]:
    """(error / bound, row) of the rows with a stored error, the largest ratio first."""
    held = [
        (float(row["rel_l2_error"]) / l2_bound(row), row)
        for row in rows
        if row["outcome"] == "passed" and row["rel_l2_error"] and row["input"] not in ("integer", "sparse")
    ]
    return sorted(held, key=lambda one: -one[0])


def report(folder: Path) -> tuple[list[str], int]:
    """Lines about a set, and the number of its rows above their bounds."""
    held = above(store.read_rows(folder))
    if not held:
        return [f"{folder.name}: no row with a relative L2 error"], 0
    wrong = [(ratio, row) for ratio, row in held if not ratio <= 1.0]
    largest = f"largest error / bound {held[0][0]:.3g}, {_name(held[0][1])}"
    lines = [f"{folder.name}: {len(wrong)} of {len(held)} rows above their bound; {largest}"]
    points = {(row["experiment"], store.key_of(row)): (ratio, row) for ratio, row in reversed(wrong)}
    lines += [f"  {ratio:.3g} {row['experiment']}: {_name(row)}" for ratio, row in points.values()]
    return lines, len(wrong)


def _name(row: Row) -> str:
    sizes = f"{row['left_rows']}x{row['left_cols']}/{row['right_rows']}x{row['right_cols']}"
    problem = f"{row['form']}/{sizes}/{row['lefts']}:{row['rights']}/{row['window']}"
    return f"{row['variant']} {row['params']} {row['precision']} {problem} {row['input']}"


def run(argv: Sequence[str]) -> int:
    made = Parser(prog="python3 -m experiments.published.l2_errors", description=__doc__, epilog=EPILOG)
    sets_help = "folders of sets (default: all of results/published)"
    made.add_argument("sets", nargs="*", type=Path, metavar="SET", help=sets_help)
    options = made.parse_args(argv)
    sets = options.sets or sorted(path for path in (ROOT / "results" / "published").iterdir() if path.is_dir())
    for folder in sets:
        if not folder.is_dir():
            raise UserError(f"set '{folder}': no such folder; give one of results/published")
    wrong = 0
    for folder in sets:
        lines, count = report(folder)
        print("\n".join(lines))
        wrong += count
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(command(run))
