"""A user's matrices: read and check .npy files, decide the form, put the rights in order.

Every refusal is a UserError of one line. Nothing is read before the header has been checked
against the size of the file, and nothing allocated before the memory has.
"""

from __future__ import annotations

import os
import stat
import tokenize
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xcorr.errors import UserError

_SLAB_ELEMENTS = 1 << 22


@dataclass(frozen=True)
class Header:
    """What the header of a .npy file says, and the number of bytes before its data."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype
    offset: int


def read_header(path: Path) -> Header:
    """Header of `path`, checked: real numeric type, 2D to 4D, nothing zero-size, file complete."""
    name = str(path)
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # one might wait for its writer without end
            raise UserError(f"{name}: is not a regular file; write the array to one first")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if file.read(6) != b"\x93NUMPY":
                raise UserError(f"{name}: not a .npy file; write it with numpy.save")
            file.seek(0)
            try:
                version = np.lib.format.read_magic(file)
                if version > (2, 0):
                    raise UserError(
                        f"{name}: .npy version {version[0]}.{version[1]}, which is for "
                        "structured types; save a plain float or integer array"
                    )
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                header = Header(*read(file), file.tell())
            except (ValueError, TypeError, SyntaxError, EOFError, tokenize.TokenError) as error:
                cause = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise UserError(f"{name}: damaged .npy header: {cause}; write it again") from None
    except OSError as error:
        raise UserError(f"{name}: cannot be read: {error.strerror or error}; check the path") from None
    _check_header(name, header, size)
    return header


def _check_header(name: str, header: Header, file_size: int) -> None:
    dtype = header.dtype
    if dtype.hasobject:
        raise UserError(f"{name}: holds Python objects; save a plain float or integer array")
    if dtype.kind == "c":
        raise UserError(f"{name}: complex type {dtype}; save the real part or the magnitude")
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise UserError(f"{name}: type {dtype}; save float32, float64 or integers")
    if not 2 <= len(header.shape) <= 4:
        raise UserError(f"{name}: {len(header.shape)} dimensions; a matrix has 2, a stack 3, tiles of patterns 4")
    if any(extent < 0 for extent in header.shape):
        raise UserError(f"{name}: damaged .npy header: shape {_by(header.shape)} is negative; write it again")
    if 0 in header.shape:
        raise UserError(f"{name}: shape {_by(header.shape)} holds no element; nothing to correlate")
    count = 1
    for extent in header.shape:
        count *= int(extent)
    needed = header.offset + count * dtype.itemsize
    if file_size < needed:
        raise UserError(
            f"{name}: truncated: {file_size} bytes where {_by(header.shape)} {dtype} needs "
            f"{needed}; copy or write it again"
        )
    if file_size > needed:
        raise UserError(
            f"{name}: {file_size - needed} bytes follow the array {_by(header.shape)} {dtype}; write it again, one "
            "array a file"
        )


def read_matrices(path: Path, header: Header, allow_nonfinite: bool = False) -> np.ndarray:
    """The array of a checked file in native byte order, C order; UserError at a NaN or an
    infinity, unless they are allowed."""
    check_memory(
        f"{path}",
        {
            "matrices": int(np.prod(header.shape, dtype=object))
            * header.dtype.itemsize
            * (2 if header.fortran_order or not header.dtype.isnative else 1)
        },
    )
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {str(error).splitlines()[0]}; write it again") from None
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    if not allow_nonfinite:
        check_finite(str(path), array)
    return array


def check_finite(name: str, array: np.ndarray, valid: np.ndarray | None = None) -> None:
    """UserError naming the first index (C order) that is not finite, of those that `valid` (of the same shape) has."""
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
            raise UserError(f"{name}: {flat[index]} at index [{where}]; replace what is not finite")


def as_stack(name: str, array: np.ndarray) -> np.ndarray:
    """Matrices x rows x cols of a 2D or 3D array."""
    if array.ndim == 4:
        raise UserError(f"{name}: 4 dimensions; only RIGHT may be tiles x patterns x rows x cols")
    return array[np.newaxis] if array.ndim == 2 else array


def infer_form(form: str | None, lefts: int, right_shape: tuple[int, ...], right_order: str | None) -> str:
    """The form, as asked for or as the only one that the counts allow; UserError otherwise.

    One to one, one to many and n to one allow a single pairing; a 4D right or `right_order` means
    n-to-mn; several lefts and rights are n-to-m where the counts do not divide, else ambiguous.
    """
    rights = int(np.prod(right_shape[:-2], dtype=object))
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


def order_rights(name: str, array: np.ndarray, lefts: int, form: str, right_order: str | None) -> np.ndarray:
    """Rights x rows x cols, grouped by left where the form is n-to-mn.

    4D: axes tile, pattern (`right_order` tile) or pattern, tile (pattern); inferred when only one
    axis has `lefts` entries. 3D with `pattern`: right r belongs to left r mod lefts, and is moved.
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
                f"{name}: {_by(array.shape)} for {lefts} left: which axis counts the tiles? "
                "say --right-order tile (first axis) or pattern (second)"
            )
        tile_axis = fitting[0]
    if array.shape[tile_axis] != lefts:
        raise UserError(
            f"{name}: {_by(array.shape)} has {array.shape[tile_axis]} tiles on axis {tile_axis} "
            f"for {lefts} left; turn --right-order or check the files"
        )
    if tile_axis == 1:
        array = array.swapaxes(0, 1)
    return array.reshape(-1, rows, cols)  # a copy where the axes were swapped


