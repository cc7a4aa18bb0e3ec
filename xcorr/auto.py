"""auto: which variant and parameters to run a problem with, from what was measured.

    python3 -m xcorr.auto --form n-to-m --left 56 --right 56 --lefts 4 --rights 9 --device cuda

prints the choice and the times it rests on in one line. The first of these sources that has measured anything near
decides: the times of this machine (local, else published under its key), the shipped times of the nearest machine, and
where neither has the form a rule: the shortest time by the speeds of `speeds.toml`. xcorr/table.py has the files.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from xcorr import speeds, table
from xcorr.errors import Parser, UserError, command, nearest
from xcorr.fields import NAMES, PLAIN, Fields
from xcorr.library import Library, LibraryError, Request
from xcorr.paths import RESULTS
from xcorr.precisions import PRECISIONS
from xcorr.problem import FORMS, Problem, parse_counts, parse_size
from xcorr.table import Point, Source, Times
from xcorr.variants import Variant, assignments

# How a time is predicted. Of the nearest problems that were measured a plane is fitted through log time, weighted by
# 1 / distance^2, over log FMAs and log compulsory bytes: in them a launch (slopes 0 and 0), traffic (0 and 1) and
# arithmetic (1 and 0) are planes. Few neighbours do not settle both slopes, which a ridge therefore pulls to the
# middle of the three. Any count from 4 to 8 and ridge from 0.1 to 1 leaves about the same regret.
NEIGHBOURS = 6
SLOPES = np.array([0.5, 0.5])
RIDGE = 0.3
# Octaves of data. Two: half or twice both sides, a quarter or four times the matrices. Beyond REACH another machine's
# rows that lie nearer say more than one's own, such as those of the preset smoke.
NEAR, REACH = 2.0, 4.0

# What may be computed by definition where an FFT would lose the small outputs: nobody waits longer for it unasked.
FEASIBLE_US = 60e6


@dataclass(frozen=True)
class Predicted:
    """A point's time on a problem; `spread` is the relative misfit of its neighbours, 0 when it was measured."""

    point: Point
    us: float
    spread: float


@dataclass(frozen=True)
class Choice:
    """What to run, in one line why, and in one line what the user must know of its values, if anything."""

    variant: str
    params: str
    us: float
    why: str
    warning: str = ""


@lru_cache(maxsize=None)
def coordinates(problem: Problem) -> np.ndarray:
    """Of a problem: log2 of sides, outputs and counts, such that a euclidean distance is in octaves of data (twice
    both sides: 2, twice the matrices: 1)."""
    sides = np.log2([*problem.left, *problem.right, *problem.output])
    counts = np.log2([problem.lefts, problem.pairs / problem.lefts])
    return np.concatenate([sides * math.sqrt(4 / len(sides)), counts])


def distance(one: Problem, other: Problem) -> float:
    """Octaves of data between two problems of one form."""
    return float(np.linalg.norm(coordinates(one) - coordinates(other)))


def is_near(octaves: float) -> bool:
    """Whether a problem that far away still tells what is fast: at most NEAR, but for rounding."""
    return octaves < NEAR + 0.01


def neighbours(problem: Problem, times: Times) -> list[Problem]:
    """The nearest measured problems of the form, the nearest first, those left out on which only a few variants
    were measured: what is absent there was not found slow."""
    same = [one for one in times if one.form == problem.form and times[one]]
    variants = {one: len({variant for variant, _ in times[one]}) for one in same}
    enough = [one for one in same if 2 * variants[one] >= max(variants.values())]
    return sorted(enough, key=lambda one: (distance(problem, one), one.id))[:NEIGHBOURS]


def predict(problem: Problem, times: Times) -> list[Predicted]:
    """Every point that was measured on this problem or on one of the nearest with its time here, the fastest first."""
    own = times.get(problem, {})
    found = [Predicted(point, us, 0.0) for point, us in own.items()]
    near = neighbours(problem, times)
    if near:
        points = [point for point in _candidates(problem, near, times) if point not in own]
        found += [_fitted(problem, point, near, times) for point in points]
    return sorted(found, key=lambda one: (one.us, one.point))


