"""What arrays in registers bring over arrays in local memory (thesis 3.5.4): time over time by the size of the matrices."""

from typing import Any

import numpy as np
import pandas as pd

from experiments import folders
from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _bars, _panels
from plots.tidy import USUAL, ResultSet, passed
from xcorr.native.variants import assignments

ORDER = 94
TITLE = "Arrays without local memory"
NAME = "local_memory"


def draw(results: ResultSet) -> list[Result]:
    """A figure for each table of drawn_by.local_memory of figures.toml."""
    tables = folders.part("jpdc", "figures")["drawn_by"][NAME]
    return [_drawing(f"{NAME}_{key}", spec, results.points) for key, spec in tables.items()]


def gains(points: pd.DataFrame, spec: dict[str, Any]) -> dict[str, pd.DataFrame]:
    """Time of the slow variant over that of the fast one, as _bars.over has it, by counts and side of square matrices."""
    own = passed(points, form=spec["form"], **USUAL)
    wanted = {name: str(value) for name, value in spec["params"].items()}
    own = own[np.array([wanted.items() <= assignments(one).items() for one in own["params"]], dtype=bool)]
    own = own[own["left_rows"] == own["left_cols"]]
    found = {}
    for counts in spec["counts"]:
        here = own[own["counts"] == counts]
        slow, fast = (here[here["variant"] == spec[one]].set_index("left_rows") for one in ("slow", "fast"))
        ratio = _bars.over(slow, fast).sort_index()
        if len(ratio):
            found[counts] = ratio
    return found


def _drawing(name: str, spec: dict[str, Any], points: pd.DataFrame) -> Result:
    found = gains(points, spec)
    if not found:
        both = f"{spec['slow']} and {spec['fast']}"
        return Omitted(name, f"no size has {both} with the figure's parameters", "study")
    looks = zip(found.items(), ("#0072b2", "#d55e00", "#116241", "#702eaa"), "osD^")
    curves = [(counts, ratio, {"color": colour, "marker": marker}) for (counts, ratio), colour, marker in looks]
    sizes = sorted({int(side) for ratio in found.values() for side in ratio.index})
    kept = ", ".join(f"{key} = {value}" for key, value in spec["params"].items())
    return Drawing(
        name=name,
        title=spec["title"],
        caption=f"{spec['caption']} Time of {style.label(spec['slow'])} over that of {style.label(spec['fast'])}, {kept}."
        + _bars.said(*found.values(), ratio=True),
        alt=f"Line chart: speed-up against the size of the matrices; curves: {', '.join(found)}.",
        figure=_panels.curve_chart(curves, {side: f"{side}x{side}" for side in sizes}, "Size", "Speed-up", "x"),
        section="study",
    )
