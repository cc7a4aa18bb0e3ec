"""Left out by the paper (one-to-one/one-to-one-warp-per-overlap-and-split-row): split-row and the
kinds of warp-per-overlap.
"""

from __future__ import annotations

from plots.figures import Result, _paper
from plots.tidy import ResultSet

KEY = "study_warp_per_overlap_and_split_row"
ORDER = _paper.order(KEY)
TITLE = _paper.title(KEY)


def draw(results: ResultSet) -> list[Result]:
    """The figure as paper.toml describes it."""
    return _paper.draw(results, KEY)
