"""Arrays of what is computed, of any result: surfaces, records and sums, as harness/problem/results.hpp has them in C++.

result=surface     scalars, pairs x out_rows x out_cols
result=peak        PEAK, pairs
result=peaks:k     PEAK, pairs x k, the largest first; the value of missing ones is NaN
result=above:t:c[:d]  DETECTION, as many as were found, by (pair, sy, sx)
result=sum         float64, pairs
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr.fields import Fields

# The largest output of a pair; of equal ones the one with the smallest (sy, sx). `sub_sy` and `sub_sx` are what the fit
# adds to the shift, in pixels. `second`: the largest local maximum outside the 5 x 5 outputs around it, NaN if none.
PEAK = np.dtype(
    [
        ("value", "<f4"),
        ("sy", "<i4"),
        ("sx", "<i4"),
        ("sub_sy", "<f4"),
        ("sub_sx", "<f4"),
        ("second", "<f4"),
        ("flags", "<u4"),
        ("spare", "<u4"),
    ]
)
AT_BORDER, ON_PLATEAU, NOT_FINITE = 1, 2, 4  # in `flags` of a PEAK
DETECTION = np.dtype([("pair", "<i4"), ("sy", "<i4"), ("sx", "<i4"), ("value", "<f4")])
HEADER = np.dtype([("count", "<u8"), ("spare", "<u8")])  # before the detections


def shape_of(fields: Fields, surface: tuple[int, int, int]) -> tuple[int, ...]:
    """Shape of the result of a problem whose surface is pairs x out_rows x out_cols; of above: of the bytes that the
    library writes."""
    kind, pairs = fields.result_kind, surface[0]
    if kind == "surface":
        return surface
    if kind == "above":
        most = min(fields.capacity, surface[0] * surface[1] * surface[2])
        return (HEADER.itemsize + most * DETECTION.itemsize,)
    return (pairs, fields.peaks) if kind == "peaks" else (pairs,)


def type_of(fields: Fields, scalar: type) -> np.dtype[Any]:
    """Type of the elements of `shape_of`."""
    return np.dtype({"surface": scalar, "sum": np.float64, "above": np.uint8}.get(fields.result_kind, PEAK))


def detections(written: NDArray[Any]) -> NDArray[Any]:
    """The detections in the bytes that the library has written for above, by (pair, sy, sx); a copy."""
    count = int(written[: HEADER.itemsize].view(HEADER)["count"][0])
    found = written[HEADER.itemsize :].view(DETECTION)[:count]
    ordered: NDArray[Any] = found[np.lexsort((found["sx"], found["sy"], found["pair"]))]
    return ordered
