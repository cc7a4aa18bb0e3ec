"""Left out by the paper (one-to-one/warp-per-overlap-shared-memory): tiles of warp-per-overlap in
shared memory.
"""

from __future__ import annotations

from plots.figures import Result, _paper
from plots.tidy import ResultSet

KEY = "study_warp_per_overlap_shared_memory"
ORDER = _paper.order(KEY)
TITLE = _paper.title(KEY)


def draw(results: ResultSet) -> list[Result]:
    """The figure as paper.toml describes it."""
    return _paper.draw(results, KEY)
