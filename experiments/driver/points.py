"""Makes the ordered list of what is measured from experiments, variants and filters."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.driver import source_tree
from experiments.driver.columns import Key, Row
from experiments.driver.schema import Experiment, grid, modes_by_problem, restriction
from experiments.driver.store import key_of
from xcorr.errors import UserError, choose, nearest
from xcorr.native.variants import Variant, assignments
from xcorr.problem import COLUMNS as PROBLEM
from xcorr.problem import FORMS, Problem, format_shape, parse_size


@dataclass(frozen=True)
class Unit:
    """A variant on a problem, and the parameters to measure. A process measures one unit, or several.

    `needed`: parameters that a figure of a paper or a claim needs, whatever limit on a launch the preset has. `drawn`:
    parameters of points that figures draw and that cannot win, for which one process of a block is enough. `brief`: parameters
    that a block measures with --brief.
    """

    experiment: str
    problem: Problem
    variant: Variant
    precision: str
    mode: str
    input: str
    params: tuple[str, ...]
    energy_s: float = 0.0
    needed: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()
    brief: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"{self.variant.id} {self.problem.id}"

    @property
    def reference(self) -> tuple[Any, ...]:
        """What decides the reference values of the unit's points."""
        return self.problem, self.precision, self.variant.algorithm_class

    def cells(self, params: str, preset: str) -> Row:
        """The columns of a point's resume key."""
        source_hash = self.variant.hash_of(self.problem.fields.result)
        variant = {"variant": self.variant.id, "params": params, "source_hash": source_hash}
        how = {"precision": self.precision, "mode": self.mode, "input": self.input, "preset": preset}
        return {**variant, **dict(zip(PROBLEM, map(str, self.problem.cells))), **how}

    def key(self, params: str, preset: str) -> Key:
        return key_of(self.cells(params, preset))


@dataclass(frozen=True)
class Filters:
    """What the command line selects; None selects everything."""

    experiments: Sequence[str] | None = None
    variants: Sequence[str] | None = None
    sizes: Sequence[str] | None = None
    forms: Sequence[str] | None = None


ALL = Filters()


def select_variants(names: Iterable[str], variants: Sequence[Variant], where: str, *, built: bool) -> set[str]:
    """Ids of the variants that `names` (ids, families and "*") select.

    UserError, with the nearest name, for a name that the build does not contain. With `built` false a variant of the
    source tree is allowed, since an experiment may name CUDA variants on a machine without nvcc.
    """
    ids: set[str] = set()
    for name in names:
        found = {v.id for v in variants if name in ("*", v.id, v.family)}
        if not found and source_tree.has_variant(name):
            if built:
                raise UserError(f"{where} {name}: not in this build; enable its backend")
        elif not found and name != "*":
            known = {v.id for v in variants} | {v.family for v in variants}
            raise UserError(f"{where} {name}: unknown; {nearest(name, known)}")
        ids |= found
    return ids


def select_points(points: Sequence[str], params: Mapping[str, Sequence[Any]] | None) -> tuple[str, ...]:
    """The points whose parameters have one of the values in `params`. Parameters that it does not name are free."""
    kept = {name: {str(value) for value in values} for name, values in (params or {}).items()}

    def fits(point: str) -> bool:
        return all(value in kept.get(name, {value}) for name, value in assignments(point).items())

    return tuple(point for point in points if fits(point))


def _check_params(params: Mapping[str, Sequence[Any]] | None, variants: Sequence[Variant], where: str) -> None:
    """UserError for a parameter or a value that no variant has, built or not."""
    known: dict[str, set[str]] = {}
    for variant in variants:
        for point in variant.points:
            for name, value in assignments(point).items():
                known.setdefault(name, set()).add(value)
    for name, values in (params or {}).items():
        if name not in known and not source_tree.has_parameter(name):
            raise UserError(f"{where}: parameter {name}: unknown; {nearest(name, known)}")
        built = {variant.id for variant in variants}
        for value in map(str, values) if name in known else ():  # else its variants are not built here
            if value not in known[name] and not source_tree.may_have_value(name, value, built):
                choices = ", ".join(sorted(known[name]))
                raise UserError(f"{where}: {name} = {value}: no variant has it; choose from {choices}")


def _takes(variant: Variant, problem: Problem) -> bool:
    """Whether the variant takes the problem by its declaration: some variants take only `same`, some only scores."""
    same, scores = problem.fields.same == "yes", problem.fields.score != "product"
    return problem.form in variant.forms and same >= variant.same_only and scores >= variant.is_of_scores


