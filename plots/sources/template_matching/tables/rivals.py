"""Template matching by other libraries beside ours, all of one run, in sets that have it.

No program measures it again: experiments.compare.rivals measures other libraries on more problems.
"""

from typing import Any

import pandas as pd

from experiments.compare import artifacts
from plots import style
from plots.metrics import si_time
from plots.tidy import ResultSet

TITLE = "Other libraries in the same run"
NONE = "Other libraries were not measured in this set."
ABOUT = (
    "Other libraries and what `auto` takes of ours, in one run on one machine: a photograph with noise, templates cut from it, scores at every shift. Times are of the computation "
    "from data on the device, without transfers: libraries are called from Python, ours from C++ by xcorr-bench, on uniform random numbers. A ratio is to ours on the same device. The error is the largest difference from float64; one above 1e-3 is marked."
)


def _stored(results: ResultSet) -> dict[str, Any] | None:
    return artifacts.stored(results.folder, "template-rivals", 1, "restore it from git")


def _implementation(name: str, version: str, variant: str) -> str:
    return style.label(variant) if name == "xcorr-bench" else f"{name} {version}".strip()


SHOWN = (
    ("Templates", "templates template", "{} x {}".format),
    ("Frame", "frame"),
    ("Implementation", "name version variant", _implementation),
    ("Device", "device", str.upper),
    ("Time", "seconds", si_time),
    ("Over ours", "ratio", "{:.3g}".format),
    ("Error", "max_error outcome", lambda error, said: f"{error:.1e}" + ("" if said == "passed" else ", incorrect")),
)


def table(results: ResultSet) -> pd.DataFrame:
    """A line per problem and contestant, the fastest of a problem first; empty without the run."""
    found = _stored(results)
    if not found:
        return pd.DataFrame()
    rows = pd.DataFrame(found["rows"])
    by = ["template", "frame", "templates"]
    rows = rows.assign(_place=rows.groupby(by, sort=False).ngroup()).sort_values(["_place", "seconds"], kind="stable")
    ours = rows[rows["name"] == "xcorr-bench"].groupby(["_place", "device"])["seconds"].min()
    same = [ours.get(place, float("nan")) for place in zip(rows["_place"], rows["device"])]
    return rows.assign(ratio=rows["seconds"] / same, version=[found["versions"].get(one, "") for one in rows["name"]])


def notes(results: ResultSet) -> list[str]:
    found = _stored(results)
    if not found:
        return [NONE]
    return [ABOUT, *(f"Left out: {name}: {why}." for name, why in found["skipped"].items())]
