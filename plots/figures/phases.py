"""Where the FFT variants spend their time: shares of forward, Hadamard, inverse and the rest."""

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _panels
from plots.metrics import MICRO, si_time
from plots.tidy import PHASES, ResultSet, best_parameters

ORDER = 30
TITLE = "Phases of the FFT variants"
PARTS = ["forward", "Hadamard", "inverse", "rest"]


def shares(points: pd.DataFrame) -> pd.DataFrame:
    """Fractions of compute time per part (columns of PARTS, summing to 1) for tidy lines. `rest` is what compute spends
    outside the marked phases (padding, cropping, synchronisation). Phases that add up to more than the total (separate
    events) are scaled to it."""
    parts = points[PHASES].fillna(0.0).clip(lower=0.0)
    parts.columns = pd.Index(PARTS[:3])
    total = pd.concat([points["compute_us"], parts.sum(axis=1)], axis=1).max(axis=1)
    parts = parts.div(total, axis=0)
    return parts.assign(rest=(1.0 - parts.sum(axis=1)).clip(lower=0.0))


def draw(results: ResultSet) -> list[Result]:
    """One figure per form: a row per variant, a column per count, a bar per size."""
    points = results.feeding("phases")
    phased = points[points["outcome"].eq("passed") & points[PHASES].notna().any(axis=1)]
    if phased.empty:
        return [Omitted("phases", "no passed variant of this set marks phases")]
    return [_one(*group) for group in _panels.groups(phased)]


def _one(suffix: str, title: str, frame: pd.DataFrame) -> Drawing:
    best = best_parameters(frame)
    series = list(best.groupby(["variant", "precision"], sort=True))
    facets = [counts for counts, _ in _panels.facet_counts(best)]
    legend = _panels.legend_lines(PARTS, style.COLUMN_IN if len(facets) == 1 else style.PAGE_IN)
    figure, axes, width = _panels.grid(len(facets), rows_of=len(series), height=1.75, gap=1.05, legend=legend)
    flat = axes if len(series) > 1 else [[one for row in axes for one in row]]
    for row in axes if len(series) == 1 else []:
        row[0].set_ylabel("Share of compute time")
    for row, ((variant, precision), own) in zip(flat, series):
        for one, counts in zip(row, facets):
            _bars(one, own[own["counts"] == counts].sort_values(["side", "size"]))
            one.set_title(counts, pad=26)
        if len(series) > 1:
            row[0].set_ylabel(f"{style.label(variant, precision)}\nShare of compute time", labelpad=0.5)
    _panels.legend_below(figure, {part: Patch(**_look(part)) for part in PARTS}, width)
    figure.subplots_adjust(top=1 - 0.6 / figure.get_figheight())
    names = ", ".join(style.label(v, p) for (v, p), _ in series)
    return Drawing(
        name=f"phases_{suffix}",
        title=f"Phases, {title}",
        caption=(
            f"Shares of compute time of {names}, {title}, with the best parameters at each size. Above each bar stands the "
            "compute time. Rest is padding, cropping and whatever lies between the marked phases. The plan is not part of "
            "compute time." + _panels.left_out(best)
        ),
        alt=f"Stacked bars: shares of forward, Hadamard, inverse and rest by size, {title}.",
        figure=figure,
    )


def _look(part: str) -> dict[str, Any]:
    colour, hatch = style.PHASE_LOOKS[part]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": "#333333", "linewidth": 0.5}


def _bars(axes: Axes, points: pd.DataFrame) -> None:
    """Stacked bars at equal distances, the compute time above each."""
    parts = shares(points)
    places = range(len(points))
    bottom = np.zeros(len(points))
    for part in PARTS:
        axes.bar(places, parts[part], 0.78, bottom=bottom, label=part, **_look(part))
        bottom = bottom + parts[part].to_numpy()
    axes.set(xlim=(-0.6, max(len(points), 1) - 0.4), ylim=(0.0, 1.0))
    axes.grid(axis="x", visible=False)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{round(100 * v)} %"))
    longest = max((len(text) for text in points["size"]), default=1)
    space = _panels.panel_width(axes) / max(1, len(points))
    slanted = _panels.SLANTED if space < 0.062 * longest + 0.05 else {}
    axes.set_xticks(places, list(points["size"]), **slanted)
    step = max(1, math.ceil(0.13 / space))
    turn = {"ha": "left", "rotation": 40} if space < 0.42 else {"ha": "center"}
    look = {"xytext": (0, 2.5), "textcoords": "offset points", "rotation_mode": "anchor", "fontsize": 6.2, **turn}
    for place, time in list(zip(places, points["compute_us"]))[::step]:
        axes.annotate(si_time(time * MICRO, 2), (place, 1.0), va="bottom", **look)
