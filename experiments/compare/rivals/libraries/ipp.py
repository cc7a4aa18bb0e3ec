"""Intel IPP: ippiCrossCorrNorm, which chooses between definition and transforms. One thread, one call a pair."""

import ctypes
import subprocess
import sys
from typing import Any

import numpy as np

from experiments.compare.rivals import Call, Rival, require, shared_library, spectra
from xcorr.problem import Problem, pair_indices

FULL, VALID, COEFFICIENT = 0, 0x10000, 0x200  # of ipptypes.h; the algorithm 0 is automatic
POINTER, INT = ctypes.c_void_p, ctypes.c_int


class _Size(ctypes.Structure):
    _fields_ = [("width", INT), ("height", INT)]


def _load() -> Any:
    library = shared_library(["libippi.so.12", "libippi.so.11", "libippi.so"], "ippiCrossCorrNorm_32f_C1R")
    # IPP ends the process that asks it for something where it cannot find its library for this CPU.
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).ippiGetLibVersion()"
    done = subprocess.run([sys.executable, "-c", code, library._name], capture_output=True, text=True, check=False)
    if done.returncode != 0 or "Error at loading" in done.stdout + done.stderr:
        raise OSError(f"{library._name} finds no library for this CPU; set LD_LIBRARY_PATH to where libippi*.so lie")
    side = (POINTER, INT, _Size)
    library.ippiCrossCorrNorm_32f_C1R.argtypes = [*side, *side, POINTER, INT, INT, POINTER]
    library.ippiCrossCorrNormGetBufferSize.argtypes = [_Size, _Size, INT, POINTER]
    return library


def _version(library: Any) -> str:
    class Version(ctypes.Structure):
        _fields_ = [(name, INT) for name in ("major", "minor", "update", "revision")]

    library.ippiGetLibVersion.restype = ctypes.POINTER(Version)
    found = library.ippiGetLibVersion().contents
    return f"IPP {found.major}.{found.minor}.{found.update}"


def _correlation(library: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    spectra.require_plain(problem, "zncc")
    require(problem.pairs <= 64, "one call a pair; more than 64 pairs are not its use")
    inside, is_score = spectra.is_inside(problem), problem.fields.score_kind == "zncc"
    how = (VALID if inside else FULL) | (COEFFICIENT if is_score else 0)
    sizes = [_Size(cols, rows) for rows, cols in (problem.right, problem.left)]
    shape = problem.output if inside else tuple(a + b - 1 for a, b in zip(problem.left, problem.right))
    window = (slice(None),) * 3 if inside else spectra.crop(problem)
    count = INT()
    _checked(library.ippiCrossCorrNormGetBufferSize(*sizes, how, ctypes.byref(count)))
    scratch, out = np.empty(count.value, np.uint8), np.empty((problem.pairs, *shape), np.float32)
    pairs = list(zip(*pair_indices(problem)))

    def compute(_: None) -> Any:
        for surface, (l, r) in zip(out, pairs):
            sides = zip((right[r], left[l]), sizes)
            places = [word for one, size in sides for word in (one.ctypes.data, one.strides[0], size)]
            to = (surface.ctypes.data, surface.strides[0])
            _checked(library.ippiCrossCorrNorm_32f_C1R(*places, *to, how, scratch.ctypes.data))
        return spectra.result_of(problem, out[window])

    return Call(lambda: None, compute)


def _checked(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"ippiCrossCorrNorm: IPP status {status}")


RIVALS = (
    Rival("IPP CrossCorrNorm", "cpu", "pip install ipp-devel", "one thread, automatic", _load, _version, _correlation),
)
