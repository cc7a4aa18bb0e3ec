"""Useful work rate against arithmetic intensity, under the ceilings of the machine."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from plots import ceilings as limits
from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _panels
from plots.figures._panels import FORM_TITLES
from plots.metrics import METRICS
from plots.tidy import USUAL, ResultSet, form_order, passed

ORDER = 64
TITLE = "Roofline"
LEGEND_COLUMNS = 3
ROOFS = [  # field of Ceilings, label, dash
    ("fp32_fma", "FP32, FMAs only", "-"),
    ("fp32_product", "FP32, matrix product", (0, (5, 1.6))),
    ("tf32_product", "TF32, matrix product", (0, (1.1, 1.3))),
]


def best_points(points: pd.DataFrame) -> pd.DataFrame:
    """Per variant, form and size the passed line with the highest rate of useful work, counts and
    parameters free; with `rate` (FLOP/s) and `intensity` (FLOP per compulsory byte)."""
    verified = passed(points, **USUAL)
    verified = verified.assign(
        rate=METRICS["useful_flops"].of(verified), intensity=2.0 * verified["fmas"] / verified["bytes"]
    )
    ranked = verified.sort_values(["rate", "params"], ascending=[False, True], kind="stable")
    best = ranked.drop_duplicates(["variant", "form", "size"], keep="first")
    return best.sort_values(["variant", "form", "intensity"], kind="stable")


def draw(results: ResultSet) -> list[Result]:
    """One figure: a panel per form, a marker per variant."""
    ceilings = limits.load(results.folder)
    if isinstance(ceilings, str):
        return [Omitted("roofline", ceilings, "beyond")]
    best = best_points(results.feeding("roofline"))
    if best.empty:
        return [Omitted("roofline", "no verified time in this set", "beyond")]
    return [_one(best, ceilings)]


def _one(best: pd.DataFrame, ceilings: limits.Ceilings) -> Drawing:
    forms = sorted(best["form"].unique(), key=form_order)
    roofs = [roof for roof in ROOFS if getattr(ceilings, roof[0])]
    order = sorted(best["variant"].unique(), key=lambda name: style.label(name).lower())
    halves = len(forms) > 2
    lines = math.ceil((len(order) + len(roofs) + 1) / LEGEND_COLUMNS)
    figure, axes, width = _panels.grid(
        2 if halves else len(forms), rows_of=2 if halves else 1, height=2.3, gap=0.62, legend=math.ceil(0.85 * lines)
    )
    flat = [one for row in axes for one in row]
    for spare in flat[len(forms) :]:
        spare.remove()
    handles: dict[str, object] = {}
    peaks = [getattr(ceilings, name) for name, _, _ in roofs]
    values = np.array([*best["rate"], *peaks], dtype=float)
    reach = (float(best["intensity"].min()) / 1.5, float(best["intensity"].max()) * 1.5)
    for one, form in zip(flat, forms):
        for variant in order:
            own = best[(best["form"] == form) & (best["variant"] == variant)]
            handles.setdefault(style.label(variant), _series(one, own, variant, best))
        one.set(xscale="log", xlim=reach, title=FORM_TITLES.get(form, form))
        handles.update(_roofs(one, roofs, ceilings, np.array(reach)))
        one.set_xlabel("FLOP per compulsory byte", labelpad=1)
        _panels.log_axis(one, values, _panels.tick_text("FLOP/s"), 1.5)
        one.xaxis.set_major_formatter(_panels.tick_text("FLOP"))
    for row in axes:
        row[0].set_ylabel(METRICS["useful_flops"].axis_label)
    _panels.legend_below(figure, handles, width, ncol=LEGEND_COLUMNS, handlelength=2.2, handletextpad=None)
    top = best.loc[best["rate"].idxmax()]
    return Drawing(
        name="roofline",
        title="Useful work rate under the ceilings of the machine",
        caption=(
            "Useful FLOP/s (two per multiply-add of the definition) against useful FLOP per compulsory byte (inputs and "
            "outputs once). Each variant is shown at each size with the number of matrices and the parameters of its highest "
            f"rate. The lines are the measured bandwidth ({ceilings.bytes_per_s / 1e12:.3g} TB/s) and arithmetic peaks. "
            "Transforms need less work than the definition, so they may lie above the FP32 lines. The highest rate is "
            f"{top['rate'] / 1e12:.0f} TFLOP/s, {style.label(top['variant'])}, {top['form']}, "
            f"{top['counts']}, {top['size']}."
        ),
        alt="Scatter plot: useful FLOP/s against arithmetic intensity, a marker per variant.",
        figure=figure,
        section="beyond",
    )


def _series(axes: Axes, own: pd.DataFrame, variant: str, best: pd.DataFrame) -> Line2D:
    """The points of a variant in one panel; its handle shows the marker without the line."""
    family = best.loc[best["variant"] == variant, "family"].iloc[0]
    look = style.look(variant, family)
    marks = {"color": look.colour, "marker": look.marker, "markersize": 3.4}
    if len(own):
        axes.plot(own["intensity"], own["rate"], linewidth=0.4, **marks)
    return Line2D([], [], linestyle="none", **marks)


def _roofs(axes: Axes, roofs: list[tuple], ceilings: limits.Ceilings, reach: np.ndarray) -> dict[str, Line2D]:
    """Draw bandwidth up to the highest peak and each peak from where bandwidth meets it."""
    handles = {}
    highest = max(getattr(ceilings, name) for name, _, _ in roofs)
    slope = np.array([reach[0], max(reach[0], min(reach[1], highest / ceilings.bytes_per_s))])
    line = {"color": "#222222", "linewidth": 1.0, "zorder": 1}
    (handles["memory"],) = axes.plot(slope, slope * ceilings.bytes_per_s, linestyle="-.", **line)
    for name, text, dash in roofs:
        peak = getattr(ceilings, name)
        knee = max(reach[0], peak / ceilings.bytes_per_s)
        (handles[text],) = axes.plot([knee, reach[1]], [peak, peak], linestyle=dash, **line)
    return handles
