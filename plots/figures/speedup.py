"""Speed-up over the baseline, against size, a facet per count. A line is what it is in the comparison."""

from dataclasses import replace

import pandas as pd

from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _bars, _classes, _curves, _panels, comparison
from plots.metrics import Metric, speedup
from plots.tidy import PROBLEM, ResultSet, best_parameters, passed

ORDER = 20
TITLE = "Speed-up over the baseline"
KEYS = [*PROBLEM, "mode", "input", "precision"]


def baseline_of(points: pd.DataFrame) -> str | None:
    """Id of the baseline variant of a figure, or None when neither was measured."""
    present = set(passed(points)["variant"])
    return next((name for name in style.BASELINES if name in present), None)


def reference_times(points: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """The baseline's best times. Other precision classes are compared with its fp32."""
    own = best_parameters(passed(points, variant=baseline))
    usual = own[own["precision"] == "fp32"]
    others = [usual.assign(precision=p) for p in sorted(set(points["precision"]) - {"fp32"})]
    return pd.concat([own, *others]).drop_duplicates(KEYS, keep="first")


def draw(results: ResultSet) -> list[Result]:
    points = results.feeding("speedup")
    if points.empty:
        return [Omitted("speedup", "no verified time in this set")]
    return [_one(*group) for group in _panels.groups(points)]


def _one(suffix: str, title: str, frame: pd.DataFrame) -> Result:
    name = f"speedup_{suffix}"
    baseline = baseline_of(frame)
    if baseline is None:
        return Omitted(name, f"no baseline measured ({' or '.join(style.BASELINES)})")
    reference = reference_times(frame, baseline)
    text = style.label(baseline)
    metric = Metric("speedup", f"Speed-up over {text}", "x", lambda p: speedup(p, reference, KEYS), False)

    def ends(own: pd.DataFrame) -> pd.DataFrame:
        """`own` with the speed-up and its interval, of both times."""
        base = reference.set_index(KEYS).reindex(pd.MultiIndex.from_frame(own[KEYS])).set_axis(own.index)
        return own.assign(**_bars.over(base, own))

    others = best_parameters(frame[frame["variant"] != baseline])
    others = others.assign(y=metric.of(others)).dropna(subset=["y"])
    if others.empty:
        return Omitted(name, f"nothing but {text} measured at the same points")
    if comparison.is_crowded(frame):
        lines = _classes.families(others, True, ends)
    else:
        lines = [replace(line, points=ends(line.points)) for line in _curves.curves(others, metric)]
    shown = pd.concat([line.points for line in lines], ignore_index=True)
    figure = _curves.draw(shown, lines, metric, (1.0,))
    for axes in figure.axes:
        axes.axhline(1.0, color="#444444", linewidth=0.8, zorder=1)
    top = shown.loc[shown["y"].idxmax()]
    return Drawing(
        name=name,
        title=f"Speed-up over {text}, {title}",
        caption=(
            f"Time of {text} divided by the time on the same problem, {title}. {comparison.what_a_line_is(frame)} "
            f"Plans are not counted. Problems without a time of {text} are left "
            f"out. The largest speed-up is {top['y']:.3g}x: {style.label(top['variant'])}, {top['counts']}, "
            f"{top['size']}." + _bars.said(shown, ratio=True) + _panels.left_out(shown)
        ),
        alt=f"Line chart: speed-up over {text} against matrix size, {title}.",
        figure=figure,
    )
