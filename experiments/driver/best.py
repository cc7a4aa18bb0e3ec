"""Selects points to measure: the fastest points by existing rows.

A variant needs no entry for that: where no row ranks its points, a few points of its grid are selected."""

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from experiments.driver import store
from experiments.driver.points import Unit
from experiments.driver.run_records import read_runs
from experiments.driver.schema import Experiment, restriction
from experiments.driver.store import Row
from experiments.driver.studies import without_studies
from xcorr.choice.prediction import distance
from xcorr.native.variants import assignments
from xcorr.problem import COLUMNS, Problem

FEW = 8  # selected points of a variant that neither rows nor an experiment rank

# A unit without its experiment and mode. Times in the mode stream rank its points, whatever their preset and source hash.
CELL = ("variant", "precision", *COLUMNS)
Cell = tuple[str, ...]


def cell_of(unit: Unit) -> Cell:
    """The variant and problem of a unit, whatever its experiment, mode and input."""
    return (unit.variant.id, unit.precision, *map(str, unit.problem.cells))


def ranking(rows: Iterable[Row]) -> dict[Cell, list[str]]:
    """Parameters by cell, the fastest first, by the median over all repetitions that passed. Rows of side experiments
    count only for points that no other experiment has."""
    times: dict[Cell, list[tuple[float, str]]] = defaultdict(list)
    for (*cell, params), us in store.medians(without_studies(rows), (*CELL, "params")).items():
        times[tuple(cell)].append((us, params))
    return {cell: [params for _, params in sorted(points)] for cell, points in times.items()}


def named(point: str, names: Sequence[str]) -> bool:
    """Whether the point has all parameters of one of `names`."""
    own = assignments(point).items()
    return any(own >= assignments(name).items() for name in names)


def spread(points: Sequence[str], most: int) -> tuple[str, ...]:
    """At most `most` points, evenly spaced over the grid, with its first and last point."""
    if len(points) <= most:
        return tuple(points)
    return tuple(dict.fromkeys(points[round(i * (len(points) - 1) / max(1, most - 1))] for i in range(most)))


class Elsewhere:
    """The fastest points of each variant on the nearest problem in other sets.

    `rankings`: the `ranking` of each set, the most trusted set first. `foreign`: whether all sets are of other
    architectures, so that their best points need not be the best here.
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
        """At most `most` points of the unit, the fastest first; none where no set has the variant. Problems with the
        same fields and then of the same form come first."""
        form, fields = unit.problem.form, unit.problem.fields
        for by_variant in self._sets:
            built = []
            for problem, points in by_variant.get((unit.variant.id, unit.precision), []):
                apart = (problem.fields != fields, problem.form != form, distance(unit.problem, problem), problem.id)
                built.append((*apart, [one for one in points if one in unit.params]))
            near = min((one for one in built if one[-1]), default=None)
            if near:
                return tuple(near[-1][:most])
        return ()

    def some(self, unit: Unit, most: int) -> tuple[str, ...]:
        """The points of a variant that no row of this machine ranks."""
        known = self.points(unit, most)
        if not known:
            return spread(unit.params, FEW)
        return tuple(dict.fromkeys([*known, *spread(unit.params, 2)])) if self.foreign else known


def architecture(backend: str, facts: Mapping[str, object]) -> str:
    """`cpu`, or the compute capability, such as 9.0, in the facts of a machine (`xcorr-bench --machine`)."""
    return "cpu" if backend == "cpu" else str(facts.get("compute_capability") or "unknown")


def rows_near(published: Path, device: str, facts: Mapping[str, object]) -> list[Row]:
    """The rows of the published sets of this machine's architecture, those of its own set last."""
    backend = device.partition(":")[0]
    here, found = architecture(backend, facts), []
    for folder in sorted(published.glob("*"), key=lambda path: (path.name == facts.get("machine_key"), path.name)):
        if any(architecture(backend, run.get("before", {})) == here for run in read_runs(folder).values()):
            found += [row for row in store.read_rows(folder) if row["backend"] == backend]
    return found


def elsewhere(published: Path, backend: str, facts: Mapping[str, object], own: Iterable[Row] = ()) -> Elsewhere:
    """The rankings of the published sets in a folder. `own`: rows of this machine, which come first. Sets of this
    machine's architecture come before others."""
    here = architecture(backend, facts)
    near: list[Mapping[Cell, Sequence[str]]] = []
    far: list[Mapping[Cell, Sequence[str]]] = []
    for folder in sorted(path for path in published.glob("*") if path.is_dir()):
        same = any(architecture(backend, run.get("before", {})) == here for run in read_runs(folder).values())
        if folder.name != facts.get("machine_key"):
            rows = [row for row in store.read_rows(folder) if row["backend"] == backend]
            (near if same else far).extend([ranking(rows)] if rows else [])
    mine = ranking(own)
    return Elsewhere([*([mine] if mine else []), *near, *far], foreign=not mine and not near)


def keep_best(
    units: Sequence[Unit],
    experiments: Mapping[str, Experiment],
    preset: str,
    ranked: Mapping[Cell, Sequence[str]],
    default: int | None = None,
    instead: Callable[[Unit, int], Sequence[str]] | None = None,
) -> tuple[list[Unit], list[Unit]]:
    """The units with the points that `best` (by `ranked`) and `points` of their experiment keep; and the units without
    rows and without a named point, which are left out. `default`: `best` of the preset, for experiments without their
    own. `instead(unit, best)`: points of a unit without rows."""
    kept, empty = [], []
    for unit in units:
        limit = restriction(experiments[unit.experiment], preset)
        best = default if limit.best is None else limit.best
        if best is None:
            kept.append(unit)
            continue
        cell = (unit.variant.id, unit.precision, *map(str, unit.problem.cells))
        fastest: Sequence[str] = [one for one in ranked.get(cell, []) if one in unit.params][:best]
        if not fastest and instead:
            fastest = instead(unit, best)
        names = limit.points.get(unit.variant.id, [])
        chosen = tuple(one for one in unit.params if one in fastest or named(one, names))
        if chosen:
            kept.append(dataclasses.replace(unit, params=chosen))
        else:
            empty.append(unit)
    return kept, empty
