"""Files with an array: .npy, .npz, images, .csv and .mseed, by the suffix of their name.

`header_of` finds shape, type and memory of the array before anything is unpacked. `Header.read` reads it. Every error is a
UserError of one line.
"""

import os
import re
import stat
import tokenize
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from xcorr.commands.memory import check_memory
from xcorr.errors import UserError, nearest
from xcorr.problem import format_shape as by

READ = ".npy, .npz, .png, .tif, .jpg, .csv and .mseed"
HELP = """\
files: .npy; .npz (FILE.npz:NAME where it holds several arrays); grey .png, .tif, .jpg (a .tif of several pages is a stack);
  .csv (numbers only, a line a row); .mseed by ObsPy (FILE.mseed:ID where it holds several traces). An array of one dimension is
  one row. Colour is refused: take a channel or the mean first."""
_MEMBER = re.compile(r"(.+?\.(?:npz|mseed)):(.+)", re.IGNORECASE | re.DOTALL)
_IMAGES = {".png": "PNG", ".tif": "TIFF", ".tiff": "TIFF", ".jpg": "JPEG", ".jpeg": "JPEG"}
_PIXELS = {"1": "?", "L": "u1", "I;16": "<u2", "I;16L": "<u2", "I;16B": ">u2", "I": "i4", "F": "f4"}  # by Pillow's mode
_BITS, _SAMPLE_FORMAT, _UNSIGNED, _SIGNED = 258, 339, 1, 2  # tags of TIFF, and values of the second
_NAMES_SHOWN = 8
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Header:
    """Shape and type of the array of a file; `needed`: bytes of memory that `read` takes."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    needed: int
    read: Callable[[], NDArray[Any]]


def file_of(path: Path) -> Path:
    """The file of `path`, which may also name an array."""
    return _parted(path)[0]


def header_of(path: Path) -> Header:
    """Header of the array that `path` names. UserError for other files, for types without real numbers and for colour images."""
    file, member = _parted(path)
    suffix = file.suffix.lower()
    reader = {".npz": _npz, ".csv": _csv, ".mseed": _mseed}.get(suffix, _image if suffix in _IMAGES else _npy)
    try:
        mode = os.stat(file).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a pipe may wait for its writer forever
            raise UserError(f"{file}: is not a regular file; write the array to one first")
        with open(file, "rb") as opened:
            return reader(path, file, member, opened)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}; check the path") from None


def _parted(path: Path) -> tuple[Path, str]:
    """The file, and the name of an array in it or ""."""
    match = None if os.path.exists(path) else _MEMBER.fullmatch(str(path))
    return (Path(match[1]), match[2]) if match else (path, "")


@contextmanager
def _told(name: Any, what: str, way_out: str = "write it again") -> Iterator[None]:
    """Turns errors of a reader into one line, and hides its warnings."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (UserError, MemoryError):
        raise
    except Exception as error:  # parsers of foreign formats raise anything, from KeyError to struct.error
        raise UserError(f"{name}: cannot be read as {what}: {_cause(error)}; {way_out}") from None


