"""The thesis's profiles of kernels: what warps wait for, executed instructions and busy pipes, from counters of a profiler."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import folders
from experiments.compare import counters
from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.tidy import ResultSet

ORDER = 93
TITLE = "Profiles of the thesis"
NAME = "profiles"
COMMAND = "python3 -m experiments.compare.counters"
MISSING = f"no profiler counters of these launches ({COMMAND})"
COLOURS = ("#0072b2", "#d55e00")
PANELS_A_ROW = 2
BAR_IN = 0.125  # height of a bar
Values = Mapping[str, Mapping[str, float]]  # by launch and counter


def panels() -> list[dict[str, Any]]:
    """The panels as figures.toml has them."""
    return list(folders.part("jpdc", "figures")["drawn_by"][NAME]["panels"])


def draw(results: ResultSet) -> list[Result]:
    """One figure with the panels whose launches the set has; Omitted where it has none."""
    stored = counters.stored(results.folder) or {"points": {}}
    values = {name: dict(point["counters"]) for name, point in stored["points"].items()}
    drawn = [one for one in panels() if all(_texts(one).keys() <= values.get(of, {}).keys() for of in _launches(one))]
    if not drawn:
        return [Omitted(NAME, MISSING, "study")]
    rows = [drawn[i : i + PANELS_A_ROW] for i in range(0, len(drawn), PANELS_A_ROW)]
    heights = [max(_height_in(one) for one in row) for row in rows]
    gap, top, bottom = 0.78, 0.38, 0.4
    height = sum(heights) + gap * (len(rows) - 1) + top + bottom
    figure = Figure(figsize=(style.PAGE_IN, height))
    y = height - top
    for row, tall in zip(rows, heights):
        for column, panel in enumerate(row):
            own = _height_in(panel)
            left = (1.52 + column * 3.5) / style.PAGE_IN
            axes = figure.add_axes((left, (y - own) / height, 1.86 / style.PAGE_IN, own / height))
            _panel(axes, panel, values)
        y -= tall + gap
    launched = sorted({name for one in drawn for name in _launches(one)})
    where = "; ".join(f"{name}: {_words(stored['points'][name])}" for name in launched)
    return [
        Drawing(
            name=NAME,
            title="Profiles of the kernels that the thesis profiles",
            caption=(
                "Counters of one launch each, by a profiler. The thesis's GPU is an RTX 2060 (compute capability 7.5), and its text has no "
                f"numbers of these figures but those of claims H02 and H03. Launches: {where}."
            ),
            alt=f"Bars of counters in {len(drawn)} panels: {'; '.join(one['title'] for one in drawn)}.",
            figure=figure,
            section="study",
        )
    ]


def _launches(panel: Mapping[str, Any]) -> list[str]:
    return list(panel["launches"].values())


def _texts(panel: Mapping[str, Any]) -> dict[str, str]:
    """Text by counter, in the order of the panel."""
    asked = panel["counters"]
    if isinstance(asked, str):
        return {name: name.removeprefix("stall_").replace("_", " ") for name in counters.data()["sets"][asked]}
    return dict(asked)


def _height_in(panel: Mapping[str, Any]) -> float:
    return len(_texts(panel)) * (len(panel["launches"]) * BAR_IN + 0.07)


def _words(point: Mapping[str, Any]) -> str:
    params = f" ({point['params'].replace(';', ', ')})" if point["params"] else ""
    return f"{style.label(point['variant'])}{params} on {point['problem']}"


def shown(panel: Mapping[str, Any], values: Values) -> dict[str, list[float]]:
    """The numbers of a panel: those of each of its counters by the label of the launch. A counter that is 0 in the launch `of`
    has no ratio, unless `by` names another one."""
    found = {}
    for label, launch in panel["launches"].items():
        own = []
        for counter in _texts(panel):
            base = values[panel["of"]][panel.get("by", counter)] if "of" in panel else 1.0
            own.append(values[launch][counter] / base if base else float("nan"))
        found[label] = own
    return found


def _panel(axes: Axes, panel: Mapping[str, Any], values: Values) -> None:
    numbers, texts = shown(panel, values), list(_texts(panel).values())
    places = np.arange(len(texts))
    width = 0.8 / len(numbers)
    for i, (label, own) in enumerate(numbers.items()):
        at = places + (i - (len(numbers) - 1) / 2) * width
        axes.barh(at, own, height=width, color=COLOURS[i], label=label)
        for y, number in zip(at, own):
            text = "none" if np.isnan(number) else f"{number:.3g}"
            axes.text(0 if np.isnan(number) else number, y, f" {text}", va="center", ha="left", fontsize=style.SMALLEST)
    axes.set_yticks(places, texts)
    axes.set_ylim(len(texts) - 0.5, -0.5)
    axes.set_xlim(0, 1.18 * max((n for own in numbers.values() for n in own if not np.isnan(n)), default=1.0))
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(panel["axis"])
    axes.set_title(panel["title"], loc="right", fontsize=7, pad=14)
    above = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncol": len(numbers), "borderaxespad": 0.2}
    axes.legend(**above, fontsize=6, handlelength=1.0, columnspacing=1.0)
