"""Matched filters: days of data a second, from rows, and what was detected in real noise, from artifacts."""

import pandas as pd

from plots import real, style, tidy
from plots.metrics import si_time
from plots.sources.time_series.tables.time_series import SIZES, along_one_signal, grade
from plots.tables.table import FIELDS, TIME, VARIANT, Grid, Page, Table, rate

ABOUT = (
    "Matched filter: the score of each template at each shift of a signal, of which the outputs above a threshold are returned. All "
    "that makes them is in the time. A day has 8,640,000 samples, 100 a second, of each channel."
)
REAL_COMMAND = "python3 -m experiments.inputs.seismic"
REAL_NONE = f"No earthquakes were planted in real noise in this set ({{}}). `{REAL_COMMAND}` does."
DAY = 8_640_000  # samples
COLUMNS = [*tidy.PROBLEM, "fields", "variant", "precision", "params", "time_us", "days_per_s"]
SHOWN = (*(*SIZES, FIELDS), ("Class", "precision", grade), *(VARIANT, TIME), ("Days a second", "days_per_s", rate))


def table(results: tidy.ResultSet) -> pd.DataFrame:
    """A line per problem, variant and precision, the fastest first, columns COLUMNS. `days_per_s`: days of all channels."""
    points = along_one_signal(results.with_fields)
    if points.empty:
        return pd.DataFrame(columns=COLUMNS)
    best = tidy.best_parameters(points[points["fields"].str.contains("result=above:")])
    days = best["right_cols"] / DAY
    found = best.assign(time_us=best["compute_us"], days_per_s=1e6 * days / best["compute_us"])
    by = ["right_cols", "left_rows", "left_cols", "lefts", "fields", "time_us"]
    return found.sort_values(by, kind="stable")[COLUMNS].reset_index(drop=True)


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


def page(results: tidy.ResultSet) -> Page:
    lines, found = table(results), planted(results)
    none = f"Detections were not measured in this set. `{TABLE.command}` measures them."
    own = Grid(lines, SHOWN, "Matched filters: days of data a second", file="detections")
    real_noise = Grid(
        pd.DataFrame() if isinstance(found, str) else found,
        title="Planted earthquakes in real noise",
        file="detections_planted",
    )
    return Page([none if lines.empty else ABOUT, own, about_planted(results), real_noise])


TABLE = Table(
    "detections",
    "Matched filters",
    page,
    "./scripts/reproduce.sh --preset quick --experiments time-series-detections",
    part_of=("time_series", 1),
)
