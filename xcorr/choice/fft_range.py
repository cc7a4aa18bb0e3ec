"""Whether two stacks of matrices span a range of numbers in which an FFT loses the small outputs.

An FFT mixes all elements: the error of every output is bounded by 4 u log2(points) |L| |R| (Euclidean norms, unit roundoff u).
The error of a sum of products depends on its terms only. So one very large element spoils all outputs of an FFT, but by
definition only outputs that contain it.

For covariance and phase the norms are those of the matrices without their means. An outlier moves the mean, so typical
magnitudes are about the median. For ncc and zncc, GPU variants transform tiles in float32; the deviation of a tile against that
of a window in it matters. CPU variants compute uncertain scores, and phase, in float64.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr.fields import NORMALISED
from xcorr.native.precisions import ROUNDOFF, scalar_type
from xcorr.problem import Problem, pair_indices

# Limit of the bound, in units of the output scale: the median magnitudes of both matrices times sqrt(overlap).
LIMIT = 1e-3
# Uniform numbers exceed LIMIT from about 200 x 200 on, but their errors are a thousand times below the bound. The bound must
# therefore also exceed that of uniform numbers of these shapes by this factor.
ORDINARY = 10.0
UNIFORM = 2 / math.sqrt(3)  # root mean square over median magnitude of uniform numbers
_SLAB_ELEMENTS = 1 << 22
TILE = 192  # the largest rows and columns of a tile
SCORE = 1e-4  # the largest error of a score of ncc and zncc


def risk(
    problem: Problem, max_overlap: int, left: NDArray[Any], right: NDArray[Any], precision: str, device: str = "cpu"
) -> str:
    """Words about the error of an FFT in the smallest outputs of the worst pair, "" if it is harmless or `views` is not dense.

    `left`, `right`: stacks of finite matrices. `max_overlap`: largest number of terms of an output.
    """
    fields = problem.fields
    if fields.views != "dense":
        return ""
    if fields.score_kind in NORMALISED:
        return "" if device.startswith("cpu") else _of_scores(problem, left, right, precision)
    if fields.score_kind == "phase" and device.startswith("cpu"):
        precision = "fp64"
    points = math.prod(a + b - 1 for a, b in zip(problem.left, problem.right))
    pairs = pair_indices(problem)
    centred = fields.centring == "matrix"
    logs = [_logs(stack, centred)[:, of_pair] for stack, of_pair in zip((left, right), pairs)]
    spread, norm, total = (logs[0][row] + logs[1][row] for row in range(3))
    largest = math.log(float(np.finfo(scalar_type(precision)).max))
    # Spectra reach the sum of magnitudes. An unscaled inverse transform reaches points times an output.
    if max(float(total.max()), float(norm.max()) + math.log(points)) > largest:
        return "an FFT of numbers as large as these may overflow where the sums themselves do not"
    factor = math.log(4 * ROUNDOFF.get(precision, 2.0**-24) * max(1.0, math.log2(points)) / math.sqrt(max_overlap))
    bound = factor + float(spread.max())
    sizes = math.prod(problem.left) * math.prod(problem.right)
    ordinary = factor + 2 * math.log(UNIFORM) + math.log(sizes) / 2
    if bound <= max(math.log(LIMIT), math.log(ORDINARY) + ordinary):
        return ""
    size = f"{math.exp(bound):.2g}" if bound < 700 else "more than 1e300"
    return f"the error of an FFT may reach {size} of a typical output, since the numbers span a wide range"


def _of_scores(problem: Problem, left: NDArray[Any], right: NDArray[Any], precision: str) -> str:
    """`risk` for ncc and zncc."""
    window = tuple(map(min, problem.left, problem.right))
    limit = SCORE / (ROUNDOFF.get(precision, 2.0**-24) * math.log2(TILE))
    centred = problem.fields.centring == "overlap"
    if max(_spread_of_tiles(matrix, window, centred) for stack in (left, right) for matrix in stack) <= limit:
        return ""
    return f"scores by an FFT may be wrong by more than {SCORE:g}, since an outlier spoils the windows near it"


def _spread_of_tiles(matrix: NDArray[Any], window: tuple[int, ...], centred: bool) -> float:
    """Largest ratio of the root mean square of a tile to that of a window in it, about the means where `centred`. A window deviates at
    least as much as a block of half its sides; constant blocks are ignored."""
    rows, cols = ((side + 1) // 2 for side in window)
    down, across = max(1, matrix.shape[0] // rows), max(1, matrix.shape[1] // cols)
    rows, cols = matrix.shape[0] // down, matrix.shape[1] // across
    blocks = matrix[: down * rows, : across * cols].astype(np.float64).reshape(down, rows, across, cols)
    means = blocks.mean(axis=(1, 3)) if centred else np.zeros((down, across))
    squares = ((blocks - means[:, None, :, None]) ** 2).mean(axis=(1, 3))
    high, wide = max(1, TILE // rows), max(1, TILE // cols)
    worst = 0.0
    for y in range(0, down, max(1, high // 2)):
        for x in range(0, across, max(1, wide // 2)):
            part = slice(y, y + high), slice(x, x + wide)
            own = squares[part][squares[part] > 0]
            if own.size:
                about = np.median(means[part])
                tile = squares[part].mean() + ((means[part] - about) ** 2).mean()
                worst = max(worst, math.sqrt(tile / own.min()))
    return worst


def _logs(stack: NDArray[Any], centred: bool = False) -> NDArray[Any]:
    """Logarithms of norm / median magnitude, norm, and sum of magnitudes of each matrix; -inf for zero matrices. The median ignores
    zeros, such as a dark background. `centred`: matrices less their means, with magnitudes about the median."""
    flat = stack.reshape(len(stack), -1)
    found = np.full((3, len(flat)), -np.inf)
    step = max(1, _SLAB_ELEMENTS // flat.shape[1])
    for start in range(0, len(flat), step):
        values = flat[start : start + step].astype(np.float64)
        typical = np.abs(values - np.median(values, axis=1, keepdims=True)) if centred else np.abs(values)
        values = np.abs(values - values.mean(axis=1, keepdims=True)) if centred else typical
        peaks = values.max(axis=1)
        some = np.flatnonzero((peaks > 0) & (typical.max(axis=1) > 0))
        # Scaled by the largest, so that no square overflows.
        scaled, typical, peaks = values[some] / peaks[some, None], typical[some] / peaks[some, None], peaks[some]
        norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        medians = np.median(typical, axis=1)
        for place in np.flatnonzero(medians == 0):
            medians[place] = np.median(typical[place][typical[place] > 0])
        logs = np.log(norms), np.log(peaks)
        found[:, start + some] = logs[0] - np.log(medians), sum(logs), np.log(scaled.sum(axis=1)) + logs[1]
    return found
