"""How far ours is ahead of the paper's best, and from the floor, over the cells of a baseline.

    python3 -m plots.beyond                     the set on the baseline's machine, as Markdown
    python3 -m plots.beyond KEY --local         a local set

The paper's best of a cell is the faster of the baseline (definition-based, or transforms without plan) and of our
own rows of the paper's algorithms, as experiments/baselines/<name>.toml names them. Ours is the fastest variant.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.compare_artifact import Baseline, load_baseline
from experiments.errors import Parser, UserError, command
from experiments.points import ROOT
from plots import best_table, floor, style, tidy
from plots.best_table import markdown
from plots.ceilings import Ceilings, load
from plots.metrics import MICRO, si_time

BASELINE = "h200_artifact"
CELL = ["form", "left_rows", "lefts", "rights"]
COLUMNS = [
    *CELL, "baseline_us", "paper_us", "paper_by", "ours_us", "variant", "params", "speedup", "floor_us", "distance",
]  # fmt: skip


@dataclass(frozen=True)
class Bars:
    """The speed-ups that are asked for: geometric mean over the cells, and of each."""

    mean: float
    least: float


def _fastest(points: pd.DataFrame) -> pd.DataFrame:
    ordered = points.sort_values(["compute_us", "variant", "params"], kind="stable")
    return ordered.drop_duplicates(CELL).set_index(CELL)


def usual(points: pd.DataFrame) -> pd.DataFrame:
    """The verified points that a baseline's cells can be compared with: CUDA, equal squares, usual conditions."""
    for name, value in best_table.USUAL.items():
        points = points[points[name] == value]
    sides = [points[name] == points["left_rows"] for name in ("left_cols", "right_rows", "right_cols")]
    return points[np.logical_and.reduce(sides) & (points["outcome"] == "passed") & (points["backend"] == "cuda")]


def table(points: pd.DataFrame, what: dict[str, Any], baseline: Baseline, ceilings: Ceilings | str) -> pd.DataFrame:
    """One line per cell of the baseline, in its order; see COLUMNS. Times in microseconds; `speedup` is paper / ours
    and `distance` ours / floor, NaN where a part is not known: a cell without rows, a set without ceilings."""
    own = usual(points)
    paper = own["family"].isin(what["families"]) | own["variant"].isin(what["variants"])
    theirs, ours = _fastest(own[paper]), _fastest(own)
    lines = []
    for cell, row in baseline.items():
        times = [float(row[name]) for name in ("best_definition_us", "fft_us") if row[name]]
        best, by = min(times), "baseline"
        if cell in theirs.index and theirs.loc[cell, "compute_us"] < best:
            best, by = theirs.loc[cell, "compute_us"], theirs.loc[cell, "variant"]
        line: dict[str, Any] = dict(zip(CELL, cell), baseline_us=min(times), paper_us=best, paper_by=by)
        if cell in ours.index:
            mine = ours.loc[[cell]].reset_index()
            line |= {"ours_us": mine["compute_us"].item(), **mine.loc[0, ["variant", "params"]].to_dict()}
            if isinstance(ceilings, Ceilings):
                line["floor_us"] = floor.floor_us(mine, ceilings).item()
        lines.append(line)
    frame = pd.DataFrame(lines, columns=COLUMNS)
    for name in ("ours_us", "floor_us"):
        frame[name] = frame[name].astype(float)
    frame["speedup"] = frame["paper_us"] / frame["ours_us"]
    frame["distance"] = frame["ours_us"] / frame["floor_us"]
    return frame


def _mean(values: pd.Series) -> float:
    return math.exp(values.map(math.log).mean())


def summary(lines: pd.DataFrame, bars: Bars) -> str:
    """Geometric means and extremes in one paragraph."""
    known, far = lines[lines["speedup"].notna()], lines["distance"].dropna()
    if known.empty:
        return "No cell of the baseline was measured in this set."
    below = int((known["speedup"] < bars.least).sum())
    text = (
        f"Speed-up over the paper's best in {len(known)} of {len(lines)} cells: geometric mean {_mean(known['speedup']):.3f} "
        f"(goal: {bars.mean:g}), least {known['speedup'].min():.2f}, {below} below {bars.least:g}."
    )
    if len(far):
        text += f" Distance to the floor: geometric mean {_mean(far):.2f}, largest {far.max():.2f}."
    return text


