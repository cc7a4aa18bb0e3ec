"""How far results are from the float64 truth, against size, a line a variant in the colour of its family."""

from dataclasses import replace

import pandas as pd

from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _classes, _curves
from plots.metrics import Metric
from plots.tidy import ResultSet, passed, select

ORDER = 72
TITLE = "Accuracy"
RELATIVE = Metric("relative_error", "Relative L2 error", "", lambda p: p["rel_l2_error"])
SHARE = Metric("bound_share", "Share of the error bound", "", lambda p: p["max_error"] / p["error_bound"])
ALIKE = ["form", "lefts", "rights", "params", "mode"]  # what all points of a line have in common
FACET = "a line a variant"
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


def lines_of(points: pd.DataFrame) -> list[_curves.Curve]:
    """A curve per variant and precision, in the look of its family: all sizes of it with the same parameters, form and number of
    matrices, those that have most sizes, of several the ones with the largest errors. With the largest of whatever was measured at each
    size, a curve would go up and down by what was.
    The name of a family is that of its highest curve."""
    points = points.assign(**{_classes.NAME: _classes.family_names(points)})
    found = []
    for _, own in points.groupby("variant", sort=True):
        kept = own.groupby(ALIKE).agg(sizes=("size", "nunique"), mean=("y", "mean"))
        kept = kept.sort_values(["sizes", "mean"], ascending=False, kind="stable")
        found += _classes.families(select(own, **dict(zip(ALIKE, kept.index[0]))), largest=True)
    highest: dict[str, _curves.Curve] = {}
    for line in sorted(found, key=lambda one: float(one.points["y"].max()), reverse=True):
        highest.setdefault(line.label, line)
    return [replace(line, again=highest[line.label] is not line) for line in found]


def _one(name: str, metric: Metric, meaning: str, points: pd.DataFrame) -> Drawing:
    # Errors depend on the shape, hardly on how many matrices there are: one facet for all counts.
    lines = [replace(line, points=line.points.assign(counts=FACET)) for line in lines_of(points)]
    top = points.loc[points["y"].idxmax()]
    return Drawing(
        name=name,
        title=metric.label,
        caption=(
            f"{metric.label} ({meaning}) against matrix size, inputs uniform in [0, 1). A line is a variant with the "
            "parameters, form and number of matrices that most sizes were measured of; of several those with the largest errors. Variants of a family have one colour, and its name stands at the highest. The largest "
            f"of all is {top['y']:.2g}: {style.label(top['variant'], top['precision'])}, {top['form']}, {top['counts']}, {top['size']}."
        ),
        alt=f"Line chart: {metric.label.lower()} against matrix size, a curve per variant in the colour of its family.",
        figure=_curves.draw(points.assign(counts=FACET, pairs=1.0, lefts=1, rights=1), lines, metric),
        section="beyond",
    )
