"""Earthquakes that were planted in real noise: one of them, its scores, and which were detected by amplitude."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import real, style
from plots.drawing import Drawing, Omitted, Result
from plots.sources.time_series.tables import time_series
from plots.tidy import ResultSet

ORDER = 91
TITLE = "Detected earthquakes"
EXPERIMENT = real.SEISMIC
SECTION = time_series.TABLE.name
COMPONENTS = ("Z", "N", "E")
FOUND, MISSED, PLANTED = "#0072b2", "#d55e00", "#f0c27b"


def draw(results: ResultSet) -> list[Result]:
    """One figure: the signal around a planted event, its scores, and the scores of all events."""
    data = real.load(results.folder, EXPERIMENT)
    if isinstance(data, str):
        return [Omitted("detection", f"{data} (python3 -m experiments.inputs.seismic)", SECTION)]
    (dataset,) = data.datasets()
    variant = dataset["variants"][0]
    rows = data.rows[(data.rows["variant"] == variant["variant"]) & (data.rows["precision"] == variant["precision"])]
    figure = Figure(figsize=(style.PAGE_IN, 3.3))
    grid = figure.add_gridspec(2, 2, width_ratios=(1.6, 1), height_ratios=(1.3, 1))
    figure.subplots_adjust(left=0.075, right=0.985, top=0.93, bottom=0.13, wspace=0.2, hspace=0.12)
    signal = figure.add_subplot(grid[0, 0])
    scores = figure.add_subplot(grid[1, 0], sharex=signal)
    _signal(signal, data.previews, dataset)
    _scores(scores, data.previews, dataset)
    _events(figure.add_subplot(grid[:, 1]), rows, dataset)
    number, amplitude = int(data.previews["template_number"]), float(data.previews["amplitude"])
    return [
        Drawing(
            name="detection",
            title="Detected earthquakes",
            caption=(
                f"Left: three channels of real noise around a planted earthquake, whose strongest template has {amplitude:.2g} times "
                f"the rms of the noise (shaded: template {number}), and the score of this template, in MAD (median absolute deviations) "
                f"above the median, float64. Right: the scores of all {variant['planted']} pairs of a template and a planted earthquake, by "
                f"amplitude; filled: detected by {style.label(variant['variant'], variant['precision'])}. Dashed: the threshold; dotted: from "
                f"here on every planted earthquake must be detected. {_verdicts(dataset)} {dataset['note']}"
            ),
            alt="Three traces with a planted earthquake and the scores of a template, and scores of all planted events by amplitude.",
            figure=figure,
            section=SECTION,
        )
    ]


def _verdicts(dataset: dict[str, Any]) -> str:
    """Whether the variants agree with float64, in a sentence."""
    count, wrong = len(dataset["variants"]), sum(one["wrong"] + one["missed"] > 0 for one in dataset["variants"])
    if count > 1:
        return f"{f'{count - wrong} of' if wrong else 'All'} {count} variants and precisions agree with float64."
    return "It differs from float64." if wrong else "It agrees with float64."


def _time(previews: dict[str, np.ndarray], dataset: dict[str, Any], count: int) -> np.ndarray:
    """Seconds from the beginning of the signal."""
    return (int(previews["first"]) + np.arange(count)) / float(dataset["rate_hz"])


def _signal(axes: Axes, previews: dict[str, np.ndarray], dataset: dict[str, Any]) -> None:
    signal = np.asarray(previews["signal"], float)
    seconds = _time(previews, dataset, signal.shape[1])
    step = 1.1 * (np.percentile(signal, 99.9) - np.percentile(signal, 0.1))
    levels = step * np.arange(len(signal))[::-1]
    for level, channel in zip(levels, signal):
        axes.plot(seconds, level + channel, color="#333333", linewidth=0.4)
    start = float(previews["place"]) / float(dataset["rate_hz"])
    axes.axvspan(start, start + dataset["samples"] / float(dataset["rate_hz"]), color=PLANTED, alpha=0.6, linewidth=0)
    axes.set_yticks(levels, COMPONENTS[: len(signal)])
    axes.tick_params(labelbottom=False)
    axes.grid(False)
    axes.set_title("signal, with a planted earthquake")


def _scores(axes: Axes, previews: dict[str, np.ndarray], dataset: dict[str, Any]) -> None:
    scores = np.asarray(previews["scores"], float)
    axes.plot(_time(previews, dataset, len(scores)), scores, color=FOUND, linewidth=0.6)
    _limits(axes, dataset)
    axes.set(ylabel="score [MAD]", xlabel="time [s]")


def _limits(axes: Axes, dataset: dict[str, Any]) -> None:
    for value, dash in ((dataset["threshold_mad"], (0, (4, 2))), (dataset["required_mad"], (0, (1, 1.5)))):
        axes.axhline(float(value), color="#444444", linewidth=0.8, linestyle=dash)


def _events(axes: Axes, rows: Any, dataset: dict[str, Any]) -> None:
    for found, colour, fill, label in ((1, FOUND, "full", "detected"), (0, MISSED, "none", "not detected")):
        own = rows[rows["found"] == found]
        look = {"color": colour, "fillstyle": fill, "markersize": 2.6, "markeredgewidth": 0.6}
        axes.plot(own["amplitude"], own["mads"], "o", label=label, **look)
    _limits(axes, dataset)
    axes.set_xscale("log")
    ticks = [0.1, 0.3, 1, 3]
    axes.set_xticks(ticks, [f"{one:g}" for one in ticks])
    axes.minorticks_off()
    axes.set(xlabel="amplitude over the noise", ylabel="score [MAD]", title="all planted earthquakes")
    axes.legend(loc="upper left")
