"""What is worth measuring: the fastest points that rows exist of, and the points that figures show.

A variant needs no entry anywhere for that: where no row ranks its points, some of its grid stand for it."""

from __future__ import annotations

import dataclasses
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from experiments.driver import store
from experiments.driver.points import Unit
from experiments.driver.run_records import read_runs
from experiments.driver.schema import Experiment, Restriction
from experiments.driver.store import Row
from experiments.driver.studies import without_studies
from xcorr.choice.prediction import distance
from xcorr.native.variants import assignments
from xcorr.problem import COLUMNS, Problem

# Points of a variant that neither rows nor an experiment single out.
FEW = 8

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
        cell: sorted(points, key=lambda one: (statistics.median(points[one]), one)) for cell, points in times.items()
    }


def named(point: str, names: Sequence[str]) -> bool:
    """Whether all parameters of one of `names` are the point's."""
    own = assignments(point).items()
    return any(own >= assignments(name).items() for name in names)


def spread(points: Sequence[str], most: int) -> tuple[str, ...]:
    """At most so many of the points, evenly spaced over the grid, its first and its last among them."""
    if len(points) <= most:
        return tuple(points)
    return tuple(dict.fromkeys(points[round(i * (len(points) - 1) / max(1, most - 1))] for i in range(most)))


class Elsewhere:
    """The fastest points by other machines: of each variant on the nearest problem that a set has.

    `rankings`: of each set its `ranking`, the most trusted one first. `foreign`: whether no set is of the
    architecture that is measured on, so that its best points need not be the best here.
    """

    def __init__(self, rankings: Sequence[Mapping[Cell, Sequence[str]]], foreign: bool) -> None:
        self.foreign = foreign
        self._sets: list[Mapping[Cell, list[tuple[Problem, Sequence[str]]]]] = []
        for ranked in rankings:
            by_variant: dict[Cell, list[tuple[Problem, Sequence[str]]]] = defaultdict(list)
            for (variant, precision, *cells), points in ranked.items():
                by_variant[variant, precision].append((Problem.of_cells(*cells), points))
            self._sets.append(by_variant)

    def points(self, unit: Unit, most: int) -> tuple[str, ...]:
        """At most so many points of the unit, the fastest first; none where no set has the variant. Problems with its fields
        and of its form come before others."""
        form, fields = unit.problem.form, unit.problem.fields
        for by_variant in self._sets:
            built = [
                (
                    problem.fields != fields,
                    problem.form != form,
                    distance(unit.problem, problem),
                    problem.id,
                    [one for one in points if one in unit.params],
                )
                for problem, points in by_variant.get((unit.variant.id, unit.precision), [])
            ]
            near = min((one for one in built if one[-1]), default=None)
            if near:
                return tuple(near[-1][:most])
        return ()

    def some(self, unit: Unit, most: int) -> tuple[str, ...]:
        """The points that stand for a variant where no row of this machine ranks them."""
        known = self.points(unit, most)
        if not known:
            return spread(unit.params, FEW)
        return tuple(dict.fromkeys([*known, *spread(unit.params, 2)])) if self.foreign else known


def architecture(backend: str, facts: Mapping[str, object]) -> str:
    """What a variant of `backend` runs on, by a machine's facts (`xcorr-bench --machine`, `before` of a run's
    record): `cpu`, or a compute capability such as 9.0."""
    return "cpu" if backend == "cpu" else str(facts.get("compute_capability") or "unknown")


def elsewhere(published: Path, backend: str, facts: Mapping[str, object], own: Iterable[Row] = ()) -> Elsewhere:
    """What the published sets of a folder know. `own`: the rows of this machine's set, which lead.
    Sets of this machine's architecture come before others."""
    here = architecture(backend, facts)
    sets: list[tuple[bool, str, Mapping[Cell, Sequence[str]]]] = []
    for folder in sorted(path for path in published.glob("*") if path.is_dir()):
        same = any(architecture(backend, run.get("before", {})) == here for run in read_runs(folder).values())
        if folder.name != facts.get("machine_key"):
            rows = [row for row in store.read_rows(folder) if row["backend"] == backend]
            if rows:
                sets.append((not same, folder.name, ranking(rows)))
    sets.sort(key=lambda one: one[:2])
    mine = ranking(own)
    return Elsewhere([*([mine] if mine else []), *(one[2] for one in sets)], not mine and all(one[0] for one in sets))


def keep_plotted(units: Sequence[Unit], experiments: Mapping[str, Experiment]) -> list[Unit]:
    """The units with the points that `plotted` of their experiment names; those of an experiment without it
    stay as they are. A variant that it does not name keeps some of its grid, one that it names without a point goes."""
    kept = []
    for unit in units:
        names = experiments[unit.experiment].plotted
        if names is None:
            chosen = unit.params
        elif unit.variant.id in names:
            chosen = tuple(one for one in unit.params if named(one, names[unit.variant.id]))
        else:
            chosen = spread(unit.params, FEW)
        if chosen:
            kept.append(dataclasses.replace(unit, params=chosen))
    return kept


def keep_best(
    units: Sequence[Unit],
    experiments: Mapping[str, Experiment],
    preset: str,
    ranked: Mapping[Cell, Sequence[str]],
    default: int | None = None,
    instead: Callable[[Unit, int], Sequence[str]] | None = None,
) -> tuple[list[Unit], list[Unit]]:
    """The units with the points that `best` (by `ranked`) and `points` of their experiment keep, and the units
    that were left out because they have neither rows nor a named point. `default`: the `best` of the preset, for
    experiments that have none of their own. `instead(unit, best)` names points of a unit without rows."""
    kept, empty = [], []
    for unit in units:
        limit = experiments[unit.experiment].presets.get(preset, Restriction())
        best = default if limit.best is None else limit.best
        if best is None:
            kept.append(unit)
            continue
        fastest: Sequence[str] = [one for one in ranked.get(_cell(unit), []) if one in unit.params][:best]
        if not fastest and instead:
            fastest = instead(unit, best)
        names = limit.points.get(unit.variant.id, [])
        chosen = tuple(one for one in unit.params if one in fastest or named(one, names))
        if chosen:
            kept.append(dataclasses.replace(unit, params=chosen))
        else:
            empty.append(unit)
    return kept, empty