def _candidates(problem: Problem, near: Sequence[Problem], times: Times) -> list[Point]:
    """Points of the nearest problem, and those of no other that lies beyond NEAR if they were measured on two or more:
    a sweep leaves points out where they are known to be slow, which a fit to few and far ones would not know."""
    within = [one for one in near[1:] if is_near(distance(problem, one))]
    often = Counter(point for one in near for point in times[one])
    return list(dict.fromkeys([*times[near[0]], *(p for one in within for p in times[one] if often[p] >= 2)]))


def _fitted(problem: Problem, point: Point, near: Sequence[Problem], times: Times) -> Predicted:
    own = [one for one in near if point in times[one]]
    weights = np.array([1 / (distance(problem, one) ** 2 + 0.01) for one in own])
    weights /= weights.sum()
    work = np.array([_work(one) for one in own]) - _work(problem)
    logs = np.log([times[one][point] for one in own]) - work @ SLOPES
    terms = np.column_stack([np.ones(len(own)), work])
    square = terms.T @ (terms * weights[:, None]) + np.diag([1e-9, RIDGE, RIDGE])
    plane = np.linalg.solve(square, terms.T @ (weights * logs))
    misfit = math.sqrt(float(weights @ (logs - terms @ plane) ** 2))
    return Predicted(point, math.exp(plane[0]), math.expm1(misfit))


@lru_cache(maxsize=None)
def _work(problem: Problem) -> np.ndarray:
    return np.log([max(problem.fmas, 1), problem.bytes(4)])


def ordered(problem: Problem, sources: Iterable[Source]) -> list[Source]:
    """Sources in the order in which they are asked: as they come, those without a problem within REACH last."""

    def reach(source: Source) -> float:
        if problem in source.times:
            return REACH
        near = neighbours(problem, source.times)
        return max(REACH, distance(problem, near[0])) if near else math.inf

    return sorted(sources, key=reach)


def pick(problem: Problem, source: Source, fits: Callable[[Point], str]) -> Choice | None:
    """The fastest predicted point that fits (`fits` says "" or why not), or None when the source has none."""
    ranked = predict(problem, source.times)
    for place, best in enumerate(ranked):
        if fits(best.point):
            continue
        others = (one for one in ranked[place + 1 :] if one.point[0] != best.point[0])
        return Choice(*best.point, best.us, _why(problem, source, best, next(others, None)))
    return None


def _why(problem: Problem, source: Source, best: Predicted, second: Predicted | None) -> str:
    if best.point in source.times.get(problem, {}):
        rests = f"measured {best.us:.3g} us"
    else:
        near = [one for one in neighbours(problem, source.times) if best.point in source.times[one]]
        off = distance(problem, near[0])
        sure = "near" if is_near(off) else "far, a guess"
        rests = (
            f"predicted {best.us:.3g} us within {best.spread:.0%} from {len(near)} measured problems, the nearest "
            f"{near[0].id}, {off:.2g} octaves of data away ({sure})"
        )
    rival = f"; next {second.point[0]} at {second.us / best.us:.2f} x" if second else ""
    return f"{rests}; {source.where}{rival}"


def by_rule(
    problem: Problem, variants: Iterable[Variant], machine: Mapping[str, Any], fits: Callable[[Point], str]
) -> Choice | None:
    """Without a measurement of the form: the shortest time by the speeds in speeds.toml, which know cores and class.
    Points that are equally fast keep their order."""
    shipped, cores = speeds.shipped(), max(1, int(machine.get("cores") or 1))
    timed = [
        (speeds.launch_s(shipped, variant, params, problem, cores), variant.id, params)
        for variant in variants
        for params in variant.points
    ]
    for seconds, *point in sorted(timed, key=lambda one: one[0]):
        if not fits((point[0], point[1])):
            why = f"nothing was measured; by rule, {seconds * 1e6:.3g} us at the speeds of xcorr/speeds.toml"
            return Choice(point[0], point[1], seconds * 1e6, why)
    return None


