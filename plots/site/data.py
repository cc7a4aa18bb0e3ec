"""Files of the report's folder data/: the answers as a script and as CSV, and the tables that no set has as CSV."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from plots import style
from plots.site import lines
from plots.tables.text import csv

ANSWERS = "XCORR_ANSWERS"  # the global name that the script sets
DIGITS = 6


def answers(table: pd.DataFrame, machines: Mapping[str, str]) -> str:
    """The lines of plots.site.lines as a script that assigns one JSON value: pages that are read from a file may load a script, and
    no JSON file. A line of text a line of the table, so that a change of one answer is a change of one line."""
    names = {*table["best"], *table["runner_up"], *";".join(table["tied_with"]).split(";")} - {""}
    head = {
        "asked": lines.ASKED,
        "columns": lines.COLUMNS,
        "machines": dict(machines),
        "labels": {name: style.label(name) for name in sorted(names)},
    }
    opened = json.dumps(head, ensure_ascii=False, indent=1)[:-2]
    rows = ",\n".join(json.dumps(_cells(one), ensure_ascii=False) for one in table[lines.COLUMNS].to_numpy().tolist())
    return f'window.{ANSWERS} = {opened},\n "lines": [\n{rows}\n]}};\n'


def read(text: str) -> dict[str, Any]:
    """What `answers` wrote."""
    found = json.loads(text.removeprefix(f"window.{ANSWERS} = ").rstrip().removesuffix(";"))
    return dict(found)


def _cells(values: Iterable[Any]) -> list[Any]:
    return [_cell(one) for one in values]


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.{DIGITS}g}")
    return value


def table(frame: pd.DataFrame) -> str:
    return csv(frame, DIGITS)
