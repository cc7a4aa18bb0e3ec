"""matchedfilter: one-dimensional matched filtering with the product and the search for the peak in the inverse transform.
Its GPU path is Vulkan, so that it is timed by the clock of the host as on a CPU, of which it uses one thread."""

from typing import Any

import numpy as np
import scipy.fft

from experiments.compare.rivals import Call, Rival, importing, require, spectra, version_of
from xcorr.problem import Problem

LENGTHS = [1 << power for power in range(6, 21)]


def _peaks(matchedfilter: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    spectra.require_plain(problem)
    require(problem.left[0] == problem.right[0] == 1, "computes one dimension")
    require(problem.fields.result_kind == "peak" and problem.window == "full", "computes peaks of the full window")
    require(problem.form == "n-to-m" or problem.lefts == problem.rights, "pairs all with all, or each with its own")
    needed = problem.left[1] + problem.right[1] - 1
    require(needed <= LENGTHS[-1], f"at most {LENGTHS[-1]} shifts")
    length = next(one for one in LENGTHS if one >= needed)
    shape = (1, 1) if problem.form != "n-to-m" else (problem.rights, problem.lefts)
    filters = [
        matchedfilter.MatchedFilter(length, *shape) for _ in range(1 if problem.form == "n-to-m" else problem.pairs)
    ]

    def compute(_: None) -> Any:
        sides = [scipy.fft.fft(one[:, 0], length, workers=-1) for one in (right, left)]
        found = []
        for i, one in enumerate(filters):
            part = slice(None) if problem.form == "n-to-m" else slice(i, i + 1)
            one.set_data(sides[0][part])
            one.set_templates(sides[1][part])
            peaks = one.run(binsize=length)
            found.append((peaks["index"].T.ravel().copy(), peaks["value"].real.T.ravel() / length))
        lags, values = (np.concatenate(parts) for parts in zip(*found))
        lags = np.where(lags >= problem.right[1], lags - length, lags)
        return lags + problem.left[1] - 1, values

    return Call(lambda: None, compute)


RIVALS = (
    Rival(
        "matchedfilter",
        "cpu",
        "pip install matchedfilter",
        "one thread, largest magnitude; transforms of both sides by SciPy",
        importing("matchedfilter"),
        version_of,
        _peaks,
    ),
)
