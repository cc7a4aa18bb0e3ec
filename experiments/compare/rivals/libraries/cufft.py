"""cuFFT by its C interface, with and without PATIENT_JIT: real transforms of plans that are made once, a product by CuPy."""

import ctypes
from functools import partial
from typing import Any

import numpy as np

from experiments.compare.rivals import Call, Rival, on_gpu, shared_library, spectra
from experiments.compare.rivals.libraries.cupy_transforms import host
from xcorr.problem import Problem

PATIENT_JIT = 1  # NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT of cufft.h
R2C, C2R = 0x2A, 0x2C
NAMES = ("libcufft.so.12", "libcufft.so", "libcufft.so.11")


def _load() -> Any:
    """The library, after CuPy, which has found it already where CUDA lies elsewhere."""
    cupy = on_gpu("cupy")()
    cupy.fft.rfft(cupy.zeros(8, cupy.float32))  # loads the library that CuPy uses
    library = shared_library(NAMES, "cufftSetPlanPropertyInt64")
    library.cufftSetPlanPropertyInt64.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_longlong]
    for name in ("cufftExecR2C", "cufftExecC2R"):
        getattr(library, name).argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    return library


def _version(library: Any) -> str:
    number = ctypes.c_int()
    library.cufftGetVersion(ctypes.byref(number))
    return f"cuFFT {number.value // 1000}.{number.value // 100 % 10}.{number.value % 100}"


def _checked(status: int, what: str) -> None:
    if status != 0:
        raise RuntimeError(f"{what}: cuFFT status {status}")


class _Plan:
    """A plan of `count` two-dimensional transforms of contiguous arrays."""

    def __init__(self, library: Any, shape: tuple[int, int], kind: int, count: int, patient: bool) -> None:
        self._library, self._plan, size = library, ctypes.c_int(), ctypes.c_size_t()
        _checked(library.cufftCreate(ctypes.byref(self._plan)), "cufftCreate")
        if patient:
            _checked(library.cufftSetPlanPropertyInt64(self._plan, PATIENT_JIT, 1), "PATIENT_JIT")
        lengths = (ctypes.c_int * 2)(*shape)
        whole = [None, 1, 0, None, 1, 0]  # contiguous arrays, one behind the other
        made = library.cufftMakePlanMany(self._plan, 2, lengths, *whole, kind, count, ctypes.byref(size))
        _checked(made, "cufftMakePlanMany")

    def __call__(self, source: Any, target: Any) -> Any:
        run = self._library.cufftExecR2C if target.dtype.kind == "c" else self._library.cufftExecC2R
        _checked(run(self._plan, source.data.ptr, target.data.ptr), "cufftExec")
        return target

    def __del__(self) -> None:
        self._library.cufftDestroy(self._plan)


def _transforms(patient: bool, library: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    spectra.require_plain(problem)
    import cupy

    shape = spectra.transform_shape(problem)
    bins = (shape[0], shape[1] // 2 + 1)
    plans = [_Plan(library, shape, R2C, count, patient) for count in (problem.lefts, problem.rights)]
    back = _Plan(library, shape, C2R, problem.pairs, patient)
    padded = [cupy.zeros((count, *shape), cupy.float32) for count in (problem.lefts, problem.rights)]
    made = [cupy.empty((count, *bins), cupy.complex64) for count in (problem.lefts, problem.rights)]
    surfaces = cupy.empty((problem.pairs, *shape), cupy.float32)
    scale = np.float32(1 / (shape[0] * shape[1]))
    multiply = cupy.ElementwiseKernel("T a, T b, float32 s", "T c", "c = a * b * s", "scaled_product")
    sides = [tuple(slice(0, size) for size in (len(one), *one.shape[1:])) for one in (left, right)]

    def compute(state: Any) -> Any:
        padded[0][sides[0]] = state[0][:, ::-1, ::-1]
        padded[1][sides[1]] = state[1]
        one, other = (plan(source, target) for plan, source, target in zip(plans, padded, made))
        product = spectra.paired(problem, one, other, lambda a, b: multiply(a, b, scale))
        return spectra.result_of(problem, cupy.ascontiguousarray(back(product, surfaces)[spectra.crop(problem)]))

    return Call(lambda: (cupy.asarray(left), cupy.asarray(right)), compute, lambda result: host(cupy, result))


RIVALS = tuple(
    Rival(name, "cuda", "pip install cupy-cuda13x", settings, _load, _version, partial(_transforms, patient))
    for name, settings, patient in (
        ("cuFFT", "plans without properties", False),
        ("cuFFT, PATIENT_JIT", "NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT", True),
    )
)
