"""Autocorrelation of images: time, time with transfers and frames a second of each implementation, by the largest shift R."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from plots import style
from plots.metrics import si_time
from plots.tables.text import csv, markdown
from plots.tidy import PROBLEM, ResultSet
from xcorr.variants import assignments

NAME = "autocorrelation"
TITLE = "Autocorrelation of images"
COMMAND = "./scripts/reproduce.sh --preset quick --experiments autocorrelation"
NONE = f"No autocorrelation was measured in this set. `{COMMAND}` measures them."
ABOUT = (
    "An image against itself at the shifts sy:0..R,sx:-R..R, half a plane; of the other half every output is equal to one of these. The total time is "
    "plan, upload, computation and download, as the ISS paper counts the time of its program; a variant on a CPU has no transfers. TFLOP/s count the useful "
    "work of the window, two operations a product. On a CPU each variant stands once with one thread and once with all."
)
HALF, WHOLE = "half", "whole"  # planes
WINDOW = re.compile(r"sy:(?P<low>-?\d+)\.\.(?P<sy>\d+),sx:-(?P<sx>\d+)\.\.(?P<right>\d+)")
COLUMNS = [*PROBLEM, "plane", "radius", "variant", "threads", "params", "time_us", "total_us", "frames_per_s", "tflops"]


def plane_of(window: str) -> tuple[str, int]:
    """(HALF or WHOLE, R) of a window of all shifts up to R; ("", 0) of any other."""
    found = WINDOW.fullmatch(window)
    if not found or not found["sy"] == found["sx"] == found["right"]:
        return "", 0
    plane = {"0": HALF, f"-{found['sy']}": WHOLE}.get(found["low"], "")
    return (plane, int(found["sy"])) if plane else ("", 0)


def threads_of(backend: str, params: str) -> str:
    """`1` or `all` of a point on a CPU; empty of one on a GPU."""
    return assignments(params).get("threads", "1") if backend == "cpu" else ""


def label(variant: str, threads: str) -> str:
    """A contender as figures and tables call it."""
    return style.label(variant) + {"1": ", one thread", "all": ", all threads"}.get(threads, "")


def every_point(results: ResultSet) -> pd.DataFrame:
    """Verified points of images against themselves in the usual mode, with `plane`, `radius`, `threads`, `time_us`,
    `total_us`, `frames_per_s` (of the total time) and `tflops`."""
    found = results.with_fields
    if found.empty:
        return found
    usual = (found["outcome"] == "passed") & (found["mode"] == "stream") & (found["input"] == "uniform")
    own = found[usual & (found["fields"] == "same=yes") & (found["precision"] == "fp32")]
    planes = [plane_of(window) for window in own["window"]]
    total = own["compute_us"] + own[["plan_us", "upload_us", "download_us"]].fillna(0).sum(axis=1)
    own = own.assign(
        plane=[plane for plane, _ in planes],
        radius=[radius for _, radius in planes],
        threads=[threads_of(*one) for one in zip(own["backend"], own["params"])],
        time_us=own["compute_us"],
        total_us=total,
        frames_per_s=1e6 * own["pairs"] / total,
        tflops=2e-6 * own["fmas"] / own["compute_us"],
    )
    return own[own["plane"] != ""]


def points(results: ResultSet) -> pd.DataFrame:
    """The fastest of every_point of each variant and number of threads on each problem."""
    found = every_point(results)
    if found.empty:
        return found
    by = [*PROBLEM, "variant", "threads"]
    return found.sort_values("time_us", kind="stable").drop_duplicates(by)


def table(results: ResultSet) -> pd.DataFrame:
    """A line per problem, variant and number of threads, the fastest of a problem first: columns COLUMNS."""
    found = points(results)
    if found.empty:
        return pd.DataFrame(columns=COLUMNS)
    by = ["left_rows", "left_cols", "lefts", "plane", "radius", "time_us"]
    return found.sort_values(by, kind="stable")[COLUMNS].reset_index(drop=True)


def readable(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines as a reader sees them."""
    images = [
        f"{count} x {rows}x{cols}" if count > 1 else f"{rows}x{cols}"
        for count, rows, cols in lines[["lefts", "left_rows", "left_cols"]].astype(int).to_numpy().tolist()
    ]
    return pd.DataFrame(
        {
            "Image": images,
            "R": [
                f"{r}" if plane == HALF else f"{r}, whole plane" for r, plane in zip(lines["radius"], lines["plane"])
            ],
            "Variant": [label(*one) for one in zip(lines["variant"], lines["threads"])],
            "Parameters": [text.replace(";", ", ") or "–" for text in lines["params"]],
            "Time": [si_time(us * 1e-6) for us in lines["time_us"]],
            "Total": [si_time(us * 1e-6) for us in lines["total_us"]],
            "Frames a second": [f"{one:,.0f}" if one >= 100 else f"{one:.3g}" for one in lines["frames_per_s"]],
            "TFLOP/s": [f"{one:.3g}" for one in lines["tflops"]],
        }
    )


def files(results: ResultSet) -> dict[str, str]:
    """The files of the table; without rows, one that says so."""
    lines = table(results)
    if lines.empty:
        return {f"{NAME}.md": f"# {TITLE}\n\n{NONE}\n"}
    return {f"{NAME}.md": f"# {TITLE}\n\n{ABOUT}\n\n{markdown(readable(lines))}", f"{NAME}.csv": csv(lines)}


def chapter(results: ResultSet) -> list[dict[str, Any]]:
    """The chapter of the report (see plots.report.front)."""
    lines = table(results)
    notes = [NONE] if lines.empty else [ABOUT]
    tables = [] if lines.empty else [("Time by largest shift", readable(lines), True)]
    return [{"id": NAME, "title": TITLE, "notes": notes, "tables": tables}]
