"""match_template of scikit-image, and of cuCIM, which is the same on a GPU. Both compute scores of templates in frames."""

from typing import Any

import numpy as np

from experiments.compare.rivals import Call, Rival, importing, require, spectra, version_of
from experiments.compare.rivals.libraries.cupy_transforms import host
from xcorr.problem import Problem, pair_indices


def _check(problem: Problem) -> None:
    spectra.require_plain(problem, "zncc")
    require(problem.fields.score_kind == "zncc", "computes scores only")


def _scores(feature: Any, xp: Any, problem: Problem, left: Any, right: Any) -> Any:
    pairs = zip(*pair_indices(problem))
    return spectra.result_of(problem, xp.stack([feature.match_template(right[r], left[l]) for l, r in pairs]))


def _on_host(feature: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    _check(problem)
    return Call(lambda: None, lambda _: _scores(feature, np, problem, left, right))


def _on_gpu(feature: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    _check(problem)
    import cupy

    return Call(
        lambda: (cupy.asarray(left), cupy.asarray(right)),
        lambda state: _scores(feature, cupy, problem, *state),
        lambda result: host(cupy, result),
    )


RIVALS = (
    Rival(
        "scikit-image match_template",
        "cpu",
        "pip install scikit-image",
        "transforms by SciPy",
        importing("skimage.feature"),
        version_of,
        _on_host,
    ),
    Rival(
        "cuCIM match_template",
        "cuda",
        "pip install cucim-cu13",
        "transforms by CuPy",
        importing("cucim.skimage.feature"),
        version_of,
        _on_gpu,
        follows_stream=True,
    ),
)
