"""NPP: nppiCrossCorrValid, one call a pair, NormLevel for scores; frames get zeros around them for other windows."""

import ctypes
from typing import Any

import numpy as np

from experiments.compare.rivals import Call, Rival, on_gpu, require, shared_library, spectra
from experiments.compare.rivals.libraries.cupy_transforms import host
from xcorr.problem import Problem, pair_indices


def _names(*parts: str) -> list[str]:
    return [f"libnpp{part}.so{number}" for number in (".13", ".12", "") for part in parts]


class _Size(ctypes.Structure):
    _fields_ = [("width", ctypes.c_int), ("height", ctypes.c_int)]


class _Context(ctypes.Structure):
    """NppStreamContext of nppdefs.h."""

    _fields_ = [
        ("stream", ctypes.c_void_p),
        ("device", ctypes.c_int),
        ("multiprocessors", ctypes.c_int),
        ("threads_per_multiprocessor", ctypes.c_int),
        ("threads_per_block", ctypes.c_int),
        ("shared_bytes_per_block", ctypes.c_size_t),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("stream_flags", ctypes.c_uint),
        ("reserved", ctypes.c_int),
    ]


def _load() -> Any:
    on_gpu("cupy")()
    _core()  # which the other one needs
    return shared_library(_names("ist", "if"), "nppiCrossCorrValid_32f_C1R_Ctx")


def _core() -> Any:
    return shared_library(_names("c"), "nppGetLibVersion")


def _version(_: Any) -> str:
    class Version(ctypes.Structure):
        _fields_ = [(name, ctypes.c_int) for name in ("major", "minor", "build")]

    core = _core()
    core.nppGetLibVersion.restype = ctypes.POINTER(Version)
    found = core.nppGetLibVersion().contents
    return f"NPP {found.major}.{found.minor}.{found.build}"


def _context(cupy: Any) -> _Context:
    device = cupy.cuda.Device()
    of = cupy.cuda.runtime.getDeviceProperties(device.id)
    names = ("multiProcessorCount", "maxThreadsPerMultiProcessor", "maxThreadsPerBlock", "sharedMemPerBlock")
    return _Context(None, device.id, *(of[name] for name in names), of["major"], of["minor"], 0, 0)


def _correlation(library: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    spectra.require_plain(problem, "zncc")
    require(problem.pairs <= 64, "one call a pair; more than 64 pairs are not its use")
    import cupy

    inside, is_score = spectra.is_inside(problem), problem.fields.score_kind == "zncc"
    borders = [0 if inside else size - 1 for size in problem.left]  # there is no product in a full window
    frame = [size + 2 * border for size, border in zip(problem.right, borders)]
    sizes = [_Size(cols, rows) for rows, cols in (frame, problem.left)]
    shape = [size - part + 1 for size, part in zip(frame, problem.left)]
    window = slice(None) if inside else spectra.crop(problem)
    context = _context(cupy)
    function = getattr(library, f"nppiCrossCorrValid_{'NormLevel_' if is_score else ''}32f_C1R_Ctx")
    scratch = None
    if is_score:
        count = ctypes.c_size_t(0)
        ask = library.nppiValidNormLevelGetBufferHostSize_32f_C1R_Ctx
        _checked(ask(sizes[0], ctypes.byref(count), context))
        scratch = cupy.empty(max(1, count.value), cupy.uint8)
    pairs = list(zip(*pair_indices(problem)))

    def compute(state: Any) -> Any:
        lefts, rights = state
        frames = cupy.pad(rights, [(0, 0), *((border, border) for border in borders)])
        out = cupy.empty((problem.pairs, *shape), cupy.float32)
        for surface, (l, r) in zip(out, pairs):
            sides = [(frames[r], sizes[0]), (lefts[l], sizes[1])]
            places = [word for one, size in sides for word in (ctypes.c_void_p(one.data.ptr), one.strides[0], size)]
            to = (ctypes.c_void_p(surface.data.ptr), surface.strides[0])
            more = () if scratch is None else (ctypes.c_void_p(scratch.data.ptr),)
            _checked(function(*places, *to, *more, context))
        return spectra.result_of(problem, out[window])

    return Call(lambda: (cupy.asarray(left), cupy.asarray(right)), compute, lambda result: host(cupy, result))


def _checked(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"nppiCrossCorr: NPP status {status}")


RIVALS = (Rival("NPP CrossCorr", "cuda", "pip install nvidia-npp", "one call a pair", _load, _version, _correlation),)
