"""Checks and conversion of the arrays that xcorr.native.library passes to the C API."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr.errors import LibraryError
from xcorr.native import conversion


@dataclass(frozen=True)
class Windows:
    """Matrices of one side as windows of a frame, without copies. `frame`: rows x cols, or a stack, which is one frame of many
    rows. `offsets`: index y * cols + x of the first element of each window."""

    frame: NDArray[Any]
    offsets: NDArray[Any]


def check_out(out: Any, shape: tuple[int, ...], scalar: Any, inputs: Mapping[str, NDArray[Any]]) -> None:
    """LibraryError unless `out` can hold the result and is separate from the inputs."""
    if not isinstance(out, np.ndarray):
        raise LibraryError(f"out: {type(out).__name__}; a numpy array is needed")
    if out.shape != shape or out.dtype != scalar or not (out.flags.c_contiguous and out.flags.aligned):
        raise LibraryError(f"out: {out.dtype} {out.shape}; dense {np.dtype(scalar)} {shape} needed")
    if not out.flags.writeable:
        raise LibraryError("out: is read-only; give an array that may be written")
    for name, array in inputs.items():
        if np.may_share_memory(out, array):
            raise LibraryError(f"out: shares memory with {name}; give an array of its own")


def mask_of(side: str, array: Any, shape: tuple[int, int, int], wanted: bool) -> NDArray[Any] | None:
    """The mask as bytes 0 and 1 in `shape`, None for a side without a mask. LibraryError for another type, shape or value, for a
    missing mask, and for a mask that the problem does not name."""
    name = f"{side}_mask"
    if not wanted:
        if array is not None:
            raise LibraryError(f"{name}: the problem names no mask of this side; add masks={side} or both to it")
        return None
    if array is None:
        raise LibraryError(f"{name}: missing; give an array of 0 and 1, {shape}")
    array = np.asarray(array)
    if array.dtype.kind not in "biu":
        raise LibraryError(f"{name}: type {array.dtype}; give booleans, or 0 and 1")
    array = _stack_of(name, array, shape)
    if array.dtype.kind != "b" and array.size and (array.min() < 0 or array.max() > 1):
        raise LibraryError(f"{name}: values from {array.min()} to {array.max()}; give 0 and 1")
    return np.require(array, np.uint8, ["C", "A"])


def _stack_of(name: str, array: NDArray[Any], shape: tuple[int, int, int]) -> NDArray[Any]:
    """The array in `shape`, which may add axes of one element. LibraryError for another shape."""
    if array.size != prod(shape) or array.shape[-2:] != shape[-2:]:
        raise LibraryError(f"{name}: array of shape {array.shape}; {shape} needed")
    return array.reshape(shape)


def windows(
    name: str, given: Any, shape: tuple[int, int, int], scalar: type, allow_nonfinite: bool, offset_free: bool = False
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Frame (dense, `scalar`) and offsets (int64). LibraryError for other types or shapes, and for a window that leaves the columns
    of the frame; the library checks the rows. With `offset_free` the frame is converted less one pivot."""
    if not isinstance(given, Windows):
        raise LibraryError(f"{name}: views windows; give xcorr.native.arrays.Windows(frame, offsets)")
    frame = np.asarray(given.frame)
    if frame.ndim not in (2, 3) or frame.size == 0:
        raise LibraryError(f"{name}: a frame of shape {frame.shape}; give rows x cols, or a stack of such")
    frame = frame.reshape(-1, frame.shape[-1])
    made = dense(name, frame[np.newaxis], (1, *frame.shape), scalar, allow_nonfinite, offset_free)[0]
    offsets = np.asarray(given.offsets)
    if offsets.dtype.kind not in "iu" or offsets.shape != shape[:1]:
        raise LibraryError(f"{name}: offsets {offsets.dtype} {offsets.shape}; give {shape[0]} integers")
    outside = (offsets < 0) | (offsets % frame.shape[1] + shape[2] > frame.shape[1])
    if outside.any():
        place = int(np.argmax(outside))
        raise LibraryError(
            f"{name}: window {place} at offset {offsets[place]} leaves the {frame.shape[1]} columns of the frame; "
            "use an offset of y * cols + x"
        )
    return made, np.require(offsets, np.int64, ["C", "A"])


def dense(
    name: str,
    array: Any,
    shape: tuple[int, int, int],
    scalar: type,
    allow_nonfinite: bool,
    offset_free: bool = False,
    valid: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The array, dense, in `scalar` and `shape`. LibraryError for masked arrays, another type or shape, and values that are not
    finite. With `offset_free` each matrix that would be rounded is converted less a pivot. `valid`: 0 where an element is ignored."""
    if np.ma.is_masked(array):
        raise LibraryError(f"{name}: has masked elements; fill them first, or give their mask with ncc or zncc")
    try:
        array = np.asarray(array)
    except ValueError as error:
        raise LibraryError(f"{name}: no array ({error}); give {shape}") from None
    check_type(name, array)
    stack = _stack_of(name, array, shape)
    wide = offset_free and conversion.has_more_digits(array.dtype, scalar)
    if valid is not None and not np.isfinite(stack.sum(dtype=np.float64)):
        wide = True  # an ignored element may be NaN
    if wide:
        made = conversion.converted(stack, scalar, offset_free, valid).stack
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            made = np.require(stack, scalar, ["C", "A"])
    # A finite sum has finite terms only; the sum needs no temporary array.
    with np.errstate(over="ignore", invalid="ignore"):
        if not allow_nonfinite and not np.isfinite(made.sum()) and not np.isfinite(made).all():
            place = np.unravel_index(int(np.argmin(np.isfinite(made))), shape)
            value = stack[place]
            where = ", ".join(str(int(index)) for index in place)
            cause = f"beyond {np.dtype(scalar)}; scale it" if np.isfinite(value) else "not finite; replace it"
            raise LibraryError(f"{name}: {value} at [{where}] is {cause}, or say allow_nonfinite=True")
    return made


def check_type(name: str, array: NDArray[Any]) -> None:
    """LibraryError for a missing array and for one without real numbers."""
    if array.ndim == 0 and array.dtype.kind == "O" and array[()] is None:
        way_out = "an array, or same='yes' in the problem where left and right are one array"
        raise LibraryError(f"{name}: missing; give {way_out if name == 'right' else 'an array'}")
    if array.dtype.kind not in "biuf":
        given = f"type {array.dtype}"
        if array.ndim == 0 and array.dtype.kind == "O":
            given = f"{type(array[()]).__name__}, which is no array"
        raise LibraryError(f"{name}: {given}; give real numbers (of complex ones a part or the magnitude)")
