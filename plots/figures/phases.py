"""Where the FFT variants spend their time: shares of forward, Hadamard, inverse and the rest."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _panels
from plots.metrics import MICRO, si_time
from plots.tidy import PHASES, ResultSet, best_parameters

ORDER = 30
TITLE = "Phases of the FFT variants"
MOST = 3  # columns: more leave no space for the times above the bars
ROW_IN, TIMES_IN = 0.95, 0.36  # height of bars, and of the times above them
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
    """One figure per form: a row per variant, a column per count (at most MOST), a bar per size."""
    points = results.feeding("phases")
    phased = points[points["outcome"].eq("passed") & points[PHASES].notna().any(axis=1)]
    if phased.empty:
        return [Omitted("phases", "no passed variant of this set marks phases")]
    return [_one(*group) for group in _panels.groups(phased)]


def shown_counts(points: pd.DataFrame) -> list[str]:
    """At most MOST counts of a form: those with the fewest and the most pairs, and between them evenly."""
    every = [counts for counts, _ in _panels.facet_counts(points)]
    if len(every) <= MOST:
        return every
    return [every[round(place * (len(every) - 1) / (MOST - 1))] for place in range(MOST)]


def _one(suffix: str, title: str, frame: pd.DataFrame) -> Drawing:
    best = best_parameters(frame)
    series = list(best.groupby(["variant", "precision"], sort=True))
    facets = shown_counts(best)
    left_out = [one for one in dict.fromkeys(best.sort_values("pairs")["counts"]) if one not in facets]
    width = style.COLUMN_IN if len(facets) == 1 else style.PAGE_IN
    foot = 0.6 + _panels.legend_in(_panels.legend_lines(PARTS, width))
    height = len(series) * (ROW_IN + TIMES_IN) + 0.2 + foot
    figure = Figure(figsize=(width, height))
    axes = figure.subplots(len(series), len(facets), squeeze=False, sharey=True)
    figure.subplots_adjust(
        left=0.72 / width,
        right=1 - 0.16 / width,
        top=1 - (0.2 + TIMES_IN) / height,
        bottom=foot / height,
        hspace=TIMES_IN / ROW_IN,
        wspace=0.07,
    )
    for place, ((variant, precision), own) in enumerate(series):
        row = axes[place]
        for one, counts in zip(row, facets):
            sizes = best[best["counts"] == counts].sort_values(["side", "size"])["size"].unique()
            _bars(one, own[own["counts"] == counts], list(sizes))
            one.tick_params(labelbottom=place == len(series) - 1)
        row[0].set_ylabel(style.label(variant, precision))
    for one, counts in zip(axes[0], facets):
        one.annotate(
            counts,
            (0.5, 1.0),
            xytext=(0, 72 * TIMES_IN - 2),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    _panels.legend_below(figure, {part: Patch(**_look(part)) for part in PARTS}, width)
    names = ", ".join(style.label(v, p) for (v, p), _ in series)
    others = f" Not drawn are the counts {', '.join(left_out)}, whose times are in the table." if left_out else ""
    return Drawing(
        name=f"phases_{suffix}",
        title=f"Phases, {title}",
        caption=(
            f"Shares of compute time of {names}, {title}, with the best parameters at each size. A row is a variant, a column a number of "
            "left and right matrices. Above each bar stands the compute time. Rest is padding, cropping and whatever lies between the marked "
            f"phases. The plan is not part of compute time.{others}"
        ),
        alt=f"Stacked bars: shares of forward, Hadamard, inverse and rest by size, {title}.",
        figure=figure,
    )


def _look(part: str) -> dict[str, Any]:
    colour, hatch = style.PHASE_LOOKS[part]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": "#333333", "linewidth": 0.5}


def _bars(axes: Axes, points: pd.DataFrame, sizes: list[str]) -> None:
    """Stacked bars at equal distances, one place for each of `sizes`, the compute time above each bar."""
    points = points.drop_duplicates("size").set_index("size").reindex(sizes)
    points = points[points["compute_us"].notna()]
    parts = shares(points)
    places = [sizes.index(one) for one in points.index]
    bottom = np.zeros(len(points))
    for part in PARTS:
        axes.bar(places, parts[part], 0.78, bottom=bottom, label=part, **_look(part))
        bottom = bottom + parts[part].to_numpy()
    axes.set(xlim=(-0.6, max(len(sizes), 1) - 0.4), ylim=(0.0, 1.0))
    axes.grid(axis="x", visible=False)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{round(100 * v)} %"))
    axes.set_yticks([0.0, 0.5, 1.0])
    longest = max((len(text) for text in sizes), default=1)
    space = _panels.panel_width(axes) / max(1, len(sizes))
    slanted = _panels.SLANTED if space < 0.062 * longest + 0.05 else {}
    axes.set_xticks(range(len(sizes)), sizes, **slanted)
    turn = {"ha": "left", "rotation": 40} if space < 0.42 else {"ha": "center"}
    look = {"xytext": (0, 2.5), "textcoords": "offset points", "rotation_mode": "anchor", "fontsize": 6.2, **turn}
    for place, time in zip(places, points["compute_us"]):
        axes.annotate(si_time(time * MICRO, 2), (place, 1.0), va="bottom", **look)
