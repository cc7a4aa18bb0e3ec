"""The values of a figure's data points: an SVG shows them to a reader who points at them.

The points are found in the drawn figure, so that a new figure needs no code. An SVG gets an invisible disc over each point, whose
<title> browsers show; plots.site reads these discs again. Signals, distributions and pictures have none: lines of more than LONGEST
points, those without markers of more than UNMARKED, and axes with an image. Maps have their values as text.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape, unescape
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter

RADIUS = 4  # points: markers have 4 in diameter
LONGEST, UNMARKED = 400, 40
LAYER = '<g class="hover" fill="none" pointer-events="all">'
_NUMBER = re.compile(r"[−-]?[\d.,]+( ?[kMGT])?")
_DISC = re.compile(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="\d+"><title>([^<]*)</title></circle>')


@dataclass(frozen=True)
class Point:
    """`x` and `y` in points from the left and the top of the figure; `series`: its label and the title of its panel."""

    x: float
    y: float
    series: str
    values: str


def points(figure: Figure) -> list[Point]:
    """Every data point inside the axes of a figure that was drawn, each once."""
    labels = _legend(figure)
    found: dict[Point, bool] = {}
    for axes in figure.axes:
        if axes.images:
            continue
        panel = _panel(axes)
        for x, y, values, text in [*_lines(axes, labels), *_bars(axes, labels)]:
            if axes.bbox.padded(1).contains(x, y):
                scale = 72 / figure.dpi
                place = (round(x * scale, 1), round((figure.bbox.height - y) * scale, 1))
                head = ", ".join(filter(None, (text, panel)))
                found[Point(*place, head, values)] = True
    return list(found)


def layer(svg: str, found: list[Point]) -> str:
    """The SVG with a disc over each point."""
    if not found:
        return svg
    discs = "".join(
        f'<circle cx="{one.x:g}" cy="{one.y:g}" r="{RADIUS}"><title>{escape(_said(one), quote=False)}</title></circle>'
        for one in found
    )
    head, end, tail = svg.rpartition("</svg>")
    return f"{head}{LAYER}{discs}</g>{end}{tail}"


def read(svg: str) -> list[Point]:
    """The points that `layer` wrote."""
    found = []
    for x, y, title in _DISC.findall(svg.partition(LAYER)[2]):
        series, _, values = unescape(title).rpartition(": ")
        found.append(Point(float(x), float(y), series, values))
    return found


def _said(point: Point) -> str:
    values = point.values.replace(": ", " ")  # what comes after the last colon is a value
    return f"{point.series}: {values}" if point.series else values


Found = Iterator[tuple[float, float, str, str]]  # place in pixels of the figure, values, series


def _lines(axes: Axes, labels: dict[Any, str]) -> Found:
    x_text, y_text = _texts(axes, axes.xaxis), _texts(axes, axes.yaxis)
    for line in axes.lines:
        data = line.get_xydata()
        marked = line.get_marker() not in ("", "None", None)
        if line.get_transform() != axes.transData or len(data) > (LONGEST if marked else UNMARKED):
            continue
        series = _series(line, line, axes, labels)
        if not series and not marked:
            continue  # a line that guides the eye
        for x, y in data.astype(float).tolist():
            place = axes.transData.transform((x, y))
            if all(map(math.isfinite, (x, y, *place))):
                yield float(place[0]), float(place[1]), f"{x_text(x)}, {y_text(y)}", series


def _bars(axes: Axes, labels: dict[Any, str]) -> Found:
    """The value of a bar is its length, also where bars are stacked."""
    x_text, y_text = _texts(axes, axes.xaxis, nearest=True), _texts(axes, axes.yaxis, nearest=True)
    for one in axes.containers:
        if not isinstance(one, BarContainer):
            continue
        for bar in one.patches:
            (x, y), width, height = bar.get_xy(), bar.get_width(), bar.get_height()
            if one.orientation == "horizontal":
                length, values = width, f"{y_text(y + height / 2)}, {x_text(width)}"
            else:
                length, values = height, f"{x_text(x + width / 2)}, {y_text(height)}"
            if length:
                place = axes.transData.transform((x + width / 2, y + height / 2))
                yield float(place[0]), float(place[1]), values, _series(one, bar, axes, labels)


def _series(named: Any, drawn: Any, axes: Axes, labels: dict[Any, str]) -> str:
    """The label of an artist, else that of the handle in a legend that looks like it, else the text beside the axes in its colour."""
    look = _look(drawn)
    found = labels.get(look) or labels.get(look[:3]) or ""
    own = str(named.get_label())
    if not own.startswith("_"):
        return _flat(found if found.endswith(own) else own)
    beside = (one.get_text() for one in axes.texts if to_hex(one.get_color()) == look[0])
    return _flat(found or next(beside, ""))


def _texts(axes: Axes, axis: Any, nearest: bool = False) -> Callable[[float], str]:
    """What makes a text of a value of an axis: the label of the tick there (of bars: of the nearest tick), else the number in the unit
    of the axis. A bare number has the name of the axis before it."""
    labels = zip(axis.get_majorticklocs(), axis.get_majorticklabels())
    ticks = [(float(place), own) for place, one in labels if (own := _flat(one.get_text()))]
    words = [one for one in ticks if not _NUMBER.fullmatch(one[1])]
    name = (_flat(axis.get_label_text()) or _neighbour(axes, axis)).partition(",")[0]
    formatter = axis.get_major_formatter()

    def text(value: float) -> str:
        if nearest and len(words) == len(ticks) > 0:
            return min(words, key=lambda one: abs(one[0] - value))[1]
        for place, own in ticks:
            if math.isclose(place, value, rel_tol=1e-9):
                return f"{name} {own}".strip() if _NUMBER.fullmatch(own) else own
        rounded = float(f"{value:.4g}")
        shown = f"{rounded:g}"
        if isinstance(formatter, (EngFormatter, FuncFormatter)):
            own = _flat(str(formatter(rounded, 0)))
            has_unit = bool(getattr(formatter, "unit", True))
            if has_unit and re.search(r"\d", own) and not _NUMBER.fullmatch(own):
                return own
            if isinstance(formatter, EngFormatter) and abs(value) >= 1:
                shown = own  # with the prefix of the ticks
        return f"{name} {shown}".strip()

    return text


def _title(axes: Axes) -> str:
    return _flat(" ".join(axes.get_title(loc) for loc in ("left", "center", "right")))


def _panel(axes: Axes) -> str:
    """The title of a panel, or of its column, and that of its row, which stands upright beside the last one."""
    own = axes.get_position()
    places = [(other, other.get_position()) for other in axes.figure.axes]
    column = [other for other, place in places if (place.x0, place.x1) == (own.x0, own.x1) and place.y0 > own.y0]
    column.sort(key=lambda other: float(other.get_position().y0))
    title = next(filter(None, map(_title, (axes, *column))), "")
    row = [other for other, place in places if (place.y0, place.y1) == (own.y0, own.y1)]
    upright = [_flat(one.get_text()) for other in row for one in other.texts if one.get_rotation() == 270]
    return ", ".join(filter(None, (title, *upright[:1])))


def _neighbour(axes: Axes, axis: Any) -> str:
    """The label that an axis shares with those of the same column or row."""
    of_x = axis is axes.xaxis
    own = axes.get_position()
    for other in axes.figure.axes:
        place = other.get_position()
        same = (place.x0, place.x1) == (own.x0, own.x1) if of_x else (place.y0, place.y1) == (own.y0, own.y1)
        text = _flat((other.xaxis if of_x else other.yaxis).get_label_text())
        if same and text:
            return text
    return ""


def _legend(figure: Figure) -> dict[Any, str]:
    """The text of a legend, with its title, by the look of its handle, and of lines by what is left without the dash too."""
    found: dict[Any, str] = {}
    legends = [*figure.legends, *(one for one in (axes.get_legend() for axes in figure.axes) if one)]
    for legend in legends:
        handles = getattr(legend, "legend_handles", None) or getattr(legend, "legendHandles", [])
        title = legend.get_title().get_text()
        for handle, text in zip(handles, legend.get_texts()):
            label = f"{title} {text.get_text()}" if title and title != "None" else text.get_text()
            look = _look(handle)
            found.setdefault(look, label)
            found.setdefault(look[:3], label)
    return found


def _look(artist: Any) -> tuple[str, ...]:
    """What tells the lines and bars of a figure apart."""
    if hasattr(artist, "get_marker"):
        face = artist.get_markerfacecolor()
        hollow = face if face == "none" else to_hex(face)
        return to_hex(artist.get_color()), str(artist.get_marker()), str(hollow), str(artist.get_linestyle())
    if hasattr(artist, "get_hatch"):
        return to_hex(artist.get_facecolor()), artist.get_hatch() or ""
    return ()


def _flat(text: str) -> str:
    return " ".join(str(text).split())
