"""Recovered shift of two overlapping crops of a photograph."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import real, style
from plots.drawing import Drawing, Omitted, Result
from plots.figures._panels import picture
from plots.tidy import ResultSet

ORDER = 50
TITLE = "Recovered shift of two crops"
EXPERIMENT = real.PHOTO
ROW_IN = 1.95
LEFT, RIGHT = "#56b4e9", "#ff8c42"


def draw(results: ResultSet) -> list[Result]:
    """One figure: a row per data set (photo with both crops, the crops, the correlation peak)."""
    data = real.load(results.folder, EXPERIMENT)
    if isinstance(data, str):
        return [Omitted("photo", data, "real")]
    sets = [d for d in data.datasets() if f"{d['dataset']}_correlation" in data.previews]
    if not sets:
        return [Omitted("photo", f"{EXPERIMENT}: no preview of any data set", "real")]
    height = len(sets) * ROW_IN + 0.1
    figure = Figure(figsize=(style.PAGE_IN, height))
    axes = figure.subplots(len(sets), 4, squeeze=False)
    figure.subplots_adjust(
        left=0.015, right=0.985, top=1 - 0.26 / height, bottom=0.36 / height, wspace=0.26, hspace=0.3
    )
    notes = [_row(row, data, dataset) for row, dataset in zip(axes, sets)]
    return [
        Drawing(
            name="photo",
            title="Recovered shift of two crops of a photograph",
            caption=(
                "Photograph with the left (solid) and right (dashed) crop; both as correlated, "
                "noise included; correlation around its peak, cross: known shift, ring: recovered. " + " ".join(notes)
            ),
            alt="Photographs with two crops each, and the correlation peak at the known shift.",
            figure=figure,
            section="real",
        )
    ]


def _row(row: np.ndarray, data: real.RealData, dataset: dict[str, Any]) -> str:
    name = dataset["dataset"]
    rows = data.of(name)
    variant = data.main_variant(name)
    own = rows[(rows["variant"] == variant) & (rows["case"] == dataset.get("preview_case", 0))]
    own = own if len(own) else rows[rows["variant"] == variant]
    case = own.iloc[0]
    scale = float(np.ravel(data.previews.get(f"{name}_scale", np.ones(1)))[0])
    picture(row[0], data.previews[f"{name}_photo"], name)
    boxes = np.asarray(data.previews[f"{name}_boxes"], dtype=float) * scale
    for (y, x, height, width), colour, dash in zip(boxes, (LEFT, RIGHT), ("-", (0, (3, 2)))):
        xs, ys = [x, x + width, x + width, x, x], [y, y, y + height, y + height, y]
        row[0].plot(xs, ys, color="black", linewidth=2.2)
        row[0].plot(xs, ys, color=colour, linewidth=1.2, linestyle=dash)
    picture(row[1], data.previews[f"{name}_left"], "left crop")
    picture(row[2], data.previews[f"{name}_right"], "right crop")
    _peak(row[3], data, name, case)
    passed = int(rows["passed"].sum())
    return (
        f"{name}: {real.origin(dataset)}; known shift ({case['known_sy']:g}, "
        f"{case['known_sx']:g}), recovered by {style.label(variant)} "
        f"({case['sub_sy']:.2f}, {case['sub_sx']:.2f}); {passed} of {len(rows)} cases x variants "
        "within 0.5 pixel."
    )


def _peak(axes: Axes, data: real.RealData, name: str, case: Any) -> None:
    values = np.asarray(data.previews[f"{name}_correlation"], dtype=float)
    y0, x0 = (float(v) for v in np.ravel(data.previews[f"{name}_origin"]))
    rows, cols = values.shape
    extent = (x0 - 0.5, x0 + cols - 0.5, y0 + rows - 0.5, y0 - 0.5)
    axes.imshow(values, cmap="cividis", extent=extent, interpolation="nearest")
    axes.plot(case["known_sx"], case["known_sy"], "+", color="white", markersize=9)
    axes.plot(case["sub_sx"], case["sub_sy"], "o", color="#ff3b30", markersize=8, fillstyle="none")
    axes.set_title("correlation (sx, sy)")
    axes.grid(False)
    axes.tick_params(pad=1.5)