def in_order(
    problem: Problem, variants: Iterable[Variant], machine: Mapping[str, Any], fits: Callable[[Point], str]
) -> Choice | None:
    """Of a problem with fields, of which there is no table of times: the first variant that computes it, those of a family
    for such problems first, transforms before definitions, then by id, with a point of all threads if it has one."""
    shipped, cores = speeds.shipped(), max(1, int(machine.get("cores") or 1))
    families = shipped["families"]
    for variant in sorted(variants, key=lambda one: (one.family not in families, one.algorithm_class != "fft", one.id)):
        for params in sorted(variant.points, key=lambda point: assignments(point).get("threads") != "all"):
            if not fits((variant.id, params)):
                why = (
                    f"auto has times of plain problems only; with {problem.fields.text} it takes the first that computes it, "
                    "families for such problems before others, transforms before definitions"
                )
                return Choice(variant.id, params, speeds.launch_s(shipped, variant, params, problem, cores) * 1e6, why)
    return None


class Auto:
    """Chooses on one device of one build; a problem that was asked before costs nothing.

    `library` is a xcorr.library.Library or what stands in for it.
    """

    def __init__(self, library: Any, device: str = "cpu", results: Path = RESULTS) -> None:
        self._library, self._device, self._results = library, device, results
        self._machine: dict[str, Any] = library.machine(device)
        backend = device.partition(":")[0]
        self._variants = [Variant.from_list(one) for one in library.variants() if one["backend"] == backend]
        self._outdated = table.outdated(self._machine["machine_key"], results)
        self._sources: dict[str, list[Source]] = {}  # by precision
        self._known: dict[tuple[Problem, str, bool], Choice] = {}

    def choose(self, request: Request, precision: str = "fp32", risk: str = "") -> Choice:
        """The choice for a xcorr.library.Request. UserError where no variant of the build can.

        `risk`: what fft_range.risk says of the data, if they are known. Where it says anything, a variant by
        definition is chosen, unless none is feasible: then the FFT stays, with a warning.
        """
        sizes = (tuple(request.left), tuple(request.right), request.lefts, request.rights)
        problem = Problem(request.form, *sizes, request.window, request.fields)
        if problem.is_plain:  # one array twice takes as long as two
            problem = replace(problem, fields=PLAIN)
        if (problem, precision, False) not in self._known:
            self._known[problem, precision, False] = self._must_choose(request, problem, precision)
        fastest = self._known[problem, precision, False]
        if not risk or not self.is_fft(fastest.variant):
            return fastest
        if (problem, precision, True) not in self._known:
            known = self._choose(request, problem, precision, ("definition",))
            self._known[problem, precision, True] = known or replace(fastest, us=math.inf)
        exact = self._known[problem, precision, True]
        if exact.us <= FEASIBLE_US:
            return replace(exact, why=f"{exact.why}; no FFT: {risk}")
        way_out = f"no variant by definition computes it within {FEASIBLE_US * 1e-6:g} s"
        return replace(fastest, warning=f"{risk}; {way_out}")

    def is_fft(self, variant: str) -> bool:
        """Whether the variant of that name transforms."""
        return any(one.id == variant and one.algorithm_class == "fft" for one in self._variants)

    def _must_choose(self, request: Request, problem: Problem, precision: str) -> Choice:
        choice = self._choose(request, problem, precision, ("definition", "fft"))
        if choice is None:
            raise UserError(
                f"device {self._device}: no variant of this build computes {problem.id} in {precision} there; "
                "choose another --device or --precision"
            )
        return choice

    def _choose(self, request: Request, problem: Problem, precision: str, classes: Sequence[str]) -> Choice | None:
        here = [
            one
            for one in self._variants
            if precision in one.precisions and problem.form in one.forms and one.algorithm_class in classes
        ]
        points = {(one.id, params) for one in here for params in one.points}

        def fits(point: Point) -> str:
            if point not in points:
                return "not in this build"
            return self._library.supports(
                request, variant=point[0], params=point[1], precision=precision, device=self._device
            )

        if problem.fields != PLAIN:
            return in_order(problem, here, self._machine, fits)
        if precision not in self._sources:
            self._sources[precision] = list(table.sources(self._machine, self._device, precision, self._results))
        found = (
            pick(problem, source, fits) for source in ordered(problem, self._known_to(problem, here, precision, fits))
        )
        choice = next(filter(None, found), None) or by_rule(problem, here, self._machine, fits)
        return replace(choice, why=f"{choice.why}; {self._outdated}") if choice and self._outdated else choice

    def _known_to(
        self, problem: Problem, here: Sequence[Variant], precision: str, fits: Callable[[Point], str]
    ) -> list[Source]:
        """The sources whose times say something of the problem. Where a family for such problems takes it (speeds.toml), those
        that have its variants on a problem within REACH: times of other problems do not know them."""
        sources = self._sources[precision]
        own = [one for one in here if one.family in speeds.shipped()["families"]]
        special = {one.id for one in own if not all(map(fits, ((one.id, params) for params in one.points)))}
        if not special:
            return sources
        return [
            source
            for source in sources
            if any(
                near.form == problem.form
                and distance(problem, near) <= REACH
                and not special.isdisjoint(variant for variant, _ in source.times[near])
                for near in source.times
            )
        ]


