"""Times of launches where nothing was measured, by the speed of the variant or its class (speeds.toml)."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xcorr.files import load_toml
from xcorr.native.variants import Variant, assignments
from xcorr.problem import Problem

SPEEDS = Path(__file__).with_name("speeds.toml")
WORK_PER_S = 1e8  # where a table says neither per_s nor per_core


def shipped() -> dict[str, Any]:
    """Tables `classes` (backend, class), `families` (family, backend, class) and `variants` (id) of speeds.toml."""
    return load_toml(SPEEDS)


def of_variant(speeds: Mapping[str, Any], variant: Variant) -> Any:
    """Speed of a variant, else of its family, else of its class."""
    family = speeds["families"].get(variant.family, {}).get(variant.backend, {}).get(variant.algorithm_class)
    return speeds["variants"].get(variant.id) or family or speeds["classes"][variant.backend][variant.algorithm_class]


def work_of(problem: Problem, algorithm_class: str) -> float:
    """Work that the time of a class is proportional to."""
    return problem.fft_work if algorithm_class == "fft" else float(problem.fmas)


def per_second(speed: Mapping[str, Any], params: str, cores: int) -> float:
    """Work per second of a point, on the device or on as many cores as it has threads."""
    if speed.get("per_s"):
        return float(speed["per_s"])
    threads = assignments(params).get("threads", "1")
    used = cores if threads == "all" else min(int(threads), cores)
    return float(speed.get("per_core") or WORK_PER_S) * used


def launch_s(speeds: Mapping[str, Any], variant: Variant, params: str, problem: Problem, cores: int) -> float:
    """Seconds of one computation of the whole problem."""
    speed = of_variant(speeds, variant)
    work = work_of(problem, variant.algorithm_class)
    return float(speed["launch_us"]) * 1e-6 + work / per_second(speed, params, cores)


def with_score_us(speeds: Mapping[str, Any], variant: Variant, us: float) -> float:
    """Microseconds of a score, if the variant takes `us` for products."""
    costs = speeds["scores"][variant.backend][variant.algorithm_class]
    return us * float(costs["factor"]) + float(costs["launch_us"])


def reduction_s(speeds: Mapping[str, Any], backend: str, problem: Problem) -> float:
    """Seconds of the harness to reduce the surface to the result."""
    speed = speeds["reduction"][backend]
    outputs = math.prod(problem.output)
    of_all = problem.pairs * outputs / float(speed["per_s"])
    by_one_block = problem.fields.alike.result in ("sum", "above:8mad:1")
    of_one = outputs / float(speed.get("per_surface_s", math.inf)) if by_one_block else 0.0
    return float(speed["launch_us"]) * 1e-6 + max(of_all, of_one)
