"""Kernels of compiled CUDA units: what the GPU runs, read from the objects of a build.

An object holds a fat binary, which holds an ELF file (cubin) for each architecture. Two kernels are the same when
their instructions, relocations, constants, registers, shared memory, parameters and further attributes are. Names of
namespaces do not count, nor does what nvcc appends to the anonymous one: a hash of the file.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import re
import struct
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from xcorr.errors import UserError

FAT_BINARY = struct.pack("<I", 0xBA55ED50)
ELF, ZSTD = b"\x7fELF", b"\x28\xb5\x2f\xfd"
KIND_ELF = 2
# Attributes of .nv.info: what follows the two-byte head, by the first byte; the second names the attribute.
SIZED = 4
REGISTERS, FRAME_SIZE, STACK_SIZE = 0x2F, 0x11, 0x12
PARAMETER, CONSTANT_BANK, EXTERNS = 0x17, 0x0A, 0x0F
NO_BITS = 8  # a section that takes memory and holds nothing


@dataclass(frozen=True)
class Kernel:
    """A kernel of one architecture. `digest` covers all that decides what it does and how fast. `shared_bytes`
    are static ones, with those that the system reserves."""

    mangled: str
    registers: int
    shared_bytes: int
    parameters: tuple[int, ...]
    digest: str


def cubins(path: Path, architecture: str) -> list[bytes]:
    """The ELF files for an architecture such as 90 in an object; none where nothing was compiled for it."""
    data = path.read_bytes()
    found = []
    start = data.find(FAT_BINARY)
    while start >= 0:
        header, size = struct.unpack_from("<HQ", data, start + 6)
        at, end = start + header, start + header + size
        while at < end:
            kind, _, header, padded, stored = struct.unpack_from("<HHIQI", data, at)
            (which,) = struct.unpack_from("<I", data, at + 28)
            (whole,) = struct.unpack_from("<Q", data, at + 56)
            if kind == KIND_ELF and str(which) == architecture:
                found.append(_unpacked(data[at + header : at + header + (stored or padded)], whole, path))
            at += header + padded
        start = data.find(FAT_BINARY, end)
    return found


def _unpacked(payload: bytes, size: int, path: Path) -> bytes:
    if payload[:4] == ELF:
        return payload
    name = ctypes.util.find_library("zstd")
    if payload[:4] != ZSTD or name is None:
        way_out = "install libzstd1" if payload[:4] == ZSTD else "build with CUDA 13, or with -Dcuda_args=-no-compress"
        raise UserError(f"{path}: its machine code is compressed; {way_out}")
    unpack = ctypes.CDLL(name).ZSTD_decompress
    unpack.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(size)
    done = unpack(out, ctypes.c_size_t(size), payload, ctypes.c_size_t(len(payload)))
    if done != size or out.raw[:4] != ELF:
        raise UserError(f"{path}: its machine code cannot be unpacked; build again")
    return out.raw


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    link: int
    info: int
    size: int
    content: bytes


class _Elf:
    """Sections and symbols of a 64-bit ELF file."""

    def __init__(self, data: bytes) -> None:
        (table,) = struct.unpack_from("<Q", data, 0x28)
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        heads = [struct.unpack_from("<IIQQQQIIQQ", data, table + size * i) for i in range(count)]

        def text(at: int) -> str:
            return data[at : data.index(b"\0", at)].decode()

        self.sections = [
            _Section(
                text(heads[names][4] + head[0]),
                head[1],
                head[6],
                head[7],
                head[5],
                b"" if head[1] == NO_BITS else data[head[4] : head[4] + head[5]],
            )
            for head in heads
        ]
        self.symbols: list[str] = []
        for section, head in zip(self.sections, heads):
            if section.name == ".symtab":
                strings = heads[section.link][4]
                for at in range(0, len(section.content), 24):
                    name, _, _, _, value, length = struct.unpack_from("<IBBHQQ", section.content, at)
                    self.symbols.append(f"{without_file(text(strings + name))}+{value}:{length}")

    def symbol(self, index: int) -> str:
        return self.symbols[index] if index < len(self.symbols) else str(index)


def kernels(cubin: bytes) -> list[Kernel]:
    """All functions of a cubin that have code of their own."""
    elf = _Elf(cubin)
    shared = {s.name.removeprefix(".nv.shared."): s.size for s in elf.sections if s.name.startswith(".nv.shared.")}
    registers: dict[str, int] = {}
    common = []  # what every kernel of the unit sees: its constants and variables
    for section in elf.sections:
        if section.name == ".nv.info":
            for attribute, value in _attributes(section.content):
                if attribute == REGISTERS:
                    symbol, count = struct.unpack("<II", value)
                    registers[elf.symbol(symbol).split("+")[0]] = count
        elif re.fullmatch(r"\.nv\.(constant[1-9]\d*|global(\.init)?)", section.name):
            common.append(f"{section.name} {section.size} {hashlib.sha256(section.content).hexdigest()}")
    found = []
    for section in elf.sections:
        if not section.name.startswith(".text."):
            continue
        mangled = section.name.removeprefix(".text.")
        own = [f"text {hashlib.sha256(section.content).hexdigest()}", *common]
        parameters: dict[int, int] = {}
        for other in elf.sections:
            if other.name == f".nv.info.{mangled}":
                for attribute, value in _attributes(other.content):
                    if attribute == PARAMETER:
                        _, ordinal, _, packed = struct.unpack("<IHHI", value)
                        parameters[ordinal] = packed >> 18
                    own.append(_written(elf, attribute, value))
            elif other.name in (f".rel.text.{mangled}", f".rela.text.{mangled}"):
                own += _relocations(elf, other)
            elif re.fullmatch(rf"\.nv\.constant\d+\.{re.escape(mangled)}", other.name):
                own.append(f"constant {other.size} {hashlib.sha256(other.content).hexdigest()}")
        plain = without_file(mangled)
        own += [f"registers {registers.get(plain, 0)}", f"shared {shared.get(mangled, 0)}"]
        sizes = tuple(parameters[ordinal] for ordinal in sorted(parameters))
        digest = hashlib.sha256("\n".join(own).encode()).hexdigest()
        found.append(Kernel(mangled, registers.get(plain, 0), shared.get(mangled, 0), sizes, digest))
    return found


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(content):
        form, attribute, value = struct.unpack_from("<BBH", content, at)
        at += 4
        if form == SIZED:
            yield attribute, content[at : at + value]
            at += value
        else:
            yield attribute, struct.pack("<H", value)


def _written(elf: _Elf, attribute: int, value: bytes) -> str:
    """An attribute without numbers of symbols, which depend on names."""
    if attribute in (CONSTANT_BANK, FRAME_SIZE, STACK_SIZE):
        return f"{attribute} {value[4:].hex()}"
    if attribute == EXTERNS:
        return f"{attribute} {[_unscoped(elf.symbol(one)) for (one,) in struct.iter_unpack('<I', value)]}"
    return f"{attribute} {value.hex()}"


def _relocations(elf: _Elf, section: _Section) -> list[str]:
    form = "<QQq" if section.name.startswith(".rela") else "<QQ"
    lines = []
    for offset, what, *addend in struct.iter_unpack(form, section.content):
        lines.append(f"at {offset} type {what & 0xFFFFFFFF} of {_unscoped(elf.symbol(what >> 32))} {addend}")
    return lines


def _unscoped(symbol: str) -> str:
    """A mangled name as the words in it, without those before the last: enough to tell two symbols apart."""
    name, _, place = symbol.partition("+")
    return f"{re.sub(r'^_ZN.*?(?=[A-Za-z_]+E)', '', name)}+{place}"


def without_file(mangled: str) -> str:
    """A mangled name without its anonymous namespace, which is named after file and process."""
    space = re.search(r"(\d+)(?=_GLOBAL__N_)", mangled)
    return mangled if space is None else mangled[: space.start()] + mangled[space.end() + int(space[1]) :]


# Types in signatures of kernels that have other names in earlier versions: what all of them are compared as.
RENAMED = {"Team": "LaneGroup", "Problem": "Geometry"} | {
    f"{of}Arguments": "Arguments" for of in ("Block", "Lanes", "Warp")
}
NAMESPACES = re.compile(r"(?:\(anonymous namespace\)|\b[a-z_]\w*)::(?=[\w(~])")


def plain_names(mangled: Iterable[str]) -> dict[str, str]:
    """Signatures without namespaces and with one name for types that were renamed, by mangled name."""
    names = sorted(set(mangled))
    try:
        done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    except OSError as error:
        raise UserError(f"c++filt: {error.strerror}; install binutils") from error
    renamed = re.compile(rf"\b({'|'.join(RENAMED)})\b")
    signatures = (NAMESPACES.sub("", signature) for signature in done.stdout.splitlines())
    return {name: renamed.sub(lambda found: RENAMED[found[1]], signature) for name, signature in zip(names, signatures)}


def kernels_of(objects: Iterable[Path], architecture: str) -> list[Kernel]:
    """The kernels of a variant's objects."""
    return [one for path in objects for cubin in cubins(path, architecture) for one in kernels(cubin)]
