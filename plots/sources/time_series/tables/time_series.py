"""Time series: Table 2 of the tensor-core paper for this machine, and the fastest variant by precision class.

FP32 grade is fp32, and 3xtf32, which is held to the bounds of fp32. It never shares a line with tf32 or fp16.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from experiments import folders
from plots import ceilings, noise, style
from plots.tables.table import MISSING, PARAMETERS, TIME, Grid, Page, Table, duration, known
from plots.tidy import PROBLEM, ResultSet, best_parameters, ordered, passed, select
from xcorr.native.variants import is_transform

ABOUT = (
    "Templates along one signal: form n-to-m with one right matrix, window valid. TFLOP/s count useful work, two operations a product. ERR is the "
    "largest error of an output against float64 after division by the norms of the template and of the stretch of the signal. Building is the "
    "part of the time in which an operand is made from the inputs. A transform needs less work than is counted, so it has no share of a "
    "peak. Lines of outcome published are the paper's; nothing of them was checked here."
)
GRADE = "FP32 grade"
GRADES = {"fp32": GRADE, "3xtf32": GRADE}  # class of a precision; every other precision is its own
ORDER = (GRADE, "tf32", "bf16x3", "fp16", "fp64")
OWN = "outcome class method device params time_us build_us tflops nominal measured error".split()
BEST = [*PROBLEM, "class", "best", "params", "time_us", "tied_with", "runner_up", "margin", "error", "contenders"]


def grade(precision: str) -> str:
    """The class of a precision, of which a table has a line."""
    return GRADES.get(precision, precision)


@lru_cache(maxsize=1)
def data() -> dict[str, Any]:
    return folders.part("time_series", "baselines")


def points(results: ResultSet) -> pd.DataFrame:
    """The fastest of every_point of each variant and precision."""
    return best_parameters(every_point(results))


def along_one_signal(points: pd.DataFrame) -> pd.DataFrame:
    """The verified points of templates along one signal in the usual mode."""
    kind = {"form": "n-to-m", "rights": 1, "window": "valid"}
    found = passed(points, mode="stream", input="uniform", **kind)
    return found[found["left_rows"] == found["right_rows"]] if len(found) else found


def _place(grades: pd.Series) -> pd.Series:
    """Of each class its place in ORDER."""
    return grades.map(lambda one: ORDER.index(one) if one in ORDER else len(ORDER))


def every_point(results: ResultSet) -> pd.DataFrame:
    """Verified points of time series in the usual mode, with their `class`, the useful `tflops`, and `samples`,
    `templates` and `shifts` of the problem."""
    own = along_one_signal(results.feeding(TABLE.name))
    return own.assign(
        **{
            "class": [grade(one) for one in own["precision"]],
            "samples": own["left_cols"],
            "templates": own["lefts"],
            "shifts": own["right_cols"] - own["left_cols"] + 1,
            "tflops": 2e-6 * own["fmas"] / own["compute_us"],
        }
    )


def headline(found: pd.DataFrame) -> pd.DataFrame:
    """Those of the problem of Table 2, by class and time."""
    found = select(found, **data()["headline"])
    return ordered(found, ["_place", "compute_us"], _place=_place(found["class"]))


def nominal(key: str) -> dict[str, float]:
    """Nominal peaks of machine `key` by precision in FLOP/s; empty where they are not known."""
    known = [peaks for start, peaks in data()["nominal"].items() if key.startswith(start)]
    peaks = dict(known[0]) if known else {}
    if "tf32" in peaks:
        peaks["3xtf32"] = peaks["tf32"]
    return peaks


def measured(folder: Path) -> dict[str, float]:
    """Measured ceilings by precision in FLOP/s; empty without them."""
    found = ceilings.load(folder)
    if isinstance(found, str):
        return {}
    peaks = {"fp32": found.fp32_fma or found.fp32_product, "tf32": found.tf32_product, "3xtf32": found.tf32_product}
    return {name: peak for name, peak in peaks.items() if peak}


def _share_of(peaks: dict[str, float], point: pd.Series) -> float:
    """Share of a peak, NaN where it is not known and of a transform, whose rate by the definition's work says nothing of the hardware."""
    unknown = float("nan")
    return (
        unknown if is_transform(point["variant"]) else 1e12 * point["tflops"] / peaks.get(point["precision"], unknown)
    )