def sentence(key: str, lines: pd.DataFrame, bars: Bars, title: str) -> str:
    """The summary of a set, with its name and that of the baseline."""
    return f"{key} against: {title}. {summary(lines, bars)}"


def reached(lines: pd.DataFrame, bars: Bars) -> bool:
    """Whether every cell was measured and both bars hold."""
    ratios = lines["speedup"]
    return bool(len(ratios)) and ratios.notna().all() and _mean(ratios) >= bars.mean and ratios.min() >= bars.least


def readable(lines: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it."""

    def time(us: float) -> str:
        return "–" if math.isnan(us) else si_time(us * MICRO)

    def ratio(value: float) -> str:
        return "–" if math.isnan(value) else f"{value:.2f}x"

    return pd.DataFrame({
        "Form": lines["form"],
        "Matrices": [f"{a}-to-{b}" for a, b in zip(lines["lefts"], lines["rights"])],
        "Size": [f"{n}x{n}" for n in lines["left_rows"]],
        "Artifact": lines["baseline_us"].map(time),
        "Paper's best": lines["paper_us"].map(time),
        "Ours": lines["ours_us"].map(time),
        "Variant": [style.label(name) if isinstance(name, str) else "not measured" for name in lines["variant"]],
        "Speed-up": lines["speedup"].map(ratio),
        "Floor": lines["floor_us"].map(time),
        "Distance": lines["distance"].map(ratio),
    })  # fmt: skip


def of_set(results: tidy.ResultSet, name: str = BASELINE) -> tuple[pd.DataFrame, Bars, str]:
    """(lines, bars, title of the baseline) of a set; no lines where the baseline is of another machine."""
    raw, baseline = load_baseline(name)
    what = raw["beyond"]
    bars = Bars(float(what["mean_bar"]), float(what["least_bar"]))
    if what["machine_key"] != results.key:
        return pd.DataFrame(columns=COLUMNS), bars, raw["title"]
    return table(results.points, what, baseline, load(results.folder)), bars, raw["title"]


def files(results: tidy.ResultSet) -> dict[str, str]:
    """Texts of the table by file name; none for a set of another machine than the baseline's."""
    lines, bars, title = of_set(results)
    if lines.empty:
        return {}
    text = f"# Beyond the paper\n\nAgainst: {title}. {summary(lines, bars)}\n\n{markdown(readable(lines))}"
    return {"beyond.md": text, "beyond.csv": lines.to_csv(index=False, float_format="%.6g", lineterminator="\n")}


def run(argv: Sequence[str]) -> int:
    """The command; raises UserError. Exit code 1 when a cell is missing or a bar is not reached."""
    from plots.render import choose

    made = Parser(prog="python3 -m plots.beyond", description=__doc__,
                  formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    made.add_argument("key", nargs="?", metavar="machine-key", help="set (default: that of the baseline's machine)")
    made.add_argument("--local", action="store_true", help="a local set, even where a published one exists")
    made.add_argument("--results", type=Path, default=ROOT / "results", metavar="DIR",
                      help="root of the results (default: results)")  # fmt: skip
    options = made.parse_args(argv)
    key = options.key or load_baseline(BASELINE)[0]["beyond"]["machine_key"]
    [(kind, key)] = choose(options.results, [key], options.local)
    lines, bars, title = of_set(tidy.load(options.results / kind / key, key, kind))
    if lines.empty:
        raise UserError(f"machine key {key}: not the machine of the baseline; name the one that it was measured on")
    print(markdown(readable(lines)))
    print(sentence(key, lines, bars, title))
    return int(not reached(lines, bars))


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; every mistake of the user is one line."""
    return command(run, argv)


if __name__ == "__main__":
    sys.exit(main())
