"""Figure 15 of the paper: grouped-overlap, saturated one-to-one."""

from __future__ import annotations

from plots.figures import Result, _paper
from plots.tidy import ResultSet

KEY = "fig15"
ORDER = _paper.order(KEY)
TITLE = _paper.title(KEY)


def draw(results: ResultSet) -> list[Result]:
    """The figure as paper.toml describes it."""
    return _paper.draw(results, KEY)
