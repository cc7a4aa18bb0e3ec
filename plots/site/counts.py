"""How the points of a set ended, over all rows: problems with fields too, and what is wrong by name."""

from dataclasses import dataclass, field

import pandas as pd

from experiments.driver import store
from plots.tables import outcomes
from plots.tidy import PLAIN_POINT, ResultSet
from xcorr.fields import NAMES as FIELDS

POINT = [*PLAIN_POINT, *FIELDS]
SHOWN = ("passed", "incorrect", "failed", "timeout", "out_of_memory", "not_selected", "not_supported")


@dataclass(frozen=True)
class Counts:
    """`points`: a line a point with outcome and reason; `rows`: how many rows there are; `every`: these rows, of a whole set."""

    points: pd.DataFrame
    rows: int
    every: pd.DataFrame = field(default_factory=pd.DataFrame)

    def of(self, outcome: str) -> int:
        return int((self.points["outcome"] == outcome).sum())

    def by_outcome(self) -> dict[str, int]:
        """Points by outcome, in the order of SHOWN; outcomes that no set should lack are there with 0."""
        return {name: self.of(name) for name in SHOWN}

    def variants_of(self, outcome: str) -> dict[str, int]:
        """How many points of each variant ended so, most first."""
        own = self.points[self.points["outcome"] == outcome]["variant"].value_counts()
        return {str(name): int(own[name]) for name in sorted(own.index, key=lambda name: (-own[name], name))}

    def reasons(self) -> pd.DataFrame:
        """Why points have no time: variant, outcome, points, reason and problems, trouble first."""
        return outcomes.reasons(self.points, POINT)


def of_set(results: ResultSet) -> Counts:
    """Of a point that was tried several times the outcome that plots.tables.outcomes tells: trouble first."""
    rows = store.read_set(results.folder)
    return Counts(outcomes.points_by_outcome(rows, POINT), len(rows), rows)
