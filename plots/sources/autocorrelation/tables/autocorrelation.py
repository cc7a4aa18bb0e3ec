"""Autocorrelation of images: time, time with transfers and frames a second of each implementation, by the largest shift R."""

import re
from typing import Any

import pandas as pd

from plots import real
from plots.tables.table import PARAMETERS, TIME, Grid, Page, Table, contender, duration, rate, threads_of
from plots.tidy import PROBLEM, ResultSet, passed

ABOUT = (
    "An image against itself at the shifts sy:0..R,sx:-R..R, half a plane; of the other half every output is equal to one of these. The total time is "
    "plan, upload, computation and download, as the ISS paper counts the time of its program, of the parameters for which it is shortest; a variant on a CPU has no transfers. TFLOP/s count the useful "
    "work of the window, two operations a product. On a CPU each variant stands once with one thread and once with all."
)
ERRORS = (
    "R_max is the first maximum of C1D after its first trough. Images whose spectrum is a ring have a known one, 1.117 wavelengths. Errors are relative, their "
    "mean and standard deviation over images of other seeds: from C1D with the mean of the image removed and raw, as Eq. 1 is printed, and from the peak "
    "of the spectrum."
)
NO_ERRORS = "R_max was not compared with images of known length in this set. `python3 -m experiments.inputs.autocorrelation` does that."
HALF, WHOLE = "half", "whole"  # planes
WINDOW = re.compile(r"sy:(?P<low>-?\d+)\.\.(?P<sy>\d+),sx:-(?P<sx>\d+)\.\.(?P<right>\d+)")
SHOWN_THREADS = ("", "1", "all")  # of a GPU, and of a CPU; the figure of threads has the others
COLUMNS = [*PROBLEM, "plane", "radius", "variant", "threads", "params", "time_us", "total_us", "frames_per_s", "tflops"]


def plane_of(window: str) -> tuple[str, int]:
    """(HALF or WHOLE, R) of a window of all shifts up to R; ("", 0) of any other."""
    found = WINDOW.fullmatch(window)
    if not found or not found["sy"] == found["sx"] == found["right"]:
        return "", 0
    plane = {"0": HALF, f"-{found['sy']}": WHOLE}.get(found["low"], "")
    return (plane, int(found["sy"])) if plane else ("", 0)


def every_point(results: ResultSet) -> pd.DataFrame:
    """Verified points of images against themselves in the usual mode, with `plane`, `radius`, `threads`, `time_us`,
    `total_us`, `frames_per_s` (of the total time) and `tflops`."""
    own = passed(results.with_fields, mode="stream", input="uniform", fields="same=yes", precision="fp32")
    if own.empty:
        return own
    planes, radii = zip(*map(plane_of, own["window"]))
    total = own["compute_us"] + own[["plan_us", "upload_us", "download_us"]].fillna(0).sum(axis=1)
    own = own.assign(
        plane=planes,
        radius=radii,
        threads=[threads_of(*one) for one in zip(own["backend"], own["params"])],
        time_us=own["compute_us"],
        total_us=total,
        frames_per_s=1e6 * own["pairs"] / total,
        tflops=2e-6 * own["fmas"] / own["compute_us"],
    )
    return own[own["plane"] != ""]


def points(results: ResultSet, time: str = "time_us") -> pd.DataFrame:
    """Of every_point the one with the least `time` of each variant with one thread and with all on each problem. `total_us` and `frames_per_s` are of the parameters with
    the shortest total time: those with the shortest time may take long to plan."""
    found = every_point(results)
    if found.empty:
        return found
    found = found[found["threads"].isin(SHOWN_THREADS)]
    by = [*PROBLEM, "variant", "threads"]
    least, of_problem = found[time], found.groupby(by, dropna=False)
    found = found.assign(
        total_us=of_problem["total_us"].transform("min"), frames_per_s=of_problem["frames_per_s"].transform("max")
    )
    return (
        found.assign(_time=least)
        .sort_values(["_time", "time_us"], kind="stable")
        .drop_duplicates(by)
        .drop(columns="_time")
    )


def table(results: ResultSet) -> pd.DataFrame:
    """A line per problem, variant and number of threads, the fastest of a problem first: columns COLUMNS."""
    by = ["left_rows", "left_cols", "lefts", "plane", "radius", "time_us"]
    return points(results).reindex(columns=COLUMNS).sort_values(by, kind="stable").reset_index(drop=True)


def _image(count: int, rows: int, cols: int) -> str:
    return f"{count} x {rows}x{cols}" if count > 1 else f"{rows}x{cols}"