def table2(results: ResultSet) -> pd.DataFrame:
    """Table 2: a line per variant and precision here, then the paper's rows; columns OWN. Shares are of 1."""
    nominals, limits = nominal(results.key), measured(results.folder)
    lines = [
        {
            "outcome": "passed",
            "class": one["class"],
            "method": style.label(one["variant"], one["precision"]),
            "device": results.key,
            "params": one["params"],
            "time_us": one["compute_us"],
            "build_us": one["build_us"],
            "tflops": one["tflops"],
            "nominal": _share_of(nominals, one),
            "measured": _share_of(limits, one),
            "error": one["normalised_error"],
        }
        for _, one in headline(points(results)).iterrows()
    ]
    lines += [
        {
            "outcome": "published",
            **{name: one[name] for name in ("class", "method", "device", "tflops")},
            "params": "",
            "time_us": 1e3 * one["time_ms"],
            "nominal": one["share"] / 100,
            "error": one.get("error"),
        }
        for one in data()["published"]
    ]
    return pd.DataFrame(lines, columns=OWN)


def best(results: ResultSet) -> pd.DataFrame:
    """The fastest variant of each problem and class, columns BEST; `tied_with` joins variants within noise by `;`."""
    lines = []
    for values, own in points(results).groupby([*PROBLEM, "class"], sort=False):
        ranked = [row for _, row in own.assign(time_us=own["compute_us"]).sort_values("compute_us").iterrows()]
        names = [style.label(one["variant"], one["precision"]) for one in ranked]
        place = dict(zip([*PROBLEM, "class"], values))
        more = {"best": names[0], "error": ranked[0]["normalised_error"], "contenders": len(ranked)}
        lines.append(place | noise.standing(ranked, names) | more)
    found = pd.DataFrame(lines, columns=BEST)
    by = ["left_rows", "right_cols", "left_cols", "lefts", "_place"]
    return ordered(found, by, _place=_place(found["class"])).reset_index(drop=True)


def _share(value: float) -> str:
    return MISSING if pd.isna(value) else f"{100 * value:.1f} %"


ERROR = ("ERR", "error", known("{:.2g}"))
SHOWN_TABLE2 = (
    ("Outcome", "outcome"),
    ("Class", "class"),
    ("Method", "method"),
    ("Device", "device"),
    *(PARAMETERS, TIME),
    ("of it building", "build_us", duration),
    ("TFLOP/s", "tflops", "{:.3g}".format),
    ("of the nominal peak", "nominal", _share),
    ("of the measured ceiling", "measured", _share),
    ERROR,
)
SIZES = (("Channels", "left_rows"), ("Templates", "lefts"), ("Samples", "left_cols"), ("Signal", "right_cols"))
SHOWN_BEST = (
    *SIZES,
    ("Class", "class"),
    ("Fastest", "best tied_with", lambda first, ties: " = ".join([first, *filter(None, ties.split(";"))])),
    *(PARAMETERS, TIME),
    ("Runner-up", "runner_up", lambda name: name or MISSING),
    ("Margin", "margin", known("{:.2f}x")),
    ERROR,
)


def page(results: ResultSet) -> Page:
    """What the table says of a set; the paper's lines stand beside what says that there are no rows."""
    second, fastest = table2(results), best(results)
    title = "Table 2 of the tensor-core paper"
    paper = Grid(
        second, SHOWN_TABLE2, title, open=not fastest.empty, file="" if fastest.empty else "time_series_table2"
    )
    own = Grid(fastest, SHOWN_BEST, "Fastest variant by precision class", open=False, file=TABLE.name)
    none = TABLE.nothing if fastest.empty else "The problem of the table was not measured in this set."
    text: list[str | Grid] = [ABOUT, f"## {title}", none if (second["outcome"] == "published").all() else "", paper]
    text += [] if fastest.empty else [f"## {own.title}", own]
    return Page(text, [TABLE.nothing if fastest.empty else ABOUT], [paper, own])


TABLE = Table(
    "time_series",
    "Time series",
    page,
    "./scripts/reproduce.sh --preset quick --experiments time-series,time-series-table2",
    "No time series was measured in this set. `{command}` measures them.",
    chapter=40,
)
