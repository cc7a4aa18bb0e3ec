"""Estimated times of points on a problem with fields: a score, a boundary, a result.

docs/library.md, How auto chooses, has the rules. Near measurements of such problems come first (xcorr/choice/prediction.py).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from xcorr.choice import speeds
from xcorr.choice.prediction import distance, neighbours, predict, reached, rests_on
from xcorr.choice.table import Point, Source, Times
from xcorr.errors import UserError
from xcorr.fields import NORMALISED, PLAIN
from xcorr.native.variants import Variant
from xcorr.problem import FORMS, Problem

# Scores that take equally long.
SIBLINGS = {"ncc": "zncc", "zncc": "ncc"}


@dataclass(frozen=True)
class Estimate:
    """Time of a point on a problem, and its source in words."""

    point: Point
    us: float
    why: str
    borrowed: bool = False  # the time of another point or of the parent; sorted after equal times


def estimates(
    problem: Problem,
    source: Source,
    variants: Sequence[Variant],
    can: Callable[[Problem, Point], bool] = lambda _, __: True,
) -> list[Estimate]:
    """Points of `variants` with an estimate from the source, fastest first; `problem` has fields. A variant that computes
    only scores has no plain times. It takes those of its parent and precedes it, since it is made to be faster there. `can`:
    as in predict()."""
    times, of_scores = source.times, {one.id for one in variants if one.is_of_scores}
    problem = _with_known_score(in_known_form(problem, times), times)
    predicted = predict(problem, times, can)
    own = {one.point[0] for one in predicted}
    if not reached(problem, times):
        bases = _bases(problem, times)  # with such fields the variant must be measured at least as near as its surface
        own &= {one.id for one in variants}
        own = {one for one in own if _nearest(one, [problem], times) <= _nearest(one, bases, times)}
    found = [Estimate(one.point, one.us, rests_on(problem, times, one)) for one in predicted if one.point[0] in own]
    surfaces = _surfaces(problem, times, {one.id: one for one in variants})
    for variant in variants:
        if variant.id in own:
            continue
        known = [params for params in variant.points if (variant.id, params) in surfaces]
        for params in known:
            found.append(_with_result(problem, variant, params, *surfaces[variant.id, params]))
        for params in variant.points if not known else ():
            others = ((variant.id, ""), (variant.parent, params), (variant.parent, ""))
            surface = next((surfaces[one] for one in others if one in surfaces), None)
            if surface:
                found.append(replace(_with_result(problem, variant, params, *surface), borrowed=True))
    return sorted(found, key=lambda one: (one.us, one.point[0] not in of_scores, one.borrowed, one.point))


def by_speeds(problem: Problem, variants: Sequence[Variant], cores: int) -> list[Estimate]:
    """Every point of `variants` by the speeds of speeds.toml, fastest first."""
    shipped, found, of_scores = speeds.shipped(), [], {one.id for one in variants if one.is_of_scores}
    for variant in variants:
        known = shipped["variants"]
        of = replace(variant, id=variant.parent) if variant.id not in known and variant.parent in known else variant
        for params in variant.points:
            us = 1e6 * speeds.launch_s(shipped, of, params, problem, cores)
            found.append(_with_result(problem, variant, params, us, "by the speeds of xcorr/choice/speeds.toml"))
    return sorted(found, key=lambda one: (one.us, one.point[0] not in of_scores, one.point))


def in_known_form(problem: Problem, times: Times) -> Problem:
    """The problem, or its pairs in another form if only that form was measured within REACH, with the fields or as surfaces.
    One left has the same pairs in every form, in one-to-one with one right."""
    if problem.is_plain or problem.lefts > 1:
        return problem
    forms = [one for one in FORMS if one != problem.form and (one != "one-to-one" or problem.rights == 1)]
    known = [problem, *(replace(problem, form=form) for form in forms)]
    return next((one for one in known if reached(one, times)), None) or next(
        (one for one in known if reached(one.surface, times)), problem
    )


def _nearest(variant: str, problems: Sequence[Problem], times: Times) -> float:
    """Octaves of data from one of the problems to the nearest measurement of the variant, else inf."""
    pairs = ((one, near) for one in problems for near in neighbours(one, times))
    return min(
        (distance(*pair) for pair in pairs if any(name == variant for name, _ in times[pair[1]])), default=math.inf
    )


def _with_known_score(problem: Problem, times: Times) -> Problem:
    """The problem, with the sibling of its score if only problems with that, or their surfaces, were measured."""
    sibling = SIBLINGS.get(problem.fields.score_kind, problem.fields.score)
    both = problem, replace(problem, fields=replace(problem.fields, score=sibling))
    known = (one for one in both if neighbours(one, times) or neighbours(one.surface, times))
    return next(known, problem)


def _surfaces(problem: Problem, times: Times, variants: Mapping[str, Variant]) -> dict[Point, tuple[float, str]]:
    """Time of the surface and its source by point; at (variant, "") of the variant's fastest point."""
    found: dict[Point, tuple[float, str]] = {}
    for base in _bases(problem, times):
        for one in reversed(predict(base, times)):  # the fastest of a variant and the better base come last
            variant, us = variants.get(one.point[0]), one.us
            why = rests_on(base, times, one)
            works = [speeds.work_of(of, variant.algorithm_class) for of in (problem, base) if variant is not None]
            if works and works[0] != works[1]:
                work = works[0] / works[1]
                us, why = us * work, f"{why}, times {work:.2g} for the work with boundary {problem.fields.boundary}"
            if variant is not None and problem.fields.score_kind in NORMALISED and base.fields.score_kind == "product":
                us = speeds.with_score_us(speeds.shipped(), variant, us)
                why = f"{why}, and what score {problem.fields.score_kind} costs"
            found[one.point] = found[one.point[0], ""] = us, why
    return found


def _bases(problem: Problem, times: Times) -> list[Problem]:
    """Problems whose surfaces estimate the problem's, the better last: the plain problem, and that with its fields."""
    try:
        plain = replace(problem, fields=PLAIN)
    except UserError:  # its window has no meaning there
        plain = problem.surface
    found = [plain, replace(problem.surface, fields=replace(problem.surface.fields, same="no"))]
    return [one for place, one in enumerate(found) if one not in found[:place] and neighbours(one, times)]


def _with_result(problem: Problem, variant: Variant, params: str, us: float, why: str) -> Estimate:
    """Estimate of a point whose surface takes `us`."""
    point, result = (variant.id, params), problem.fields.result
    if problem.fields.result_kind == "surface":
        return Estimate(point, us, f"estimated at {us:.3g} us; {why}")
    if not variant.is_reduced(result):
        return Estimate(
            point, us, f"estimated at {us:.3g} us or less, since it writes {result} itself; its surface: {why}"
        )
    reduction = 1e6 * speeds.reduction_s(speeds.shipped(), variant.backend, problem)
    total = us + reduction
    text = f"estimated at {total:.3g} us, {reduction:.3g} of it to reduce its surface to {result}; its surface: {why}"
    return Estimate(point, total, text)
