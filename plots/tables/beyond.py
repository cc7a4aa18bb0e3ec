"""How far ours is ahead of the paper's best, and from the floor, over the cells of a baseline.

    python3 -m plots.tables.beyond                     the set on the baseline's machine, as Markdown
    python3 -m plots.tables.beyond KEY --local         a local set

The paper's best of a cell is the faster of the baseline (definition-based, or transforms without plan) and of our
own rows of the paper's algorithms, as experiments/jpdc/artifact/<name>.toml names them. Ours is the fastest variant, in
mode stream; `new` is the fastest of the families that the file calls new. The other modes have a table of their
own: the fastest of all variants against the fastest without the new families, over the problems that every mode was
measured on.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from experiments.compare.artifact import Baseline, load_baseline
from plots import floor, noise, style, tidy
from plots.ceilings import Ceilings, load
from plots.metrics import geometric_mean
from plots.sets import loaded
from plots.tables.best_by_mode import MODES
from plots.tables.table import FORM, MATRICES, Grid, Page, Table, duration, known, readable
from plots.tables.text import csv, markdown
from xcorr.errors import Parser, UserError, command

BASELINE = "h200_artifact"
CELL = ["form", "left_rows", "lefts", "rights"]
COLUMNS = [
    *CELL,
    *"baseline_us paper_us paper_by ours_us variant params speedup is_tie".split(),
    *"new_us new_variant new_speedup floor_us distance".split(),
]
MODE_COLUMNS = ["mode", *tidy.PROBLEM, "counts", "size", "best", "best_us", "without", "without_us", "speedup"]
RATIO = known("{:.2f}x")
SHOWN = (
    *(FORM, MATRICES),
    ("Size", "left_rows", "{0}x{0}".format),
    ("Artifact", "baseline_us", duration),
    ("Paper's best", "paper_us", duration),
    ("Ours", "ours_us", duration),
    ("Variant", "variant", lambda name: style.label(name) if isinstance(name, str) else "not measured"),
    ("Speed-up", "speedup is_tie", lambda ratio, is_tie: RATIO(ratio) + (" (tie)" if is_tie else "")),
    ("New alone", "new_speedup", RATIO),
    ("Floor", "floor_us", duration),
    ("Distance", "distance", RATIO),
)


@dataclass(frozen=True)
class Beyond:
    """What is said of a set: a line per cell (COLUMNS), a line per mode and problem (MODE_COLUMNS), the bars, the
    title of the baseline, what is to be known of its times, and which limits bind."""

    lines: pd.DataFrame
    modes: pd.DataFrame
    bars: Bars
    title: str
    aside: str
    roofs: str = ""  # which limit is the floor of how many cells


@dataclass(frozen=True)
class Bars:
    """The speed-ups that are asked for: geometric mean over the cells, and of each."""

    mean: float
    least: float


def fastest(points: pd.DataFrame) -> pd.DataFrame:
    """The fastest line of each cell, with the cell as index."""
    ordered = points.sort_values(["compute_us", "variant", "params"], kind="stable")
    return ordered.drop_duplicates(CELL).set_index(CELL)


def of_paper(points: pd.DataFrame, what: dict[str, Any]) -> pd.Series:
    """Mask of the points of the paper's algorithms."""
    return points["family"].isin(what["families"]) | points["variant"].isin(what["variants"])


def baseline_us(row: Mapping[str, str]) -> float:
    """The faster time of a baseline's row: definition-based, or the transforms."""
    return min(float(row[name]) for name in ("best_definition_us", "fft_us") if row[name])


def usual(points: pd.DataFrame) -> pd.DataFrame:
    """The verified points that a baseline's cells can be compared with: CUDA, equal squares, usual conditions."""
    points = tidy.passed(points, backend="cuda", **tidy.USUAL)
    sides = [points[name] == points["left_rows"] for name in ("left_cols", "right_rows", "right_cols")]
    return points[np.logical_and.reduce(sides)]


