"""Names of lines at their right ends, in place of a legend: moved apart, in the colour of their line, darkened where it is pale.

The names of a panel stand in a column right of it. A thin line leads from the last point of a line to its name where that is not
beside it. Where a panel has more names than fit, the figure has a legend.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from plots import style

LABEL_IN = 0.13  # between two names
LETTER_IN = 0.0585  # of a name, on average
GAP_IN = 0.12  # between a panel and its names


@dataclass(frozen=True)
class End:
    """The name of a line, where the line ends, and its colour."""

    text: str
    x: float
    y: float
    colour: str
    bold: bool = False


def end(text: str, places: Iterable[float], values: Iterable[float], colour: str, bold: bool = False) -> End | None:
    """The End of a line through these points; None of a line without any."""
    known = [(x, y) for x, y in zip(places, values) if math.isfinite(y) and y > 0]
    return End(text, float(known[-1][0]), float(known[-1][1]), colour, bold) if known else None


def names_in(texts: Iterable[str], size: float = style.NAME_PT) -> float:
    """Inches that these names take beside a panel."""
    return GAP_IN + LETTER_IN * size / style.NAME_PT * max(map(len, texts), default=0)


def fit(count: int, height_in: float, between: float = LABEL_IN) -> bool:
    """Whether so many names stand beside a panel of this height."""
    return count * between <= height_in + between


def apart(places: Sequence[float], space: float, between: float = LABEL_IN) -> list[float]:
    """Ascending places, moved as little as needed to be `between` apart and from 0 to `space`, where they fit."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + between) if moved else max(place, 0.0))
    for index in reversed(range(len(moved))):
        moved[index] = min(moved[index], space)
        space = moved[index] - between
    return moved


def draw(axes: Axes, ends: Sequence[End | None], size: float = style.NAME_PT, between: float = LABEL_IN) -> None:
    """Names the lines of a panel, whose limits and place must be final. Both scales may be logarithmic."""
    figure = axes.figure
    height = axes.get_position().height * figure.get_figheight()
    width = axes.get_position().width * figure.get_figwidth()
    there = [one for one in ends if one]
    at = axes.transAxes.inverted().transform(
        axes.transData.transform([(one.x, one.y) for one in there] or [(1.0, 1.0)])
    )
    order = sorted(range(len(there)), key=lambda i: (at[i][1], there[i].text))
    places = apart([float(np.clip(at[i][1], 0.0, 1.0)) * height for i in order], height, between)
    for i, place in zip(order, places):
        one, (x, y) = there[i], at[i]
        name_x, name_y = 1.0 + GAP_IN / width, place / height
        if abs(y - name_y) * height > 0.25 * between or x < 0.97:
            bend = y if x >= 0.97 else name_y
            leader = [[(x, y), (1.0, bend), (name_x - 0.02 / width, name_y)]]
            look = {"colors": one.colour, "linewidths": 0.5, "alpha": 0.6, "zorder": 1, "clip_on": False}
            axes.add_collection(LineCollection(leader, transform=axes.transAxes, **look), autolim=False)
        text = {"color": style.as_text(one.colour), "weight": "bold" if one.bold else "normal", "fontsize": size}
        axes.text(name_x, name_y, one.text, transform=axes.transAxes, ha="left", va="center", **text)
