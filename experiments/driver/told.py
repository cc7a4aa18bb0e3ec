"""What a run prints: estimates before it, counts after it, and notes on what it leaves out."""

import dataclasses
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from experiments.driver import store
from experiments.driver.best import keep_best
from experiments.driver.columns import OUTCOMES
from experiments.driver.points import Filters, Unit, expand, in_processes
from experiments.driver.predict import Predictor
from experiments.driver.schema import Experiment
from experiments.driver.sweep import Progress, Sweep
from xcorr.errors import UserError
from xcorr.fields import NAMES as FIELDS
from xcorr.native.variants import Variant


def note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def nothing_to_do(sweep: Sweep, folder: Path) -> int:
    """Prints that every point has rows; the exit code is that of these rows."""
    print(f"nothing to do: every point has rows in {folder}; --force measures again")
    print(summary(sweep.progress, folder, 0.0))
    return 1 if sweep.progress.bad() else 0


def dry_run_table(
    units: Sequence[Unit], pending: Sequence[Unit], predictor: Predictor, problems_a_process: int = 1
) -> str:
    """The number of points, processes and seconds in total; then a table of points, points already measured, points not
    selected and estimated minutes by experiment and variant.

    `pending`: each of `units` with the points that are left to measure.
    """
    chosen = [[one for one in unit.params if not predictor.why_not(unit, one)] for unit in pending]
    selected = [dataclasses.replace(unit, params=tuple(some)) for unit, some in zip(pending, chosen)]
    processes = in_processes([unit for unit in selected if unit.params], problems_a_process)
    shared_by = {unit: len(group) for group in processes for unit in group}
    cells: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0, 0, 0.0])
    total: list[float] = [0, 0, 0, 0.0]
    for unit, left, some in zip(units, pending, selected):
        minutes = predictor.unit_s(unit, some.params, shared_by.get(some, 1)) / 60
        of_unit, of_left, of_some = len(unit.params), len(left.params), len(some.params)
        counts = (of_unit, of_unit - of_left, of_left - of_some, minutes)
        for row in (cells[(unit.experiment, unit.variant.id)], total):
            row[:] = [a + b for a, b in zip(row, counts)]
    head = ["experiment", "variant", "points", "already measured", "not selected", "minutes"]
    body: list[list[Any]] = [[*place, *row] for place, row in cells.items()]
    table = tabulate([*body, ["total", "", *total]], head, floatfmt=".1f")
    points = sum(map(len, chosen))
    return f"to measure: {points} points in {len(processes)} processes, about {total[3] * 60:.0f} s\n\n{table}"


def say_left_out(
    preset: str,
    filters: Filters,
    experiments: dict[str, Experiment],
    variants: Sequence[Variant],
    device: str,
    some: int,
) -> None:
    """Prints a line on the points that a preset with `borrow` leaves out. `some`: number of the preset's points."""
    try:
        everything = keep_best(expand(experiments, variants, "quick", device, filters), experiments, "quick", {})[0]
    except UserError:  # the selection has nothing under that preset
        return
    all_of = sum(len(unit.params) for unit in everything)
    if all_of > some:
        note(
            f"preset {preset} takes {some} of the {all_of} points of preset quick, which has more sizes and "
            "counts and every point of every variant; scripts/reproduce.sh --preset quick measures them"
        )


def summary(progress: Progress, folder: Path, took_s: float) -> str:
    """Number of points by outcome, the folder of the rows, and every incorrect or failed point."""
    counts = progress.counts()
    order = [outcome for outcome in OUTCOMES if counts[outcome]]
    found = ", ".join(f"{counts[outcome]} {outcome}" for outcome in order) or "none"
    lines = [f"points: {found}; {took_s / 60:.1f} min; rows in {folder}"]
    for key, outcome, reason in progress.bad():
        cell = dict(zip(store.KEY, key))
        lines.append(
            f"{outcome}: {cell['variant']} {cell['params'] or '-'} {cell['precision']} "
            f"{cell['form']} {cell['left_rows']}x{cell['left_cols']}/{cell['right_rows']}x"
            f"{cell['right_cols']} {cell['lefts']}:{cell['rights']} {cell['window']}"
            f"{''.join(f' {name}={cell[name]}' for name in FIELDS if cell[name])}: {reason}"
        )
    return "\n".join(lines)
