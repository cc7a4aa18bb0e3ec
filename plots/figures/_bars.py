"""Bars at points: the interval of the repetitions of a time, of a rate, or of a ratio of two times, where it is wide enough.

A frame that is drawn has the column `y`; `spread` and `over` add `y_low` and `y_high`, the ends of the interval of plots.noise. They
are NaN where nobody repeated a point, and then no bar is drawn.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import noise

LEAST = 0.02  # of the value: an interval up to this wide has no bar
LABEL = "_interval"  # of the bars of a curve, which no legend shows
ENDS = ["y_low", "y_high"]
SAID = (
    f"A thin bar at a point is the interval of its repetitions, by the rule that decides ties, where it is wider than {LEAST:.0%} of the value."
).replace("%", " %")
OF_RATIO = " Of a ratio it reaches from the least to the most that the intervals of both times allow."


def spread(points: pd.DataFrame, of: Callable[[pd.DataFrame], pd.Series], planned: bool = False) -> pd.DataFrame:
    """The tidy lines with `y` and the ends of its interval. `of` makes the value of a tidy frame; `planned`: it counts one plan."""
    ends = noise.ends_us(points, planned)
    plan = points["plan_us"].fillna(0.0) if planned else 0.0
    at = [of(points.assign(compute_us=ends[end] - plan)) for end in ("low", "high")]
    return points.assign(y=of(points), y_low=np.minimum(*at), y_high=np.maximum(*at))


def over(above: pd.DataFrame, below: pd.DataFrame, time: str = "compute_us") -> pd.DataFrame:
    """`y`, the time of each line of `above` over that of `below` with the same index, and the ends of its interval, which holds 1
    just where the intervals of both times overlap. `time`: the column, of which compute_us is a part."""
    index = above.index.intersection(below.index)
    above, below = above.loc[index], below.loc[index]
    first, second = (_ends(one, time) for one in (above, below))
    return pd.DataFrame(
        {
            "y": above[time] / below[time],
            "y_low": first["low"] / second["high"],
            "y_high": first["high"] / second["low"],
        },
        index=index,
    )


def _ends(points: pd.DataFrame, time: str) -> pd.DataFrame:
    """The interval of a time that is compute_us and parts beside it, which have none."""
    return noise.ends_us(points).add(points[time] - points["compute_us"], axis=0)


def wide(points: pd.DataFrame) -> pd.Series:
    """Whether the interval of each point is so wide that a bar is drawn."""
    if not set(ENDS) <= set(points):
        return pd.Series(False, points.index)
    return ((points["y_high"] - points["y_low"]) > LEAST * points["y"].abs()).fillna(False)


def draw(
    axes: Axes, places: pd.Series, points: pd.DataFrame, colour: Any, zorder: float = 2.0, level: bool = False
) -> None:
    """A bar at each of the points whose interval is wide; `places` are theirs on the x axis, in the same order, or, of `level` bars,
    on the y axis."""
    there = wide(points).to_numpy(dtype=bool)
    if there.any():
        own = points[there]
        x = np.asarray(places, dtype=float)[there]
        low = own["y_low"].where(own["y_low"] > 0, own["y"])  # 0 has no place on a logarithmic axis
        lines = axes.hlines if level else axes.vlines
        bars = lines(x, low, own["y_high"], color=colour, linewidth=0.9, alpha=0.75, zorder=zorder)
        bars.set_label(LABEL)


def said(*frames: pd.DataFrame, ratio: bool = False) -> str:
    """What a bar means, with a space before it, for the caption of a figure of these points; empty where none has one."""
    if not any(wide(one).any() for one in frames):
        return ""
    return f" {SAID}" + OF_RATIO * ratio


def said_of(figure: Figure, ratio: bool = False) -> str:
    """said() of a figure that is drawn."""
    drawn = any(one.get_label() == LABEL for axes in figure.axes for one in axes.collections)
    return f" {SAID}{OF_RATIO * ratio}" * drawn


def reach(points: pd.DataFrame) -> np.ndarray:
    """The values that an axis must hold: the points and the ends of their bars."""
    values = [points["y"].to_numpy(dtype=float)]
    own = points[wide(points)]
    values += [own[name].to_numpy(dtype=float) for name in ENDS if len(own)]
    return np.concatenate(values)
