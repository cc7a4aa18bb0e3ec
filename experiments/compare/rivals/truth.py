"""Problems, inputs and the verdict on a result, by float64."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.fft

from experiments.compare.rivals import spectra
from xcorr.files import load_toml
from xcorr.problem import Problem, pair_indices

FILE = Path(__file__).with_name("problems.toml")
NOISE = 0.1  # deviation of what is added to a template that is cut from a frame; elements have a deviation of 0.6


@cache
def data() -> dict[str, Any]:
    return load_toml(FILE)


def problems(kinds: list[str] | None = None) -> list[tuple[str, Problem]]:
    """(kind, problem) of problems.toml."""
    return [
        (kind, Problem.of_id(one))
        for kind, ids in data()["problems"].items()
        for one in ids
        if not kinds or kind in kinds
    ]


def inputs(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Seeded float32 lefts and rights. Rights are uniform in -1 to 1. Each left is cut from the right of its first pair,
    with noise, so that every surface of a first pair has one maximum."""
    rng = np.random.default_rng(1)
    right = rng.uniform(-1, 1, (problem.rights, *problem.right)).astype(np.float32)
    firsts = dict(zip(*(one[::-1] for one in pair_indices(problem))))  # of equal keys the last one stays
    left = NOISE * rng.standard_normal((problem.lefts, *problem.left), dtype=np.float32)
    (rows, cols), (height, width) = problem.left, problem.right
    for index in range(problem.lefts):
        y, x = (int(rng.integers(max(1, a - b + 1))) for a, b in ((height, rows), (width, cols)))
        part = right[firsts[index], y : y + rows, x : x + cols]
        left[index, : part.shape[0], : part.shape[1]] += part
    return left, right


class Exact(NamedTuple):
    """Float64 surfaces, and the norm of both sides of each pair."""

    surfaces: np.ndarray
    norms: np.ndarray


def exact(problem: Problem, left: np.ndarray, right: np.ndarray) -> Exact:
    wide = left.astype(np.float64), right.astype(np.float64)
    surfaces = spectra.correlate(np, scipy.fft, problem.surface, *wide)
    norms = [np.sqrt((one**2).sum((1, 2))) for one in wide]
    return Exact(surfaces, np.multiply(*(one[index] for one, index in zip(norms, pair_indices(problem)))))


class Verdict(NamedTuple):
    """`max_error`: absolute for scores, over the norms for products. `rel_l2_error`: of the worst pair; 0 for peaks."""

    outcome: str
    reason: str
    max_error: float
    rel_l2_error: float


def judge(problem: Problem, result: Any, truth: Exact, precision: str) -> Verdict:
    """The verdict on surfaces or on (indices, values) of maxima: a maximum is right where float64 has there at least its own
    maximum less two bounds, and the value is within one."""
    limits = data()["largest_error"][precision]
    is_score = problem.fields.score_kind != "product"
    bound = (np.ones(problem.pairs) if is_score else truth.norms) * limits["score" if is_score else "product"]
    flat = truth.surfaces.reshape(problem.pairs, -1)
    l2 = 0.0
    if problem.fields.result_kind == "peak":
        index, values = (np.asarray(one) for one in result)
        if index.shape != (problem.pairs,) or not (index < flat.shape[1]).all() or not np.isfinite(values).all():
            return Verdict("incorrect", "not one finite maximum of each pair", float("inf"), float("inf"))
        there = flat[np.arange(problem.pairs), index]
        errors = np.maximum(np.abs(values - there), (flat.max(1) - there) / 2)
    else:
        surfaces = np.asarray(result, np.float64)
        if surfaces.shape != truth.surfaces.shape or not np.isfinite(surfaces).all():
            return Verdict(
                "incorrect", f"shape {surfaces.shape} or values that are not finite", float("inf"), float("inf")
            )
        difference = surfaces.reshape(problem.pairs, -1) - flat
        errors = np.abs(difference).max(1)
        if not is_score:
            l2 = float((np.linalg.norm(difference, axis=1) / np.linalg.norm(flat, axis=1)).max())
    worst = float((errors if is_score else errors / truth.norms).max())
    if (errors > bound).any() or l2 > limits["rel_l2"]:
        return Verdict("incorrect", f"differs from float64 by {worst:.2g}, relative L2 error {l2:.2g}", worst, l2)
    return Verdict("passed", "", worst, l2)
