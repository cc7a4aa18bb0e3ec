"""Intel oneMKL: vslsCorr, which chooses between definition and transforms; all threads, one call a pair."""

import ctypes
from typing import Any

import numpy as np

from experiments.compare.rivals import Call, Rival, require, shared_library, spectra
from xcorr.problem import Problem, pair_indices

AUTOMATIC = 0  # VSL_CORR_MODE_AUTO


def _load() -> Any:
    return shared_library(["libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"], "vslsCorrNewTask")


def _version(library: Any) -> str:
    text = ctypes.create_string_buffer(200)
    library.mkl_get_version_string(text, len(text))
    return "MKL " + text.value.decode().partition("Version ")[2].partition(" ")[0].partition("-")[0]


def _correlation(library: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    spectra.require_plain(problem)
    require(problem.pairs <= 64, "one call a pair; more than 64 pairs are not its use")
    lines = problem.left[0] == problem.right[0] == 1
    dims = slice(1, 2) if lines else slice(0, 2)

    def ints(values: Any) -> Any:
        chosen = list(values)[dims]
        return (ctypes.c_int * len(chosen))(*chosen)

    out = np.empty((problem.pairs, *problem.output), np.float32)
    task, starts = ctypes.c_void_p(), ints(shifts.start for shifts in problem.shifts)
    shapes = [ints(shape) for shape in (problem.left, problem.right, problem.output)]
    _checked(library.vslsCorrNewTask(ctypes.byref(task), AUTOMATIC, len(starts), *shapes))
    _checked(library.vslCorrSetStart(task, starts))
    strides = [ints((shape[1], 1)) for shape in (problem.left, problem.right, problem.output)]
    pairs = list(zip(*pair_indices(problem)))

    def compute(_: None) -> Any:
        for surface, (l, r) in zip(out, pairs):
            arrays = zip((left[l], right[r], surface), strides)
            places = [word for one, stride in arrays for word in (ctypes.c_void_p(one.ctypes.data), stride)]
            _checked(library.vslsCorrExec(task, *places))
        return spectra.result_of(problem, out)

    return Call(lambda: None, compute)


def _checked(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"vslsCorr: MKL status {status}")


RIVALS = (
    Rival("MKL vslsCorr", "cpu", "pip install mkl-devel", "all threads, automatic", _load, _version, _correlation),
)
