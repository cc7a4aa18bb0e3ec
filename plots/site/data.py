"""Files of the report's folder data/: the answers as a script and as CSV, and the tables that no set has as CSV."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from plots import hover, style
from plots.site import lines
from plots.site.sizes import ENLARGED, pixels
from plots.tables.text import csv

ANSWERS = "XCORR_ANSWERS"  # the global name that the script sets
POINTS = "XCORR_POINTS"
DIGITS = 6
MADE = ["command", "python"]  # columns that are made of the others: the CSV file does without them


def answers(table: pd.DataFrame, machines: Mapping[str, str]) -> str:
    """The lines of plots.site.lines as a script that assigns one JSON value: pages that are read from a file may load a script, and
    no JSON file. A line of text a line of the table. Most texts occur many times, so that a cell has the place of its text among
    those of its column."""
    names = {*table["best"], *table["runner_up"], *";".join(table["tied_with"]).split(";")} - {""}
    cells = [[_cell(one) for one in line] for line in table[lines.COLUMNS].to_numpy().tolist()]
    texts = {
        name: sorted({one[place] for one in cells})
        for place, name in enumerate(lines.COLUMNS)
        if cells and all(isinstance(one[place], str) for one in cells)
    }
    places = [{text: i for i, text in enumerate(texts[name])} if name in texts else None for name in lines.COLUMNS]
    head = {
        "asked": lines.ASKED,
        "columns": lines.COLUMNS,
        "machines": dict(machines),
        "labels": {name: style.label(name) for name in sorted(names)},
        "texts": texts,
    }
    opened = json.dumps(head, ensure_ascii=False, indent=1)[:-2]
    shown = ([own[one] if own else one for own, one in zip(places, line)] for line in cells)
    rows = ",\n".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in shown)
    return f'window.{ANSWERS} = {opened},\n "lines": [\n{rows}\n]}};\n'


def points(page: str, folder: Path) -> str:
    """The data points of the figures of a page as a script; `folder` is that of the page. A figure has its width in the unit of the
    points, and its series with the place and the values of each point."""
    found: dict[str, Any] = {}
    for source in dict.fromkeys(re.findall(r'<img src="([^"]+\.svg)"', page)):
        file = folder / source
        series: dict[str, list[Any]] = {}
        for one in hover.read(file.read_text(encoding="utf-8")):
            series.setdefault(one.series, [one.series]).append([one.x, one.y, one.values])
        if series:
            found[source] = {"width": pixels(file)[0] / ENLARGED, "series": list(series.values())}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in found.items())
    return f"window.{POINTS} = {{\n{lines}\n}};\n"


def read(text: str) -> dict[str, Any]:
    """What `answers` wrote, with texts in the place of their numbers."""
    found: dict[str, Any] = json.loads(text.removeprefix(f"window.{ANSWERS} = ").rstrip().removesuffix(";"))
    texts = [found["texts"].get(name) for name in found["columns"]]
    found["lines"] = [[own[one] if own else one for own, one in zip(texts, line)] for line in found["lines"]]
    return found


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.{DIGITS}g}")
    return value


def table(frame: pd.DataFrame) -> str:
    return csv(frame, DIGITS)
