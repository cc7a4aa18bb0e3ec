"""What a cold cache costs: time with L2 flushed before each launch over time back to back."""

from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _cells, _ratios
from plots.metrics import geometric_mean
from plots.tidy import ResultSet

ORDER = 68
TITLE = "Cold against warm cache"


def draw(results: ResultSet) -> list[Result]:
    lines = _ratios.ratios(results.feeding("cache"), "cold")
    if lines.empty:
        reason = "no variant measured in the modes stream and cold (experiment modes)"
        return [Omitted("cache", reason, "beyond")]
    worst = lines.loc[lines["ratio"].idxmax()]
    return [
        Drawing(
            name="cache",
            title="Cold against warm cache",
            caption=(
                "Time with the caches flushed before each launch (mode cold) divided by the time of launches back to back with "
                "the inputs in cache (mode stream). Each variant has the parameters that are fastest in mode stream. The "
                f"geometric mean is {geometric_mean(lines['ratio']):.2f}x, the largest "
                f"{worst['ratio']:.2f}x ({style.label(worst['variant'])}, {worst['form']}, "
                f"{worst['counts']}, {worst['size']})."
            ),
            alt="Heat map: time with a cold cache over time with a warm one, by variant and size.",
            figure=_cells.draw([_ratios.panel(lines, "cold / stream")], _ratios.ROW_IN, left=_ratios.LEFT_IN),
            section="beyond",
        )
    ]
