"""Choice of variant and parameters for a problem from measured times (docs/library.md, How auto chooses)."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from xcorr.choice import plans, speeds, table
from xcorr.choice.by_data import by_data, sides_of
from xcorr.choice.estimates import Estimate, by_speeds, estimates, in_known_form
from xcorr.choice.prediction import REACH, Predicted, distance, neighbours, predict, reached, rests_on
from xcorr.choice.table import Point, Source
from xcorr.errors import UserError
from xcorr.fields import PLAIN
from xcorr.native.variants import Variant
from xcorr.paths import RESULTS
from xcorr.problem import Problem

# Longest time by definition in place of an FFT that would lose the small outputs.
FEASIBLE_US = 60e6

T = TypeVar("T", Predicted, Estimate)


@dataclass(frozen=True)
class Choice:
    """What to run, the reason in one line, and in one line what the user must know of the outputs, else ""."""

    variant: str
    params: str
    us: float
    why: str
    warning: str = ""
    precision: str = "fp32"


def ordered(problem: Problem, sources: Iterable[Source]) -> list[Source]:
    """Sources in their order, but those without a problem within REACH last."""

    def reach(source: Source) -> float:
        if problem in source.times:
            return REACH
        known = in_known_form(problem, source.times)
        near = neighbours(known, source.times)
        return max(REACH, distance(known, near[0])) if near else math.inf

    return sorted(sources, key=reach)


def _fastest(
    known: Iterable[T],
    fits: Callable[[Point], str],
    plan_us: Callable[[Point], float],
    rival_fits: Callable[[Point], str] = lambda _: "",
) -> tuple[T, str] | None:
    """The fastest with its plan that fits, and words about the next variant; None if none fits. Ties keep order."""

    def total(one: T) -> float:
        return one.us + plan_us(one.point)

    ranked = sorted(known, key=total)
    for place, best in enumerate(ranked):
        if not fits(best.point):
            others = (one for one in ranked[place + 1 :] if one.point[0] != best.point[0] and not rival_fits(one.point))
            second = next(others, None)
            return best, f"; next {second.point[0]} at {total(second) / total(best):.2f} x" if second else ""
    return None


def pick(
    problem: Problem, source: Source, fits: Callable[[Point], str], plan_us: Callable[[Point], float] = lambda _: 0.0
) -> Choice | None:
    """The fastest predicted point with its plan that fits, else None. `fits`: "" or the reason why a point does not fit;
    `plan_us`: the call's share of its plan."""
    found = _fastest(predict(problem, source.times), fits, plan_us)
    if found is None:
        return None
    best, rival = found
    return Choice(*best.point, best.us, f"{rests_on(problem, source.times, best)}; {source.where}{rival}")


def by_rule(
    problem: Problem,
    variants: Iterable[Variant],
    cores: int,
    fits: Callable[[Point], str],
    plan_us: Callable[[Point], float],
) -> Choice | None:
    """The shortest time with its plan by the speeds of speeds.toml."""
    shipped = speeds.shipped()
    timed = (
        Predicted((one.id, params), 1e6 * speeds.launch_s(shipped, one, params, problem, cores), 0.0)
        for one in variants
        for params in one.points
    )
    found = _fastest(timed, fits, plan_us)
    if found is None:
        return None
    why = f"nothing was measured; by rule, {found[0].us:.3g} us at the speeds of xcorr/choice/speeds.toml"
    return Choice(*found[0].point, found[0].us, why)


def _first_that_fits(
    known: Iterable[Estimate], fits: Callable[[Point], str], plan_us: Callable[[Point], float]
) -> Choice | None:
    """The fastest estimate with its plan that fits, and the next variant that does."""
    found = _fastest(known, fits, plan_us, fits)
    return found and Choice(*found[0].point, found[0].us, found[0].why + found[1])


def _special(here: Sequence[Variant], fits: Callable[[Point], str]) -> list[Variant]:
    """Variants with a point that fits, of the families for problems of one kind (speeds.toml). They come before others,
    and only sources that know them decide."""
    own = [one for one in here if one.family in speeds.shipped()["families"]]
    return [one for one in own if not all(map(fits, ((one.id, params) for params in one.points)))]


def _knows(source: Source, variants: set[str], problem: Problem) -> bool:
    """Whether the source has a time of one of the variants on a problem within REACH."""
    near = (one for one in source.times if one.form == problem.form and distance(problem, one) <= REACH)
    return any(not variants.isdisjoint(variant for variant, _ in source.times[one]) for one in near)


