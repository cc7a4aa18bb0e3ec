"""Whether the numbers of two stacks of matrices span a range in which a transform loses the small outputs.

A transform mixes all elements: every output has an error of the size of the whole matrices, bounded by
4 u log2(points) |L| |R| (Euclidean norms, unit roundoff u). A sum of products errs by its own terms only. One element
that is far larger than the others therefore costs an FFT the outputs that do not contain it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xcorr.precisions import ROUNDOFF, scalar_type
from xcorr.problem import pair_indices

# Of the bound, in units of the output scale: the median magnitudes of both matrices times sqrt(overlap).
LIMIT = 1e-3
# The bound grows with the size of the matrices, and the true error does not: uniform numbers reach LIMIT from about
# 200 x 200 on, with errors a thousand times below the bound. A range counts where it takes the bound so many times
# beyond that of uniform numbers of the same shapes.
ORDINARY = 10.0
UNIFORM = 2 / math.sqrt(3)  # root mean square over median magnitude of uniform numbers
_SLAB_ELEMENTS = 1 << 22


def risk(request: Any, max_overlap: int, left: np.ndarray, right: np.ndarray, precision: str) -> str:
    """What an FFT may do to the smallest outputs of the worst pair, in words; "" where it does no harm.

    `left` and `right` are stacks of finite matrices, `max_overlap` is the largest number of terms of an output.
    """
    points = math.prod(a + b - 1 for a, b in zip(request.left, request.right))
    pairs = pair_indices(request)
    logs = [_logs(stack)[:, of_pair] for stack, of_pair in zip((left, right), pairs)]
    spread, norm, total = (logs[0][row] + logs[1][row] for row in range(3))
    largest = math.log(float(np.finfo(scalar_type(precision)).max))
    # Spectra reach the sum of magnitudes; a transform back that is not yet scaled reaches points times an output.
    if max(float(total.max()), float(norm.max()) + math.log(points)) > largest:
        return "an FFT of numbers as large as these may overflow where the sums themselves do not"
    factor = math.log(4 * ROUNDOFF.get(precision, 2.0**-24) * max(1.0, math.log2(points)) / math.sqrt(max_overlap))
    bound = factor + float(spread.max())
    sizes = math.prod(request.left) * math.prod(request.right)
    ordinary = factor + 2 * math.log(UNIFORM) + math.log(sizes) / 2
    if bound <= max(math.log(LIMIT), math.log(ORDINARY) + ordinary):
        return ""
    size = f"{math.exp(bound):.2g}" if bound < 700 else "more than 1e300"
    return f"the error of an FFT may reach {size} of a typical output, since the numbers span a wide range"


def _logs(stack: np.ndarray) -> np.ndarray:
    """Of each matrix the logarithms of norm over median magnitude, of the norm, and of the sum of magnitudes;
    -inf for matrices of zeros. Zeros, as of a dark background, do not count for the median."""
    flat = stack.reshape(len(stack), -1)
    found = np.full((3, len(flat)), -np.inf)
    step = max(1, _SLAB_ELEMENTS // flat.shape[1])
    for start in range(0, len(flat), step):
        values = np.abs(flat[start : start + step].astype(np.float64))
        peaks = values.max(axis=1)
        some = np.flatnonzero(peaks > 0)
        # Scaled by the largest, so that no square overflows.
        scaled, peaks = values[some] / peaks[some, None], peaks[some]
        norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        medians = np.median(scaled, axis=1)
        for place in np.flatnonzero(medians == 0):
            medians[place] = np.median(scaled[place][scaled[place] > 0])
        logs = np.log(norms), np.log(peaks)
        found[:, start + some] = logs[0] - np.log(medians), sum(logs), np.log(scaled.sum(axis=1)) + logs[1]
    return found
