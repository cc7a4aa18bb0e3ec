"""Curves of a metric against size, one per variant or family, faceted by count: what most figures are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from plots import metrics, style
from plots.figures import _bars, _labels
from plots.figures import _panels as panels
from plots.tidy import best_parameters

NARROWEST_IN = 1.4  # a panel beside which names stand: longer names are in a legend


@dataclass(frozen=True)
class Curve:
    """One line: label, look, whether it includes the plan or is hollow (unverified)."""

    label: str
    look: style.Look
    points: pd.DataFrame  # tidy lines plus column `y`
    with_plan: bool = False
    hollow: bool = False
    again: bool = False  # another line of this name has it at its end

    @property
    def named(self) -> bool:
        """Whether its name stands at its end: one with the plan has the colour of the one without it, whose name does."""
        return not (self.with_plan or self.again)

    def at(self, counts: str) -> pd.DataFrame:
        """Its points of one facet by size."""
        return self.points[self.points["counts"] == counts].sort_values("side")

    @property
    def drawn(self) -> dict[str, Any]:
        """Keywords of its line."""
        plan = {"linestyle": style.PLAN_DASH, "markersize": 2.6} if self.with_plan else {}
        return {**self.look.line(self.hollow), "markeredgewidth": 0.8, **plan}


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
        found.append(Curve(text, look, _bars.spread(best, metric.of), False, hollow))
        if plans and metrics.plan_matters(own):
            best = best_parameters(own, metrics.seconds_with_plan(own))
            best = _bars.spread(best, metrics.seconds_with_plan, planned=True)
            found.append(Curve(f"{text} + plan", look, best, True, hollow))
    return sorted(found, key=lambda c: c.label.lower())


def draw(points: pd.DataFrame, lines: list[Curve], metric: metrics.Metric, holds: Sequence[float] = ()) -> Figure:
    """Log-log figure of `lines`, a facet per count, each line with its name at its end. `points` gives the facets and size ticks;
    the y axis has the values `holds` too."""
    facets = panels.facet_counts(points)
    points = pd.concat([frame for _, frame in facets])
    height = 2.3 if len(facets) == 1 else 2.1
    labels = list(dict.fromkeys(line.label for line in lines if line.named))
    for_names = _labels.names_in(labels)
    direct = len(facets) == 1 or panels.beside_in(for_names) >= NARROWEST_IN
    for counts, _ in facets:
        direct &= _labels.fit(sum(line.named and len(line.at(counts)) > 0 for line in lines), height)
    width = style.COLUMN_IN if len(facets) == 1 else style.PAGE_IN
    figure, axes, width = panels.grid(
        len(facets),
        height=height,
        legend=0 if direct else panels.legend_lines(labels, width),
        for_names=for_names if direct else 0.0,
    )
    values = np.concatenate([*(_bars.reach(line.points) for line in lines), np.array(holds, dtype=float)])
    handles: dict[str, object] = {}
    for one, (counts, frame) in zip([one for row in axes for one in row], facets):
        ends = []
        for line in lines:
            own = line.at(counts)
            shown = _with_gaps(own, frame)
            (artist,) = one.plot(shown["side"], shown["y"], label=line.label, **line.drawn)
            _bars.draw(one, own["side"], own, line.look.colour)
            if line.named:
                handles.setdefault(line.label, artist)
                ends.append(_labels.end(line.label, shown["side"], shown["y"], line.look.colour))
        # One size axis for all facets, unless a facet would be mostly blank.
        shared = 2 * frame["size"].nunique() > points["size"].nunique()
        panels.size_axis(one, points if shared else frame)
        panels.log_axis(one, values, panels.tick_text(metric.unit))
        one.set_title(counts)
        if direct:
            _labels.draw(one, ends)
    for row in axes:
        row[0].set_ylabel(metric.axis_label)
    if not direct:
        panels.legend_below(figure, handles, width)
    return figure


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
