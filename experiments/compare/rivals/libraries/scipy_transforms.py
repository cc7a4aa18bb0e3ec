"""SciPy: transforms with all workers, and overlap-add for a long signal."""

from typing import Any

import numpy as np

from experiments.compare.rivals import Call, Rival, importing, require, spectra, version_of
from xcorr.problem import Problem


def _transforms(fft: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    spectra.require_plain(problem, "zncc")

    def compute(_: None) -> Any:
        with fft.set_workers(-1):
            return spectra.correlate(np, fft, problem, left, right)

    return Call(lambda: None, compute)


def _overlap_add(signal: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    spectra.require_plain(problem)
    long = problem.form == "n-to-m" and problem.rights == 1 and right.size >= 16 * left[0].size
    require(long and spectra.is_inside(problem), "overlap-add pays for one long signal only")
    flipped = left[:, ::-1, ::-1]

    def compute(_: None) -> Any:
        return spectra.result_of(problem, np.stack([signal.oaconvolve(right[0], one, "valid") for one in flipped]))

    return Call(lambda: None, compute)


INSTALL = "pip install scipy"
RIVALS = (
    Rival("SciPy rfft2", "cpu", INSTALL, "all workers", importing("scipy.fft"), version_of, _transforms),
    Rival("SciPy oaconvolve", "cpu", INSTALL, "one worker", importing("scipy.signal"), version_of, _overlap_add),
)