def parser() -> Parser:
    """The command line."""
    made = Parser(prog="python3 -m xcorr.auto", description=__doc__)
    add = made.add_argument
    add("--form", default="one-to-one", help=", ".join(FORMS) + " (default: one-to-one)")
    add("--left", required=True, metavar="ROWSxCOLS", help="shape of the left matrices, 64 is 64x64")
    add("--right", metavar="ROWSxCOLS", help="shape of the right matrices (default: the left one)")
    add("--lefts", type=int, default=1, metavar="N", help="how many left matrices (default: 1)")
    add("--rights", type=int, default=1, metavar="N", help="how many right matrices in all (default: 1)")
    add("--window", default="full", help="full (default), valid or sy:a..b,sx:c..d")
    for name in NAMES:
        add(f"--{name}", default=getattr(PLAIN, name), help=f"a field of the problem (default: {getattr(PLAIN, name)})")
    add("--precision", default="fp32", help="fp32 (default), fp64, ...")
    add("--device", default="cpu", help="cpu (default) or cuda:N")
    made.add_results()
    return made


def run(argv: Sequence[str]) -> int:
    """The command; raises UserError."""
    options = parser().parse_args(argv)
    for what, value, valid in (("form", options.form, FORMS), ("precision", options.precision, PRECISIONS)):
        if value not in valid:
            raise UserError(f"{what} {value}: unknown; {nearest(value, valid)}")
    left, right = (parse_size(size)[0] for size in (options.left, options.right or options.left))
    lefts, rights = parse_counts(f"{options.lefts}:{options.rights}")
    fields = Fields(**{name: getattr(options, name) for name in NAMES})
    problem = Problem(options.form, left, right, lefts, rights, options.window, fields)
    request = Request(problem.form, left, right, lefts, rights, problem.window, **fields.given)
    try:
        chosen = Auto(Library(), options.device, options.results).choose(request, options.precision)
    except LibraryError as error:
        raise UserError(str(error)) from error
    print(f"{problem.id}: {chosen.variant} {chosen.params}".rstrip() + f": {chosen.why}")
    return 0


if __name__ == "__main__":
    sys.exit(command(run, None))
