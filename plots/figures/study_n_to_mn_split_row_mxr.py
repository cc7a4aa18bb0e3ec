"""Left out by the paper (n-to-mn/multimat-right-split-row-MxR): rows and right matrices of multi-
matrix-right with split-row, n-to-mn.
"""

from __future__ import annotations

from plots.figures import Result, _paper
from plots.tidy import ResultSet

KEY = "study_n_to_mn_split_row_mxr"
ORDER = _paper.order(KEY)
TITLE = _paper.title(KEY)


def draw(results: ResultSet) -> list[Result]:
    """The figure as paper.toml describes it."""
    return _paper.draw(results, KEY)
