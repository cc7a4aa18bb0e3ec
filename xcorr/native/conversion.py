"""Conversion to the scalar type of a computation: removal of a pivot, and the loss by rounding.

Scores about a mean (`Fields.centring`) do not change with an offset of a matrix. For them a matrix that float32 would round
is converted less a pivot, so that a small pattern on a large offset keeps its digits. Differences of integers are exact;
differences of floats have the type of the input. Matrices that are exact in float32 are converted without a pivot.

The pivot is the lower median of the finite, valid elements that are not fills. A fill is the smallest or largest value of a
matrix if more than FILL of the elements have it; fills are removed repeatedly. So nodata values, saturated pixels and a
background of 0 do not become the pivot. If all elements are fills, the last fill is the pivot.

Differences of at most ROUNDINGS roundings of the input's type become 0, so that a plateau with rounding noise stays constant.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr.fields import Fields
from xcorr.native import moments
from xcorr.problem import Problem

FILL = 1 / 16
MOST_FILLS = 8
ROUNDINGS = 8  # of the larger of a value and the pivot
COST = 1e-3  # tolerated root mean square of rounding errors, as a share of the deviation of a window
# A window that deviates by less than this share of its largest value scores 0 (docs/design.md, Fields of a problem).
CONSTANT = 8 * 2.0**-24


def has_more_digits(kind: np.dtype[Any], scalar: type) -> bool:
    """Whether conversion from `kind` to `scalar` may round."""
    digits = np.finfo(scalar).nmant + 1
    if kind.kind == "f":
        return np.finfo(kind).nmant + 1 > digits
    return kind.kind in "iu" and 8 * kind.itemsize - (kind.kind == "i") > digits


def pivot(values: NDArray[Any], valid: NDArray[Any] | None = None) -> Any:
    """Pivot of a matrix, one of its elements; 0 without a finite, valid element."""
    counted = values.ravel() if valid is None else values[valid != 0]
    if counted.dtype.kind == "f":
        finite = np.isfinite(counted)
        counted = counted if finite.all() else counted[finite]
    if counted.size == 0:
        return values.dtype.type(0)
    for _ in range(MOST_FILLS):
        ends = [counted == end for end in (counted.min(), counted.max())]
        fills = [end for end in ends if np.count_nonzero(end) > FILL * counted.size]
        rest = counted[~np.logical_or.reduce(fills)] if fills else counted
        if rest.size in (0, counted.size):
            break
        counted = rest
    middle = (counted.size - 1) // 2
    return np.partition(counted, middle)[middle]


@dataclass(frozen=True)
class Converted:
    """Matrices in the scalar type, and the pivot that was subtracted from each, or None."""

    stack: NDArray[Any]
    pivots: list[Any]


def converted(
    stack: NDArray[Any], scalar: type, offset_free: bool, valid: NDArray[Any] | None = None, one: bool = False
) -> Converted:
    """`stack` (matrices x rows x cols) in the scalar type. If `offset_free`, a pivot is subtracted from each matrix, or with
    `one` a common pivot, as windows of a frame need it. Values beyond the scalar type become infinite.

    `valid` (shape of `stack`): elements at 0 are ignored and become the pivot, or without a pivot a valid element."""
    may_remove = offset_free and has_more_digits(stack.dtype, scalar)
    if not may_remove and valid is None:
        with np.errstate(over="ignore"):
            return Converted(stack.astype(scalar), [None] * len(stack))
    made: NDArray[Any] = np.empty(stack.shape, scalar)
    removed: list[Any] = []
    common = pivot(stack, valid) if one and may_remove and not _is_exact(stack, scalar, valid) else None
    for index, matrix in enumerate(stack):
        counts = None if valid is None else valid[index] != 0
        middle = common
        if may_remove and not one and not _is_exact(matrix, scalar, counts):
            middle = pivot(matrix, counts)
        with np.errstate(over="ignore", invalid="ignore"):
            made[index] = matrix if middle is None else differences(matrix, middle)
        if counts is not None and not counts.all():
            usable = made[index][counts & np.isfinite(made[index])]
            made[index][~counts] = usable[0] if middle is None and usable.size else 0
        removed.append(middle)
    return Converted(made, removed)


def _is_exact(values: NDArray[Any], scalar: type, valid: NDArray[Any] | None) -> bool:
    """Whether conversion rounds no valid element."""
    with np.errstate(over="ignore", invalid="ignore"):
        back: NDArray[Any] = values.astype(scalar)
        same = back.astype(np.longdouble) == values if values.dtype.kind in "iu" else back == values
    same |= ~np.isfinite(values) if values.dtype.kind == "f" else False
    return bool(same.all() if valid is None else same[valid != 0].all())


def differences(values: NDArray[Any], middle: Any) -> NDArray[Any]:
    """`values - middle`, exact for integers. `middle` is one of the values."""
    if values.dtype.kind == "f":
        apart: NDArray[Any] = values - middle
        roundings = ROUNDINGS * np.finfo(values.dtype).eps / 2
        apart[np.abs(apart) <= roundings * np.maximum(np.abs(values), np.abs(middle))] = 0
        return apart
    if values.dtype.itemsize < 8:
        return values.astype(np.int64) - np.int64(middle)
    # A difference of 64-bit integers needs 65 bits: its magnitude modulo 2^64 and its sign.
    wide, center = values.astype(np.uint64), np.uint64(int(middle) % 2**64)
    more, less = (wide - center).astype(np.longdouble), (center - wide).astype(np.longdouble)
    return np.where(values >= middle, more, -less)


@dataclass(frozen=True)
class Loss:
    """Loss by conversion. `worst`: the largest rounding error of a window as a share of its deviation, 0 if at most COST.
    `flat`: such a window scores 0 in any precision (CONSTANT). `local`: windows were smaller than a matrix."""

    worst: float = 0.0
    flat: bool = False
    local: bool = False

    def __bool__(self) -> bool:
        return self.worst > 0


def least_overlap(problem: Problem, shifts: tuple[range, range]) -> tuple[int, int]:
    """About the rows and columns of the smallest overlap that has a score: the smallest of the shifts, but along either axis
    at least the square root of the least overlap of ncc and zncc."""
    share = math.sqrt(problem.fields.min_overlap)
    sides = []
    for left, right, shift in zip(problem.left, problem.right, shifts):
        most = min(left, right)
        least = min(min(left, right - s) - max(0, -s) for s in (shift[0], shift[-1]))
        sides.append(max(1, least, math.floor(share * most)))
    return sides[0], sides[1]


def loss(
    stack: NDArray[Any],
    made: Converted,
    fields: Fields,
    window: tuple[int, int],
    valid: NDArray[Any] | None = None,
    is_frame: bool = False,
) -> Loss:
    """Loss by the conversion of `stack` to `made`, in windows of shape `window` for zncc and frames, else in matrices."""
    local = fields.centring == "overlap" or is_frame
    found = Loss(local=local)
    if not has_more_digits(stack.dtype, made.stack.dtype.type) or made.stack.dtype != np.float32:
        return found
    for index, matrix in enumerate(stack):
        counts = None if valid is None else valid[index] != 0
        shape = (min(window[0], matrix.shape[0]), min(window[1], matrix.shape[1])) if local else matrix.shape
        worst, flat = _loss(matrix, made.stack[index], made.pivots[index], (shape[0], shape[1]), counts)
        found = Loss(max(found.worst, worst), found.flat or (flat and fields.centring == "overlap"), local)
    return found


def _loss(
    matrix: NDArray[Any], made: NDArray[Any], middle: Any, window: tuple[int, int], valid: NDArray[Any] | None
) -> tuple[float, bool]:
    """`Loss.worst` and `Loss.flat` of a matrix with the pivot `middle`. Windows that are constant within roundings of
    their type lose nothing."""
    exact = (matrix if middle is None else differences(matrix, middle)).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        changed = np.abs(exact - made)
    if valid is not None:
        changed = np.where(valid, changed, 0)
        exact = np.where(valid, exact, 0)
    most = float(changed.max())
    if most == 0 or (valid is None and _is_far_below(most, exact, window)):
        return 0.0, False
    worst, flat = 0.0, False
    magnitude = np.abs(exact)
    roundings = ROUNDINGS * np.finfo(matrix.dtype).eps / 2 if matrix.dtype.kind == "f" else 0.0
    for rows, _ in moments.slabs(exact.shape, window):
        count, _, squares = moments.of_windows(exact[rows], window, None if valid is None else valid[rows])
        errors = moments.sums(changed[rows] ** 2, window)
        costs = np.divide(errors, squares, out=np.zeros(errors.shape), where=(squares > 0) & np.isfinite(squares))
        lost = costs > COST * COST
        if not lost.any():
            continue
        from scipy import ndimage  # takes most of the time of importing xcorr, and few calls get here

        largest = moments.inside(ndimage.maximum_filter(magnitude[rows], window, mode="nearest"), window)
        original = largest + (0.0 if middle is None else abs(float(middle)))
        lost &= squares > count * (roundings * original) ** 2
        if lost.any():
            worst = max(worst, math.sqrt(costs[lost].max()))
            flat |= bool((lost & (squares <= count * (CONSTANT * largest) ** 2)).any())
    return worst, flat


def _is_far_below(most: float, exact: NDArray[Any], window: tuple[int, int]) -> bool:
    """Whether errors of at most `most` cost every window less than COST. A window contains a whole block of a grid of blocks
    of half its sides, and deviates at least as much as the block."""
    rows, cols = ((side + 1) // 2 for side in window)
    down, across = exact.shape[0] // rows, exact.shape[1] // cols
    blocks = exact[: down * rows, : across * cols].reshape(down, rows, across, cols)
    squares = blocks.var(axis=(1, 3)) * (rows * cols)
    return bool(squares.min() > 0 and most * most * math.prod(window) <= COST * COST * squares.min())