def without_means(stack: np.ndarray, valid: np.ndarray | None = None) -> np.ndarray:
    """Each matrix less the mean of its elements that count, in float64; the others stay."""
    made = np.empty(stack.shape)
    for index, matrix in enumerate(stack):
        counted = matrix if valid is None else matrix[valid[index] != 0]
        mean = counted.mean(dtype=np.float64) if counted.size else 0.0
        made[index] = np.subtract(matrix, mean, dtype=np.float64)
    return made


def to_scalar(name: str, stack: np.ndarray, scalar: type, subtract_mean: bool) -> np.ndarray:
    """`stack` in the scalar type of the computation, each matrix less its own mean if asked for.

    UserError at a value beyond the range of the type. Means are taken in float64.
    """
    out = np.empty(stack.shape, scalar)
    for index, matrix in enumerate(stack):
        values = matrix
        if subtract_mean:  # numpy 1 would subtract a float64 scalar from float32 in float32
            values = np.subtract(matrix, matrix.mean(dtype=np.float64), dtype=np.float64)
        with np.errstate(over="ignore"):
            out[index] = values
        if not np.isfinite(out[index]).all():
            raise UserError(f"{name}: matrix {index} holds values beyond {np.dtype(scalar)}; scale it")
    return out


def available_memory(meminfo: Path = Path("/proc/meminfo"), control_group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that can be allocated now: available memory, or what a control group leaves of it.

    Where the system does not tell what is available it is at most the whole memory; None where nobody tells anything.
    """
    known: list[int] = []
    try:
        lines = meminfo.read_text().splitlines()
        known += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError, IndexError):
        pass
    if not known:
        try:
            pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
            known += [pages * page] if pages > 0 and page > 0 else []
        except (OSError, ValueError):
            pass
    try:
        limit = int((control_group / "memory.max").read_text())  # "max" is no number: no limit
        try:
            used = int((control_group / "memory.current").read_text())
        except (OSError, ValueError):
            used = 0
        known.append(max(limit - used, 0))
    except (OSError, ValueError):
        pass
    return min(known, default=None)


def check_memory(what: str, parts: dict[str, int]) -> None:
    """UserError naming the bytes where `parts` (name -> bytes) exceed the memory available."""
    needed, free = sum(parts.values()), available_memory()
    if free is not None and needed > free:
        detail = ", ".join(f"{name} {size}" for name, size in parts.items())
        raise UserError(
            f"{what}: needs {needed} bytes of memory ({detail}), {free} are available; "
            "use fewer matrices or a smaller --window"
        )


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(str(extent) for extent in shape)
