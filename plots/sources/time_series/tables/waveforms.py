"""ERR on real waveforms beside noise, by variant and precision class (series-waveforms), and what the paper prints."""

import pandas as pd

from plots import real, style, tidy
from plots.sources.time_series.tables.time_series import ORDER, data, grade
from plots.tables.table import MISSING, Grid, Page, Table, known

ABOUT = (
    "ERR on real waveforms: {templates} templates of {samples} samples at {shifts:,} shifts of one signal, in two inputs. Waveforms: one component of a "
    "real earthquake, planted {events} times in real noise. Noise: uniform. ERR is the largest error of an output against float64 after division by the "
    "norms of the template and of the stretch of the signal. Of the largest output: the paper's Eq. 3, the largest error, after division by the largest "
    "output. Lines of outcome published are the paper's Eq. 3 on waveforms that it does not publish, in a unit that it does not name. They compare with "
    "each other alone, and nothing of them was checked here. {credit}"
)
NOISE, WAVEFORMS = "noise", "waveforms"  # inputs of the rows
COMMAND = "python3 -m experiments.inputs.waveforms"
NONE = f"ERR on real waveforms is not known in this set ({{}}). `{COMMAND}` computes it."
COLUMNS = "outcome class method noise waveforms noise_of_largest waveforms_of_largest printed".split()
ERROR = known("{:.2g}")
SHOWN = (
    ("Outcome", "outcome"),
    ("Class", "class"),
    ("Method", "method"),
    ("ERR, noise", NOISE, ERROR),
    ("ERR, waveforms", WAVEFORMS, ERROR),
    (
        "Waveforms over noise",
        f"{WAVEFORMS} {NOISE}",
        lambda one, other: f"{one / other:.2f}x" if other > 0 else MISSING,
    ),
    ("Of the largest output, noise", f"{NOISE}_of_largest", ERROR),
    ("Of the largest output, waveforms", f"{WAVEFORMS}_of_largest", ERROR),
    ("Printed in the paper", "printed", ERROR),
)


def table(results: tidy.ResultSet) -> pd.DataFrame | str:
    """A line a variant and precision, then the paper's rows that have an ERR, columns COLUMNS; or why there is none."""
    found = real.load(results.folder, real.WAVEFORMS)
    if isinstance(found, str):
        return found
    lines = []
    for (variant, precision), own in found.rows.groupby(["variant", "precision"], sort=True):
        by = own.set_index("input")
        cells = {name: by["error"].get(name) for name in (NOISE, WAVEFORMS)}
        cells |= {f"{name}_of_largest": by["of_largest"].get(name) for name in (NOISE, WAVEFORMS)}
        place = {"outcome": "passed", "class": grade(precision), "method": style.label(variant, precision)}
        lines.append({**place, **cells})
    lines.sort(key=lambda one: ORDER.index(one["class"]) if one["class"] in ORDER else len(ORDER))
    lines += [
        {
            "outcome": "published",
            "class": one["class"],
            "method": f"{one['method'].partition(';')[0]}, {one['device']}",
            "printed": one["error"],
        }
        for one in data()["published"]
        if "error" in one
    ]
    return pd.DataFrame(lines, columns=COLUMNS)


def page(results: tidy.ResultSet) -> Page:
    """A part of the chapter on time series, and a file where there is data."""
    found, lines = real.load(results.folder, real.WAVEFORMS), table(results)
    if isinstance(found, str) or isinstance(lines, str):
        return Page(notes=[NONE.format(lines)])
    (dataset,) = found.datasets()
    sizes = {name: found.summary[name] for name in ("templates", "samples", "shifts")}
    about = ABOUT.format(**sizes, events=dataset["events"], credit=real.credit(dataset))
    grid = Grid(lines, SHOWN, TABLE.title, open=False, file=TABLE.name)
    return Page([about, grid], [about], [grid])


TABLE = Table("waveforms", "ERR on real waveforms and on noise", page, COMMAND, part_of=("time_series", 3))
