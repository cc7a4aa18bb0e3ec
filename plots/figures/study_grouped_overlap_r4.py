"""Left out by the paper (one-to-one/grouped-overlap-R4): grouped-overlap with 4 overlaps."""

from __future__ import annotations

from plots.figures import Result, _paper
from plots.tidy import ResultSet

KEY = "study_grouped_overlap_r4"
ORDER = _paper.order(KEY)
TITLE = _paper.title(KEY)


def draw(results: ResultSet) -> list[Result]:
    """The figure as paper.toml describes it."""
    return _paper.draw(results, KEY)
