"""Displacement of electron backscatter patterns: map on a pattern, error against the known shift."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter

from plots import real, style
from plots.drawing import Drawing, Omitted, Result
from plots.figures._panels import picture
from plots.tidy import ResultSet

ORDER = 40
TITLE = "Displacement map"
EXPERIMENT = real.EBSD
LIMIT_PX = 0.5
ROW_IN = 2.45
SAME_PX = 0.005  # a hundredth of the limit
CURVES = (
    ("#0072b2", "-"),
    ("#d55e00", (0, (5, 1.6))),
    ("#444444", (0, (1.1, 1.3))),
    ("#898786", (0, (6, 1.5, 1.2, 1.5))),
)
STEPS = 400  # of a curve of shares: more than a reader can see


def draw(results: ResultSet) -> list[Result]:
    """One figure: a row per data set (reference, displaced pattern with arrows, error)."""
    data = real.load(results.folder, EXPERIMENT)
    if isinstance(data, str):
        return [Omitted("displacement", data, "real")]
    sets = [d for d in data.datasets() if f"{d['dataset']}_deformed" in data.previews]
    if not sets:
        return [Omitted("displacement", f"{EXPERIMENT}: no preview of any data set", "real")]
    height = len(sets) * ROW_IN + 0.35
    figure = Figure(figsize=(style.PAGE_IN, height))
    axes = figure.subplots(len(sets), 3, squeeze=False, gridspec_kw={"width_ratios": [1.0, 1.0, 1.25]})
    figure.subplots_adjust(left=0.015, right=0.985, top=1 - 0.3 / height, bottom=0.5 / height, wspace=0.24, hspace=0.42)
    notes = [_row(row, data, dataset) for row, dataset in zip(axes, sets)]
    return [
        Drawing(
            name="displacement",
            title="Displacement of electron backscatter patterns",
            caption=(
                "Left: reference pattern with one tile. Middle: displaced pattern; arrows: "
                "sub-pixel displacement of each tile, enlarged. Right: share of pairs "
                f"whose error against the known shift is below a value (dashed: {LIMIT_PX} pixel), "
                "or, where no shift is known, the measured displacements. " + " ".join(notes)
            ),
            alt="Pattern images with displacement arrows and the distribution of their error.",
            figure=figure,
            section="real",
        )
    ]


def _row(row: np.ndarray, data: real.RealData, dataset: dict[str, Any]) -> str:
    name = dataset["dataset"]
    variant = data.main_variant(name)
    own = data.of(name, variant)
    pattern = own[own["pattern"] == dataset.get("preview_pattern", 0)]
    scale = float(np.ravel(data.previews.get(f"{name}_scale", np.ones(1)))[0])
    picture(row[0], data.previews[f"{name}_reference"], f"{name}: reference")
    tile = np.ravel(data.previews.get(f"{name}_tile", np.zeros(0)))
    if tile.size == 2 and len(pattern):
        _box(row[0], pattern.iloc[len(pattern) // 2], tile * scale, scale)
    picture(row[1], data.previews[f"{name}_deformed"], "displaced")
    factor = _arrows(row[1], pattern, scale, data.previews[f"{name}_deformed"].shape)
    known = data.of(name)
    known = known[known["error_px"].notna()]
    if len(known):
        _errors(row[2], known)
    else:
        _cloud(row[2], own)
    groups = [", ".join(names) for names, _ in alike(known) if len(names) > 1] if len(known) else []
    same = f" Errors alike within {SAME_PX:g} pixel: {'; '.join(groups)}." if groups else ""
    return f"{name}: {real.origin(dataset)}; arrows by {style.label(variant)}, {factor:.3g}x.{same}"


def _box(axes: Axes, at: pd.Series, tile: np.ndarray, scale: float) -> None:
    y, x = at["centre_y"] * scale - tile[0] / 2, at["centre_x"] * scale - tile[1] / 2
    xs, ys = [x, x + tile[1], x + tile[1], x, x], [y, y, y + tile[0], y + tile[0], y]
    axes.plot(xs, ys, color="white", linewidth=2.0)
    axes.plot(xs, ys, color="#d55e00", linewidth=1.0)


def _arrows(axes: Axes, pattern: pd.DataFrame, scale: float, shape: tuple[int, ...]) -> float:
    """Arrow per tile; returns the enlargement, chosen so that the longest spans a tenth of the
    image. y points down in the image and in the data."""
    if pattern.empty:
        return 1.0
    dy, dx = pattern["sub_sy"].to_numpy(float), pattern["sub_sx"].to_numpy(float)
    longest = float(np.nanmax(np.hypot(dy, dx)))
    factor = float(f"{0.1 * max(shape) / (longest * scale):.1g}") if longest > 0 else 1.0
    y, x = pattern["centre_y"].to_numpy(float) * scale, pattern["centre_x"].to_numpy(float) * scale
    length = factor * scale
    place = {"angles": "xy", "scale_units": "xy", "scale": 1.0}
    head = {"headwidth": 3.6, "headlength": 4.0, "headaxislength": 3.6}
    arrows = axes.quiver(x, y, dx * length, dy * length, color="#ffd23f", width=0.007, **place, **head)
    arrows.set_path_effects([withStroke(linewidth=1.6, foreground="black")])
    return factor


def alike(known: pd.DataFrame) -> list[tuple[list[str], np.ndarray]]:
    """Labels of variants whose sorted errors are the same within SAME_PX, with the errors of the first: on top of each other their curves
    would look like one."""
    found: list[tuple[list[str], np.ndarray]] = []
    for (variant, precision), own in known.groupby(["variant", "precision"], sort=True):
        errors = np.sort(own["error_px"].to_numpy(float))
        same = [one for one in found if len(one[1]) == len(errors) and np.abs(one[1] - errors).max() <= SAME_PX]
        if same:
            same[0][0].append(style.label(variant, precision))
        else:
            found.append(([style.label(variant, precision)], errors))
    return found


def _errors(axes: Axes, known: pd.DataFrame) -> None:
    """Cumulative share of pairs over error, a curve per variant, or for all those that are alike."""
    for place, (names, errors) in enumerate(alike(known)):
        share = np.arange(1, len(errors) + 1) / len(errors)
        text = f"{names[0] if len(names) == 1 else f'{len(names)} variants alike'} ({len(errors)} pairs)"
        colour, dash = CURVES[place % len(CURVES)]
        kept = np.unique(np.linspace(0, len(errors) - 1, min(len(errors), STEPS)).round().astype(int))
        errors, share = np.maximum(errors[kept], 1e-4), share[kept]
        axes.step(errors, share, where="post", label=text, color=colour, linestyle=dash, linewidth=1.4)
    axes.axvline(LIMIT_PX, color="#444444", linewidth=0.8, linestyle=(0, (4, 2)))
    axes.set_xscale("log")
    axes.set_ylim(0.0, 1.34)  # the legend stands above the curves
    axes.set_yticks([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    axes.set(xlabel="error of the displacement [pixel]", title="share of pairs below an error")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    # White, so that the line of half a pixel does not cross the labels.
    above = {"frameon": True, "facecolor": "white", "framealpha": 1.0, "edgecolor": "none", "borderpad": 0.2}
    axes.legend(loc="upper left", fontsize=6.2, handlelength=2.0, **above)


def _cloud(axes: Axes, own: pd.DataFrame) -> None:
    axes.plot(own["sub_sx"], own["sub_sy"], ".", color="#0072b2", markersize=2.5, alpha=0.6)
    axes.axhline(0.0, color="#444444", linewidth=0.6)
    axes.axvline(0.0, color="#444444", linewidth=0.6)
    axes.invert_yaxis()
    axes.set(xlabel="displacement in x [pixel]", title="measured displacements (down: y)")
