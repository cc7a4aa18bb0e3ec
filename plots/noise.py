"""When two times are a tie: the one rule, with what is known of the spread of times.

Points of one block met on one card within minutes. They tie where the intervals of their samples overlap, in time or, where rows have
the SM clock, in cycles, where time and cycles disagree on the order, and where they differ by less than 1 %.

Between other points a difference is noise up to the larger of two limits. Within a run: twice the combined standard error of both means,
and at least 1 % of the faster. Between runs: a point that several runs measured has the range of its runs; any
other has the range that is usual in its class of time (`usual_ranges`). The larger range of the two points counts.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.compare.sets import CLOCK, QUANTILES

RELATIVE = 0.01  # of the faster time: the least difference that counts
STANDARD_ERRORS = 2.0
# (time below which it holds, range between runs over the lowest): medians over 86 points of an H200 that several runs
# measured. Longer times differ between runs by about as much as within one.
STATED = ((4.0, 0.29), (8.0, 0.028))
ENOUGH = 30  # points of a class that several runs measured: the set's own median replaces the stated one
SPREAD = ["low", "high", "cycles", "cycles_low", "cycles_high"]
RUN = ["experiment", "preset", "run"]
NUMBERS = ["runs", "low_us", "range", "range_with_plan"]
Ranges = tuple[tuple[float, float], ...]


def of_points(rows: pd.DataFrame, point: Sequence[str]) -> pd.DataFrame:
    """Per `point` (names of columns) the NUMBERS of its runs: how many, the lowest of their mean times in
    microseconds, and how far the longest is above the lowest, as a share of it, without and with the plan. `rows`
    hold one repetition each, all with a time."""
    per_run = rows.groupby([*point, *RUN], dropna=False)[["compute_us", "plan_us"]].mean()
    per_run["planned_us"] = per_run["compute_us"] + per_run["plan_us"].fillna(0.0)
    by = per_run.groupby(list(point), dropna=False)
    low, high = by.min(), by.max()
    return pd.DataFrame(
        {
            "runs": by.size(),
            "low_us": low["compute_us"],
            "range": high["compute_us"] / low["compute_us"] - 1.0,
            "range_with_plan": high["planned_us"] / low["planned_us"] - 1.0,
        },
        columns=NUMBERS,
    )


def usual_ranges(known: pd.DataFrame) -> Ranges:
    """STATED with the medians over `known` (as of_points makes it) where enough of its points have several runs."""
    several = known[known["runs"] > 1]
    found, above = [], 0.0
    for below, stated in STATED:
        own = several[several["low_us"].between(above, below, inclusive="left")]["range"]
        found.append((below, float(own.median()) if len(own) >= ENOUGH else stated))
        above = below
    return tuple(found)


def between_runs(points: pd.DataFrame, known: pd.DataFrame, usual: Ranges) -> pd.DataFrame:
    """Of each line of `points` the columns `runs`, `between_us` and `between_plan_us`: the range between runs in
    microseconds, without and with the plan; `known` has one line for each, in the same order."""
    compute = points["compute_us"].to_numpy(dtype=float)
    pooled = usual_us(compute, usual)
    several = known["runs"].to_numpy() > 1
    planned = compute + points["plan_us"].fillna(0.0).to_numpy(dtype=float)
    return pd.DataFrame(
        {
            "runs": known["runs"].to_numpy(),
            "between_us": np.where(several, known["range"].to_numpy() * compute, pooled),
            "between_plan_us": np.where(several, known["range_with_plan"].to_numpy() * planned, pooled),
        },
        index=points.index,
    )


def usual_us(time_us: np.ndarray | float, usual: Ranges) -> np.ndarray:
    """The range between runs, in microseconds, of times whose points one run measured."""
    shares = np.array([share for _, share in usual] + [0.0])
    return shares[np.searchsorted([below for below, _ in usual], time_us, side="right")] * time_us


def usual_of(points: pd.DataFrame) -> Ranges:
    """usual_ranges of the set that a tidy frame is of; STATED for a frame that does not say."""
    return points.attrs.get("usual_ranges", STATED)


def of_samples(rows: pd.DataFrame, point: str) -> pd.DataFrame:
    """SPREAD per point: the ends of the interval of its times as shares of their mean, its mean cycles (million), and the ends
    of their interval as shares of it. NaN for points without a block, and for cycles without a clock."""
    own = rows[rows["block"] != ""]
    clock = own[CLOCK] if CLOCK in own else pd.Series(math.nan, own.index)
    found: dict[str, pd.Series] = {}
    for name, values in (("", own["compute_us"]), ("cycles", own["compute_us"] * clock)):
        by = values.groupby(own[point])
        mean, ends = by.mean(), [by.quantile(one) for one in QUANTILES]
        # Times of a run may have outliers dropped on one side alone: the mean lies in the interval all the same.
        low, high = np.minimum(ends[0] / mean, 1.0), np.maximum(ends[1] / mean, 1.0)
        found |= {"cycles": mean, "cycles_low": low, "cycles_high": high} if name else {"low": low, "high": high}
    return pd.DataFrame(found, columns=SPREAD)


def _overlap(first: pd.Series, second: pd.Series, time: str, low: str, high: str) -> bool:
    """Whether the intervals of two points overlap or `second` is below `first`."""
    return bool(second[time] * second[low] <= first[time] * first[high])


def of_one_block(first: pd.Series, second: pd.Series) -> bool:
    """Whether two points were measured in one block; those without a block were not."""
    return bool(first.get("block") and first.get("block") == second.get("block"))


def noise_us(first: pd.Series, second: pd.Series) -> float:
    """Largest difference of two mean times (microseconds) that is a tie. Both have `time_us`, `sd_us` and `n`, and
    `between_us` of that time where it is known. An unknown SD (n = 1) counts 0. With points of one block the result is
    infinite where they tie."""
    if of_one_block(first, second):
        fast, slow = sorted((first, second), key=lambda row: float(row["time_us"]))
        tied = _overlap(fast, slow, "time_us", "low", "high")
        if math.isfinite(fast["cycles"]) and math.isfinite(slow["cycles"]):
            tied = tied or _overlap(fast, slow, "cycles", "cycles_low", "cycles_high")
        return math.inf if tied else RELATIVE * float(fast["time_us"])
    errors = [
        (row["sd_us"] / math.sqrt(row["n"])) if row["n"] > 1 and row["sd_us"] > 0 else 0.0 for row in (first, second)
    ]
    between = max(float(np.nan_to_num(row.get("between_us", 0.0))) for row in (first, second))
    faster = min(first["time_us"], second["time_us"])
    return max(STANDARD_ERRORS * math.hypot(*errors), RELATIVE * faster, between)


def standing(ranked: Sequence[pd.Series], names: Sequence[str]) -> dict[str, Any]:
    """What a table says of rivals, the fastest first: `time_us` and `params` of the first, `tied_with` (the others within
    noise of it, joined by `;`), `runner_up`, its parameters and its time, `margin` (its time over the first's) and `is_tie`."""
    first, second = ranked[0], ranked[1] if len(ranked) > 1 else None
    tied = [
        name for name, one in zip(names[1:], ranked[1:]) if one["time_us"] - first["time_us"] <= noise_us(first, one)
    ]
    return {
        **first[["time_us", "params"]].to_dict(),
        "tied_with": ";".join(tied),
        "is_tie": bool(tied),
        "runner_up": "" if second is None else names[1],
        "runner_up_params": "" if second is None else second["params"],
        "runner_up_us": math.nan if second is None else second["time_us"],
        "margin": math.nan if second is None else second["time_us"] / first["time_us"],
    }


def ends_us(points: pd.DataFrame, planned: bool = False) -> pd.DataFrame:
    """The interval of each line of a tidy frame in microseconds, columns `low` and `high`: of a point of a block from the 10th to
    the 90th percentile of its samples, of any other its mean minus and plus the larger of two standard errors and the range
    between runs. `planned`: of the time with one plan. NaN for a point that has no repetitions, as imported ones have none."""
    time, n = points["compute_us"], points["n"]
    if planned:
        time = time + points["plan_us"].fillna(0.0)
    error = (points["sd_us"] / np.sqrt(n)).where(n > 1, 0.0).fillna(0.0)
    between = points.get("between_plan_us" if planned else "between_us", pd.Series(0.0, points.index)).fillna(0.0)
    reach = np.maximum(STANDARD_ERRORS * error, between)
    low, high = (time - reach).clip(lower=0.0), time + reach
    if not planned and "low" in points:  # shares of the samples say nothing of a plan, which a point has once
        of_block = points["low"].notna()
        low = low.where(~of_block, time * points["low"])
        high = high.where(~of_block, time * points["high"])
    return pd.DataFrame({"low": low, "high": high}).where(n > 1)


def rule(points: pd.DataFrame) -> str:
    """The rule in sentences, with the ranges that the points of a set were judged by."""
    usual = usual_of(points)
    classes, above = [], 0.0
    for below, share in usual:
        classes.append(f"{100 * share:.2g} % of the time {f'from {above:g} to' if above else 'below'} {below:g} µs")
        above = below
    blocks = ""
    if "block" in points and (points["block"] != "").any():
        blocks = (
            f"Points that were measured in one block ({int((points['block'] != '').sum())} of {len(points)}) tie where the intervals "
            "from the 10th to the 90th percentile of their samples overlap, in time or in clock cycles, or where they differ by less than "
            "1 %. Of other points: "
        )
    several = f" ({int((points['runs'] > 1).sum())} of {len(points)} points)" if "runs" in points else ""
    return blocks + (
        "A tie is a difference within the noise: the largest of twice the combined standard error of both means, 1 % of the "
        f"faster time, and the range between runs. A point that several runs measured{several} has its own range; any other "
        f"has the usual one: {', '.join(classes)}, none above."
    )
