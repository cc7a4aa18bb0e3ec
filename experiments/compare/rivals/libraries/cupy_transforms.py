"""CuPy: transforms by cuFFT, whose plans it keeps, and fused elementwise kernels of its own."""

import importlib
from typing import Any

import numpy as np

from experiments.compare.rivals import Call, Rival, on_gpu, spectra, version_of
from xcorr.problem import Problem


def host(cupy: Any, result: Any) -> Any:
    """Arrays of the host of one array, or of a tuple of them."""
    return tuple(map(cupy.asnumpy, result)) if isinstance(result, tuple) else cupy.asnumpy(result)


def transformed(cupy: Any, fft: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    """The problem by CuPy's arrays and the transforms of `fft`."""
    return Call(
        lambda: (cupy.asarray(left), cupy.asarray(right)),
        lambda state: spectra.correlate(cupy, fft, problem, *state),
        lambda result: host(cupy, result),
    )


def _transforms(cupy: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    spectra.require_plain(problem, "zncc")
    return transformed(cupy, importlib.import_module("cupyx.scipy.fft"), problem, left, right)


RIVALS = (
    Rival(
        "CuPy rfft2",
        "cuda",
        "pip install cupy-cuda13x",
        "sums of windows in float64",
        on_gpu("cupy"),
        version_of,
        _transforms,
        follows_stream=True,
    ),
)
