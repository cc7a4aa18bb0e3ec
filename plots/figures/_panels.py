"""Shared pieces of the figures: grouping, facet grids with a legend below, size and time axes."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    EngFormatter,
    FixedLocator,
    Formatter,
    FuncFormatter,
    LogLocator,
    NullFormatter,
    NullLocator,
)

from plots import style
from plots.figures import _bars, _labels
from plots.tidy import USUAL, form_order, is_power_of_two, unusual

DEFAULTS = {name: USUAL[name] for name in ("mode", "window", "input")}
FORM_TITLES = {"one-to-one": "One-to-one", "one-to-many": "One-to-many", "n-to-mn": "n-to-mn", "n-to-m": "n-to-m"}
SLANTED = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}  # of labels that would touch
Group = tuple[str, str, pd.DataFrame]


def groups(points: pd.DataFrame) -> Iterator[Group]:
    """Split a tidy frame into figures: (file suffix, title, frame), one per form x mode x window
    x input. Settings that are never mixed in one picture; the usual ones are not spelled out."""
    keys = ["form", "mode", "window", "input"]
    found = list(points.groupby(keys, sort=True))
    found.sort(key=lambda item: (form_order(item[0][0]), item[0][1:]))
    for values, frame in found:
        parts = [values[0], *unusual(dict(zip(keys, values)), *DEFAULTS)]
        yield re.sub(r"[^A-Za-z0-9_-]+", "-", "_".join(parts)).strip("-"), ", ".join(parts), frame


def picture(axes: Axes, image: np.ndarray, title: str) -> None:
    axes.imshow(image, cmap="gray", interpolation="nearest", vmin=0, vmax=255)
    axes.set(xticks=[], yticks=[], title=title)
    axes.grid(False)
    axes.spines[:].set_visible(False)


def facet_counts(points: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """(`2-to-8`, frame) per count, ascending by pairs, then by lefts. A count measured at one size
    only makes no curve: it is left to the table, unless there is nothing else."""
    found = list(points.groupby(["pairs", "lefts", "rights", "counts"], sort=True))
    facets = [(str(values[3]), frame) for values, frame in found]
    return [f for f in facets if f[1]["size"].nunique() > 1] or facets


def left_out(points: pd.DataFrame) -> str:
    """Caption sentence about the counts that facet_counts leaves to the table, or nothing."""
    kept = [counts for counts, _ in facet_counts(points)]
    gone = [name for name in points["counts"].unique() if name not in kept]
    return f" The table alone has what was measured at one size only: {', '.join(gone)}." if gone else ""


def grid(
    count: int, rows_of: int = 1, height: float = 2.15, legend: int = 1, gap: float = 0.72, for_names: float = 0.0
) -> tuple[Figure, list[list[Axes]], float]:
    """Figure with `count` columns (wrapped above 4 when there is one row of facets): returns figure, axes by row, and
    width. `height` of a facet, `gap` between rows and all margins are in inches; `legend`: lines of the legend; `for_names`: inches
    right of each facet for the names of its lines, which leave space for two facets in a row."""
    per_row = count if rows_of > 1 or count <= 4 else (4 if count in (7, 8) else 3)
    per_row = min(per_row, 2) if for_names and rows_of == 1 else per_row
    rows = rows_of if rows_of > 1 else math.ceil(count / per_row)
    width = style.COLUMN_IN + for_names if per_row == 1 else style.PAGE_IN
    bottom = 0.53 + legend_in(legend)
    top, left, right = 0.27, 0.68, 0.14 + for_names
    total = rows * height + (rows - 1) * gap + bottom + top
    inner = (width - left - right - (per_row - 1) * (for_names + 0.12)) / per_row
    figure = Figure(figsize=(width, total))
    axes = figure.subplots(rows, per_row, squeeze=False, sharey=True)
    figure.subplots_adjust(
        left=left / width,
        right=1 - right / width,
        bottom=bottom / total,
        top=1 - top / total,
        hspace=gap / height,
        wspace=(for_names + 0.12) / inner if for_names else 0.09,
    )
    flat = [list(row) for row in axes]
    if rows_of == 1:
        for index in range(count, rows * per_row):
            flat[index // per_row][index % per_row].remove()
        flat = [row[: max(0, count - i * per_row)] for i, row in enumerate(flat)]
    return figure, flat, width


def beside_in(for_names: float) -> float:
    """Width of a panel of which two stand in a row of grid(), each with `for_names` for names."""
    return (style.PAGE_IN - 0.68 - 0.14 - 0.12) / 2 - for_names


def legend_columns(labels: Sequence[str], width: float, handle: float = 0.52, margin: float = 0.1) -> int:
    """How many legend columns fit into `width` inches at the legend's font size, where a letter takes 0.056 in, and
    `handle` is the width of a handle with its gaps."""
    widest = max(map(len, labels), default=1) * 0.056 + handle
    return max(1, min(len(labels), int((width - margin) / widest)))


def legend_lines(labels: Sequence[str], width: float) -> int:
    """Lines of a legend laid out by legend_columns."""
    return math.ceil(len(labels) / legend_columns(labels, width)) if labels else 0


def legend_in(lines: int) -> float:
    """Inches of a legend's lines. One of many lines needs less for each than the space that a short one has around it."""
    return 0.155 * min(lines, 3) + 0.12 * max(0, lines - 3)


