"""Matrices of a problem from files: checks, reading, form, and order of the rights.

Every error is a UserError of one line. Memory is checked before it is allocated.
"""

from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr.commands.formats import Header, header_of
from xcorr.commands.memory import check_memory
from xcorr.errors import UserError
from xcorr.problem import format_shape as by

_SLAB_ELEMENTS = 1 << 22
WITHOUT_NAN = "leave NaN out by --nan-is-masked"
STACK_HELP = "3D files whose last axis is 3 or 4 are stacks of matrices (default: refused as colour images)"
_CHANNELS = (3, 4)  # last axis of a colour image
_LEAST_IMAGE = 8  # pixels of a side; smaller arrays are templates


def read_header(path: Path, stack: bool = False) -> Header:
    """Header of a complete file with real numbers and 1 to 4 dimensions of nonzero size; one dimension is one row. UserError for
    other files, and for an array that looks like a colour image unless `stack`."""
    name, header = str(path), header_of(path)
    shape, dtype = header.shape, header.dtype
    if dtype.kind == "c":
        raise UserError(f"{name}: complex type {dtype}; save the real part or the magnitude")
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise UserError(f"{name}: type {dtype}; save float32, float64 or integers")
    if not 1 <= len(shape) <= 4:
        raise UserError(f"{name}: {len(shape)} dimensions; a row has 1, a matrix 2, a stack 3, tiles of patterns 4")
    if 0 in shape:
        raise UserError(f"{name}: shape {by(shape)} holds no element; nothing to correlate")
    if len(shape) > 2 and shape[-1] in _CHANNELS and min(shape[-3:-1]) >= _LEAST_IMAGE and not stack:
        mean = f"import numpy as n; n.save('grey.npy', n.load({name!r}).mean(-1))"
        how = f', as by python3 -c "{mean}"' if name.endswith(".npy") else ""
        raise UserError(
            f"{name}: {by(shape)} looks like colour; take a channel or the mean{how}; or say --stack for a stack of "
            f"matrices of {shape[-1]} columns"
        )
    return replace(header, shape=(1, *shape)) if len(shape) == 1 else header


def read_matrices(path: Path, header: Header, allow_nonfinite: bool = False, of_nan: str = "") -> NDArray[Any]:
    """Array of a checked file in native byte order and C order. UserError for NaN or infinity unless allowed. `of_nan`: as in
    `check_finite`."""
    check_memory(f"{path}", {"matrices": header.needed})
    try:
        array = header.read().reshape(header.shape)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {str(error).splitlines()[0]}; write it again") from None
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    if not allow_nonfinite:
        check_finite(str(path), array, of_nan=of_nan)
    return array


def check_finite(name: str, array: NDArray[Any], valid: NDArray[Any] | None = None, of_nan: str = "") -> None:
    """UserError naming the first index (C order) of a valid element that is not finite. `valid`: shape of `array`, 0 where an
    element is ignored. `of_nan`: another way out for NaN."""
    if array.dtype.kind != "f":
        return
    flat = array.reshape(-1)
    counts = None if valid is None else valid.reshape(-1) != 0
    for start in range(0, flat.size, _SLAB_ELEMENTS):
        finite = np.isfinite(flat[start : start + _SLAB_ELEMENTS])
        if counts is not None:
            finite |= ~counts[start : start + _SLAB_ELEMENTS]
        if not finite.all():
            index = start + int(np.argmin(finite))
            where = ", ".join(str(int(i)) for i in np.unravel_index(index, array.shape))
            leave_out = f", or {of_nan}" if of_nan and np.isnan(flat[index]) else ""
            raise UserError(f"{name}: {flat[index]} at index [{where}]; replace what is not finite{leave_out}")


def without_nan(array: NDArray[Any], valid: NDArray[Any] | None) -> NDArray[Any] | None:
    """`valid`, the mask of an array or None, with 0 at NaN."""
    if array.dtype.kind != "f" or not np.isnan(array).any():
        return valid
    counts: NDArray[Any] = ~np.isnan(array)
    return (counts if valid is None else counts & (valid != 0)).astype(np.uint8)