SHOWN = (
    ("Image", "lefts left_rows left_cols", _image),
    ("R", "radius plane", lambda radius, plane: f"{radius}" if plane == HALF else f"{radius}, whole plane"),
    ("Variant", "variant threads", contender),
    *(PARAMETERS, TIME),
    ("Total", "total_us", duration),
    ("Frames a second", "frames_per_s", rate),
    ("TFLOP/s", "tflops", lambda number: rate(number, 1000)),
)


def by_radius(lines: pd.DataFrame) -> pd.DataFrame:
    """Times of half planes of one image, of the size that was measured at most R: a line a contender, the fastest at the largest R
    last, a column each R. Empty where no size has two."""
    own = lines[(lines["lefts"] == 1) & (lines["plane"] == HALF)]
    counts = own.groupby(["left_rows", "left_cols"])["radius"].nunique()
    if counts.empty or counts.max() < 2:
        return pd.DataFrame()
    rows, cols = counts.idxmax()
    own = own[(own["left_rows"] == rows) & (own["left_cols"] == cols)]
    names = [contender(*one) for one in zip(own["variant"], own["threads"])]
    times = own.assign(name=names).pivot(index="name", columns="radius", values="time_us")
    times = times.sort_values(list(times.columns[::-1]), ascending=False, kind="stable")
    shown = times.apply(lambda column: [duration(us) for us in column])
    shown.columns = [f"R = {radius}" for radius in times.columns]
    return shown.rename_axis(f"{rows}x{cols}").reset_index()


def errors(results: ResultSet) -> pd.DataFrame:
    """Of images whose length is known, by wavelength: how many, and mean and SD of the relative error in percent of R_max with
    the mean removed and raw, and of the length from the spectrum. `found`: images that have an R_max. Empty where not run."""
    data = real.load(results.folder, real.AUTOCORRELATION)
    if isinstance(data, str):
        return pd.DataFrame()
    rows = data.rows[data.rows["case"] == "truth"]
    lines = []
    kinds = (("removed", "removed", "r_max"), ("raw", "raw", "r_max"), ("spectral", "removed", "spectral"))
    for wavelength, own in rows.groupby("wavelength"):
        line: dict[str, Any] = {"wavelength": float(wavelength)}
        for name, mean, column in kinds:
            some = own[own["mean"] == mean]
            error = 100 * (some[column] / some["known"] - 1)
            line |= {"images": len(some), f"{name}_found": int(error.notna().sum()), f"{name}_mean": error.mean()}
            line[f"{name}_sd"] = error.std(ddof=1)
        lines.append(line)
    return pd.DataFrame(lines)


def readable_errors(lines: pd.DataFrame) -> pd.DataFrame:
    """The errors as a reader sees them: mean and SD in percent, and how many images have a value, where not all do."""
    if lines.empty:
        return lines

    def text(line: pd.Series, name: str) -> str:
        found, count = int(line[f"{name}_found"]), int(line["images"])
        if not found:
            return "none found"
        spread = f" (SD {line[f'{name}_sd']:.2f})" if found > 1 else ""
        return f"{line[f'{name}_mean']:+.2f}{spread}" + (f", {found} of {count}" if found < count else "")

    columns = {"removed": "C1D, mean removed [%]", "raw": "C1D, raw [%]", "spectral": "spectrum [%]"}
    shown = {title: [text(line, name) for _, line in lines.iterrows()] for name, title in columns.items()}
    wavelengths = [f"{one:g}" for one in lines["wavelength"]]
    return pd.DataFrame({"Wavelength [pixels]": wavelengths, "Images": lines["images"].astype(int), **shown})


def page(results: ResultSet) -> Page:
    lines, known = table(results), readable_errors(errors(results))
    every = Grid(lines, SHOWN, "Every problem: time, total time, frames a second", open=False, file=TABLE.name)
    short = Grid(by_radius(lines), title="Time of half a plane by largest shift")
    about, found = TABLE.nothing if lines.empty else ABOUT, Grid(known, title="Errors of R_max")
    more: list[str | Grid] = [] if lines.empty or known.empty else [ERRORS, found]
    return Page([about, every, *more], [about, NO_ERRORS if known.empty else ERRORS], [short, every, found])


TABLE = Table(
    "autocorrelation",
    "Autocorrelation of images",
    page,
    "./scripts/reproduce.sh --preset quick --experiments autocorrelation",
    "No autocorrelation was measured in this set. `{command}` measures them.",
    chapter=50,
)
