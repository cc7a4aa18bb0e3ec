"""How far the best time of every problem is from what the machine's ceilings allow."""

import math

import pandas as pd

from plots import ceilings as limits
from plots import floor, style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _cells
from plots.figures._panels import FORM_TITLES
from plots.metrics import MICRO, geometric_mean, si_time
from plots.tables.best_table import undecided
from plots.tidy import PROBLEM, USUAL, ResultSet, passed

ORDER = 62
TITLE = "Distance to the floor"
ROW_IN = 0.36
DEEPEST = 12.0  # a factor from which on the colour deepens no more
BOUNDS = {"launch": "launch", "memory": "memory", "direct": "direct", "fft": "FFT", "exchange": "exchange"}


def distances(points: pd.DataFrame, ceilings: limits.Ceilings) -> pd.DataFrame:
    """The fastest passed line per problem with `floor_us`, `bound` (see plots.floor.bound_by) and
    `factor`: its compute time over the floor; without the cells that best_table leaves undecided."""
    verified = passed(points, **USUAL)
    verified = verified[~undecided(verified)]
    fastest = verified.sort_values(["compute_us", "variant", "params"], kind="stable")
    fastest = fastest.drop_duplicates(PROBLEM, keep="first")
    if fastest.empty:
        return fastest
    lowest = floor.floor_us(fastest, ceilings)
    bound = floor.bound_by(fastest, ceilings)
    return fastest.assign(floor_us=lowest, bound=bound, factor=fastest["compute_us"] / lowest)


def draw(results: ResultSet) -> list[Result]:
    """One figure: a panel per form, counts x sizes."""
    ceilings = limits.load(results.folder)
    if isinstance(ceilings, str):
        return [Omitted("floor", ceilings, "beyond")]
    lines = distances(results.feeding("floor"), ceilings)
    if lines.empty:
        return [Omitted("floor", "no verified time in this set", "beyond")]
    panels = []
    for form, counts, sizes, own in _cells.by_form(lines):
        cells = {(line["counts"], line["size"]): _cell(line) for _, line in own.iterrows()}
        panels.append(_cells.Panel(FORM_TITLES.get(form, form), counts, sizes, cells))
    worst = lines.loc[lines["factor"].idxmax()]
    rate = ceilings.fp32_product / 1e12
    exchange = ceilings.crossing_per_s
    crossed = f", or its fewest exchanges between threads at {exchange / 1e12:.3g} TB/s where they take longer"
    faster, of = floor.below_launch(results.rows)
    beside = f" {faster} of {of} points are faster than the empty launch that was timed beside them." if faster else ""
    return [
        Drawing(
            name="floor",
            title="Best time over the floor",
            caption=(
                "Time of the fastest variant divided by the floor. The floor is the largest of three times, all measured on "
                f"this machine: an empty launch ({si_time(ceilings.launch_stream_us * MICRO)}); the compulsory bytes at "
                f"{ceilings.bytes_per_s / 1e12:.3g} TB/s; the cheaper of direct computation and FFT at {rate:.3g} TFLOP/s"
                f"{'' if math.isinf(exchange) else crossed}. "
                f"Below each factor stands which of them it is. {floor.binding(lines, ceilings)} "
                "Plans are not counted. The geometric mean of all "
                f"{len(lines)} cells is {geometric_mean(lines['factor']):.2f}x; the "
                f"largest is {worst['factor']:.1f}x ({style.label(worst['variant'])}, {worst['form']}, "
                f"{worst['counts']}, {worst['size']}). {floor.CAVEAT}{beside}"
            ),
            alt="Heat map: best time over the floor by form, number of matrices and size.",
            figure=_cells.draw(panels, ROW_IN),
            section="beyond",
        )
    ]


def _cell(line: pd.Series) -> _cells.Cell:
    text = f"{line['factor']:.2f}x\n{BOUNDS[line['bound']]}\n{si_time(line['floor_us'] * MICRO)}"
    return _cells.Cell(text, _cells.factor_colour(line["factor"], DEEPEST))
