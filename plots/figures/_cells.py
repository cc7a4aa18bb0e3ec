"""Grids of coloured cells with text: what maps over size and count, or variant and size, are."""

import math
import textwrap
from dataclasses import dataclass, field

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from plots import style
from plots.figures import _panels
from plots.tidy import form_order

TITLE_IN, LABEL_IN, BOTTOM_IN, CHAR_IN = 0.38, 0.115, 0.08, 0.0466
TICK_CHAR_IN = 0.06  # a letter of a column's label
FONT = style.SMALLEST
NEUTRAL = 0.02  # a factor this close to 1 has no colour
SLOWER, FASTER = style.HUES["vermillion"], style.HUES["blue"]


@dataclass(frozen=True)
class Cell:
    """Lines of text on a colour; a hatch says what grey print would lose."""

    text: str
    colour: str
    hatch: str = ""


@dataclass(frozen=True)
class Panel:
    """One grid: labels of rows and columns, cells by (row, column), and heavy edges between cells,
    each ((x0, y0), (x1, y1)) in cells from the top left corner."""

    title: str
    rows: list[str]
    columns: list[str]
    cells: dict[tuple[str, str], Cell]
    edges: list[tuple[tuple[int, int], tuple[int, int]]] = field(default_factory=list)


def by_form(lines: pd.DataFrame) -> list[tuple[str, list[str], list[str], pd.DataFrame]]:
    """(form, counts, sizes, lines) in the paper's order; counts ascend by pairs, sizes by area.
    `lines` has a line per problem with the columns of PROBLEM, counts and size."""
    found = []
    for form, own in sorted(lines.groupby("form"), key=lambda item: form_order(item[0])):
        area = own["left_rows"] * own["left_cols"] * own["right_rows"] * own["right_cols"]
        pairs = own["rights"].astype(float) * own["lefts"].where(own["form"] == "n-to-m", 1)
        own = own.assign(_area=area.astype(float), _pairs=pairs)
        counts = own.sort_values(["_pairs", "lefts"])["counts"].unique()
        sizes = own.sort_values(["_area", "size"])["size"].unique()
        found.append((str(form), list(counts), list(sizes), own))
    return found


def draw(panels: list[Panel], row_in: float, legend: dict[str, object] | None = None, left: float = 0.72) -> Figure:
    """The panels below each other over a page's width. `row_in`: height of a row, `left`: space for
    its labels, in inches; `legend`: handles by label, below everything."""
    legend = legend or {}
    lines = _panels.legend_lines(list(legend), style.PAGE_IN)
    foot = BOTTOM_IN + (0.155 * lines + 0.08 if lines else 0.0)
    space = style.PAGE_IN - left
    total = sum(_head(panel, space) + row_in * len(panel.rows) for panel in panels) + foot
    figure = Figure(figsize=(style.PAGE_IN, total))
    top = total
    for panel in panels:
        height = row_in * len(panel.rows)
        top -= _head(panel, space) + height
        place = (left / style.PAGE_IN, top / total)
        size = ((space - 0.06) / style.PAGE_IN, height / total)
        _panel(figure.add_axes((*place, *size)), panel, space)
    _panels.legend_below(figure, legend, style.PAGE_IN)
    return figure


def _head(panel: Panel, space: float) -> float:
    """Height above a grid for its title and the labels of its columns, in inches."""
    return TITLE_IN + LABEL_IN * max(label.count("\n") + 1 for label in _labels(panel, space))


def _labels(panel: Panel, space: float) -> list[str]:
    """Labels of columns, each within its share of `space` inches."""
    letters = max(6, int(space / len(panel.columns) / TICK_CHAR_IN))
    return [_wrapped(label, letters) for label in panel.columns]


def _panel(axes: Axes, panel: Panel, space: float) -> None:
    axes.set_xlim(0, len(panel.columns))
    axes.set_ylim(len(panel.rows), 0)
    axes.grid(False)
    axes.set_title(panel.title, loc="left", pad=5)
    axes.xaxis.tick_top()
    axes.set_xticks([x + 0.5 for x in range(len(panel.columns))], _labels(panel, space))
    axes.set_yticks([y + 0.5 for y in range(len(panel.rows))], panel.rows)
    axes.tick_params(length=0, pad=2)
    axes.spines[:].set_visible(False)
    letters = max(6, int((space / len(panel.columns) - 0.04) / CHAR_IN))
    for y, row in enumerate(panel.rows):
        for x, column in enumerate(panel.columns):
            cell = panel.cells.get((row, column))
            axes.add_patch(
                Rectangle((x, y), 1, 1, facecolor=cell.colour if cell else "#f7f7f7", edgecolor="white", linewidth=1.0)
            )
            if cell is None:
                continue
            if cell.hatch:
                axes.add_patch(Rectangle((x, y), 1, 1, fill=False, hatch=cell.hatch, edgecolor="#ffffff", linewidth=0))
            look = {"ha": "center", "va": "center", "fontsize": FONT, "linespacing": 1.15, "color": "#111111"}
            axes.text(x + 0.5, y + 0.5, _wrapped(cell.text, letters), **look)
    for (x0, y0), (x1, y1) in panel.edges:
        axes.plot([x0, x1], [y0, y1], color="#111111", linewidth=1.8, solid_capstyle="projecting", clip_on=False)


def _wrapped(text: str, letters: int) -> str:
    """Every line of `text` broken, at hyphens too, to at most `letters` where words allow it."""
    broken = [textwrap.wrap(line, letters, break_long_words=False) for line in text.split("\n")]
    return "\n".join(piece for pieces in broken for piece in pieces)


def factor_colour(factor: float, full: float) -> str:
    """Pale grey at 1, deepening on a logarithmic scale up to a factor `full`: slower than 1 and
    faster have hues of their own, and both stay light enough for black text."""
    if abs(factor - 1.0) < NEUTRAL:
        return "#f0f0f0"
    depth = min(1.0, abs(math.log(factor)) / math.log(full))
    return style.shaded(SLOWER if factor > 1 else FASTER, 0.93 - 0.65 * depth)
