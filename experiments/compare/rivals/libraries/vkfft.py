"""VkFFT by pyvkfft: transforms only. The padded convolution of VkFFT 1.3.4, which pyvkfft 2025.1.1 carries, is wrong
(VkFFT issues 201, 206 and 225), and pyvkfft offers none."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from experiments.compare.rivals import Call, Rival, importing, require, spectra, version_of
from experiments.compare.rivals.libraries.cupy_transforms import transformed
from xcorr.problem import Problem


def _transforms(vkfft: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    spectra.require_plain(problem)
    require(spectra.transform_shape(problem)[1] % 2 == 0, "takes the last length of a transform to be even")
    import cupy

    def rfft2(values: Any, s: tuple[int, int]) -> Any:
        padded = cupy.zeros((len(values), *s), cupy.float32)
        padded[:, : values.shape[1], : values.shape[2]] = values
        return vkfft.rfftn(padded, ndim=2)

    def irfft2(values: Any, s: tuple[int, int]) -> Any:
        return vkfft.irfftn(values, ndim=2)

    return transformed(cupy, SimpleNamespace(rfft2=rfft2, irfft2=irfft2), problem, left, right)


RIVALS = (
    Rival(
        "VkFFT rfftn",
        "cuda",
        "pip install pyvkfft (compiles with nvcc)",
        "product by CuPy; the padded convolution of VkFFT 1.3.4 is wrong and not used",
        importing("pyvkfft.fft"),
        version_of,
        _transforms,
    ),
)