def legend_below(figure: Figure, handles: Mapping[str, object], width: float, **more: Any) -> None:
    """One legend for all facets, centred at the bottom, in the order of `handles`. `more` goes to the legend too."""
    if handles:
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.02 / figure.get_figheight()), "borderaxespad": 0.0}
        gaps = {"columnspacing": 1.2, "handletextpad": 0.5, "labelspacing": 0.3}
        more = {"ncol": legend_columns(list(handles), width), **place, **gaps, **more}
        figure.legend(list(handles.values()), list(handles), **more)


def panel_width(axes: Axes) -> float:
    """Width of a facet in inches."""
    return axes.get_position().width * axes.figure.get_figwidth()


def size_axis(axes: Axes, points: pd.DataFrame, slanted_in: float = 0.15, letter_in: float = 0.062) -> None:
    """Logarithmic size axis with one tick per measured size, labelled `16x16`. Labels are slanted when they would
    touch, and thinned (powers of two stay) when even slanted ones would, which need `slanted_in` inches; a letter needs
    `letter_in`. Several shapes with the same area share a tick."""
    table = points.drop_duplicates("size").sort_values(["side", "size"])
    by_side: dict[float, list[str]] = {}
    for side, text in zip(table["side"], table["size"]):
        by_side.setdefault(float(side), []).append(str(text))
    sides = sorted(by_side)
    labels = {s: "\n".join(by_side[s][:2]) + ("\n…" if len(by_side[s]) > 2 else "") for s in sides}
    axes.set_xscale("log")
    low, high = (sides[0], sides[-1]) if sides else (1.0, 2.0)
    pad = 1.12 if len(sides) > 1 else 1.6
    axes.set_xlim(low / pad, high * pad)
    inch = panel_width(axes) / math.log(high * pad * pad / low)
    longest = max((max(map(len, t.split("\n"))) for t in labels.values()), default=1)
    kept = _thin(sides, inch, letter_in * longest + 0.06)
    slanted = len(kept) < len(sides)
    if slanted:
        kept = _thin(sides, inch, slanted_in)
    axes.set_xticks(kept, [labels[side] for side in kept], **(SLANTED if slanted else {}))
    axes.xaxis.set_minor_locator(FixedLocator([s for s in sides if s not in kept]))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", pad=2)


def _thin(sides: list[float], inch_per_e: float, space: float) -> list[float]:
    """Sides whose labels keep `space` inches between their centres; powers of two go first."""
    order = sorted(sides, key=lambda s: (s not in (sides[0], sides[-1]), not is_power_of_two(s), s))
    kept: list[float] = []
    for side in order:
        if all(abs(math.log(side / other)) * inch_per_e >= space for other in kept):
            kept.append(side)
    return sorted(kept)


def log_axis(axes: Axes, values: np.ndarray, text: Formatter, margin: float = 1.35) -> None:
    """Logarithmic y axis around `values`, labelled at decades, or at 1-2-5 when it is short."""
    values = values[np.isfinite(values) & (values > 0)]
    low, high = float(values.min()) / margin, float(values.max()) * margin
    axes.set_ylim(low, high)
    axes.set_yscale("log")
    decades = math.log10(high / low)
    subs = (1.0, 2.0, 5.0) if decades < 2.2 else (1.0,)
    step = 1 if decades <= 7 else 2
    axes.yaxis.set_major_locator(LogLocator(base=10.0**step, subs=subs, numticks=30))
    axes.yaxis.set_major_formatter(text)
    if decades >= 2.2:
        axes.yaxis.set_minor_locator(LogLocator(base=10.0, subs=range(2, 10), numticks=99))
    else:
        axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="y", which="minor", length=1.5)


def tick_text(unit: str) -> Formatter:
    """Tick labels: seconds and joules with an SI prefix, `x` factors, or numbers with an SI prefix."""
    if unit in ("s", "J"):
        return EngFormatter(unit)
    if unit == "x":
        return FuncFormatter(lambda v, _: f"{v:g}x")
    return EngFormatter(sep="")


def curve_axes(labels: Sequence[str]) -> tuple[Figure, Axes]:
    """A figure of one panel as wide as a page, with space for the names of these curves right of it, however many there are."""
    height = max(1.98, _labels.LABEL_IN * len(labels))
    figure = Figure(figsize=(style.PAGE_IN, height + 0.62))
    axes = figure.subplots()
    right = 1 - (0.1 + _labels.names_in(labels)) / style.PAGE_IN
    figure.subplots_adjust(left=0.11, right=right, top=1 - 0.08 / (height + 0.62), bottom=0.54 / (height + 0.62))
    return figure, axes


def curve_chart(
    curves: Sequence[tuple[str, pd.DataFrame, dict[str, Any]]], ticks: Mapping[int, str], x: str, y: str, unit: str
) -> Figure:
    """Curves (name, points by place as _bars has them, look) in one panel of two logarithmic axes. The x axis has the `ticks`, text
    by place, and no others; `x` and `y` are the labels of the axes, `unit` is that of the values."""
    figure, axes = curve_axes([label for label, _, _ in curves])
    for label, own, look in curves:
        axes.plot(own.index, own["y"], label=label, **look)
        _bars.draw(axes, own.index.to_series(), own, look["color"])
    axes.set(xscale="log", xlabel=x, ylabel=y)
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.minorticks_off()
    log_axis(axes, np.concatenate([_bars.reach(own) for _, own, _ in curves]), tick_text(unit))
    _labels.draw(axes, [_labels.end(label, own.index, own["y"], look["color"]) for label, own, look in curves])
    return figure
