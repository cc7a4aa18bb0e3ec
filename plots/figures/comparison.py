"""A form: wall time against size, a facet per count, without and with plan. A line is a variant, or a family where they are many."""

from dataclasses import replace

import pandas as pd

from plots.drawing import Drawing, Omitted, Result
from plots.figures import _bars, _classes, _curves, _panels
from plots.metrics import METRICS, Metric, plan_matters, seconds_with_plan
from plots.tidy import ResultSet

ORDER = 10
TITLE = "Comparison of all variants"
METRIC = METRICS["time"]
FEW = 8  # variants: more are drawn as families
EVERY = " The table has all variants."


def draw(results: ResultSet, metric: Metric = METRIC) -> list[Result]:
    """One figure per form (and per mode, window and input that differ from the usual)."""
    points = results.feeding("comparison")
    if points.empty:
        return [Omitted("comparison", "no verified time in this set")]
    drawn: list[Result] = []
    for suffix, title, frame in _panels.groups(points):
        lines = lines_of(frame, metric)
        tail = "" if metric.name == "time" else f"_{metric.name}"
        names = ", ".join(line.label for line in lines)
        caption = (
            f"{metric.label} against matrix size, {title}. A panel is a number of left and right matrices. {what_a_line_is(frame)} "
            f"A point is the mean of {_curves.samples_text(frame)} repetitions. {_curves.spread_text(frame)}"
        )
        if any(line.with_plan for line in lines):
            caption += " A dotted line is computation plus one plan."
        caption += _bars.said(*(line.points for line in lines)) + _panels.left_out(frame)
        if any(line.hollow for line in lines):
            caption += " Hollow markers were published elsewhere and not verified here."
        drawn.append(
            Drawing(
                name=f"comparison_{suffix}{tail}",
                title=f"{metric.label}, {title}",
                caption=caption,
                alt=f"Line chart: {metric.label.lower()} against matrix size, {title}; {names}.",
                figure=_curves.draw(frame, lines, metric),
            )
        )
    return drawn


def is_crowded(points: pd.DataFrame) -> bool:
    """Whether a figure of these points has a line a family."""
    return len(points[["variant", "precision", "outcome"]].drop_duplicates()) > FEW


def what_a_line_is(points: pd.DataFrame) -> str:
    """In a sentence, for the caption."""
    if not is_crowded(points):
        return "A line is a variant with its best parameters at each point."
    return f"A line is a family: at each point its fastest variant with its best parameters.{EVERY}"


def lines_of(points: pd.DataFrame, metric: Metric) -> list[_curves.Curve]:
    """The curves of a figure of these points; of a family that has transforms a second one, with the plan."""
    if not is_crowded(points):
        return _curves.curves(points, metric)

    def ends(own: pd.DataFrame) -> pd.DataFrame:
        return _bars.spread(own, metric.of)

    def planned(own: pd.DataFrame) -> pd.DataFrame:
        return _bars.spread(own, seconds_with_plan, planned=True)

    found = _classes.families(points.assign(y=metric.of(points)), not metric.lower_is_better, ends)
    if metric.name != "time":
        return found
    matters = points.groupby("variant")["variant"].transform(lambda own: plan_matters(points.loc[own.index]))
    plans = points[matters.astype(bool)]
    if plans.empty:
        return found
    with_plan = _classes.families(plans.assign(y=seconds_with_plan(plans)), False, planned)
    looks = {line.label: line.look for line in found}
    return found + [
        replace(line, label=f"{line.label} + plan", look=looks.get(line.label, line.look), with_plan=True)
        for line in with_plan
    ]
