"""Left out by the paper (n-to-mn/n-to-mn-one-to-many-streams): n-to-mn serially and with streams.

"""

from __future__ import annotations

from plots.figures import Result, _paper
from plots.tidy import ResultSet

KEY = "study_n_to_mn_one_to_many_streams"
ORDER = _paper.order(KEY)
TITLE = _paper.title(KEY)


def draw(results: ResultSet) -> list[Result]:
    """The figure as paper.toml describes it."""
    return _paper.draw(results, KEY)
