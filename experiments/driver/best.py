"""What is worth measuring: the fastest points that rows exist of, and the points that figures show."""

from __future__ import annotations

import dataclasses
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from experiments.driver.points import Unit
from experiments.driver.schema import Experiment, Restriction
from experiments.driver.store import Row
from experiments.driver.studies import without_studies
from xcorr.problem import COLUMNS
from xcorr.variants import assignments

# A cell: what a unit is besides its experiment and mode. Times of any preset rank its points, the
# sources of which may have changed since; those of the mode stream, which every point has.
CELL = ("variant", "precision", *COLUMNS)
Cell = tuple[str, ...]


def _cell(unit: Unit) -> Cell:
    return (unit.variant.id, unit.precision, *map(str, unit.problem.cells))


def ranking(rows: Iterable[Row]) -> dict[Cell, list[str]]:
    """Parameters by cell, the fastest first, by the median over all repetitions that passed; side experiments count where no
    other one has the point."""
    times: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in without_studies(rows):
        if row["outcome"] == "passed" and row["mode"] == "stream" and row["compute_us"]:
            times[tuple(row[name] for name in CELL)][row["params"]].append(float(row["compute_us"]))
    return {
        cell: sorted(points, key=lambda one: (statistics.median(points[one]), one))
        for cell, points in times.items()
    }


def named(point: str, names: Sequence[str]) -> bool:
    """Whether all parameters of one of `names` are the point's."""
    own = assignments(point).items()
    return any(own >= assignments(name).items() for name in names)


def keep_plotted(units: Sequence[Unit], experiments: Mapping[str, Experiment]) -> list[Unit]:
    """The units with the points that `plotted` of their experiment names; those of an experiment without it
    stay as they are, and a variant that it does not name goes."""
    kept = []
    for unit in units:
        names = experiments[unit.experiment].plotted
        chosen = unit.params if names is None else tuple(
            one for one in unit.params if named(one, names.get(unit.variant.id, []))
        )
        if chosen:
            kept.append(dataclasses.replace(unit, params=chosen))
    return kept


def keep_best(
    units: Sequence[Unit], experiments: Mapping[str, Experiment], preset: str, ranked: Mapping[Cell, Sequence[str]]
) -> tuple[list[Unit], list[Unit]]:
    """The units with the points that `best` (by `ranked`) and `points` of their experiment keep, and the units
    that were left out because they have neither rows nor a named point."""
    kept, empty = [], []
    for unit in units:
        limit = experiments[unit.experiment].presets.get(preset, Restriction())
        if limit.best is None:
            kept.append(unit)
            continue
        fastest = [one for one in ranked.get(_cell(unit), []) if one in unit.params][: limit.best]
        names = limit.points.get(unit.variant.id, [])
        chosen = tuple(one for one in unit.params if one in fastest or named(one, names))
        if chosen:
            kept.append(dataclasses.replace(unit, params=chosen))
        else:
            empty.append(unit)
    return kept, empty