class Auto:
    """Chooses on one device of one build, and remembers its choices.

    `library`: an xcorr.native.library.Library or a substitute. `calls`: number of calls that share a plan (xcorr/choice/plans.py);
    by default the plan is kept and costs nothing.
    """

    def __init__(
        self, library: Any, device: str = "cpu", results: Path = RESULTS, *, calls: float = plans.KEPT
    ) -> None:
        self._library, self._device, self._calls = library, device, calls
        machine: dict[str, Any] = library.machine(device)
        backend = device.partition(":")[0]
        self._variants = [Variant.from_list(one) for one in library.variants() if one["backend"] == backend]
        self._outdated = table.outdated(machine["machine_key"], results)
        self._of = cache(lambda precision: list(table.sources(machine, device, precision, results)))
        self._known: dict[tuple[Problem, str, float, tuple[str, ...]], Choice | None] = {}
        self._cores = max(1, int(machine.get("cores") or 1))

    def choose(self, asked: Problem, precision: str = "fp32", risk: str = "", *, calls: float | None = None) -> Choice:
        """The choice for a problem. UserError if no variant of the build computes it. `calls`: replaces the number of the class.

        `risk`: fft_range.risk of the data, if known. With a risk a variant by definition is chosen; if none is feasible, the FFT
        with a warning.
        """
        problem, sources = asked, self._of(precision)
        if asked.is_plain and asked.fields != PLAIN and not any(reached(asked, one.times) for one in sources):
            problem = replace(asked, fields=PLAIN)  # same=yes takes as long as two arrays
        served = self._calls if calls is None else calls

        def of_classes(*classes: str) -> Choice | None:
            place = problem, precision, served, classes
            if place not in self._known:
                self._known[place] = self._choose(asked, *place)
            return self._known[place]

        fastest = of_classes("definition", "fft")
        if fastest is None:
            raise UserError(
                f"device {self._device}: no variant of this build computes {problem.id} in {precision} there; "
                "choose another --device or --precision"
            )
        fft = {one.id for one in self._variants if one.algorithm_class == "fft"}
        if not risk or fastest.variant not in fft:
            return fastest
        exact = of_classes("definition")
        if exact and exact.us <= FEASIBLE_US:
            return replace(exact, why=f"{exact.why}; no FFT: {risk}")
        way_out = f"no variant by definition computes it within {FEASIBLE_US * 1e-6:g} s"
        return replace(fastest, warning=f"{risk}; {way_out}")

    def choose_for(
        self,
        problem: Problem,
        left: Any,
        right: Any = None,
        *,
        left_mask: Any = None,
        right_mask: Any = None,
        precision: str | None = None,
    ) -> Choice:
        """The choice for these arrays, as in `Library.correlate`: by definition if an FFT would lose outputs, and in fp64 if float32
        has too few digits and no `precision` is given. `Choice.warning` names what remains wrong."""
        sides = sides_of(problem, left, right, left_mask, right_mask)
        choice: Choice = by_data(self, self._library, problem, sides, precision, self._device, FEASIBLE_US)
        return choice

    def _choose(
        self, asked: Problem, problem: Problem, precision: str, calls: float, classes: Sequence[str]
    ) -> Choice | None:
        """The choice for `asked`, by times of `problem`, which takes as long."""
        here = [
            one
            for one in self._variants
            if precision in one.precisions and problem.form in one.forms and one.algorithm_class in classes
        ]
        points = {(one.id, params) for one in here for params in one.points}

        def fits(point: Point) -> str:
            return self._refusal(asked, point, precision) if point in points else "not in this build"

        by_id, shipped = {one.id: one for one in here}, speeds.shipped()

        def plan_us(point: Point) -> float:
            variant = by_id.get(point[0])
            return plans.share_us(shipped, variant, point[1], problem, calls) if variant else 0.0

        special, sources = _special(here, fits), self._of(precision)
        if problem.fields != PLAIN:
            choice = self._with_fields(problem, special or here, precision, fits, plan_us)
        else:
            ids = {one.id for one in special}
            known = [source for source in sources if not ids or _knows(source, ids, problem)]
            found = (pick(problem, source, fits, plan_us) for source in ordered(problem, known))
            choice = next(filter(None, found), None) or by_rule(problem, here, self._cores, fits, plan_us)
        told = plans.text_of(calls) + f"; {self._outdated}" * bool(self._outdated)
        return choice and replace(choice, why=choice.why + told)

    def _refusal(self, problem: Problem, point: Point, precision: str) -> str:
        """Reason why the point cannot compute the problem on this device, else ""."""
        place = {"variant": point[0], "params": point[1], "precision": precision, "device": self._device}
        return str(self._library.supports(problem, **place))

    def _can(self, precision: str, problem: Problem, point: Point) -> bool:
        """Whether the point computes the problem on this device. True for a point that this build does not have."""
        known = any(one.id == point[0] and point[1] in one.points for one in self._variants)
        return not known or not self._refusal(problem, point, precision)

    def _with_fields(
        self,
        problem: Problem,
        variants: Sequence[Variant],
        precision: str,
        fits: Callable[[Point], str],
        plan_us: Callable[[Point], float],
    ) -> Choice | None:
        """The fastest point by the first source with a measurement or estimate of a point that fits, else by speeds."""
        fields, can = problem.fields.text, partial(self._can, precision)
        for source in ordered(problem, self._of(precision)):
            choice = _first_that_fits(estimates(problem, source, variants, can), fits, plan_us)
            if choice is not None:
                near = reached(in_known_form(problem, source.times), source.times)
                told = "" if near else f"nothing near was measured with {fields}; "
                return replace(choice, why=f"{told}{choice.why}; {source.where}")
        choice = _first_that_fits(by_speeds(problem, variants, self._cores), fits, plan_us)
        return choice and replace(choice, why=f"nothing was measured; by rule with {fields}, {choice.why}")
