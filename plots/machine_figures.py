"""Figures that compare machines. Each takes machines (plots/machine_sets.py); None where they have no data for it."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from plots import style, tidy
from plots.figures import _bars
from plots.figures import _panels as panels
from plots.machine_sets import Machine, curve_style, shared_counts
from plots.metrics import MICRO
from plots.tables.crossover import crossed

SLANTED_IN = 0.19  # between labels of sizes: three facets stand side by side
ACCOUNTINGS = {"fft_us": "FFT", "fft_plan_us": "FFT + plan"}


def curves(machines: Sequence[Machine], form: str, columns: tuple[str, str], unit: str, axis: str) -> Figure | None:
    """Lines against size, a facet per count, a line per machine: the first column (in seconds), or the second over
    the first if there is a second. None when no machine has both."""
    measured, over = columns
    drawn = []
    for one in machines:
        value = one.cells[over] / one.cells[measured] if over else one.cells[measured] * MICRO
        drawn.append(dataclasses.replace(one, cells=one.cells.assign(y=value, **_reach(one, measured, over))))
    points = shared_counts(drawn, form, "y")
    if points.empty:
        return None
    facets = panels.facet_counts(points)
    labels = [one.label for one in machines]
    width = style.COLUMN_IN if len(facets) == 1 else style.PAGE_IN
    figure, axes, width = panels.grid(len(facets), legend=panels.legend_lines(labels, width))
    handles: dict[str, object] = {}
    drawn_sizes = pd.concat([frame for _, frame in facets])
    for one_axes, (counts, frame) in zip([a for row in axes for a in row], facets):
        for one in drawn:
            own = _at(one.cells, form, counts)
            own = own.dropna(subset=["y"]).sort_values("side")
            if len(own):
                (artist,) = one_axes.plot(own["side"], own["y"], **curve_style(one))
                _bars.draw(one_axes, own["side"], own, one.look.colour)
                handles.setdefault(one.label, artist)
        shared = 2 * frame["size"].nunique() > drawn_sizes["size"].nunique()
        panels.size_axis(one_axes, drawn_sizes if shared else frame, SLANTED_IN)
        panels.log_axis(one_axes, points["y"].to_numpy(dtype=float), panels.tick_text(unit))
        one_axes.set_title(counts)
        if over:
            one_axes.axhline(1.0, color="#444444", linewidth=0.8, zorder=1)
    for row in axes:
        row[0].set_ylabel(axis)
    panels.legend_below(figure, {name: handles[name] for name in labels if name in handles}, width)
    return figure


def _reach(one: Machine, measured: str, over: str) -> dict[str, pd.Series]:
    """The ends of the interval of a time in seconds, or of the time `over` over it, of each cell of a machine; empty where it has none."""
    if one.ends.empty:
        return {}
    (low, high), (most, least) = (
        (one.ends[f"{measured}_{end}"] for end in ends) for ends in (("low", "high"), ("high", "low"))
    )
    if not over:
        return {"y_low": low * MICRO, "y_high": high * MICRO}
    return {"y_low": one.ends[f"{over}_low"] / most, "y_high": one.ends[f"{over}_high"] / least}


def crossovers(machines: Sequence[Machine]) -> pd.DataFrame:
    """A line per machine, form, count and accounting: `size` of the crossover, and `where` it is: between
    measured sizes, or above or below all of them, and then `size` is at the edge. A tie is no win of a transform."""
    lines = []
    for one in machines:
        for (form, pairs, lefts, counts), cells in one.cells.groupby(["form", "pairs", "lefts", "counts"]):
            for accounting in ACCOUNTINGS:
                both = cells.dropna(subset=["definition_us", accounting]).sort_values("side")
                if len(both) < 2:
                    continue
                ratios = (both["definition_us"] / both[accounting]).map(math.log)
                low, high = crossed(list(zip(both["side"], ratios)), tie_wins=False)
                where = "above" if math.isinf(high) else "between" if low else "below"
                lines.append((one.key, form, pairs, lefts, counts, accounting, low or high, where))
    columns = ["machine", "form", "pairs", "lefts", "counts", "accounting", "size", "where"]
    return tidy.ordered(pd.DataFrame(lines, columns=columns), ["form", "pairs", "lefts"])


def crossover_figure(machines: Sequence[Machine]) -> Figure | None:
    """Crossover size per form and count (lines), a marker per machine; one facet without and one with the plan. An
    arrow at the edge of what was measured: no crossover up to there (right) or from there on (left)."""
    found = crossovers(machines)
    shared = found.groupby(["form", "counts"])["machine"].transform("nunique")
    found = found[shared >= min(2, found["machine"].nunique())]
    if found.empty:
        return None
    rows = list(dict.fromkeys(zip(found["form"], found["counts"])))
    labels = [one.label for one in machines]
    lines = panels.legend_lines(labels, style.PAGE_IN)
    height = 0.6 + 0.22 * len(rows) + 0.5 + 0.155 * lines
    figure = Figure(figsize=(style.PAGE_IN, height))
    axes = figure.subplots(1, len(ACCOUNTINGS), sharey=True, squeeze=False)[0]
    figure.subplots_adjust(
        left=0.19, right=0.985, wspace=0.06, top=1 - 0.3 / height, bottom=(0.55 + 0.155 * lines) / height
    )
    handles: dict[str, object] = {}
    for one_axes, (accounting, name) in zip(axes, ACCOUNTINGS.items()):
        for place, one in enumerate(machines):
            own = found[(found["machine"] == one.key) & (found["accounting"] == accounting)]
            offset = (place - (len(machines) - 1) / 2) * min(0.16, 0.7 / max(1, len(machines)))
            for _, line in own.iterrows():
                marker = {"above": ">", "below": "<"}.get(line["where"], one.look.marker)
                edge = 4.2 if marker in "<>" else 5.0
                look = {**curve_style(one), "marker": marker, "linestyle": "none", "markersize": edge}
                one_axes.plot([line["size"]], [rows.index((line["form"], line["counts"])) + offset], **look)
            (handle,) = one_axes.plot([], [], **{**curve_style(one), "linestyle": "none"})
            handles.setdefault(one.label, handle)
        one_axes.set_xscale("log")
        low, high = found["size"].min() / 1.25, found["size"].max() * 1.25
        ticks = [side for side in (8, 16, 32, 64, 128, 256, 512) if low <= side <= high]
        one_axes.set_xticks(ticks, [f"{s}x{s}" for s in ticks])
        one_axes.set_xticks([], minor=True)
        one_axes.set_xlim(low, high)
        one_axes.set(title=f"Against {name}", xlabel="Size at which the FFT takes over")
        for line in np.arange(len(rows) - 1) + 0.5:
            one_axes.axhline(line, color="#eeeeee", linewidth=0.5)
        one_axes.grid(axis="y", visible=False)
    axes[0].set_yticks(range(len(rows)), [f"{form}, {counts}" for form, counts in rows])
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
    panels.legend_below(figure, handles, style.PAGE_IN)
    return figure


def optimisation_figure(machines: Sequence[Machine], form: str, counts: str, steps: Sequence[str]) -> Figure | None:
    """Time of the baseline over that of the best parameters of each optimisation, against size at one count: a facet per
    optimisation, a line per machine, each over its own baseline. Optimisations and sizes of one machine alone are left out."""
    lines = {(one.key, name): _ratios(one, form, counts, name) for name in steps for one in machines}
    shared = _shared_sides([_at(one.cells, form, counts) for one in machines])
    lines = {place: own[own.index.isin(shared)] for place, own in lines.items()}
    lines = {place: own for place, own in lines.items() if own.size > 1}
    times = [sum((one.key, name) in lines for one in machines) for name in steps]
    there = [name for name, number in zip(steps, times) if number >= min(2, max(times))]
    lines = {(key, name): own for (key, name), own in lines.items() if name in there}
    if not lines:
        return None
    labels = [one.label for one in machines]
    figure, axes, width = panels.grid(len(there), legend=panels.legend_lines(labels, style.PAGE_IN))
    everything = pd.concat(lines.values())
    sizes = _at(pd.concat([one.cells for one in machines]), form, counts)
    sizes = sizes[sizes["side"].isin(everything.index)]
    handles: dict[str, object] = {}
    for one_axes, name in zip([a for row in axes for a in row], there):
        for one in machines:
            own = lines.get((one.key, name))
            if own is not None:
                (artist,) = one_axes.plot(own.index, own, **curve_style(one))
                bars = _at(
                    one.cells.assign(y=one.cells["baseline_us"] / one.cells[name], **_reach(one, name, "baseline_us")),
                    form,
                    counts,
                )
                bars = bars[bars["side"].isin(own.index)]
                _bars.draw(one_axes, bars["side"], bars, one.look.colour)
                handles.setdefault(one.label, artist)
        panels.size_axis(one_axes, sizes, SLANTED_IN)
        panels.log_axis(one_axes, everything.to_numpy(dtype=float), panels.tick_text("x"))
        one_axes.set_title(name)
        one_axes.axhline(1.0, color="#444444", linewidth=0.8, zorder=1)
    for row in axes:
        row[0].set_ylabel("Speed-up over the baseline")
    panels.legend_below(figure, {name: handles[name] for name in labels if name in handles}, width)
    return figure


def _shared_sides(frames: Sequence[pd.DataFrame]) -> set[float]:
    """The sides of matrices that at least two of the frames have; all of them, if only one frame has any."""
    times = pd.concat([pd.Series(sorted(set(own["side"])), dtype=float) for own in frames]).value_counts()
    least = min(2, sum(len(own) > 0 for own in frames))
    return set(times.index[times >= least])


def _ratios(one: Machine, form: str, counts: str, name: str) -> pd.Series:
    """Baseline over an optimisation by matrix side."""
    if name not in one.cells:
        return pd.Series(dtype=float)
    own = _at(one.cells, form, counts).sort_values("side")
    return (own["baseline_us"] / own[name]).set_axis(own["side"]).dropna()


def roof_shares(one: Machine) -> pd.DataFrame:
    """Of each cell the share of nominal peaks: `arithmetic` of the useful FMAs of the best definition-based point, `memory`
    of the compulsory bytes in the time of the fastest point of all."""
    cells = one.cells
    fastest = cells[["definition_us", "fft_us"]].min(axis=1)
    return cells.assign(
        arithmetic=2.0 * cells["fmas"] / (cells["definition_us"] * MICRO) / one.flops,
        memory=cells["bytes"] / (fastest * MICRO) / one.dram,
    )


ROOFS = {"arithmetic": "FP32 peak, useful work", "memory": "DRAM peak, compulsory bytes"}


def roof_figure(machines: Sequence[Machine], places: Mapping[str, str]) -> Figure | None:
    """Share of two roofs against size: a column of facets per form at one count, a row per roof."""
    shares = {one.key: roof_shares(one) for one in machines if math.isfinite(one.flops)}
    shown = [one for one in machines if one.key in shares]
    if not shown:
        return None
    for form, counts in places.items():
        shared = _shared_sides([_at(own, form, counts) for own in shares.values()])
        for key, own in shares.items():
            here = (own["form"] == form) & (own["counts"] == counts)
            shares[key] = own[~here | own["side"].isin(shared)]
    every = pd.concat(list(shares.values()))
    there = [(form, counts) for form, counts in places.items() if _at(every, form, counts)["size"].nunique() > 1]
    if not there:
        return None
    labels = [one.label for one in shown]
    rows = len(ROOFS)
    figure, axes, width = panels.grid(len(there), rows_of=rows, legend=panels.legend_lines(labels, style.PAGE_IN))
    values = pd.concat([_at(every, form, counts)[list(ROOFS)].stack() for form, counts in there]).to_numpy(dtype=float)
    handles: dict[str, object] = {}
    for row, (roof, axis) in zip(axes, ROOFS.items()):
        for one_axes, (form, counts) in zip(row, there):
            for one in shown:
                own = _at(shares[one.key], form, counts).dropna(subset=[roof]).sort_values("side")
                if len(own):
                    (artist,) = one_axes.plot(own["side"], 100.0 * own[roof], **curve_style(one))
                    handles.setdefault(one.label, artist)
            panels.size_axis(one_axes, _at(every, form, counts).drop_duplicates("size"), SLANTED_IN)
            panels.log_axis(one_axes, 100.0 * values, FuncFormatter(lambda v, _: f"{v:g} %"))
            one_axes.set_title(f"{form}, {counts}")
            one_axes.axhline(100.0, color="#444444", linewidth=0.8, zorder=1)
        row[0].set_ylabel(axis)
    panels.legend_below(figure, {name: handles[name] for name in labels if name in handles}, width)
    return figure


def _at(cells: pd.DataFrame, form: str, counts: str) -> pd.DataFrame:
    return cells[(cells["form"] == form) & (cells["counts"] == counts)]
