"""OpenCV: matchTemplate, which chooses between definition and transforms."""

from typing import Any

import numpy as np

from experiments.compare.rivals import Call, Rival, importing, require, spectra, version_of
from xcorr.problem import Problem, pair_indices


def _match(cv2: Any, problem: Problem, left: np.ndarray, right: np.ndarray) -> Call:
    spectra.require_plain(problem, "zncc")
    require(problem.pairs <= 64, "one call a pair; more than 64 pairs are not its use")
    is_score, inside = problem.fields.score_kind == "zncc", spectra.is_inside(problem)
    method = cv2.TM_CCOEFF_NORMED if is_score else cv2.TM_CCORR
    (rows, cols), window = problem.left, spectra.crop(problem)[1:]

    def surface(l: int, r: int) -> np.ndarray:
        if inside:
            return cv2.matchTemplate(right[r], left[l], method)
        border = (rows - 1, rows - 1, cols - 1, cols - 1)
        wide = cv2.copyMakeBorder(right[r], *border, cv2.BORDER_CONSTANT, value=0)
        return cv2.matchTemplate(wide, left[l], method)[window]

    def compute(_: None) -> Any:
        return spectra.result_of(problem, np.stack([surface(*pair) for pair in zip(*pair_indices(problem))]))

    return Call(lambda: None, compute)


RIVALS = (
    Rival(
        "OpenCV matchTemplate",
        "cpu",
        "pip install opencv-python-headless",
        "TM_CCORR or TM_CCOEFF_NORMED, zeros as border",
        importing("cv2"),
        version_of,
        _match,
    ),
)
