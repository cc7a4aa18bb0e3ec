"""Share of a plan in the time of a call: the whole plan for a single call, a part for a known number of calls, and nothing for a
kept plan, as in a session."""

import math
from collections.abc import Mapping
from typing import Any

from xcorr.native.variants import Variant, assignments
from xcorr.problem import Problem

SINGLE, KEPT = 1.0, math.inf  # calls that a plan serves


def share_us(speeds: Mapping[str, Any], variant: Variant, params: str, problem: Problem, calls: float) -> float:
    """Microseconds of a plan without timing (Planning::once) for each of `calls` calls, by `plans_once` of speeds.toml;
    0 where that has no speed, since such plans take microseconds."""
    known = speeds["plans_once"]
    speed = known["variants"].get(variant.id) or known.get(variant.backend, {}).get(variant.algorithm_class)
    if speed is None:
        return 0.0
    given = assignments(params)
    for condition, us in speed.get("where", {}).items():
        if assignments(condition).items() <= given.items():
            return float(us) / calls
    lengths = sum(a + b - 1 for a, b in zip(problem.left, problem.right))  # of the transforms of a pair
    if problem.fields.boundary == "circular":
        lengths = sum(problem.left)
    of_lengths = 1e6 * lengths / float(speed["per_s"]) if "per_s" in speed else 0.0
    return (float(speed.get("us", 0)) + of_lengths) / calls


def text_of(calls: float) -> str:
    """Words about the calls of a plan, "" for a kept plan."""
    if calls == KEPT:
        return ""
    return "; for a single call, whose plan counts" if calls == SINGLE else f"; for {calls:g} calls, which share a plan"
