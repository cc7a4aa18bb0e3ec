"""All variants of a form: wall time against size, a facet per count, FFT without and with plan."""

from plots.drawing import Drawing, Omitted, Result
from plots.figures import _curves, _panels
from plots.metrics import METRICS, Metric
from plots.tidy import ResultSet

ORDER = 10
TITLE = "Comparison of all variants"
METRIC = METRICS["time"]


def draw(results: ResultSet, metric: Metric = METRIC) -> list[Result]:
    """One figure per form (and per mode, window and input that differ from the usual)."""
    points = results.feeding("comparison")
    if points.empty:
        return [Omitted("comparison", "no verified time in this set")]
    drawn: list[Result] = []
    for suffix, title, frame in _panels.groups(points):
        lines = _curves.step_back(_curves.curves(frame, metric), metric)
        tail = "" if metric.name == "time" else f"_{metric.name}"
        names = ", ".join(line.label for line in lines)
        caption = (
            f"{metric.label} against matrix size, {title}. A panel is a number of left and right matrices. Each variant has "
            f"its best parameters at each point; a point is the mean of {_curves.samples_text(frame)} repetitions. "
            f"{_curves.spread_text(frame)}"
        )
        if any(line.with_plan for line in lines):
            caption += " A dotted line is computation plus one plan."
        caption += _curves.background_text(lines) + _panels.left_out(frame)
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
