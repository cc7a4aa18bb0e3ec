"""Template matching by other libraries beside ours, all of one run (experiments.compare.rivals)."""

from __future__ import annotations

import pandas as pd

from experiments.compare import rivals
from plots import style
from plots.metrics import si_time
from plots.tidy import ResultSet

TITLE = "Other libraries in the same run"
NONE = "Other libraries were not measured in this set. `python3 -m experiments.compare.rivals` does that."
ABOUT = (
    "Other libraries and what `auto` takes of ours, in one run on one machine: a photograph with noise, templates cut from it, scores at every shift. Times are of the computation "
    "from data on the device, without transfers: libraries are called from Python, ours from C++ by xcorr-bench, on uniform random numbers. A ratio is to ours on the same device. The error is the largest difference from float64; one above 1e-3 is marked."
)


def table(results: ResultSet) -> pd.DataFrame:
    """A line per problem and contestant, the fastest of a problem first; empty without the run."""
    found = rivals.stored(results.folder)
    if not found:
        return pd.DataFrame()
    rows = pd.DataFrame(found["rows"])
    by = ["template", "frame", "templates"]
    rows = rows.assign(_place=rows.groupby(by, sort=False).ngroup()).sort_values(["_place", "seconds"], kind="stable")
    ours = rows[rows["name"] == "xcorr-bench"].groupby(["_place", "device"])["seconds"].min()
    same = [ours.get(place, float("nan")) for place in zip(rows["_place"], rows["device"])]
    return pd.DataFrame(
        {
            "Templates": [f"{count} x {template}" for count, template in zip(rows["templates"], rows["template"])],
            "Frame": rows["frame"],
            "Implementation": [
                style.label(variant) if name == "xcorr-bench" else f"{name} {found['versions'].get(name, '')}".strip()
                for name, variant in zip(rows["name"], rows["variant"])
            ],
            "Device": rows["device"].str.upper(),
            "Time": [si_time(one) for one in rows["seconds"]],
            "Over ours": [f"{one:.3g}" for one in rows["seconds"] / same],
            "Error": [
                f"{one:.1e}" + ("" if outcome == "passed" else ", incorrect")
                for one, outcome in zip(rows["max_error"], rows["outcome"])
            ],
        }
    ).reset_index(drop=True)


def notes(results: ResultSet) -> list[str]:
    """What the table is, and what was left out of it."""
    found = rivals.stored(results.folder)
    if not found:
        return [NONE]
    return [ABOUT, *(f"Left out: {name}: {why}." for name, why in found["skipped"].items())]
