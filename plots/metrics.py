"""Named metrics. One table drives axes, their labels and units, and the columns of tables."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

MICRO = 1e-6


@dataclass(frozen=True)
class Metric:
    """A number per tidy line. `of` maps a tidy frame to a Series in `unit` (SI, no prefix)."""

    name: str
    label: str
    unit: str
    of: Callable[[pd.DataFrame], pd.Series]
    lower_is_better: bool = True

    @property
    def axis_label(self) -> str:
        """Axis text. Seconds and joules carry their unit (and prefix) in the tick labels."""
        return self.label if self.unit in ("s", "J", "x", "") else f"{self.label} [{self.unit}]"


def seconds(points: pd.DataFrame) -> pd.Series:
    """Wall time of the whole problem in seconds."""
    return points["compute_us"] * MICRO


def seconds_with_plan(points: pd.DataFrame) -> pd.Series:
    """Compute plus one plan; a variant without a plan step has none to add."""
    return (points["compute_us"] + points["plan_us"].fillna(0.0)) * MICRO


_METRICS = (
    Metric("time", "Wall time", "s", seconds),
    Metric("time_with_plan", "Wall time with plan", "s", seconds_with_plan),
    Metric("time_per_fma", "Time per useful FMA", "s", lambda p: seconds(p) / p["fmas"]),
    Metric("time_per_pair", "Time per pair", "s", lambda p: seconds(p) / p["pairs"]),
    Metric("time_per_output", "Time per output element", "s", lambda p: seconds(p) / (p["pairs"] * p["outputs"])),
    Metric(  # of all pairs together, which several of the artifact's plots show
        "time_per_shift", "Time per shift, all pairs", "s", lambda p: seconds(p) / p["outputs"]
    ),
    Metric("useful_flops", "Useful work rate", "FLOP/s", lambda p: 2.0 * p["fmas"] / seconds(p), lower_is_better=False),
)
METRICS = {metric.name: metric for metric in _METRICS}


def speedup(points: pd.DataFrame, baseline: pd.DataFrame, by: list[str]) -> pd.Series:
    """Baseline time over time, matched on the columns `by`; NaN where the baseline is missing. `baseline` holds at most
    one line per `by`. The result has the index of `points`."""
    reference = baseline.set_index(by)["compute_us"]
    keys = pd.MultiIndex.from_frame(points[by])
    return pd.Series(reference.reindex(keys).to_numpy(), index=points.index) / points["compute_us"]


def geometric_mean(values: pd.Series) -> float:
    """Of positive numbers; NaN of none."""
    return math.exp(values.map(math.log).mean())


def plan_matters(points: pd.DataFrame) -> bool:
    """Whether a variant's plan deserves its own curve: it marks phases (a transform), or planning
    costs at least a tenth of a computation at half of its points."""
    if points[["forward_us", "inverse_us"]].notna().any().any():
        return bool((points["plan_us"] > 0).any())
    ratio = points["plan_us"].fillna(0.0) / points["compute_us"]
    return bool(len(ratio)) and bool(ratio.median() >= 0.1)


_PREFIXES = [(1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"), (1e-15, "f")]


def si_time(value_s: float, digits: int = 3) -> str:
    """Seconds as text with an SI prefix and `digits` significant digits: 0.0000123 -> '12.3 µs'."""
    if not value_s > 0:
        return "0 s" if value_s == 0 else "–"
    value_s = float(f"{value_s:.{digits - 1}e}")
    scale, prefix = next((p for p in _PREFIXES if value_s >= p[0] * (1 - 1e-12)), _PREFIXES[-1])
    number = value_s / scale
    places = max(0, digits - len(str(int(number)))) if number < 10**digits else 0
    return f"{number:.{places}f} {prefix}s"
