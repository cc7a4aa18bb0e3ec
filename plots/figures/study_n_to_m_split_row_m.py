"""Left out by the paper (n-to-m/multimat-both-split-row-M): rows and matrices of multi-matrix-both
with split-row.
"""

from __future__ import annotations

from plots.figures import Result, _paper
from plots.tidy import ResultSet

KEY = "study_n_to_m_split_row_m"
ORDER = _paper.order(KEY)
TITLE = _paper.title(KEY)


def draw(results: ResultSet) -> list[Result]:
    """The figure as paper.toml describes it."""
    return _paper.draw(results, KEY)
