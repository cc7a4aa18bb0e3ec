"""Centred sums of squares of every window of a matrix, in float64.

Parts of n elements with mean m and centred sum of squares s combine to s1 + s2 + (m2 - m1)^2 n1 n2 / (n1 + n2) (Chan, Golub
and LeVeque 1983). No term is negative, so an outlier affects only windows that contain it, and an offset costs no digits.
Windows are combined from parts of 1, 2, 4 ... elements, along one axis and then along the other.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SLAB_ELEMENTS = 1 << 20

Parts = tuple[NDArray[Any], ...]


def slabs(shape: tuple[int, ...], window: tuple[int, int]) -> Iterator[tuple[slice, slice]]:
    """Slabs that together contain all windows of a matrix of `shape`: rows of the matrix, and rows of windows in them."""
    rows = shape[0] - window[0] + 1
    step = max(1, _SLAB_ELEMENTS // shape[1])
    for first in range(0, rows, step):
        last = min(first + step, rows)
        yield slice(first, last + window[0] - 1), slice(first, last)


def of_windows(values: NDArray[Any], window: tuple[int, int], valid: NDArray[Any] | None = None) -> Parts:
    """Number of valid elements, their mean (0 without any) and the sum of squares about it, for each window inside `values`
    (rows x cols, at least as large as `window`). `valid`: 0 where an element is ignored."""
    counts = np.ones(values.shape, bool) if valid is None else valid != 0
    parts: Parts = (counts.astype(np.float64), np.where(counts, values, 0).astype(np.float64), np.zeros(values.shape))
    with np.errstate(over="ignore", invalid="ignore"):  # squares of numbers near the largest ones are inf
        return _of_both_axes(parts, window, _moments)


def sums(values: NDArray[Any], window: tuple[int, int]) -> NDArray[Any]:
    """Sum of each window inside `values`, which has no negative element."""
    return _of_both_axes((values,), window, lambda a, b: (a[0] + b[0],))[0]


def inside(filtered: NDArray[Any], window: tuple[int, int]) -> NDArray[Any]:
    """What a filter of scipy.ndimage has found for the windows inside an array, by their first elements."""
    rows, cols = (extent - side + 1 for extent, side in zip(filtered.shape, window))
    return filtered[window[0] // 2 : window[0] // 2 + rows, window[1] // 2 : window[1] // 2 + cols]


def _moments(a: Parts, b: Parts) -> Parts:
    count = a[0] + b[0]
    share = b[0] / np.maximum(count, 1)
    apart = np.where((a[0] > 0) & (b[0] > 0), b[1] - a[1], 0)
    mean = np.where(a[0] > 0, a[1] + apart * share, b[1])
    return count, mean, a[2] + b[2] + apart * apart * (a[0] * share)


def _of_both_axes(parts: Parts, window: tuple[int, int], together: Callable[[Parts, Parts], Parts]) -> Parts:
    for axis in (1, 0):
        parts = _grown(parts, axis, window[axis], together)
    return parts


def _grown(parts: Parts, axis: int, length: int, together: Callable[[Parts, Parts], Parts]) -> Parts:
    """Parts of `length` elements along an axis, from parts of one element."""
    grown: Parts | None = None
    have, size = 0, 1
    while True:
        if length & size:
            grown = parts if grown is None else _joined(grown, parts, have, axis, together)
            have += size
        if have == length:
            assert grown is not None
            return grown
        parts = _joined(parts, parts, size, axis, together)
        size *= 2


def _joined(first: Parts, second: Parts, apart: int, axis: int, together: Callable[[Parts, Parts], Parts]) -> Parts:
    """Combines each part of `first` with the part of `second` that begins `apart` elements later."""
    length = min(first[0].shape[axis], second[0].shape[axis] - apart)

    def cut(parts: Parts, start: int) -> Parts:
        return tuple(one[(slice(None),) * axis + (slice(start, start + length),)] for one in parts)

    return together(cut(first, 0), cut(second, apart))
