"""The table of best times of machines: each machine is ranked within itself alone."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from plots import style, tidy
from plots.machine_figures import roof_shares
from plots.machine_sets import Machine
from plots.tables.table import MISSING, duration
from plots.tables.text import csv, markdown

ABOUT = (
    "Each set is compared with its own baseline and ranked within itself alone. Sets that are marked `published` were imported from the "
    "results that the authors of the JPDC paper published (results/published/README.md): no output of theirs was checked here."
)
TITLE = (
    "The fastest variant of each machine and its time. A column has the variants that its own set has: that of a published set has the "
    "paper's algorithms alone, and nobody verified it here, so its times are no rivals of the others."
)


def fastest(line: pd.Series) -> str:
    """`12.3 µs, split-row` of the faster of definition and FFT in a line of `cells`; MISSING without a time."""
    found = [(line[f"{kind}_us"], line[kind]) for kind in ("definition", "fft") if not math.isnan(line[f"{kind}_us"])]
    if not found:
        return MISSING
    time, variant = min(found)
    return f"{duration(time)}, {style.label(variant)}"


def lines(machines: Sequence[Machine], form: str, counts: str) -> pd.DataFrame:
    """A line per size at which two machines have a time (one, if only one has the form), a column per machine."""
    columns = {}
    for one in machines:
        own = one.cells[(one.cells["form"] == form) & (one.cells["counts"] == counts)].sort_values("side")
        if len(own):
            columns[one.label] = pd.Series([fastest(line) for _, line in own.iterrows()], own["size"])
    if not columns:
        return pd.DataFrame()
    table = pd.DataFrame(columns)
    table = table.loc[table.notna().sum(axis=1) >= min(2, len(columns))]
    table = table.loc[sorted(table.index, key=lambda size: int(str(size).partition("x")[0]))]
    return table.fillna(MISSING).rename_axis("Size").reset_index()


def page(machines: Sequence[Machine], places: Mapping[str, str]) -> str:
    """The chapter of the page: a table per form."""
    text = ["## Best times", TITLE]
    for form, counts in places.items():
        table = lines(machines, form, counts)
        if len(table):
            text += [f"{form}, {counts}:", markdown(table).rstrip("\n")]
    return "\n\n".join(text) + "\n"


def overview(machines: Sequence[Machine], places: Mapping[str, str]) -> pd.DataFrame:
    """For a terminal: a line per machine, a column per form at the largest size that the first machine shares with another."""
    shown: dict[str, list[str]] = {"Machine": [one.label for one in machines]}
    for form, counts in places.items():
        table = lines(machines, form, counts)
        table = table[table[machines[0].label] != MISSING] if machines[0].label in table else table.iloc[:0]
        if len(table):
            last = table.iloc[-1]
            shown[f"{form} {counts} {last['Size']}"] = [str(last.get(one.label, MISSING)) for one in machines]
    return pd.DataFrame(shown)


def cells_csv(machines: Sequence[Machine]) -> str:
    """All numbers of the figures: a line per machine and problem."""
    frames = []
    for one in machines:
        cells = roof_shares(one).assign(machine=one.label, set=one.key, verified="no" if one.hollow else "yes")
        frames.append(tidy.ordered(cells, ["form", "pairs", "lefts", "side"]))
    found = pd.concat(frames, ignore_index=True)
    first = ["set", "machine", "verified"]
    return csv(found[[*first, *(name for name in found if name not in [*first, "side"])]])
