"""Time series: Table 2 of the tensor-core paper for this machine, and the fastest variant by precision class.

FP32 grade is fp32, and 3xtf32, which is held to the bounds of fp32. It never shares a line with tf32 or fp16.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from experiments import folders
from plots import ceilings, style
from plots.metrics import si_time
from plots.noise import noise_us
from plots.tables.text import csv, markdown
from plots.tidy import PROBLEM, ResultSet, best_parameters

NAME = "time_series"
TITLE = "Time series"
CHAPTER = 40
COMMAND = "./scripts/reproduce.sh --preset quick --experiments time-series,time-series-table2"
NONE = f"No time series was measured in this set. `{COMMAND}` measures them."
ABOUT = (
    "Templates along one signal: form n-to-m with one right matrix, window valid. TFLOP/s count useful work, two operations a product. ERR is the "
    "largest error of an output against float64 after division by the norms of the template and of the stretch of the signal. Building is the "
    "part of the time in which an operand is made from the inputs. Lines of outcome published are the paper's; nothing of them was checked here."
)
GRADE = "FP32 grade"
GRADES = {"fp32": GRADE, "3xtf32": GRADE}  # class of a precision; every other precision is its own
ORDER = (GRADE, "tf32", "bf16x3", "fp16", "fp64")
OWN = [
    "outcome",
    "class",
    "method",
    "device",
    "params",
    "time_us",
    "build_us",
    "tflops",
    "nominal",
    "measured",
    "error",
]
BEST = [*PROBLEM, "class", "best", "params", "time_us", "tied_with", "runner_up", "margin", "error", "contenders"]


def grade(precision: str) -> str:
    """The class of a precision, of which a table has a line."""
    return GRADES.get(precision, precision)


@lru_cache(maxsize=1)
def data() -> dict[str, Any]:
    """experiments/time_series/baselines.toml."""
    return folders.part("time_series", "baselines")


def points(results: ResultSet) -> pd.DataFrame:
    """The fastest of every_point of each variant and precision."""
    return best_parameters(every_point(results))


def every_point(results: ResultSet) -> pd.DataFrame:
    """Verified points of time series in the usual mode, with their `class`, the useful `tflops`, and `samples`,
    `templates` and `shifts` of the problem."""
    found = results.feeding(NAME)
    usual = (found["outcome"] == "passed") & (found["mode"] == "stream") & (found["input"] == "uniform")
    shape = (found["form"] == "n-to-m") & (found["rights"] == 1) & (found["left_rows"] == found["right_rows"])
    own = found[usual & shape & (found["window"] == "valid")]
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
    for name, value in data()["headline"].items():
        found = found[found[name] == value]
    place = found["class"].map(lambda one: ORDER.index(one) if one in ORDER else len(ORDER))
    return found.assign(_place=place).sort_values(["_place", "compute_us"], kind="stable").drop(columns="_place")


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
            "nominal": 1e12 * one["tflops"] / nominals.get(one["precision"], float("nan")),
            "measured": 1e12 * one["tflops"] / limits.get(one["precision"], float("nan")),
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
        first, rest = ranked[0], ranked[1:]
        name = style.label(first["variant"], first["precision"])
        lines.append(
            {
                **dict(zip([*PROBLEM, "class"], values)),
                "best": name,
                "params": first["params"],
                "time_us": first["time_us"],
                "tied_with": ";".join(
                    style.label(one["variant"], one["precision"])
                    for one in rest
                    if one["time_us"] - first["time_us"] <= noise_us(first, one)
                ),
                "runner_up": style.label(rest[0]["variant"], rest[0]["precision"]) if rest else "",
                "margin": rest[0]["time_us"] / first["time_us"] if rest else float("nan"),
                "error": first["normalised_error"],
                "contenders": len(ranked),
            }
        )
    found = pd.DataFrame(lines, columns=BEST)
    order = found["class"].map(lambda one: ORDER.index(one) if one in ORDER else len(ORDER))
    by = ["left_rows", "right_cols", "left_cols", "lefts", "_order"]
    return found.assign(_order=order).sort_values(by, kind="stable").drop(columns="_order").reset_index(drop=True)


def _share(value: float) -> str:
    return "–" if pd.isna(value) else f"{100 * value:.1f} %"


def _time(value: float) -> str:
    return "–" if pd.isna(value) else si_time(value * 1e-6)


def _error(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.2g}"


def readable_table2(lines: pd.DataFrame) -> pd.DataFrame:
    """Table 2 as a reader sees it."""
    return pd.DataFrame(
        {
            "Outcome": lines["outcome"],
            "Class": lines["class"],
            "Method": lines["method"],
            "Device": lines["device"],
            "Parameters": [text.replace(";", ", ") or "–" for text in lines["params"]],
            "Time": lines["time_us"].map(_time),
            "of it building": lines["build_us"].map(_time),
            "TFLOP/s": [f"{one:.3g}" for one in lines["tflops"]],
            "of the nominal peak": lines["nominal"].map(_share),
            "of the measured ceiling": lines["measured"].map(_share),
            "ERR": lines["error"].map(_error),
        }
    )


def readable_best(lines: pd.DataFrame) -> pd.DataFrame:
    """The fastest variants as a reader sees them."""
    return pd.DataFrame(
        {
            "Channels": lines["left_rows"],
            "Templates": lines["lefts"],
            "Samples": lines["left_cols"],
            "Signal": lines["right_cols"],
            "Class": lines["class"],
            "Fastest": [
                " = ".join([first, *filter(None, ties.split(";"))])
                for first, ties in zip(lines["best"], lines["tied_with"])
            ],
            "Parameters": [text.replace(";", ", ") or "–" for text in lines["params"]],
            "Time": lines["time_us"].map(_time),
            "Runner-up": [name or "–" for name in lines["runner_up"]],
            "Margin": ["–" if pd.isna(one) else f"{one:.2f}x" for one in lines["margin"]],
            "ERR": lines["error"].map(_error),
        }
    )


def files(results: ResultSet) -> dict[str, str]:
    """The files of the tables; without rows, one that says so beside the paper's."""
    second, fastest = table2(results), best(results)
    parts = [f"# {TITLE}\n", f"{ABOUT}\n", "## Table 2 of the tensor-core paper\n"]
    if (second["outcome"] == "published").all():
        parts.append(f"{NONE}\n" if fastest.empty else "The problem of the table was not measured in this set.\n")
    parts.append(markdown(readable_table2(second)))
    if fastest.empty:
        return {f"{NAME}.md": "\n".join(parts)}
    parts += ["## Fastest variant by precision class\n", markdown(readable_best(fastest))]
    return {f"{NAME}.md": "\n".join(parts), f"{NAME}.csv": csv(fastest), f"{NAME}_table2.csv": csv(second)}


def chapter(results: ResultSet) -> list[dict[str, Any]]:
    """The chapter of the report (see plots.report.front)."""
    second, fastest = table2(results), best(results)
    tables = [("Table 2 of the tensor-core paper", readable_table2(second), not fastest.empty)]
    if not fastest.empty:
        tables.append(("Fastest variant by precision class", readable_best(fastest), False))
    notes = [ABOUT] if not fastest.empty else [NONE]
    return [{"id": "time_series", "title": TITLE, "notes": notes, "tables": tables}]
