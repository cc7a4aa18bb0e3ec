"""Left out by the paper (one-to-many/multimat-right-grouped-overlap-LxR2): tile of multi-matrix-
right with grouped-overlap, one-to-many.
"""

from __future__ import annotations

from plots.figures import Result, _paper
from plots.tidy import ResultSet

KEY = "study_one_to_many_grouped_overlap_lxr2"
ORDER = _paper.order(KEY)
TITLE = _paper.title(KEY)


def draw(results: ResultSet) -> list[Result]:
    """The figure as paper.toml describes it."""
    return _paper.draw(results, KEY)
