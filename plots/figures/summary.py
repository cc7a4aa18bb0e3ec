"""The figure of the README: per size the paper's best, the FFT library, the fastest variant here, and the floor."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _bars, _labels, _panels
from plots.figures._panels import FORM_TITLES
from plots.metrics import MICRO
from plots.tables import summary
from plots.tidy import ResultSet, is_power_of_two

ORDER = 1
TITLE = "Summary"
COLUMNS, HEIGHT_IN, GAP_IN = 2, 1.85, 0.68
FONT = 10.2  # points: 8 pixels where the picture is shrunk to 400 pixels, the width of a telephone
LEFT_IN, ROOM_IN = 0.92, 1.22  # for the labels of the axis, and of the lines
BETWEEN_IN, TOP_IN, BOTTOM_IN = 0.62, 0.3, 0.56
LETTER_IN = 0.09  # a letter of a size
LABEL_IN = 0.18  # distance of two labels
LOOKS = {  # colour, marker, line, width
    "paper_us": ("slate", "s", (0, (5, 1.6)), 1.2),
    "library_us": ("vermillion", "^", (0, (6, 1.5, 1.2, 1.5)), 1.2),
    "ours_us": ("blue", "o", "-", 2.2),
    "floor_us": ("grey", "", (0, (1.1, 1.3)), 1.4),
}


def draw(results: ResultSet) -> list[Result]:
    """One figure: a panel per form, four lines against size, each named at its end."""
    cells = summary.chosen(summary.cells(results))
    if cells["size"].nunique() < 2:
        reason = "fewer than two sizes have a time of one of the paper's algorithms on a GPU"
        return [Omitted("summary", reason, "summary")]
    forms = list(cells.groupby("form", sort=False))
    rows = math.ceil(len(forms) / COLUMNS)
    height = TOP_IN + rows * HEIGHT_IN + (rows - 1) * GAP_IN + BOTTOM_IN
    figure = Figure(figsize=(style.PAGE_IN, height))
    width = (style.PAGE_IN - LEFT_IN - COLUMNS * ROOM_IN - (COLUMNS - 1) * BETWEEN_IN) / COLUMNS
    values = cells[list(summary.SERIES)].to_numpy(float).ravel()
    for place, (form, own) in enumerate(forms):
        row, column = divmod(place, COLUMNS)
        left = LEFT_IN + column * (width + ROOM_IN + BETWEEN_IN)
        top = height - TOP_IN - row * (HEIGHT_IN + GAP_IN)
        place_of = (left / style.PAGE_IN, (top - HEIGHT_IN) / height, width / style.PAGE_IN, HEIGHT_IN / height)
        axes = figure.add_axes(place_of)
        _panel(axes, own, values)
        lefts, rights = own[["lefts", "rights"]].iloc[0]
        axes.set_title(f"{FORM_TITLES.get(form, form)}, {lefts}-to-{rights}", loc="left", fontsize=FONT)
        if column == 0:
            axes.set_ylabel("Time of a call", fontsize=FONT)
        if place + COLUMNS >= len(forms):
            axes.set_xlabel("Size of a matrix", fontsize=FONT)
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
                "is shown: the one that was measured at the most sizes, or the largest of several such numbers. "
                "A panel names the form and the numbers of matrices in all, left to right."
                f"{_said(cells)}"
            ),
            alt=(
                "Line charts, one per form: time of the paper's best algorithm, of cuFFT, of the fastest variant of this project, "
                "and the floor, against matrix size."
            ),
            figure=figure,
            section="summary",
        )
    ]


def _said(cells: pd.DataFrame) -> str:
    """What a bar means, where a time has one."""
    return _bars.said(*(_with_ends(cells, name) for name in summary.SERIES))


def _with_ends(cells: pd.DataFrame, name: str) -> pd.DataFrame:
    """The cells that have the time `name`, as `y` in seconds, and the ends of its interval where it has one."""
    known = cells[cells[name].notna()]
    columns = {"y": name, "y_low": f"{name}_low", "y_high": f"{name}_high"}
    return known.assign(**{to: known[of] * MICRO for to, of in columns.items() if of in known})


def _panel(axes: Axes, own: pd.DataFrame, values: np.ndarray) -> None:
    sides = own["left_rows"].astype(float)
    ends = []
    for name in summary.SERIES:
        known = _with_ends(own, name)
        if known.empty:
            continue
        hue, marker, dash, width = LOOKS[name]
        colour = {**style.HUES, **style.MORE_HUES}[hue]
        look = {"color": colour, "marker": marker or None, "linestyle": dash, "linewidth": width}
        front = 4 if name == "ours_us" else 3
        axes.plot(known["left_rows"].astype(float), known["y"], markersize=3.6, zorder=front, **look)
        _bars.draw(axes, known["left_rows"].astype(float), known, colour, front)
        ends.append(_labels.end(summary.SERIES[name], known["left_rows"], known["y"], colour, name == "ours_us"))
    power = sides.pow(0.5).map(is_power_of_two)  # every other power of two: large text needs space
    axes.tick_params(labelsize=FONT)
    _panels.size_axis(axes, (own[power] if power.sum() > 1 else own).assign(side=sides), letter_in=LETTER_IN)
    axes.set_xlim(sides.min() / 1.12, sides.max() * 1.12)
    _panels.log_axis(axes, values * MICRO, _panels.tick_text("s"))
    _labels.draw(axes, ends, FONT, LABEL_IN)
