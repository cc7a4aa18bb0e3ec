"""Figure 18 of the paper: multi-matrix-right with grouped-overlap, 1-to-4000."""

from __future__ import annotations

from plots.figures import Result, _paper
from plots.tidy import ResultSet

KEY = "fig18"
ORDER = _paper.order(KEY)
TITLE = _paper.title(KEY)


def draw(results: ResultSet) -> list[Result]:
    """The figure as paper.toml describes it."""
    return _paper.draw(results, KEY)
