"""The figure of the README: per size the paper's best, the FFT library, the fastest variant here, and the floor."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _panels
from plots.figures._panels import FORM_TITLES
from plots.metrics import MICRO
from plots.tables import summary
from plots.tidy import ResultSet, is_power_of_two

ORDER = 1
TITLE = "Summary"
COLUMNS, HEIGHT_IN, GAP_IN = 2, 1.75, 0.56
LEFT_IN, ROOM_IN = 0.64, 0.8  # for the labels of the axis, and of the lines
BETWEEN_IN = 0.36
LABEL_IN = 0.135  # distance of two labels
LOOKS = {  # colour, marker, line, width
    "paper_us": ("slate", "s", (0, (5, 1.6)), 1.2),
    "library_us": ("vermillion", "^", (0, (6, 1.5, 1.2, 1.5)), 1.2),
    "ours_us": ("blue", "o", "-", 2.2),
    "floor_us": ("olive", "", (0, (1.1, 1.3)), 1.4),
}


def draw(results: ResultSet) -> list[Result]:
    """One figure: a panel per form, four lines against size, each named at its end."""
    cells = summary.chosen(summary.cells(results))
    if cells["size"].nunique() < 2:
        reason = "fewer than two sizes have a time of one of the paper's algorithms on a GPU"
        return [Omitted("summary", reason, "summary")]
    forms = list(cells.groupby("form", sort=False))
    rows = math.ceil(len(forms) / COLUMNS)
    height = 0.26 + rows * HEIGHT_IN + (rows - 1) * GAP_IN + 0.42
    figure = Figure(figsize=(style.PAGE_IN, height))
    width = (style.PAGE_IN - LEFT_IN - COLUMNS * ROOM_IN - (COLUMNS - 1) * BETWEEN_IN) / COLUMNS
    values = cells[list(summary.SERIES)].to_numpy(float).ravel()
    for place, (form, own) in enumerate(forms):
        row, column = divmod(place, COLUMNS)
        left = LEFT_IN + column * (width + ROOM_IN + BETWEEN_IN)
        top = height - 0.26 - row * (HEIGHT_IN + GAP_IN)
        place_of = (left / style.PAGE_IN, (top - HEIGHT_IN) / height, width / style.PAGE_IN, HEIGHT_IN / height)
        axes = figure.add_axes(place_of)
        _panel(axes, own, values)
        lefts, rights = own[["lefts", "rights"]].iloc[0]
        axes.set_title(f"{FORM_TITLES.get(form, form)}: {_matrices(form, lefts, rights)}", loc="left")
        if column == 0:
            axes.set_ylabel("Time of one computation")
        if place + COLUMNS >= len(forms):
            axes.set_xlabel("Size of a matrix, rows x columns")
    return [
        Drawing(
            name="summary",
            title="Time against matrix size",
            caption=(
                "Lower is better; both scales are logarithmic. A time is of one call, which computes all pairs of the problem. "
                "“Paper's best” is the fastest algorithm of the paper, in our version or, where it was timed on this machine, in "
                "the program that its authors published. “cuFFT” is our fastest use of that library. “This project” is the "
                "fastest of all variants. The floor is the shortest time that the measured limits of the machine (empty "
                "launch, memory, arithmetic) allow for a call that starts after the previous one has ended. "
                "Calls are launched back to back, and plans are kept between calls. Of each form, only one number of matrices "
                "is shown: the one that was measured at the most sizes, or the largest of several such numbers."
            ),
            alt=(
                "Line charts, one per form: time of the paper's best algorithm, of cuFFT, of the fastest variant of this project, "
                "and the floor, against matrix size."
            ),
            figure=figure,
            section="summary",
        )
    ]


def _matrices(form: str, lefts: int, rights: int) -> str:
    if form == "one-to-one":
        return "1 pair"
    if form == "n-to-mn":
        return f"{lefts} left matrices, {rights // lefts} right ones each"
    return f"{lefts} left {'matrix' if lefts == 1 else 'matrices'}, {rights} right ones"


def _panel(axes: Axes, own: pd.DataFrame, values: np.ndarray) -> None:
    sides = own["left_rows"].astype(float)
    ends = {}
    for name in summary.SERIES:
        known = own[own[name].notna()]
        if known.empty:
            continue
        hue, marker, dash, width = LOOKS[name]
        look = {"color": style.HUES[hue], "marker": marker or None, "linestyle": dash, "linewidth": width}
        front = 4 if name == "ours_us" else 3
        axes.plot(known["left_rows"].astype(float), known[name] * MICRO, markersize=3.6, zorder=front, **look)
        ends[name] = float(known[name].iloc[-1]) * MICRO
    power = sides.map(is_power_of_two)
    _panels.size_axis(axes, (own[power] if power.sum() > 1 else own).assign(side=sides))
    _panels.log_axis(axes, values * MICRO, _panels.tick_text("s"))
    low, high = np.log(axes.get_ylim())
    inch = axes.get_position().height * axes.figure.get_figheight() / (high - low)
    order = sorted(ends, key=lambda name: ends[name])
    places = _apart([(math.log(ends[name]) - low) * inch for name in order], (high - low) * inch)
    for name, place in zip(order, places):
        look = {"color": style.HUES[LOOKS[name][0]], "weight": "bold" if name == "ours_us" else "normal"}
        at = (1.02, place / ((high - low) * inch))
        axes.annotate(summary.SERIES[name], at, xycoords="axes fraction", va="center", ha="left", fontsize=7.5, **look)


def _apart(places: list[float], space: float) -> list[float]:
    """Ascending places, moved as little as needed to be LABEL_IN apart and below `space`."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + LABEL_IN) if moved else place)
    for index in reversed(range(len(moved))):
        moved[index] = min(moved[index], space)
        space = moved[index] - LABEL_IN
    return moved
