"""How far results are from the float64 truth, against size, by algorithm class."""

import pandas as pd

from plots.drawing import Drawing, Omitted, Result
from plots.figures import _classes, _curves
from plots.metrics import Metric
from plots.tidy import ResultSet, passed

ORDER = 72
TITLE = "Accuracy"
RELATIVE = Metric("relative_error", "Relative L2 error", "", lambda p: p["rel_l2_error"])
SHARE = Metric("bound_share", "Share of the error bound", "", lambda p: p["max_error"] / p["error_bound"])
FIGURES = {  # figure -> metric, what it is
    "accuracy": (RELATIVE, "L2 norm of the error over that of the truth"),
    "accuracy_bound": (SHARE, "error of the worst element over what it may be before the result counts as incorrect"),
}


def draw(results: ResultSet) -> list[Result]:
    points = passed(results.feeding("accuracy"), window="full", input="uniform")
    found: list[Result] = []
    for name, (metric, meaning) in FIGURES.items():
        values = metric.of(points)
        own = points.assign(y=values)[values > 0]
        if own.empty:
            found.append(Omitted(name, "no verified row of this set has an error", "beyond"))
        else:
            found.append(_one(name, metric, meaning, own))
    return found


def _one(name: str, metric: Metric, meaning: str, points: pd.DataFrame) -> Drawing:
    # Errors depend on the shape, hardly on how many matrices there are: one facet for all counts.
    points = points.assign(counts="all forms and counts", pairs=1.0, lefts=1, rights=1)
    lines = _classes.curves(points, largest=True)
    return Drawing(
        name=name,
        title=metric.label,
        caption=(
            f"{metric.label} ({meaning}) against matrix size: the largest of all variants, "
            "parameters, forms and counts of each class, inputs uniform in [0, 1)."
        ),
        alt=f"Line chart: {metric.label.lower()} against matrix size, a curve per class.",
        figure=_curves.draw(points, lines, metric),
        section="beyond",
    )