def table(points: pd.DataFrame, what: dict[str, Any], baseline: Baseline, ceilings: Ceilings | str) -> pd.DataFrame:
    """One line per cell of the baseline, in its order; see COLUMNS. Times in microseconds; `speedup` is paper / ours,
    `new_speedup` paper / new and `distance` ours / floor, NaN where a part is not known: a cell without rows, a set
    without ceilings. `is_tie`: ours and the paper's best are within noise of each other."""
    own, ranges = usual(points), noise.usual_of(points)
    theirs, ours = fastest(own[of_paper(own, what)]), fastest(own)
    new = fastest(own[own["family"].isin(what.get("new_families", []))])
    lines = []
    for cell, row in baseline.items():
        best, by = baseline_us(row), "baseline"
        rival = pd.Series(
            {"time_us": best, "sd_us": math.nan, "n": 1, "between_us": float(noise.usual_us(best, ranges))}
        )
        if cell in theirs.index and theirs.loc[cell, "compute_us"] < best:
            best, by = theirs.loc[cell, "compute_us"], theirs.loc[cell, "variant"]
            rival = theirs.loc[cell].rename({"compute_us": "time_us"})
        line: dict[str, Any] = dict(zip(CELL, cell), baseline_us=baseline_us(row), paper_us=best, paper_by=by)
        if cell in ours.index:
            mine = ours.loc[cell].rename({"compute_us": "time_us"})
            line |= {"ours_us": mine["time_us"], "variant": mine["variant"], "params": mine["params"]}
            line["is_tie"] = bool(abs(best - mine["time_us"]) <= noise.noise_us(mine, rival))
            if cell in new.index:
                line |= {"new_us": new.loc[cell, "compute_us"], "new_variant": new.loc[cell, "variant"]}
            if isinstance(ceilings, Ceilings):
                line["floor_us"] = floor.floor_us(ours.loc[[cell]].reset_index(), ceilings).item()
        lines.append(line)
    frame = pd.DataFrame(lines, columns=COLUMNS).astype(dict.fromkeys(("ours_us", "new_us", "floor_us"), float))
    frame["is_tie"] = frame["is_tie"].eq(True)  # noqa: E712  (a cell without rows is no tie)
    frame["speedup"] = frame["paper_us"] / frame["ours_us"]
    frame["new_speedup"] = frame["paper_us"] / frame["new_us"]
    frame["distance"] = frame["ours_us"] / frame["floor_us"]
    return frame


def by_mode(points: pd.DataFrame, new_families: Sequence[str]) -> pd.DataFrame:
    """The fastest of all variants against the fastest without the new families; see MODE_COLUMNS. Of the problems
    that were measured in every mode of MODES; a mode in which a problem has no rival has no line of it."""
    usual_but_mode = {name: value for name, value in tidy.USUAL.items() if name != "mode"}
    points = tidy.passed(points, backend="cuda", **usual_but_mode)
    points = points[points["mode"].isin(MODES)].sort_values(["compute_us", "variant", "params"], kind="stable")
    points = points[points.groupby(tidy.PROBLEM)["mode"].transform("nunique") == len(MODES)]
    lines = []
    for mode in MODES:
        for values, cell in points[points["mode"] == mode].groupby(tidy.PROBLEM, sort=False):
            rivals = cell[~cell["family"].isin(new_families)]
            if len(rivals):
                best, without = cell.iloc[0], rivals.iloc[0]
                times = [one[name] for one in (best, without) for name in ("variant", "compute_us")]
                lines.append((mode, *values, best["counts"], best["size"], *times, times[3] / times[1]))
    return pd.DataFrame(lines, columns=MODE_COLUMNS)


def summary(found: Beyond) -> list[str]:
    """What the lines say, an item for each subject; every item is whole sentences."""
    lines, bars = found.lines, found.bars
    known, far = lines[lines["speedup"].notna()], lines["distance"].dropna()
    if known.empty:
        return ["This set has no time of any problem of the baseline."]
    below, ties = int((known["speedup"] < bars.least).sum()), int(known["is_tie"].sum())
    items = [
        f"On {len(known)} of {len(lines)} problems, the fastest variant is {geometric_mean(known['speedup']):.3f} times as fast as "
        f"the paper's best (geometric mean; goal: {bars.mean:g}). The least speed-up is {known['speedup'].min():.2f}x. "
        f"{below} of the problems are below {bars.least:g}x; {ties} are ties within the noise."
    ]
    new = known["new_speedup"].dropna()
    if len(new):
        items.append(
            f"Of the new variants alone, the fastest is {geometric_mean(new):.3f} times as fast on {len(new)} problems. The least "
            f"speed-up is {new.min():.2f}x."
        )
    if by := mode_line(found.modes):
        items.append(by)
    alone = f"Against the artifact's times alone the speed-up is {geometric_mean(known['baseline_us'] / known['ours_us']):.2f}x."
    items.append(f"{alone} {found.aside}" if found.aside else alone)
    if len(far):
        items.append(
            f"On these {len(far)} problems the fastest time is {geometric_mean(far):.2f} times the floor in geometric mean, "
            f"{far.max():.2f} times at most. The figure `floor` shows all problems of the set. {floor.CAVEAT}"
        )
    return items


def mode_table(modes: pd.DataFrame) -> pd.DataFrame:
    """A line per mode of by_mode's table: on how many problems, geometric mean, least and largest speed-up."""
    return pd.DataFrame(
        [
            {
                "Mode": f"{mode} ({MODES[mode]})",
                "Problems": len(own),
                "Geometric mean": f"{geometric_mean(own['speedup']):.2f}x",
                "Least": f"{own['speedup'].min():.2f}x",
                "Largest": f"{own['speedup'].max():.2f}x",
            }
            for mode, own in modes.groupby("mode", sort=False)
        ]
    )


def mode_line(modes: pd.DataFrame) -> str:
    """The geometric mean of each mode in sentences; empty where the modes were not measured."""
    if modes.empty:
        return ""
    means = [
        f"{mode} ({MODES[mode]}) {geometric_mean(own['speedup']):.2f}x"
        for mode, own in modes.groupby("mode", sort=False)
    ]
    return (
        "The gain depends on the mode of timing, since the new variants overlap consecutive launches. Speed-up of all "
        f"variants over those without the new families, on the {modes['mode'].value_counts().max()} problems that were "
        f"measured in every mode: {', '.join(means)}. A program that waits for each result, as the library does, has the "
        "times of mode latency."
    )


