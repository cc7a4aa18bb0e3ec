"""Other libraries on problems of ours, verified and timed in one block (experiments.compare.rivals)."""

from typing import Any

import pandas as pd

from experiments.compare import rivals
from plots import style
from plots.tables.table import Grid, Page, Table, duration, known
from plots.tidy import ResultSet

TITLE = "Other libraries"
ABOUT = (
    "Other libraries and the variant that `auto` takes, on the same device in one block. Times are of the computation with data on the device; the copies to and from it stand beside. "
    "Libraries are called from Python, ours from C++ in mode stream. A ratio is to ours. Every result was compared with float64: the error of a score is absolute, that of a product over the norms of both sides; a result that is wrong has no time."
)
KINDS = {"plain": "Products", "scores": "Scores", "peaks": "Peaks", "series": "Time series"}
RATIO, ERROR = known("{:.3g}"), known("{:.1e}")


def _name(name: str, version: str, variant: str) -> str:
    return style.label(variant) if name == rivals.OURS else f"{name} {version}".strip()


SHOWN = (
    ("Problem", "problem"),
    ("Implementation", "name version variant", _name),
    ("Settings", "settings"),
    ("Time", "compute_us", duration),
    ("Over ours", "ratio", RATIO),
    ("In", "upload_us", duration),
    ("Out", "download_us", duration),
    ("Error", "max_error", ERROR),
    ("Outcome", "outcome reason", lambda outcome, reason: ": ".join(filter(None, [outcome, reason]))),
)
NUMBERS = ("compute_us", "upload_us", "download_us", "max_error")


def lines(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """A line per problem and implementation, the fastest of a problem first; none where a library does not compute it."""
    frame = pd.DataFrame([row for row in rows if row["outcome"] != "not_supported"])
    frame = frame.reindex(columns=[*frame.columns, *(name for name in NUMBERS if name not in frame)])
    own = frame[frame["name"] == rivals.OURS].set_index("problem")["compute_us"]
    frame = frame.assign(ratio=frame["compute_us"] / frame["problem"].map(own))
    place = frame.groupby("problem", sort=False).ngroup()
    return frame.assign(_place=place).sort_values(["_place", "compute_us"], kind="stable").drop(columns="_place")


def page(results: ResultSet) -> Page | None:
    found = rivals.stored(results.folder)
    if not found:
        return None
    every = lines(found["rows"])
    notes = [ABOUT, f"Timed by {found['timed_by']}, medians of {found['rounds']} rounds."]
    absent = [f"{name} ({one['install']})" for name, one in found["absent"].items()]
    if absent:
        notes.append(f"Not measured, since they could not be used there: {', '.join(absent)}.")
    grids = [
        Grid(every[every["kind"] == kind], SHOWN, f"{TITLE}: {title}", open=False) for kind, title in KINDS.items()
    ]
    return Page([*notes, *grids])


TABLE = Table("other_libraries", TITLE, page, chapter=95)
