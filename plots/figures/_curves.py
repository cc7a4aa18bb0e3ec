"""Curves of a metric against size, one per variant, faceted by count: what most figures are."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from plots import metrics, style
from plots.figures import _panels as panels
from plots.tidy import best_parameters


@dataclass(frozen=True)
class Curve:
    """One legend entry: label, look, whether it includes the plan or is hollow (unverified)."""

    label: str
    look: style.Look
    points: pd.DataFrame  # tidy lines plus column `y`
    with_plan: bool = False
    hollow: bool = False
    back: bool = False  # one of many that lead nowhere: a grey line under one legend entry

    @property
    def drawn(self) -> dict[str, Any]:
        """Keywords of its line."""
        if self.back:
            return BACK
        plan = {"linestyle": style.PLAN_DASH, "markersize": 2.6} if self.with_plan else {}
        return {**self.look.line(self.hollow), "markeredgewidth": 0.8, **plan}


# A figure of more curves than MANY keeps the looks of those that are somewhere the fastest, or within LEAD of it.
MANY, LEAD = 14, 1.05
OTHERS = "other variants"
BACK = {"color": "#bdbdbd", "linewidth": 0.7, "zorder": 1}


def curves(points: pd.DataFrame, metric: metrics.Metric, plans: bool = True) -> list[Curve]:
    """One curve per variant and precision (best parameters per point), sorted by label; a second,
    dotted one with its plan where planning matters and the metric is a wall time."""
    found: list[Curve] = []
    plans = plans and metric.name == "time"
    for (outcome, variant, precision, family), own in points.groupby(
        ["outcome", "variant", "precision", "family"], sort=True
    ):
        look = style.look(variant, family, precision)
        hollow = outcome == "published"
        text = style.label(variant, precision) + (", published" if hollow else "")
        best = best_parameters(own)
        found.append(Curve(text, look, best.assign(y=metric.of(best)), False, hollow))
        if plans and metrics.plan_matters(own):
            best = best_parameters(own, metrics.seconds_with_plan(own))
            best = best.assign(y=metrics.seconds_with_plan(best))
            found.append(Curve(f"{text} + plan", look, best, True, hollow))
    return sorted(found, key=lambda c: c.label.lower())


def step_back(lines: list[Curve], metric: metrics.Metric) -> list[Curve]:
    """`lines`, those of them in the background that nowhere are within LEAD of the best at the same count and size, if there
    are more than MANY. Baselines stay in front. So does one of each other family, the most often its best. A plan stands where
    its variant does."""
    if len(lines) <= MANY:
        return lines
    plain = pd.concat([line.points for line in lines if not line.with_plan])

    def behind(*groups: str) -> pd.Series:
        best = plain.groupby([*groups, "counts", "size"])["y"].transform("min" if metric.lower_is_better else "max")
        return plain["y"] / best if metric.lower_is_better else best / plain["y"]

    leading = {*style.BASELINES, *plain.loc[behind() <= LEAD, "variant"]}
    represented = plain.loc[plain["variant"].isin(leading), "family"]
    others = plain[(behind("family") == 1) & ~plain["family"].isin(represented)]
    for _, family in others.groupby("family"):
        leading.add(family["variant"].value_counts(sort=False).sort_index().idxmax())
    return [replace(line, back=not leading & set(line.points["variant"])) for line in lines]


def draw(points: pd.DataFrame, lines: list[Curve], metric: metrics.Metric) -> Figure:
    """Log-log figure of `lines`, a facet per count. `points` gives the facets and size ticks."""
    facets = panels.facet_counts(points)
    points = pd.concat([frame for _, frame in facets])
    labels = list(dict.fromkeys(OTHERS if line.back else line.label for line in lines))
    single = len(facets) == 1
    width = style.COLUMN_IN if single else style.PAGE_IN
    figure, axes, width = panels.grid(
        len(facets), height=2.3 if single else 2.1, legend=panels.legend_lines(labels, width)
    )
    values = np.concatenate([line.points["y"].to_numpy(dtype=float) for line in lines])
    handles: dict[str, object] = {}
    for one, (counts, frame) in zip([one for row in axes for one in row], facets):
        for line in lines:
            own = _with_gaps(line.points[line.points["counts"] == counts], frame)
            label = f"_{line.label}" if line.back else line.label
            (artist,) = one.plot(own["side"], own["y"], label=label, **line.drawn)
            handles.setdefault(OTHERS if line.back else label, artist)
        # One size axis for all facets, unless a facet would be mostly blank.
        shared = 2 * frame["size"].nunique() > points["size"].nunique()
        panels.size_axis(one, points if shared else frame)
        panels.log_axis(one, values, panels.tick_text(metric.unit))
        one.set_title(counts)
    for row in axes:
        row[0].set_ylabel(metric.axis_label)
    if OTHERS in handles:
        handles[OTHERS] = handles.pop(OTHERS)  # last
    panels.legend_below(figure, handles, width)
    return figure


def background_text(lines: list[Curve]) -> str:
    """Who is in the background, for a caption; empty when nobody is."""
    names = ", ".join(dict.fromkeys(line.label for line in lines if line.back and not line.with_plan))
    near = f"nowhere within {LEAD - 1:.0%} of the fastest"
    return f" Grey lines are {near}, and another one stands for their family: {names}." if names else ""


def _with_gaps(own: pd.DataFrame, facet: pd.DataFrame) -> pd.DataFrame:
    """`own` by size, with NaN where only others have a time: a curve does not bridge such a size."""
    sizes = facet.drop_duplicates("size")[["side", "size"]]
    shown = sizes.merge(own[["size", "y"]], on="size", how="left") if len(own) else own
    return shown.sort_values(["side", "size"])


def spread_text(points: pd.DataFrame) -> str:
    """The mean of SD over mean, in a sentence, over points with repetitions, or why there is none."""
    ratio = (points["sd_us"] / points["compute_us"]).dropna()
    if ratio.empty:
        return "Each point is a single sample, so there is no spread."
    return f"The standard deviation is {100 * ratio.mean():.2g} % of the mean, on average."


def samples_text(points: pd.DataFrame) -> str:
    """How many repetitions a point of this figure is the mean of."""
    low, high = int(points["n"].min()), int(points["n"].max())
    return f"{low}" if low == high else f"{low} to {high}"
