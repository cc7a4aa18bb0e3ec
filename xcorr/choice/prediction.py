"""Predicted times of points on problems that were not measured, from times of other problems."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr.choice.table import Point, Times
from xcorr.problem import Problem

# A plane over log FMAs and log compulsory bytes is fitted through log time of the nearest measured problems, weighted by
# 1 / distance^2. Times of launches (slopes 0 and 0), of traffic (0 and 1) and of arithmetic (1 and 0) are such planes. Few
# neighbours leave the slopes uncertain; a ridge pulls them to SLOPES. 4 to 8 neighbours and a ridge of 0.1 to 1 have about the
# same regret.
NEIGHBOURS = 6
SLOPES = np.array([0.5, 0.5])
RIDGE = 0.3
# In octaves of data: both sides doubled are two, four times the matrices too. Beyond REACH nearer rows of another machine are better.
NEAR, REACH = 2.0, 4.0


@dataclass(frozen=True)
class Predicted:
    """Time of a point on a problem; `spread`: relative misfit of its neighbours, 0 if measured."""

    point: Point
    us: float
    spread: float


@cache
def coordinates(problem: Problem) -> NDArray[Any]:
    """log2 of sides, outputs and counts, scaled so that a Euclidean distance is in octaves of data (both sides doubled: 2,
    matrices doubled: 1)."""
    sides = np.log2([*problem.left, *problem.right, *problem.output])
    counts = np.log2([problem.lefts, problem.pairs / problem.lefts])
    return np.concatenate([sides * math.sqrt(4 / len(sides)), counts])


def distance(one: Problem, other: Problem) -> float:
    """Octaves of data between two problems of one form."""
    return float(np.linalg.norm(coordinates(one) - coordinates(other)))


def is_near(octaves: float) -> bool:
    """Whether a distance is at most NEAR, but for rounding."""
    return octaves < NEAR + 0.01


def neighbours(problem: Problem, times: Times) -> list[Problem]:
    """The NEIGHBOURS nearest measured problems of the form and of like fields (Fields.alike), nearest first.

    Problems with few variants are left out: an absent variant was not found slow there. Few is less than half of the largest
    number of variants; with fields, which fewer variants compute, less than a third."""
    like = problem.fields.alike
    same = [one for one in times if one.form == problem.form and one.fields.alike == like and times[one]]
    variants = {one: len({variant for variant, _ in times[one]}) for one in same}
    share = 2 if problem.is_plain else 3
    enough = [one for one in same if share * variants[one] >= max(variants.values())]
    return sorted(enough, key=lambda one: (distance(problem, one), one.id))[:NEIGHBOURS]


def predict(
    problem: Problem, times: Times, can: Callable[[Problem, Point], bool] = lambda _, __: True
) -> list[Predicted]:
    """Points measured on this problem or its neighbours with their time here, fastest first. `can`: whether a point computes
    a problem; a point that cannot compute the nearest problem was not found slow there."""
    own = times.get(problem, {})
    found = [Predicted(point, us, 0.0) for point, us in own.items()]
    near = neighbours(problem, times)
    if near:
        points = [point for point in _candidates(problem, near, times, can) if point not in own]
        found += [_fitted(problem, point, near, times) for point in points]
    return sorted(found, key=lambda one: (one.us, one.point))


def _candidates(
    problem: Problem, near: Sequence[Problem], times: Times, can: Callable[[Problem, Point], bool]
) -> list[Point]:
    """Points to predict: those of the nearest problem, of the nearest problem that a point can compute, and of problems within
    NEAR if measured twice. Sweeps leave slow points out, which a fit to few and far problems would not know."""
    within = [one for one in near[1:] if is_near(distance(problem, one))]
    often = Counter(point for one in near for point in times[one])
    found = dict.fromkeys([*times[near[0]], *(p for one in within for p in times[one] if often[p] >= 2)])
    for point in often:
        if point not in found and point in times[next(one for one in near if point in times[one] or can(one, point))]:
            found[point] = None
    return list(found)


def _fitted(problem: Problem, point: Point, near: Sequence[Problem], times: Times) -> Predicted:
    own = [one for one in near if point in times[one]]
    weights = np.array([1 / (distance(problem, one) ** 2 + 0.01) for one in own])
    weights /= weights.sum()
    work = np.array([_work(one) for one in own]) - _work(problem)
    logs = np.log([times[one][point] for one in own]) - work @ SLOPES
    terms = np.column_stack([np.ones(len(own)), work])
    square = terms.T @ (terms * weights[:, None]) + np.diag([1e-9, RIDGE, RIDGE])
    plane = _plane(square, terms.T @ (weights * logs))
    misfit = math.sqrt(float(weights @ (logs - terms @ plane) ** 2))
    return Predicted(point, math.exp(plane[0]), math.expm1(misfit))


def _plane(square: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Best offset and slopes above SLOPES (normal equations), such that more work never takes less time."""
    plane, free = np.linalg.solve(square, right), [0, 1, 2]
    while any(plane[slope] < -SLOPES[slope - 1] - 1e-12 for slope in free[1:]):
        lowest = min(free[1:], key=lambda slope: plane[slope] + SLOPES[slope - 1])
        free.remove(lowest)
        plane[lowest] = -SLOPES[lowest - 1]
        fixed = [one for one in (1, 2) if one not in free]
        rest = right[free] - square[np.ix_(free, fixed)] @ plane[fixed]
        plane[free] = np.linalg.solve(square[np.ix_(free, free)], rest)
    return plane


@cache
def _work(problem: Problem) -> NDArray[Any]:
    return np.log([max(problem.fmas, 1), problem.bytes(4)])


def reached(problem: Problem, times: Times) -> bool:
    """Whether a problem of the form and of like fields was measured within REACH."""
    near = neighbours(problem, times)
    return problem in times or bool(near and distance(problem, near[0]) <= REACH)


def rests_on(problem: Problem, times: Times, one: Predicted) -> str:
    """Source of a predicted time, in words."""
    if one.point in times.get(problem, {}):
        return f"measured {one.us:.3g} us"
    near = [other for other in neighbours(problem, times) if one.point in times[other]]
    off = distance(problem, near[0])
    sure = "near" if is_near(off) else "far, a guess"
    return (
        f"predicted {one.us:.3g} us within {one.spread:.0%} from {len(near)} measured problems, the nearest "
        f"{near[0].id}, {off:.2g} octaves of data away ({sure})"
    )
