"""Facets in rows and columns with one legend: the layout of the figures of figures.toml."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter

from plots import style
from plots.figures import _bars, _panels
from plots.figures._curves import Curve
from plots.metrics import Metric

# After the paper's palettes, whose names they have: YlGnBu goes from light to dark, so that its order is kept in grey, and Paired has
# three pairs of a light and a dark hue. Hues that colour-blind readers cannot tell apart, as red and green, are replaced; markers and
# dashes differ too.
PALETTES = {
    "YlGnBu": ["#b3bf3f", "#62bfa0", "#2fa3c0", "#1d70b4", "#253494", "#081d58"],
    "Paired": ["#79b5d9", "#1f68a4", "#a5a5a5", "#3d3d3d", "#f0a04b", "#9c4a00"],
    "Set1": ["#c9721e", "#3516b9", "#7f7d7c", "#5f8fe2", "#822d00", "#3b1b38"],
}
ORDERED = ("YlGnBu",)
HEIGHTS = {1: 1.75, 2: 1.35, 3: 1.1, 4: 0.95}  # of a facet in inches, by number of rows
TITLE_IN, LEGEND_LINE_IN = 0.24, 0.155
SIZES = (16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Layout:
    """What a table of figures.toml says of the axes and the legend."""

    legend: str = ""
    scale: str = "common"
    x: str = "log"
    ticks: tuple[int, ...] = SIZES


Cells = Sequence[Sequence[Sequence[Curve]]]  # curves by row and column


def look(palette: str, place: int, count: int, dotted: bool = False) -> style.Look:
    """Look of the curve at `place` (from 0) of `count`, whether or not the others were measured."""
    colours = PALETTES[palette]
    if palette in ORDERED and count > 1:
        colour = colours[round(place * (len(colours) - 1) / (count - 1))]
    else:
        colour = colours[place % len(colours)]
    found = style.at_place(colour, place)
    return replace(found, dash=style.PLAN_DASH) if dotted else found


def draw(
    cells: Cells,
    row_titles: Sequence[str],
    column_titles: Sequence[str],
    labels: Sequence[str],
    metric: Metric,
    layout: Layout,
) -> Figure:
    """Log y axes; curves of `cells` by row and column. A facet without curves says so."""
    width = style.COLUMN_IN if len(column_titles) == 1 else style.PAGE_IN
    figure, grid = _grid(cells, row_titles, column_titles, labels, layout, width)
    limits = _values_by_axis(cells, layout.scale)
    sides = _drawn_sizes(cells)
    handles: dict[str, object] = {}
    for r, row in enumerate(grid):
        for c, axes in enumerate(row):
            lines = cells[r][c]
            for line in lines:
                handles.setdefault(line.label, _plot(axes, line, lines))
            _size_axis(axes, layout, sides, bottom=r == len(grid) - 1)
            values = limits[r][c]
            _panels.log_axis(axes, values, _panels.tick_text(metric.unit), _margin(values))
            if c > 0 and layout.scale != "free":
                axes.tick_params(axis="y", which="both", labelleft=False)
            if not lines:
                _say_empty(axes, hide=layout.scale == "free")
            # Fixed places: to look for free ones takes about a fifth of the time of writing a figure, in every format.
            axes.set_title(column_titles[c] if r == 0 else "", y=1.0)
            axes.xaxis.set_label_coords(0.5, 0.0)
            axes.yaxis.set_label_coords(0.0, 0.5)
            if c == len(row) - 1 and row_titles[r]:
                place = {"xytext": (4, 0), "xycoords": "axes fraction", "textcoords": "offset points"}
                axes.annotate(row_titles[r], (1.0, 0.5), rotation=-90, ha="left", va="center", fontsize=8, **place)
    middle = (grid[-1][0].get_position().y0 + grid[0][0].get_position().y1) / 2
    upright = {"rotation": 90, "ha": "left", "va": "center", "fontsize": style.RC["axes.labelsize"]}
    figure.text(0.02 / width, middle, metric.axis_label, **upright)
    heading = {"title": layout.legend or None, "title_fontsize": style.RC["legend.fontsize"], "borderpad": 0.0}
    columns = _legend_columns(labels, width)
    _panels.legend_below(figure, {name: handles[name] for name in labels}, width, ncol=columns, **heading)
    return figure


def _grid(
    cells: Cells,
    row_titles: Sequence[str],
    column_titles: Sequence[str],
    labels: Sequence[str],
    layout: Layout,
    width: float,
) -> tuple[Figure, Sequence[Sequence[Axes]]]:
    rows, columns = len(cells), len(cells[0])
    height = HEIGHTS.get(rows, HEIGHTS[max(HEIGHTS)])
    free = layout.scale == "free"
    across, down = (0.46 if free else 0.2), 0.1
    lines = math.ceil(len(labels) / _legend_columns(labels, width)) + bool(layout.legend)
    top = TITLE_IN if any(column_titles) else 0.1
    left, right = 0.62, 0.28 if any(row_titles) else 0.2
    inner = (width - left - right - (columns - 1) * across) / columns
    slanted = _slanted(layout, _drawn_sizes(cells), inner)
    bottom = (0.5 if slanted else 0.28) + LEGEND_LINE_IN * lines
    total = rows * height + (rows - 1) * down + bottom + top
    figure = Figure(figsize=(width, total))
    grid = figure.subplots(rows, columns, squeeze=False)
    figure.subplots_adjust(
        left=left / width,
        right=1 - right / width,
        bottom=bottom / total,
        top=1 - top / total,
        wspace=across / inner,
        hspace=down / height,
    )
    return figure, grid


def _values_by_axis(cells: Cells, scale: str) -> list[list[np.ndarray]]:
    """The values that the y axis of each facet must hold: the figure's, the row's or its own."""

    def values(groups: Sequence[Sequence[Curve]]) -> np.ndarray:
        found = [_bars.reach(line.points) for lines in groups for line in lines]
        return np.concatenate(found) if found else np.array([1.0])

    if scale == "free":
        return [[values([lines]) for lines in row] for row in cells]
    everything = values([lines for row in cells for lines in row])
    return [[everything if scale == "common" else values(row)] * len(row) for row in cells]


def _margin(values: np.ndarray) -> float:
    """Factor above and below the values: with a factor of 5 from end to end two of the labelled
    places 1, 2, 5 are always on the axis (with fewer, matplotlib labels others, which round alike)."""
    return max(1.35, math.sqrt(5.01 * float(values.min()) / float(values.max())))


def _drawn_sizes(cells: Cells) -> list[float]:
    found = [line.points["side"] for row in cells for lines in row for line in lines]
    return sorted(set(pd.concat(found)))


def _plot(axes: Axes, line: Curve, others: Sequence[Curve]) -> Line2D:
    """One curve, broken where only another curve of the facet has a size."""
    sides = sorted({float(s) for other in others for s in other.points["side"]})
    values = line.points.set_index("side")["y"].reindex(sides)
    (artist,) = axes.plot(sides, values.to_numpy(float), label=line.label, markersize=3.4, linewidth=1.1, **line.drawn)
    _bars.draw(axes, line.points["side"], line.points, line.look.colour)
    return artist


def _range(layout: Layout, sides: Sequence[float]) -> tuple[float, float]:
    """Limits of the size axis around the drawn sizes."""
    low, high = sides[0], sides[-1]
    if layout.x == "linear":
        pad = 0.04 * max(high - low, 1.0)
        return low - pad, high + pad
    return low / 1.15, high * 1.15


def _ticks(layout: Layout, sides: Sequence[float]) -> list[float]:
    return [float(t) for t in layout.ticks if t in sides] or list(sides)


def _slanted(layout: Layout, sides: Sequence[float], width: float) -> bool:
    """Whether the labels of two sizes would touch on an axis of `width` inches."""
    low, high = _range(layout, sides)
    scale = (lambda v: v) if layout.x == "linear" else math.log
    places = [scale(t) for t in _ticks(layout, sides)]
    space = min((b - a for a, b in zip(places, places[1:])), default=math.inf)
    longest = len(_size_text(sides[-1]))
    return space * width / (scale(high) - scale(low)) < 0.062 * longest + 0.04


def _size_text(side: float) -> str:
    return f"{side:g}x{side:g}"


def _size_axis(axes: Axes, layout: Layout, sides: list[float], bottom: bool) -> None:
    """Size axis, logarithmic or linear, over the drawn sizes; `ticks` are labelled `16x16`, below the last row only."""
    axes.set(xscale=layout.x, xlim=_range(layout, sides))
    ticks = _ticks(layout, sides)
    slanted = _panels.SLANTED if bottom and _slanted(layout, sides, _panels.panel_width(axes)) else {}
    axes.set_xticks(ticks, [_size_text(t) for t in ticks], **slanted)
    axes.xaxis.set_minor_locator(FixedLocator([s for s in sides if s not in ticks]))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", pad=2, labelbottom=bottom)


def _say_empty(axes: Axes, hide: bool) -> None:
    axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", va="center", color="#666666", fontsize=7)
    if hide:  # an axis of its own would have no scale
        axes.tick_params(axis="y", which="both", left=False, labelleft=False)
        axes.grid(axis="y", visible=False)


def _legend_columns(labels: Sequence[str], width: float) -> int:
    return _panels.legend_columns(labels, width, handle=0.42, margin=0.05)
