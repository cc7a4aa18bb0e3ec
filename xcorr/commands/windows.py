"""Windows of frames for velocimetry: their masks, and which of them are blank."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from xcorr.errors import UserError
from xcorr.native import moments
from xcorr.problem import format_shape

# A window whose values differ by no more than this share of the largest one is constant: 8 roundings of float32 either way.
CONSTANT = 16 * 2.0**-24

Frames = tuple[NDArray[Any], NDArray[Any]]


def masked(frames: Frames, masks: tuple[NDArray[Any] | None, NDArray[Any] | None]) -> tuple[Frames, Frames | None]:
    """The frames, with the mean of the pixels that count where pixels do not, and their masks as bytes; None without any.
    UserError for a mask that is none of its frame."""
    if masks[0] is None and masks[1] is None:
        return frames, None
    filled, valid = [], []
    for name, frame, mask in zip(("first", "second"), frames, masks):
        mask = np.ones(frame.shape, bool) if mask is None else np.asarray(mask)
        if mask.shape != frame.shape:
            shapes = f"{format_shape(mask.shape)} pixels; give one of {format_shape(frame.shape)}"
            raise UserError(f"mask of the {name} frame: {shapes}")
        if not np.isin(mask, (0, 1)).all():
            raise UserError(f"mask of the {name} frame: has other values than 0 and 1; give booleans")
        counts = mask.astype(bool)
        mean = frame[counts].mean(dtype=np.float64) if counts.any() else 0.0
        filled.append(np.where(counts, frame, mean).astype(frame.dtype))
        valid.append(counts.astype(np.uint8))
    return (filled[0], filled[1]), (valid[0], valid[1])


def blank(
    frames: Frames, valid: Frames | None, pairs: Sequence[NDArray[Any]], side: int, least_valid: float
) -> NDArray[Any]:
    """Which pairs have a window without two different values, or with less than a share of pixels that count. `pairs`: first
    rows and columns of the first windows, then of the second ones."""
    found, window = np.zeros(pairs[0].shape, bool), (side, side)
    for number, frame in enumerate(frames):
        y, x = pairs[2 * number : 2 * number + 2]
        low = high = frame
        if valid is not None:
            counts = valid[number].astype(bool)
            low, high = np.where(counts, frame, np.inf), np.where(counts, frame, -np.inf)
            share = ndimage.uniform_filter(valid[number].astype(np.float64), side, mode="constant")
            found |= moments.inside(share, window)[y, x] < least_valid - 1e-9
        least = moments.inside(ndimage.minimum_filter(low, side), window)[y, x]
        most = moments.inside(ndimage.maximum_filter(high, side), window)[y, x]
        with np.errstate(invalid="ignore"):  # no pixel counts
            found |= ~(most - least > CONSTANT * np.maximum(np.abs(least), np.abs(most)))
    return found
