"""Type and shape of results. harness/problem/results.hpp defines the same layouts.

result=surface        scalars, pairs x out_rows x out_cols
result=peak           PEAK, pairs
result=peaks:k        PEAK, pairs x k, the largest first; a missing peak has value NaN
result=above:t:c[:d]  DETECTION, one an output found, sorted by (pair, sy, sx)
result=sum            float64, pairs
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr.fields import Fields

# The largest output of a pair; of equal outputs that with the smallest (sy, sx). `sub_sy`, `sub_sx`: fraction that the fit adds
# to the shift, in pixels. `second`: the largest local maximum outside the 5 x 5 outputs around the peak, else NaN.
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
    """Shape of the result; `surface` is pairs x out_rows x out_cols. For above: of the buffer of bytes that the library fills."""
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
    """Copy of the detections in the buffer of a result above, sorted by (pair, sy, sx)."""
    count = int(written[: HEADER.itemsize].view(HEADER)["count"][0])
    found = written[HEADER.itemsize :].view(DETECTION)[:count]
    ordered: NDArray[Any] = found[np.lexsort((found["sx"], found["sy"], found["pair"]))]
    return ordered
