"""The application of the first paper, 50 electron backscatter patterns of 86 tiles each: the paper's time, the fastest variant of
each family, and results that are no surfaces."""

from functools import lru_cache
from typing import Any

import pandas as pd

from experiments import folders
from plots import real, style
from plots.metrics import si_time
from plots.tables import results as outputs
from plots.tables.table import TIME, Grid, Page, Table
from plots.tables.table import readable as read
from plots.tables.text import csv
from plots.tidy import USUAL, ResultSet, joined, passed

ABOUT = (
    "86 left and 4300 right matrices of 96x96, calls back to back. Section 5.6 of the paper prints 79 ms on an A100, which is another GPU; its times as "
    "published were not checked here. Of each family the fastest variant that makes surfaces stands here, then what makes peaks of the same "
    "pairs. A circular peak is another number near the border of a tile: shifts wrap around."
)
COLUMNS = ["family", "variant", "params", "output", "time_us", "speedup"]
SHOWN = (
    ("Family", "family"),
    ("Variant", "variant", style.label),
    ("Output", "output"),
    TIME,
    ("Speed-up over the paper", "speedup", "{:.3g}x".format),
)


@lru_cache(maxsize=1)
def paper() -> dict[str, Any]:
    """The problem and the paper's time: `application` of experiments/jpdc/baselines.toml."""
    return dict(folders.part("jpdc", "baselines")["application"])


def table(results: ResultSet) -> pd.DataFrame:
    """A line per family and per output that is no plain surface, the slowest first: columns COLUMNS. `speedup`: the time that
    the paper prints over this one."""
    lines = joined((_of(results.points, surface=True), _of(results.with_fields, surface=False)))
    if lines.empty:
        return pd.DataFrame(columns=COLUMNS)
    lines = lines.sort_values("compute_us", kind="stable").drop_duplicates(["key", "output"])
    lines = lines.assign(time_us=lines["compute_us"], speedup=paper()["time_us"] / lines["compute_us"])
    return lines.sort_values("time_us", ascending=False, kind="stable")[COLUMNS].reset_index(drop=True)


def _of(points: pd.DataFrame, *, surface: bool) -> pd.DataFrame:
    """Verified points of the problem, with `output` and `key`: of a plain surface the family, else nothing."""
    own = passed(points, **{key: paper()[key] for key in ("form", "counts", "size")}, **USUAL)
    if own.empty:
        return own
    own = own.assign(output=[outputs.output_of(*one) for one in zip(own["fields"], own["source_hash"])])
    own = own[(own["output"] == outputs.PLAIN) if surface else (own["output"] != "")]
    return own.assign(key=own["family"] if surface else "")


def readable(lines: pd.DataFrame) -> pd.DataFrame:
    shown = read(lines, SHOWN)
    printed = ["the paper", paper()["method"], outputs.PLAIN, si_time(paper()["time_us"] * 1e-6), "1x"]
    return pd.concat([pd.DataFrame([printed], columns=list(shown.columns)), shown], ignore_index=True)


def notes(results: ResultSet, lines: pd.DataFrame) -> list[str]:
    """What the table is, which peaks it lacks, and how long the real patterns took with their transfers."""
    seen = set(lines["output"])
    gone = [one for one in outputs.OUTPUTS if one not in seen]
    found = [
        ABOUT,
        f"Not measured: {'; '.join(gone)}. `{outputs.TABLE.command}` measures them, on a GPU." if gone else "",
    ]
    data = real.load(results.folder, real.EBSD)
    for dataset in data.datasets() if isinstance(data, real.RealData) else []:
        for one in dataset.get("variants", []):
            if one.get("result") == "peak" and dataset.get("tiles") == 86:
                found.append(
                    f"The patterns themselves ({dataset['dataset']}): {style.label(one['variant'])} took {si_time(one['seconds'])} for the peaks, "
                    f"with transfers; median error {one['error_px']['median']:.3g} pixel."
                )
    return [*filter(None, found)]


def page(results: ResultSet) -> Page | None:
    lines = table(results)
    if lines.empty:
        return None
    grid = Grid(readable(lines), title=f"{TABLE.title}: 86-to-4300, 96x96")
    return Page([*notes(results, lines), grid], more={"application.csv": csv(lines)})


TABLE = Table(
    "application",
    "The application of the first paper",
    page,
    "./scripts/reproduce.sh --preset quick --experiments n-to-mn,results",
    "The problem of the application, 86 left and 4300 right matrices of 96x96, was not measured in this set. `{command}` measures it.",
    part_of=("results", 1),
)
