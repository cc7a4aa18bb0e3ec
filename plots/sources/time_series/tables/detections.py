"""Matched filters: days of data a second, from rows, and what was detected in real noise, from artifacts."""

from __future__ import annotations

from typing import Any

import pandas as pd

from plots import real, style, tidy
from plots.metrics import si_time
from plots.sources.time_series.tables.time_series import grade
from plots.tables.text import csv, markdown

NAME = "detections"
TITLE = "Matched filters"
PART_OF = ("time_series", 1)
COMMAND = "./scripts/reproduce.sh --preset quick --experiments time-series-detections"
NONE = f"Detections were not measured in this set. `{COMMAND}` measures them."
ABOUT = (
    "Matched filter: the score of each template at each shift of a signal, of which the outputs above a threshold are returned. All "
    "that makes them is in the time. A day has 8,640,000 samples, 100 a second, of each channel."
)
REAL_COMMAND = "python3 -m experiments.inputs.seismic"
REAL_NONE = f"No earthquakes were planted in real noise in this set ({{}}). `{REAL_COMMAND}` does."
DAY = 8_640_000  # samples
COLUMNS = [*tidy.PROBLEM, "fields", "variant", "precision", "params", "time_us", "days_per_s"]


def table(results: tidy.ResultSet) -> pd.DataFrame:
    """A line per problem, variant and precision, the fastest first, columns COLUMNS. `days_per_s`: days of all channels."""
    points = results.with_fields
    if points.empty:
        return pd.DataFrame(columns=COLUMNS)
    usual = (points["outcome"] == "passed") & (points["mode"] == "stream") & (points["input"] == "uniform")
    shape = (points["form"] == "n-to-m") & (points["rights"] == 1) & (points["left_rows"] == points["right_rows"])
    detects = points["fields"].str.contains("result=above:") & (points["window"] == "valid")
    best = tidy.best_parameters(points[usual & shape & detects])
    days = best["right_cols"] / DAY
    found = best.assign(time_us=best["compute_us"], days_per_s=1e6 * days / best["compute_us"])
    by = ["right_cols", "left_rows", "left_cols", "lefts", "fields", "time_us"]
    return found.sort_values(by, kind="stable")[COLUMNS].reset_index(drop=True)


def readable(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines as a reader sees them."""
    return pd.DataFrame(
        {
            "Channels": lines["left_rows"],
            "Templates": lines["lefts"],
            "Samples": lines["left_cols"],
            "Signal": lines["right_cols"],
            "Fields": [text.replace("/", ", ") for text in lines["fields"]],
            "Class": [grade(one) for one in lines["precision"]],
            "Variant": [style.label(*one) for one in zip(lines["variant"], lines["precision"])],
            "Time": [si_time(us * 1e-6) for us in lines["time_us"]],
            "Days a second": [f"{one:,.0f}" if one >= 100 else f"{one:.3g}" for one in lines["days_per_s"]],
        }
    )


def planted(results: tidy.ResultSet) -> pd.DataFrame | str:
    """What each variant detected of real-seismic, or why it is not known."""
    data = real.load(results.folder, real.SEISMIC)
    if isinstance(data, str):
        return data
    lines = []
    for dataset in data.datasets():
        truth = dataset["float64"]
        for one in dataset["variants"]:
            lines.append(
                {
                    "Variant": style.label(one["variant"], one["precision"]),
                    "Detections": one["detections"],
                    "float64": truth["detections"],
                    "Differing": one["differ"],
                    "by more than the bound": one["wrong"],
                    "Largest error": f"{one['max_error']:.2g}",
                    "Bound": f"{one['bound']:g}",
                    f"Planted, at least {dataset['required_mad']:g} MAD": one["required"],
                    "of them found": one["found"],
                    "False events": one["false_events"],
                    "False, float64": truth["false_events"],
                    "Time": si_time(float(one["seconds"])),
                }
            )
    return pd.DataFrame(lines)


def about_planted(results: tidy.ResultSet) -> str:
    """What the table `planted` is about, with source and licence; or that it does not exist."""
    data = real.load(results.folder, real.SEISMIC)
    if isinstance(data, str):
        return REAL_NONE.format(data)
    one = data.datasets()[0]
    return (
        f"Planted earthquakes: {one['events']} of falling amplitude in {one['signal'] / one['rate_hz'] / 60:.0f} minutes of real noise, "
        f"{one['templates']} templates of {one['channels']} x {one['samples']} samples that are cut from the earthquake; zncc above "
        f"{one['threshold_mad']:g} MAD (median absolute deviations over the median). An event is false if it touches no planted one. "
        f"Times are of one call with its transfers. {one['note']} Source: {one['source']}. Licence: {one['licence']}. Cite: {one['citation']}."
    )


def files(results: tidy.ResultSet) -> dict[str, str]:
    """The files of the tables; without rows, one that says so."""
    lines, found = table(results), planted(results)
    parts = [f"# {TITLE}\n", f"{NONE if lines.empty else ABOUT}\n"]
    made = {}
    if len(lines):
        parts.append(markdown(readable(lines)))
        made[f"{NAME}.csv"] = csv(lines)
    parts.append(f"{about_planted(results)}\n")
    if not isinstance(found, str):
        parts.append(markdown(found))
        made[f"{NAME}_planted.csv"] = csv(found)
    return {f"{NAME}.md": "\n".join(parts), **made}


def chapter_parts(results: tidy.ResultSet) -> tuple[list[str], list[tuple[str, Any, bool]]]:
    """Notes and tables for the chapter on time series."""
    lines, found = table(results), planted(results)
    tables = []
    if len(lines):
        tables.append(("Matched filters: days of data a second", readable(lines), True))
    if not isinstance(found, str):
        tables.append(("Planted earthquakes in real noise", found, True))
    return [NONE if lines.empty else ABOUT, about_planted(results)], tables