def as_stack(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Matrices x rows x cols from a 2D or 3D array."""
    if array.ndim == 4:
        raise UserError(f"{name}: 4 dimensions; only RIGHT may be tiles x patterns x rows x cols")
    return array[np.newaxis] if array.ndim == 2 else array


def infer_form(form: str | None, lefts: int, right_shape: tuple[int, ...], right_order: str | None) -> str:
    """`form` if given, else the only form that the counts allow. UserError for an illegal or ambiguous form.

    One left or one right allows one pairing. A 4D right or `right_order` means n-to-mn. Several lefts and rights are n-to-m if
    the counts do not divide, else ambiguous.
    """
    rights = prod(right_shape[:-2])
    counts = f"{lefts} left, {rights} right matrices"
    grouped = len(right_shape) == 4 or right_order is not None
    if form is None:
        if lefts == rights == 1:
            form = "one-to-one"
        elif grouped and (lefts > 1 or len(right_shape) == 4):
            form = "n-to-mn"
        elif lefts == 1:
            form = "one-to-many"
        elif rights == 1 or rights % lefts:
            form = "n-to-m"
        else:
            raise UserError(
                f"{counts}: n-to-mn ({rights} pairs) or n-to-m ({lefts * rights} pairs); choose with --form"
            )
    if form == "one-to-one" and (lefts, rights) != (1, 1):
        raise UserError(f"{counts}: one-to-one takes one of each; use --form n-to-mn or n-to-m")
    if form == "one-to-many" and lefts != 1:
        raise UserError(f"{counts}: one-to-many takes one left; use --form n-to-mn or n-to-m")
    if form == "n-to-mn" and rights % lefts:
        raise UserError(
            f"{counts}: {rights} does not divide by {lefts}; n-to-mn pairs right r with "
            "left r // (rights / lefts): complete the stack or use --form n-to-m"
        )
    if right_order is not None and form != "n-to-mn":
        raise UserError(f"--right-order {right_order}: only for n-to-mn, not {form}; leave it out")
    return form


def order_rights(name: str, array: NDArray[Any], lefts: int, form: str, right_order: str | None) -> NDArray[Any]:
    """Rights x rows x cols, grouped by left if the form is n-to-mn.

    4D: axes are tile, pattern (`right_order` tile) or pattern, tile (`right_order` pattern); by default the only axis of length
    `lefts` is tile. 3D with `right_order` pattern: right r belongs to left r mod lefts.
    """
    rows, cols = array.shape[-2:]
    if array.ndim == 2 or (array.ndim == 3 and right_order != "pattern"):
        return array.reshape(-1, rows, cols)
    if array.ndim == 3:
        array = array.reshape(-1, lefts, rows, cols)
    elif form != "n-to-mn":
        return array.reshape(-1, rows, cols)
    tile_axis = {"tile": 0, "pattern": 1}.get(right_order or "")
    if tile_axis is None:
        fitting = [axis for axis in (0, 1) if array.shape[axis] == lefts]
        if len(fitting) != 1:
            raise UserError(
                f"{name}: {by(array.shape)} for {lefts} left: which axis counts the tiles? "
                "say --right-order tile (first axis) or pattern (second)"
            )
        tile_axis = fitting[0]
    if array.shape[tile_axis] != lefts:
        raise UserError(
            f"{name}: {by(array.shape)} has {array.shape[tile_axis]} tiles on axis {tile_axis} "
            f"for {lefts} left; turn --right-order or check the files"
        )
    if tile_axis == 1:
        array = array.swapaxes(0, 1)
    return array.reshape(-1, rows, cols)  # a copy where the axes were swapped


def without_means(stack: NDArray[Any], valid: NDArray[Any] | None = None) -> NDArray[Any]:
    """Each matrix less the mean of its valid elements, in float64."""
    made = np.empty(stack.shape)
    for index, matrix in enumerate(stack):
        counted = matrix if valid is None else matrix[valid[index] != 0]
        mean = counted.mean(dtype=np.float64) if counted.size else 0.0
        made[index] = np.subtract(matrix, mean, dtype=np.float64)
    return made


def check_range(name: str, made: NDArray[Any]) -> None:
    """UserError naming the first matrix of a converted stack with a value beyond its type."""
    for index, matrix in enumerate(made):
        if not np.isfinite(matrix).all():
            raise UserError(f"{name}: matrix {index} holds values beyond {made.dtype}; scale it")
