"""From which size on one algorithm is faster than another: log-log interpolation between measured sizes."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass


class Crossover(enum.Enum):
    """Where the crossover lies: between two sizes, above all that were measured, or below them."""

    BETWEEN = "between"
    ABOVE = "above"
    BELOW = "below"


@dataclass(frozen=True)
class Found:
    """`size`: side of a square input; at the edge of what was measured when the crossover lies beyond it."""

    size: float
    where: Crossover


def crossover(sizes: Sequence[float], first: Sequence[float], second: Sequence[float]) -> Found:
    """The size from which `second` stays faster than `first` over all larger measured sizes.

    Ascending sizes and two times at each, in any one unit, all positive; at least one size. Between two sizes both
    curves are taken as straight in log-log. A tie counts for `first`.
    """
    sizes, first, second = (list(map(float, values)) for values in (sizes, first, second))
    leads = [math.log(b / a) for a, b in zip(first, second)]  # >= 0: first is not slower
    last = max((place for place, lead in enumerate(leads) if lead >= 0), default=-1)
    if last < 0:
        return Found(sizes[0], Crossover.BELOW)
    if last == len(sizes) - 1:
        return Found(sizes[-1], Crossover.ABOVE)
    share = leads[last] / (leads[last] - leads[last + 1])
    low, high = math.log(sizes[last]), math.log(sizes[last + 1])
    return Found(math.exp(low + share * (high - low)), Crossover.BETWEEN)
