"""Left out by the paper (one-to-many/multimat-right-grouped-overlap-LxR): tile of multi-matrix-
right with grouped-overlap, 1-to-4000.
"""

from __future__ import annotations

from plots.figures import Result, _paper
from plots.tidy import ResultSet

KEY = "study_one_to_many_grouped_overlap_lxr"
ORDER = _paper.order(KEY)
TITLE = _paper.title(KEY)


def draw(results: ResultSet) -> list[Result]:
    """The figure as paper.toml describes it."""
    return _paper.draw(results, KEY)
