"""Left out by the paper (one-to-many/multimat-right-split-row-MxR): rows and right matrices of
multi-matrix-right with split-row.
"""

from __future__ import annotations

from plots.figures import Result, _paper
from plots.tidy import ResultSet

KEY = "study_one_to_many_split_row_mxr"
ORDER = _paper.order(KEY)
TITLE = _paper.title(KEY)


def draw(results: ResultSet) -> list[Result]:
    """The figure as paper.toml describes it."""
    return _paper.draw(results, KEY)
