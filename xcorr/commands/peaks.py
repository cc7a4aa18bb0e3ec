"""The peak of each correlation: integer shift, sub-pixel shift, and how far it stands out.

Conventions, also of the CSV that `xcorr --peaks` writes:
- the peak is the largest value; of equal ones the first in row-major order;
- the sub-pixel shift is the vertex of the parabola through the peak and its two neighbours, for
  each axis alone, at most half a pixel from the peak; where equal values follow it along the axis,
  the middle of these: half a pixel for two of them. Along an axis where the peak lies on the
  border of the window (no second neighbour) the integer shift is kept, and `border` is 1;
- `peak_to_second` is the peak divided by the second peak: the largest local maximum outside the 5
  x 5 elements around the peak. A local maximum is not below any of its (up to 8) neighbours, and
  above those before it in row-major order. NaN where there is none or where it is not positive.
These are the rules of the result `peak` (docs/design.md, Fields of a problem).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr import results


@dataclass(frozen=True)
class Peaks:
    """Arrays of one entry per pair; shifts in pixels, `value` in the unit of the correlation."""

    sy: NDArray[Any]
    sx: NDArray[Any]
    value: NDArray[Any]
    sub_sy: NDArray[Any]
    sub_sx: NDArray[Any]
    peak_to_second: NDArray[Any]
    border: NDArray[Any]


def concatenate(parts: Sequence[Peaks]) -> Peaks:
    """One `Peaks` from the parts, in order."""
    return Peaks(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Peaks)))


def of_records(records: NDArray[Any]) -> Peaks:
    """The peaks of a result `peak` (xcorr.results.PEAK). `peak_to_second` has the second peak of the records, which lies
    outside 5 x 5. ValueError naming the pair where a correlation is not finite."""
    spoiled = records["flags"] & results.NOT_FINITE != 0
    if spoiled.any():
        raise ValueError(f"pair {int(np.argmax(spoiled))}: the correlation is not finite")
    value, second = records["value"].astype(np.float64), records["second"].astype(np.float64)
    ratio = np.divide(value, second, out=np.full(len(records), np.nan), where=second > 0)
    y, x = (records[axis] + records[f"sub_{axis}"].astype(np.float64) for axis in ("sy", "sx"))
    border = (records["flags"] & results.AT_BORDER != 0).astype(np.int8)
    return Peaks(records["sy"].astype(np.int64), records["sx"].astype(np.int64), value, y, x, ratio, border)


def find_peaks(out: NDArray[Any], origin: tuple[int, int]) -> Peaks:
    """Peaks of `out` (pairs x out_rows x out_cols); `origin` is the shift of its element [0][0].

    ValueError naming the pair where a correlation has a value that is not finite.
    """
    pairs, rows, cols = out.shape
    flat = out.reshape(pairs, -1)
    index = flat.argmax(axis=1)  # a NaN wins, +inf too
    each = np.arange(pairs)
    value = flat[each, index].astype(np.float64)
    # NaN or +inf is the maximum itself; -inf only shows in the minimum.
    finite = np.isfinite(value) & np.isfinite(flat.min(axis=1))
    if not finite.all():
        raise ValueError(f"pair {int(np.argmin(finite))}: the correlation is not finite")
    y, x = np.divmod(index, cols)

    def neighbours(axis: NDArray[Any], size: int, row: int, col: int) -> tuple[NDArray[Any], NDArray[Any]]:
        inside = (axis > 0) & (axis < size - 1)
        low = out[each, np.where(inside, y - row, y), np.where(inside, x - col, x)]
        high = out[each, np.where(inside, y + row, y), np.where(inside, x + col, x)]
        vertex = _vertex(low.astype(np.float64), value, high.astype(np.float64))
        for pair in np.flatnonzero((high == value) & (low < value)):  # two equal ones, or more
            line = out[pair, y[pair] :, x[pair]] if row else out[pair, y[pair], x[pair] :]
            other = np.flatnonzero(line != line[0])
            vertex[pair] = ((other[0] if other.size else line.size) - 1) / 2
        return vertex, inside

    delta_y, inside_y = neighbours(y, rows, 1, 0)
    delta_x, inside_x = neighbours(x, cols, 0, 1)
    sy, sx = y + origin[0], x + origin[1]
    border = (~(inside_y & inside_x)).astype(np.int8)
    return Peaks(sy, sx, value, sy + delta_y, sx + delta_x, _peak_to_second(out, y, x, value), border)


def _vertex(low: NDArray[Any], peak: NDArray[Any], high: NDArray[Any]) -> NDArray[Any]:
    """Offset of the vertex of a parabola through (-1, low), (0, peak), (1, high); 0 where it is flat."""
    curvature = (peak - low) + (peak - high)
    bent = curvature > 0
    return np.where(bent, (high - low) / (2 * np.where(bent, curvature, 1)), 0.0)


def _peak_to_second(out: NDArray[Any], y: NDArray[Any], x: NDArray[Any], value: NDArray[Any]) -> NDArray[Any]:
    ratio = np.full(len(out), np.nan)
    for pair, matrix in enumerate(out):
        local = _local_maxima(matrix)
        local[max(y[pair] - 2, 0) : y[pair] + 3, max(x[pair] - 2, 0) : x[pair] + 3] = False
        if local.any():
            second = float(matrix[local].max())
            if second > 0:
                ratio[pair] = value[pair] / second
    return ratio


def _local_maxima(matrix: NDArray[Any]) -> NDArray[Any]:
    """Which elements are not below their neighbours, and above those before them in row-major order."""
    rows, cols = matrix.shape
    padded = np.full((rows + 2, cols + 2), -np.inf, matrix.dtype)
    padded[1:-1, 1:-1] = matrix
    along = np.maximum(np.maximum(padded[:, :-2], padded[:, 1:-1]), padded[:, 2:])
    before = np.maximum(along[:-2], padded[1:-1, :-2])
    after = np.maximum(along[2:], padded[1:-1, 2:])
    is_peak: NDArray[Any] = (matrix > before) & (matrix >= after)
    return is_peak
