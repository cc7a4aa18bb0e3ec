"""Energy per correlation against size, a line a family."""

import pandas as pd

from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _classes, _curves
from plots.metrics import MICRO, Metric
from plots.tidy import ResultSet, passed

ORDER = 66
TITLE = "Energy per correlation"
METRIC = Metric("energy_per_pair", TITLE, "J", lambda p: MICRO * p["energy_uj"] / p["pairs"])


def draw(results: ResultSet) -> list[Result]:
    """One figure: a facet per form and count, a curve per family (its most frugal variant)."""
    points = passed(results.feeding("energy"), window="full", mode="stream", input="uniform")
    points = points[points["energy_uj"] > 0]
    if points.empty:
        reason = "no row of this set has an energy (experiment energy; needs a GPU that counts it)"
        return [Omitted("energy", reason, "beyond")]
    points = points.assign(y=METRIC.of(points), counts=points["form"].str.cat(points["counts"], sep=" "))
    lines = _classes.families(points, largest=False)
    shown = pd.concat([line.points for line in lines], ignore_index=True)
    least = shown.loc[shown["y"].idxmin()]
    return [
        Drawing(
            name="energy",
            title=TITLE,
            caption=(
                "Energy that the device took per correlation of one pair, of the variant and parameters of each family that take "
                "least. The driver counts it over many computations, idle power included. The least is "
                f"{least['y'] / MICRO:.3g} µJ, "
                f"{style.label(least['variant'])}, {least['counts']}, {least['size']}."
            ),
            alt="Line chart: energy per correlation against matrix size, a curve per family.",
            figure=_curves.draw(points, lines, METRIC),
            section="beyond",
        )
    ]
