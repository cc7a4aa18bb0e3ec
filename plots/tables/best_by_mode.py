"""The fastest variant of each problem in every mode of timing, side by side.

The rows are those of the side experiment that measured all modes, so that a line compares what was measured together.
Which variant wins depends on how calls follow each other: some overlap consecutive launches, which a wait after each
call ends.
"""

from typing import Any

import pandas as pd

from plots.metrics import MICRO, si_time
from plots.tables import best_table
from plots.tables.table import Grid, Page, Table
from plots.tables.text import csv
from plots.tidy import PROBLEM, ResultSet

MODES = {
    "stream": "launches back to back",
    "graph": "replay of a CUDA graph",
    "cold": "caches flushed before each launch",
    "latency": "a wait after each launch",
}


def table(results: ResultSet) -> pd.DataFrame:
    """The lines of best_table (accounting compute) of the problems that were measured in several modes, a line per
    problem and mode."""
    found = best_table.of_set(results, "best_by_mode")
    found = found[(found["accounting"] == "compute") & found["mode"].isin(MODES)]
    return found[found.groupby(PROBLEM)["mode"].transform("nunique") > 1].reset_index(drop=True)


def readable(found: pd.DataFrame) -> pd.DataFrame:
    """A line per problem, a column per mode: the winner, its ties, its time, and the signs of best_table."""
    modes = [mode for mode in MODES if (found["mode"] == mode).any()]
    lines: dict[tuple[Any, ...], dict[str, str]] = {}
    for _, row in found.iterrows():
        place = {"Form": row["form"], "Matrices": row["counts"], "Size": row["size"], **dict.fromkeys(modes, "–")}
        line = lines.setdefault(tuple(row[name] for name in PROBLEM), place)
        names = " = ".join(best_table.winners(row))
        line[row["mode"]] = f"{names} {si_time(row['time_us'] * MICRO)}{best_table.signs(row)}"
    return pd.DataFrame(list(lines.values()), columns=["Form", "Matrices", "Size", *modes])


def notes(found: pd.DataFrame) -> list[str]:
    """What the columns are, and what the signs mean."""
    means = ", ".join(f"{mode}: {MODES[mode]}" for mode in MODES if (found["mode"] == mode).any())
    return [
        f"Fastest variant and its time in each mode ({means}), plans kept; = joins ties. A program that waits for each "
        "result, as the library does, gets mode latency.",
        *best_table.footnotes(found, places=False),
    ]


def page(results: ResultSet) -> Page | None:
    found = table(results)
    if found.empty:
        return None
    grid = Grid(readable(found), title="Every problem that was measured in several modes")
    return Page([*notes(found), grid], more={"best_by_mode.csv": csv(found)})


TABLE = Table("best_by_mode", "Best algorithm by mode", page, chapter=10, id="modes")
