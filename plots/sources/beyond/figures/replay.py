"""What a launch costs: replay of a CUDA graph, and waiting after each launch, against a stream."""

from plots.drawing import Drawing, Omitted, Result
from plots.figures import _cells, _ratios
from plots.metrics import geometric_mean
from plots.tidy import ResultSet

ORDER = 70
TITLE = "Graph replay against stream launches"
MODES = {"graph": "replay of a graph", "latency": "a wait after each launch"}


def draw(results: ResultSet) -> list[Result]:
    points = results.feeding("replay")
    found = {mode: _ratios.ratios(points, mode) for mode in MODES}
    found = {mode: lines for mode, lines in found.items() if len(lines)}
    if not found:
        reason = "no variant measured in the modes stream and graph or latency (experiment modes)"
        return [Omitted("replay", reason, "beyond")]
    means = "; ".join(
        f"{mode} ({MODES[mode]}): geometric mean {geometric_mean(lines['ratio']):.2f}x" for mode, lines in found.items()
    )
    panels = [_ratios.panel(lines, f"{mode} / stream") for mode, lines in found.items()]
    return [
        Drawing(
            name="replay",
            title="Graph replay and single launches against stream launches",
            caption=(
                "Time of a computation in another mode divided by its time with launches back to back on a stream. Each variant "
                f"has the parameters that are fastest in mode stream. {means[0].upper()}{means[1:]}."
            ),
            alt="Heat maps: time by graph replay and with synchronisation over stream time.",
            figure=_cells.draw(panels, _ratios.ROW_IN, left=_ratios.LEFT_IN),
            section="beyond",
        )
    ]
