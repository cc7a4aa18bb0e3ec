"""From which size on one algorithm is faster than another: log-log interpolation between measured sizes."""

import math
from collections.abc import Sequence


def crossed(seen: Sequence[tuple[float, float]], tie_wins: bool = True) -> tuple[float, float]:
    """Bounds of the size at which a logarithmic ratio of times (size and ratio, by ascending size) becomes positive for good:
    equal when interpolated; (largest, inf) when never, (0, smallest) when always. `tie_wins`: a ratio of 0 counts as positive."""
    later = next((i for i in range(len(seen), 0, -1) if seen[i - 1][1] < 0 or seen[i - 1][1] == 0 and not tie_wins), 0)
    if later == len(seen):
        return float(seen[-1][0]), math.inf
    if later == 0:
        return 0.0, float(seen[0][0])
    (a, low), (b, high) = seen[later - 1], seen[later]
    size = math.exp(math.log(a) - low / (high - low) * (math.log(b) - math.log(a)))
    return size, size