def speedup_sentence(found: Beyond) -> str:
    """`On the 53 problems that ..., the fastest variant is 2.20 times as fast ...`; empty without a problem of the
    baseline."""
    lines = found.lines
    known = lines[lines["speedup"].notna()]
    if known.empty:
        return ""
    of = f" of the {len(lines)}" if len(known) < len(lines) else ""
    least = known["speedup"].min()
    worst = (
        "It is never slower: where an algorithm of the paper is the fastest, the factor is 1."
        if least >= 1
        else f"At worst it is {least:.2f} times as fast."
    )
    mean = geometric_mean(known["speedup"])
    return (
        f"On {len(known)}{of} problems that the paper's published program was timed on, the fastest variant is {mean:.2f} "
        "times as fast (geometric mean) as the paper's best, which is the faster of that program and our versions of its "
        f"algorithms. {worst}"
    )


def sentences(found: Beyond) -> str:
    """How much faster than the paper's best, how far from the floor, and which limit binds."""
    said = speedup_sentence(found)
    far = found.lines["distance"].dropna()
    if not said or far.empty:
        return said or summary(found)[0]
    return (
        f"{said} On these problems the time of the fastest variant is {geometric_mean(far):.2f} times the floor (geometric mean). The "
        "floor is the shortest time that the measured limits of the machine (empty launch, memory, arithmetic, exchange between "
        "threads) allow for a call that starts after the previous one has ended. Calls that overlap can be faster. "
        f"{found.roofs}"
    )


def text(key: str, found: Beyond) -> str:
    """What is said of a set as Markdown: what is compared, and the items of `summary`."""
    head = (
        f"{key} is compared with: {found.title}. Times are of mode stream ({MODES['stream']}) with plans kept. The paper's "
        "best time of a problem is the smaller of the artifact's and of our own measurements of its algorithms."
    )
    return "\n".join([head, "", *(f"- {one}" for one in summary(found))]) + "\n"


def reached(lines: pd.DataFrame, bars: Bars) -> bool:
    """Whether every cell was measured and both bars hold."""
    ratios = lines["speedup"]
    known = len(ratios) > 0 and bool(ratios.notna().all())
    return known and geometric_mean(ratios) >= bars.mean and bool(ratios.min() >= bars.least)


def of_set(results: tidy.ResultSet, name: str = BASELINE) -> Beyond:
    """What is said of a set; no lines where the baseline is of another machine."""
    raw, baseline = load_baseline(name)
    what = raw["beyond"]
    bars = Bars(float(what["mean_bar"]), float(what["least_bar"]))
    lines, modes, roofs = pd.DataFrame(columns=COLUMNS), pd.DataFrame(columns=MODE_COLUMNS), ""
    if what["machine_key"] == results.key:
        ceilings = load(results.folder)
        lines = table(results.points, what, baseline, ceilings)
        ours = fastest(usual(results.points))
        ours = ours[ours.index.isin(list(baseline))].reset_index()
        if isinstance(ceilings, Ceilings) and len(ours):
            roofs = floor.binding(ours, ceilings)
        # The rows of the side experiment alone: its modes were measured side by side.
        modes = by_mode(results.feeding("best_by_mode"), what["new_families"])
    return Beyond(lines, modes, bars, raw["title"], what.get("aside", ""), roofs)


def page(results: tidy.ResultSet) -> Page | None:
    """What the table says of a set; None of one of another machine than the baseline's."""
    found = of_set(results)
    if found.lines.empty:
        return None
    said, modes = text(f"`{results.key}`", found).removesuffix("\n"), Grid(mode_table(found.modes))
    return Page([said, modes, Grid(found.lines, SHOWN, file="beyond")], more={"beyond_modes.csv": csv(found.modes)})


TABLE = Table("beyond", "Beyond the paper", page)


def run(argv: Sequence[str]) -> int:
    """The command; raises UserError. Exit code 1 when a cell is missing or a bar is not reached."""
    made = Parser(prog="python3 -m plots.tables.beyond", description=__doc__)
    made.add_argument("key", nargs="?", metavar="machine-key", help="set (default: that of the baseline's machine)")
    made.add_argument("--local", action="store_true", help="a local set, even where a published one exists")
    made.add_results()
    options = made.parse_args(argv)
    key = options.key or load_baseline(BASELINE)[0]["beyond"]["machine_key"]
    (results,) = loaded(options.results, [key], options.local)
    found = of_set(results)
    if found.lines.empty:
        raise UserError(f"machine key {key}: not the machine of the baseline; name the one that it was measured on")
    print(markdown(readable(found.lines, SHOWN)))
    print(text(key, found))
    return int(not reached(found.lines, found.bars))


main = partial(command, run)  # every mistake of the user is one line

if __name__ == "__main__":
    sys.exit(main())
