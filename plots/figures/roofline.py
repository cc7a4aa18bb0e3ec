"""Work rate against arithmetic intensity, under the ceilings of the machine."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from plots import ceilings as limits
from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _bars, _classes, _labels, _panels
from plots.figures._panels import FORM_TITLES
from plots.metrics import seconds
from plots.tidy import PROBLEM, USUAL, ResultSet, form_order, passed
from xcorr.choice.floor import fft_flops
from xcorr.native.variants import is_transform
from xcorr.problem import Problem

ORDER = 64
TITLE = "Roofline"
MEMORY, ROOF = "memory", "#222222"  # name and colour of a roof
ROOFS = [  # field of Ceilings, label, dash
    ("fp32_fma", "FP32, FMAs only", "-"),
    ("fp32_product", "FP32, matrix product", (0, (5, 1.6))),
    ("tf32_product", "TF32, matrix product", (0, (1.1, 1.3))),
]


def work(points: pd.DataFrame) -> pd.Series:
    """FLOPs that a point must do at least by its own kind of algorithm: two for each multiply-add of the definition, or, by a
    transform, those that the floor counts. By the work of the definition transforms would lie above every roof."""
    transform = points["variant"].map(is_transform).astype(bool)
    problems = [Problem.of_cells(*values) for values in points[PROBLEM].to_numpy().tolist()]
    by_fft = pd.Series([fft_flops(one) for one in problems], points.index, dtype=float)
    return (2.0 * points["fmas"]).where(~transform, by_fft)


def best_points(points: pd.DataFrame) -> pd.DataFrame:
    """Per variant, form and size the passed line with the highest rate of work, counts and
    parameters free; with `rate` (FLOP/s) and `intensity` (FLOP per compulsory byte)."""
    verified = passed(points, **USUAL)
    flops = work(verified)
    verified = _bars.spread(verified, lambda own: flops.reindex(own.index) / seconds(own))
    verified = verified.assign(rate=verified["y"], intensity=flops / verified["bytes"])
    ranked = verified.sort_values(["rate", "params"], ascending=[False, True], kind="stable")
    best = ranked.drop_duplicates(["variant", "form", "size"], keep="first")
    return best.sort_values(["variant", "form", "intensity"], kind="stable")


def families(best: pd.DataFrame) -> pd.DataFrame:
    """Of the best points of the variants the highest of each family, form and size, with the name of its line."""
    best = best.assign(**{_classes.NAME: _classes.family_names(best)})
    ranked = best.sort_values(["rate", "variant"], ascending=[False, True], kind="stable")
    kept = ranked.drop_duplicates([_classes.NAME, "form", "size"], keep="first")
    return kept.sort_values([_classes.NAME, "form", "side"], kind="stable")


def draw(results: ResultSet) -> list[Result]:
    """One figure: a panel per form, a line per family."""
    ceilings = limits.load(results.folder)
    if isinstance(ceilings, str):
        return [Omitted("roofline", ceilings, "beyond")]
    best = best_points(results.feeding("roofline"))
    if best.empty:
        return [Omitted("roofline", "no verified time in this set", "beyond")]
    return [_one(best, ceilings)]


def _one(best: pd.DataFrame, ceilings: limits.Ceilings) -> Drawing:
    every, best = best, families(best)
    forms = sorted(best["form"].unique(), key=form_order)
    roofs = [roof for roof in ROOFS if getattr(ceilings, roof[0])]
    names = [*best[_classes.NAME].unique(), *(text for _, text, _ in roofs)]
    figure, axes, _ = _panels.grid(len(forms), height=2.3, gap=0.62, legend=0, for_names=_labels.names_in(names))
    flat = [one for row in axes for one in row]
    peaks = [getattr(ceilings, name) for name, _, _ in roofs]
    values = np.array([*_bars.reach(best), *peaks], dtype=float)
    reach = (float(best["intensity"].min()) / 1.5, float(best["intensity"].max()) * 1.5)
    for one, form in zip(flat, forms):
        ends = [_series(one, own) for _, own in best[best["form"] == form].groupby(_classes.NAME, sort=True)]
        one.set(xscale="log", xlim=reach, title=FORM_TITLES.get(form, form))
        ends += _roofs(one, roofs, ceilings, np.array(reach))
        one.set_xlabel("FLOP per compulsory byte", labelpad=1)
        _panels.log_axis(one, values, _panels.tick_text("FLOP/s"), 1.5)
        one.xaxis.set_major_formatter(_panels.tick_text("FLOP"))
        _labels.draw(one, ends)
    for row in axes:
        row[0].set_ylabel("Work rate [FLOP/s]")
    top = every.loc[every["rate"].idxmax()]
    return Drawing(
        name="roofline",
        title="Work rate under the ceilings of the machine",
        caption=(
            "FLOP/s against FLOP per compulsory byte (inputs and outputs once). The work is that of the kind of algorithm: two FLOPs per multiply-add "
            "of the definition, or, by a transform, the fewest that the floor counts for transforms of the problem. A line is a family: at each size "
            "its variant, number of matrices and parameters of the highest rate. Black lines are the measured bandwidth "
            f"({ceilings.bytes_per_s / 1e12:.3g} TB/s) and arithmetic peaks. The highest rate is "
            f"{top['rate'] / 1e12:.3g} TFLOP/s, {style.label(top['variant'])}, {top['form']}, {top['counts']}, {top['size']}.{_bars.said(best)}"
        ),
        alt="Chart of FLOP/s against arithmetic intensity, a line per family, under the roofs of the machine.",
        figure=figure,
        section="beyond",
    )


def _series(axes: Axes, own: pd.DataFrame) -> _labels.End | None:
    """The points of a family in one panel, from small matrices to large ones."""
    first = own.iloc[0]
    look = style.family_look(first["family"], bool(own["variant"].map(is_transform).all()))
    axes.plot(own["intensity"], own["rate"], linewidth=0.9, markersize=3.4, label=first[_classes.NAME], **look.line())
    _bars.draw(axes, own["intensity"], own, look.colour)
    return _labels.end(first[_classes.NAME], own["intensity"], own["rate"], look.colour)


def _roofs(axes: Axes, roofs: list[tuple], ceilings: limits.Ceilings, reach: np.ndarray) -> list[_labels.End | None]:
    """Draw bandwidth up to the highest peak and each peak from where bandwidth meets it."""
    highest = max(getattr(ceilings, name) for name, _, _ in roofs)
    slope = np.array([reach[0], max(reach[0], min(reach[1], highest / ceilings.bytes_per_s))])
    line = {"color": ROOF, "linewidth": 1.0, "zorder": 1}
    axes.plot(slope, slope * ceilings.bytes_per_s, linestyle="-.", label=f"_{MEMORY}", **line)
    above = 7.5 * slope[0] * ceilings.bytes_per_s  # left of the slope, whose name it is
    axes.text(1.1 * reach[0], above, MEMORY, color=ROOF, fontsize=style.NAME_PT, ha="left", va="bottom")
    ends = []
    for name, text, dash in roofs:
        peak = getattr(ceilings, name)
        knee = max(reach[0], peak / ceilings.bytes_per_s)
        axes.plot([knee, reach[1]], [peak, peak], linestyle=dash, label=f"_{text}", **line)
        ends.append(_labels.end(text, [reach[1]], [peak], ROOF))
    return ends