def _cause(error: Exception) -> str:
    """First line of the message of an error, else its type."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _npy(path: Path, file: Path, member: str, opened: BinaryIO) -> Header:
    size = os.fstat(opened.fileno()).st_size
    if opened.read(6) != b"\x93NUMPY":
        raise UserError(f"{path}: not a .npy file; write it with numpy.save, or end its name with what it is ({READ})")
    opened.seek(0)
    return _npy_header(str(path), opened, size, lambda: np.load(file, allow_pickle=False))


def _npy_header(name: str, opened: Any, size: int, read: Callable[[], NDArray[Any]]) -> Header:
    """Header of a .npy file of `size` bytes."""
    try:
        version = np.lib.format.read_magic(opened)
        if version > (2, 0):
            raise UserError(
                f"{name}: .npy version {version[0]}.{version[1]}, which is for structured types; save a plain float or "
                "integer array"
            )
        form = np.lib.format
        header = form.read_array_header_1_0(opened) if version == (1, 0) else form.read_array_header_2_0(opened)
        shape, fortran_order, dtype = header
    except (ValueError, TypeError, SyntaxError, EOFError, tokenize.TokenError) as error:
        raise UserError(f"{name}: damaged .npy header: {_cause(error)}; write it again") from None
    if any(isinstance(extent, bool) or abs(extent) >= 2**63 for extent in shape):  # numpy takes True for 1
        raise UserError(f"{name}: damaged .npy header: its shape is none of 64-bit integers; write it again")
    if any(extent < 0 for extent in shape):
        raise UserError(f"{name}: damaged .npy header: shape {by(shape)} is negative; write it again")
    if dtype.hasobject:
        raise UserError(f"{name}: holds Python objects; save a plain float or integer array")
    array = prod(shape) * dtype.itemsize
    needed = opened.tell() + array
    if size < needed:
        raise UserError(
            f"{name}: truncated: {size} bytes where {by(shape)} {dtype} needs {needed}; copy or write it again"
        )
    if size > needed and array:
        raise UserError(
            f"{name}: {size - needed} bytes follow the array {by(shape)} {dtype}; write it again, one array a file"
        )
    copies = 2 if fortran_order or not dtype.isnative else 1
    return Header(shape, dtype, copies * array, read)


def _npz(path: Path, file: Path, member: str, opened: BinaryIO) -> Header:
    def read() -> NDArray[Any]:
        with _told(path, ".npz"), zipfile.ZipFile(file) as archive, archive.open(info) as inner:
            array: NDArray[Any] = np.lib.format.read_array(inner, allow_pickle=False)
            return array

    with _told(path, ".npz"), zipfile.ZipFile(opened) as archive:
        found = {one.filename.removesuffix(".npy"): one for one in archive.infolist() if one.filename.endswith(".npy")}
        info = found[_member(path, file, member, "array", found)]
        with archive.open(info) as inner:
            return _npy_header(str(path), inner, info.file_size, read)


def _member(path: Path, file: Path, member: str, what: str, known: Any) -> str:
    """Name of the array or trace that `path` names, else of the only one."""
    names: list[str] = list(known)
    if member in names:
        return member
    if not names:
        raise UserError(f"{file}: holds no {what}; write it again")
    if member:
        raise UserError(f"{path}: no such {what}; {nearest(member, names)}")
    if len(names) > 1:
        shown = ", ".join(map(repr, names[:_NAMES_SHOWN])) + ", ..." * (len(names) > _NAMES_SHOWN)
        raise UserError(f"{file}: holds {len(names)} {what}s, {shown}; name one as {file}:NAME")
    return names[0]


def _image(path: Path, file: Path, member: str, opened: BinaryIO) -> Header:
    from PIL import Image

    kind = _IMAGES[file.suffix.lower()]

    @contextmanager
    def image() -> Iterator[Any]:
        with _told(path, kind, "write it again, with grey pixels of 8 or 16 bits, or as .npy"):
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            try:
                found = Image.open(file, formats=[kind])
            except (Image.DecompressionBombError, Image.DecompressionBombWarning):
                limit = Image.MAX_IMAGE_PIXELS
                raise UserError(f"{path}: more than {limit} pixels; save it as .npy, which may have any size") from None
            with found:
                yield found

    with image() as one:
        dtype, pages, (cols, rows) = _pixels(path, one), getattr(one, "n_frames", 1), one.size

    def read() -> NDArray[Any]:
        with image() as one:
            made = np.empty((pages, rows, cols), dtype)
            for page in range(pages):
                one.seek(page)
                if one.size != (cols, rows) or _pixels(path, one) != dtype:
                    raise UserError(f"{path}: its pages have several sizes or types; save those of one as .npy")
                one.load()
                pixels = np.asarray(one)
                made[page] = pixels.view(dtype) if pixels.dtype.itemsize == dtype.itemsize else pixels
            return made if pages > 1 else made[0]

    shape = (pages, rows, cols) if pages > 1 else (rows, cols)
    return Header(shape, dtype, (pages + 2) * rows * cols * max(dtype.itemsize, 4), read)


def _pixels(path: Path, image: Any) -> np.dtype[Any]:
    """Type of the pixels of an image, from its header. UserError for colours."""
    if image.mode not in _PIXELS:
        what = "a palette" if image.mode in ("P", "PA") else f"{len(image.getbands())} channels ({image.mode})"
        convert = f"from PIL import Image; Image.open({str(path)!r}).convert('L').save('grey.png')"
        raise UserError(f'{path}: {what}; convert it to grey, as by python3 -c "{convert}"')
    if image.mode == "I" and image.format == "PNG":
        return np.dtype("u2")  # some versions of Pillow widen 16 bits
    if image.format == "TIFF":
        bits, kind = (image.tag_v2.get(tag, (1,))[0] for tag in (_BITS, _SAMPLE_FORMAT))
        if bits > 32:
            raise UserError(f"{path}: {bits} bits a pixel, of which Pillow keeps 32; save it as .npy")
        if image.mode == "I" and kind == _UNSIGNED:
            return np.dtype("u4")  # Pillow stores the bits as int32
        if image.mode == "L" and kind == _SIGNED:
            return np.dtype("i1")
    return np.dtype(_PIXELS[image.mode])


def _csv(path: Path, file: Path, member: str, opened: BinaryIO) -> Header:
    """The shape is known only after reading, so the text is read here. Its separators limit the number of values."""
    values = 1 + sum(block.count(b",") + block.count(b"\n") for block in iter(lambda: opened.read(_BLOCK), b""))
    check_memory(str(path), {"values": 2 * 8 * values})  # twice, since the array grows by copies
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty file has an empty shape
            array = np.loadtxt(file, delimiter=",", ndmin=2, encoding="utf-8-sig")
    except ValueError as error:
        cause = str(error).splitlines()[0].split(";")[0].rstrip(".")
        raise UserError(
            f"{path}: not a table of numbers: {cause}; a .csv holds the same count of numbers in each line, separated by "
            "commas, and no names"
        ) from None
    return Header(array.shape if array.size else (0, 0), array.dtype, 0, lambda: array)


def _mseed(path: Path, file: Path, member: str, opened: BinaryIO) -> Header:
    """Header of one trace as one row."""
    try:
        import obspy
    except ImportError:
        raise UserError(
            f"{path}: .mseed is read by ObsPy, which is not installed; pip install obspy, or save the samples with numpy.save"
        ) from None

    def traces(headonly: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        with _told(path, "MSEED"):
            for one in obspy.read(str(file), format="MSEED", headonly=headonly):
                if one.id in found:
                    raise UserError(
                        f"{path}: trace {one.id} has gaps; fill them (obspy Stream.merge) and write it again"
                    )
                found[one.id] = one
        return found

    known = traces(headonly=True)
    name = _member(path, file, member, "trace", known)
    samples = sum(int(one.stats.npts) for one in known.values())  # reading unpacks all traces
    check_memory(str(path), {"samples": 8 * samples})
    array = np.asarray(traces(headonly=False)[name].data)
    return Header(array.shape, array.dtype, 0, lambda: array)