def expand(
    experiments: dict[str, Experiment], variants: Sequence[Variant], preset: str, device: str, filters: Filters = ALL
) -> list[Unit]:
    """All units in a fixed order: by experiment (simple forms first), by ascending work, by variant.

    UserError for a filter with an unknown name, or where no unit is left.
    """
    names = list(experiments)
    if filters.experiments is not None:
        names = choose("experiment", filters.experiments, experiments)
    names.sort(key=lambda name: (FORMS.index(experiments[name].form), name))
    wanted = {v.id for v in variants}
    if filters.variants is not None:
        wanted = select_variants(filters.variants, variants, "variant", built=True)
    # On the CPU the CUDA variants stay in the list: the program itself answers not_supported.
    here = [one for one in variants if one.backend == "cuda" or not device.startswith("cuda")]
    here.sort(key=lambda one: one.id)
    forms = FORMS if filters.forms is None else choose("form", filters.forms, FORMS)
    sizes = _sizes(filters.sizes, experiments, preset)

    units: list[Unit] = []
    for name in names:
        experiment = experiments[name]
        chosen = wanted & select_variants(experiment.variants, variants, f"experiment {name}: variant", built=False)
        params = restriction(experiment, preset).params
        _check_params(params, variants, f"experiment {name}, preset {preset}")
        for problem, modes in modes_by_problem(experiment, preset).items():
            if problem.form not in forms or (sizes is not None and (problem.left, problem.right) not in sizes):
                continue
            for variant in here:
                points = select_points(variant.points, params)
                if variant.id not in chosen or not _takes(variant, problem) or not points:
                    continue
                kinds = [(one, mode) for one in experiment.precisions if one in variant.precisions for mode in modes]
                units += [
                    Unit(name, problem, variant, *kind, experiment.input, points, float(experiment.energy_s))
                    for kind in kinds
                    if kind[1] in variant.modes
                ]
    if not units:
        way_out = "loosen --experiments, --variants, --sizes or --forms"
        raise UserError(f"selection: nothing to measure with preset {preset} on {device}; {way_out}")
    return units


def _sizes(
    wanted: Sequence[str] | None, experiments: dict[str, Experiment], preset: str
) -> set[tuple[Any, Any]] | None:
    if wanted is None:
        return None
    known = {(p.left, p.right) for e in experiments.values() for p in grid(e, preset)}
    sizes = {parse_size(size) for size in wanted}
    for left, right in sizes:
        if (left, right) not in known:
            texts = [tuple(map(format_shape, sizes)) for sizes in sorted(known)]
            have = ", ".join(a if a == b else f"{a}:{b}" for a, b in texts)
            raise UserError(f"size {format_shape(left)}: in no experiment of preset {preset}; choose from {have}")
    return sizes


def parse_shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(-?\d+)/(-?\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UserError(f"shard {text}: not a part; write K/N with 1 <= K <= N, as in 2/4")
    return int(match[1]), int(match[2])


def cell_of_figure(unit: Unit) -> Hashable:
    """What the variants that a figure compares share."""
    return unit.experiment, unit.problem, unit.mode, unit.input


def series_of(unit: Unit) -> Hashable:
    """What problems share that differ in nothing but their number of matrices: launches with few matrices predict those with many."""
    problem = unit.problem
    return problem.form, problem.left, problem.right, problem.window, problem.fields


def take_shard(
    units: Sequence[Unit], shard: tuple[int, int], together: Callable[[Unit], Hashable] = cell_of_figure
) -> list[Unit]:
    """Part k of n. The parts are disjoint, complete and of similar work.

    Units that are alike by `together` are in one part: all variants of a problem, so that rivals are measured in one run on one
    card. Each n of them start with the next shard, since otherwise a shard would get only some sizes or counts of the ordered list.
    """
    k, n = shard
    place: dict[Hashable, int] = {}
    numbers = [place.setdefault(together(unit), len(place)) for unit in units]
    return [unit for unit, i in zip(units, numbers) if (i + i // n) % n == k - 1]


def in_processes(units: Sequence[Unit], most: int) -> list[tuple[Unit, ...]]:
    """Groups of at most `most` units of one variant and precision, one group for each process."""
    groups: dict[tuple[Any, ...], list[Unit]] = {}
    for i, unit in enumerate(units):
        groups.setdefault((unit.variant.id, unit.precision) if most > 1 else (i,), []).append(unit)
    return [tuple(group[i : i + most]) for group in groups.values() for i in range(0, len(group), most)]
