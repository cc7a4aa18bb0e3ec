"""Correlation by real transforms, in terms of any library of arrays whose functions have NumPy's names.

`xp` is numpy, cupy or torch, `fft` has rfft2 and irfft2. Arrays are lefts x rows x cols and rights x rows x cols.
"""

from typing import Any

import numpy as np
import scipy.fft

from experiments.compare.rivals import require
from xcorr.problem import Problem, rights_of_a_left


def require_plain(problem: Problem, *scores: str) -> None:
    """Unsupported where the problem has another boundary, masks, views or a result that is neither surface nor peak, or
    another score than product and `scores`; `zncc` only for lefts inside the rights."""
    fields = problem.fields
    usual = (fields.boundary, fields.masks, fields.views, fields.same) == ("zero", "none", "dense", "no")
    require(usual and fields.result_kind in ("surface", "peak"), "computes dense surfaces and their maxima only")
    require(fields.score_kind in ("product", *scores), f"does not compute the score {fields.score_kind}")
    require(fields.score_kind == "product" or is_inside(problem), "computes scores of templates inside frames only")


def is_inside(problem: Problem) -> bool:
    """Whether the window is valid and the lefts lie inside the rights."""
    return problem.window == "valid" and all(a <= b for a, b in zip(problem.left, problem.right))


def transform_shape(problem: Problem) -> tuple[int, int]:
    """Padded rows and cols. In a valid window what wraps around is outside the window."""
    full = [a + b - 1 for a, b in zip(problem.left, problem.right)]
    lengths = problem.right if is_inside(problem) else full
    return tuple(scipy.fft.next_fast_len(length, real=True) for length in lengths)


def crop(problem: Problem) -> tuple[slice, ...]:
    """The window in a full correlation: index 0 is the shift 1 - (rows or cols of the left)."""
    starts = [shifts.start + size - 1 for shifts, size in zip(problem.shifts, problem.left)]
    return (slice(None), *(slice(a, a + len(shifts)) for a, shifts in zip(starts, problem.shifts)))


def paired(problem: Problem, left: Any, right: Any, combine: Any = lambda a, b: a * b) -> Any:
    """`combine` of both sides of every pair, pairs first."""
    shape = tuple(left.shape[1:])
    if problem.form == "n-to-mn":
        made = combine(left[:, None], right.reshape((problem.lefts, rights_of_a_left(problem), *right.shape[1:])))
    else:
        made = combine(left[:, None], right[None])
    return made.reshape((problem.pairs, *shape))


def products(xp: Any, fft: Any, problem: Problem, left: Any, right: Any) -> Any:
    """Surfaces of the window. The lefts are reversed, so that the window is one block of the inverse transform."""
    shape = transform_shape(problem)
    spectra = fft.rfft2(xp.flip(left, (1, 2)), s=shape), fft.rfft2(right, s=shape)
    return fft.irfft2(paired(problem, *spectra), s=shape)[crop(problem)]


def zncc(xp: Any, fft: Any, problem: Problem, left: Any, right: Any, sums: Any = np.float64) -> Any:
    """Scores of templates in frames: products by transforms, sums of windows by integral images of type `sums`."""
    (rows, cols), area = problem.left, problem.left[0] * problem.left[1]
    frames = right - right.mean((1, 2), keepdims=True)
    own = left - left.mean((1, 2), keepdims=True)
    norms = xp.sqrt((own.astype(sums) ** 2).sum((1, 2), keepdims=True))

    def windows(values: Any) -> Any:
        image = xp.zeros((len(values), values.shape[1] + 1, values.shape[2] + 1), sums)
        image[:, 1:, 1:] = xp.cumsum(xp.cumsum(values, axis=1), axis=2)
        return image[:, rows:, cols:] - image[:, :-rows, cols:] - image[:, rows:, :-cols] + image[:, :-rows, :-cols]

    wide = frames.astype(sums)
    spreads = xp.sqrt(xp.maximum(windows(wide**2) - windows(wide) ** 2 / area, 0))
    over = norms[:, None] * spreads[None]
    found = products(xp, fft, problem, own, frames)
    return (found / over.reshape(found.shape)).astype(left.dtype)


def result_of(problem: Problem, surfaces: Any) -> Any:
    """The surfaces, or flat index and value of the maximum of each."""
    if problem.fields.result_kind == "surface":
        return surfaces
    flat = surfaces.reshape((problem.pairs, -1))
    return flat.argmax(1), getattr(flat, "amax", flat.max)(1)  # torch's max gives indices too


def correlate(xp: Any, fft: Any, problem: Problem, left: Any, right: Any, sums: Any = np.float64) -> Any:
    """The result of the problem; scores for arrays with `astype`."""
    if problem.fields.score_kind == "product":
        return result_of(problem, products(xp, fft, problem, left, right))
    return result_of(problem, zncc(xp, fft, problem, left, right, sums))
