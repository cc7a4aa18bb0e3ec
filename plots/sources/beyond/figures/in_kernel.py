"""Transforms inside kernels: ours, the vendor's, and the library's that is called, against the fastest of them."""

import pandas as pd

from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _cells, _ratios
from plots.metrics import geometric_mean
from plots.tidy import PROBLEM, ResultSet, best_parameters, passed

ORDER = 85
TITLE = "Transforms inside kernels"


def draw(results: ResultSet) -> list[Result]:
    """One grid: variants x problems, time over that of the fastest variant on the problem."""
    points = best_parameters(passed(results.feeding("in_kernel"), mode="stream"))
    fastest = points.groupby(PROBLEM, as_index=False).agg(least=("compute_us", "min"), variants=("variant", "nunique"))
    lines = points.merge(fastest[fastest["variants"] > 1], on=PROBLEM)
    if lines.empty:
        return [Omitted("in_kernel", "no two transforms measured (experiment in-kernel-transforms)", "beyond")]
    lines = lines.assign(ratio=lines["compute_us"] / lines["least"])
    return [
        Drawing(
            name="in_kernel",
            title=TITLE,
            caption=(
                "Time divided by that of the fastest transform on the same problem, with the best parameters of each. The "
                f"geometric mean, and on how many problems the transform is fastest: {_means(lines)}. An empty cell was not measured."
            ),
            alt="Heat map: time of transforms over that of the fastest one, variants by problems.",
            figure=_cells.draw([_ratios.panel(lines, "time / fastest")], _ratios.ROW_IN, left=1.2),
            section="beyond",
        )
    ]


def _means(lines: pd.DataFrame) -> str:
    """`name 1.25x, 3 of 14; ...`, the smallest mean first."""
    found = []
    for variant, own in lines.groupby("variant"):
        mean = geometric_mean(own["ratio"])
        text = f"{style.label(variant)} {mean:.2f}x, {int((own['ratio'] == 1).sum())} of {len(own)}"
        found.append((mean, text))
    return "; ".join(text for _, text in sorted(found))
