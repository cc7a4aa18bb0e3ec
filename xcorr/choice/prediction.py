"""How long a point takes on a problem that was not measured, from times of other problems. auto chooses by it."""

from __future__ import annotations

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


@dataclass(frozen=True)
class Predicted:
    """A point's time on a problem; `spread` is the relative misfit of its neighbours, 0 when it was measured."""

    point: Point
    us: float
    spread: float


@cache
def coordinates(problem: Problem) -> NDArray[Any]:
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
    """The nearest measured problems of the form with fields like its own (Fields.alike), the nearest first, those left out
    on which only a few variants were measured: what is absent there was not found slow. Few: less than half as many as on others,
    with fields less than a third, since fewer variants compute each of them."""
    like = problem.fields.alike
    same = [one for one in times if one.form == problem.form and one.fields.alike == like and times[one]]
    variants = {one: len({variant for variant, _ in times[one]}) for one in same}
    share = 2 if problem.is_plain else 3
    enough = [one for one in same if share * variants[one] >= max(variants.values())]
    return sorted(enough, key=lambda one: (distance(problem, one), one.id))[:NEIGHBOURS]


def predict(
    problem: Problem, times: Times, can: Callable[[Problem, Point], bool] = lambda _, __: True
) -> list[Predicted]:
    """Every point that was measured on this problem or on one of the nearest with its time here, the fastest first. `can` says
    whether a point computes a problem: what the nearest problem lacks because it cannot have it was not found slow."""
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
    """Points of the nearest problem that can have them, and those of no other that lies beyond NEAR if they were measured on
    two or more: a sweep leaves points out where they are known to be slow, which a fit to few and far ones would not know."""
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
    """Offset and slopes above SLOPES that fit best (normal equations); none with which more work takes less time."""
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
    """Whether a problem of the form with fields like its own was measured within REACH."""
    near = neighbours(problem, times)
    return problem in times or bool(near and distance(problem, near[0]) <= REACH)


def rests_on(problem: Problem, times: Times, one: Predicted) -> str:
    """What the time of a point rests on, in words."""
    if one.point in times.get(problem, {}):
        return f"measured {one.us:.3g} us"
    near = [other for other in neighbours(problem, times) if one.point in times[other]]
    off = distance(problem, near[0])
    sure = "near" if is_near(off) else "far, a guess"
    return (
        f"predicted {one.us:.3g} us within {one.spread:.0%} from {len(near)} measured problems, the nearest "
        f"{near[0].id}, {off:.2g} octaves of data away ({sure})"
    )
