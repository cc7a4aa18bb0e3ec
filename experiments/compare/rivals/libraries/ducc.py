"""ducc0: real transforms with all threads."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from experiments.compare.rivals import Call, Rival, importing, spectra, version_of
from xcorr.problem import Problem


def _transforms(ducc0: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    spectra.require_plain(problem, "zncc")

    def rfft2(values: np.ndarray, s: tuple[int, int]) -> np.ndarray:
        padded = np.zeros((len(values), *s), values.dtype)
        padded[:, : values.shape[1], : values.shape[2]] = values
        return ducc0.fft.r2c(padded, axes=(1, 2), nthreads=0)

    def irfft2(values: np.ndarray, s: tuple[int, int]) -> np.ndarray:
        return ducc0.fft.c2r(values, axes=(1, 2), lastsize=s[1], forward=False, inorm=2, nthreads=0)

    fft = SimpleNamespace(rfft2=rfft2, irfft2=irfft2)
    return Call(lambda: None, lambda _: spectra.correlate(np, fft, problem, left, right))


RIVALS = (Rival("ducc0 r2c", "cpu", "pip install ducc0", "all threads", importing("ducc0"), version_of, _transforms),)
