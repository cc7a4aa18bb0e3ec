"""Template matching: best tiles, speed-ups, shares of the passes, and where a transform overtakes sums of products."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _bars, _labels, _panels
from plots.sources.template_matching.tables import template_matching as table
from plots.sources.template_matching.tables import template_passes as passes
from plots.tidy import ResultSet
from xcorr.native.variants import assignments

ORDER = 96
TITLE = table.TABLE.title
SECTION = table.TABLE.name
COLD = "for the problem, cold"
COMPILED = {"for all sizes": "#bbbbbb", "for the problem, warm": "#0072b2", COLD: "#d55e00"}
TEMPLATES = table.TEMPLATES
MARKERS = "osv^Dx"
# Stay apart to colour-blind readers, simulated.
COLOURS = ("#c9721e", "#3516b9", "#7f7d7c", "#5f8fe2", "#822d00", "#3b1b38")
MISSING = f"not measured in this set ({table.TABLE.command})"
# Colour and hatch of a part of the time of the passes. Averages and denominators have one colour where they were measured as one.
LOOKS = {
    "averages": ("#a6cee3", ""),
    "denominators": ("#0072b2", ""),
    passes.TOGETHER: ("#56a0ce", "////"),
    "numerators": ("#d55e00", ""),
    passes.REST: ("#dddddd", ""),
}


def draw(results: ResultSet) -> list[Result]:
    """The five figures; Omitted with what measures them where there is nothing."""
    every = table.every_point(results)
    return [_tiles(every), _speedups(results), _passes(results), _crossover(every), _compiled(every)]


def _missing(name: str, what: str = "", experiment: str = "template-matching") -> Omitted:
    """`what` the figure shows; `experiment` measures it."""
    reason = MISSING.replace("template-matching", experiment)
    return Omitted(f"{SECTION}_{name}", f"{what}: {reason}" if what else reason, SECTION)


def _tiled(every: pd.DataFrame, patient: str) -> pd.DataFrame:
    """Points of the paper's passes of a patient with `tile`, the fastest first."""
    own = passes.points(every, patient)
    if own.empty:
        return own
    return own.assign(tile=[assignments(params).get("template_tile", "") for params in own["params"]])


def _tiles(every: pd.DataFrame) -> Result:
    found = {name: _tiled(every, name) for name in table.patients()}
    found = {name: own for name, own in found.items() if len(own) and own["tile"].nunique() > 1}
    if not found:
        return _missing("tiles", table.variant("tiled"))
    tiles = sorted({tile for own in found.values() for tile in own["tile"]}, key=_tile_order)
    figure, axes = _panels.curve_axes(list(found))
    ends, drawn = [], []
    for number, (name, own) in enumerate(found.items()):
        best = own.sort_values("time_us", kind="stable").drop_duplicates("tile").set_index("tile")
        ratio = _bars.over(best, _repeated(best.iloc[0], best.index))
        ratio.loc[best.index[0], _bars.ENDS] = np.nan  # over itself it is 1, whatever its interval
        ratio = ratio.reindex(tiles)
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        axes.plot(range(len(tiles)), ratio["y"], color=colour, marker=marker, label=name)
        _bars.draw(axes, pd.Series(range(len(tiles))), ratio, colour)
        paper = table.patients()[name].tile
        if paper in tiles and not np.isnan(ratio.at[paper, "y"]):
            axes.plot(
                tiles.index(paper),
                ratio.at[paper, "y"],
                "o",
                color=colour,
                fillstyle="none",
                markersize=9,
                label="_paper",
            )
        ends.append(_labels.end(name, range(len(tiles)), ratio["y"], colour))
        drawn.append(ratio.dropna(subset=["y"]))
    axes.set_xticks(range(len(tiles)), tiles)
    axes.set(xlabel="Main tile (rows x columns)", ylabel="Time over that of the best tile")
    _panels.log_axis(axes, np.concatenate([_bars.reach(one) for one in drawn]), _panels.tick_text("x"))
    _labels.draw(axes, ends)
    return Drawing(
        name=f"{SECTION}_tiles",
        title=f"{TITLE}: time by the tile of the template",
        caption=(
            f"The paper's passes with {TEMPLATES} templates of each patient, best number of shifts of a block for each tile. A ring marks the tile that was "
            f"best in the paper.{_bars.said(*drawn, ratio=True)}"
        ),
        alt=f"Line chart: time over that of the best tile against the tile; curves: {', '.join(found)}.",
        figure=figure,
        section=SECTION,
    )


def _repeated(point: pd.Series, index: pd.Index) -> pd.DataFrame:
    """One point at each place of the index."""
    return pd.DataFrame([point] * len(index), index=index).infer_objects()


def _tile_order(tile: str) -> tuple[int, int]:
    rows, cols = map(int, tile.split("x"))
    return rows * cols, rows


def _bar_axes(labels: Iterable[str]) -> tuple[Figure, Axes]:
    """Axes with space for a legend of these labels below: within the axes it would lie on the bars."""
    lines = _panels.legend_lines(list(labels), style.COLUMN_IN)
    figure = Figure(figsize=(style.COLUMN_IN, 2.1 + 0.15 * lines))
    axes = figure.subplots()
    bottom = (0.33 + 0.15 * lines) / figure.get_figheight()
    figure.subplots_adjust(left=0.15, right=0.97, top=0.96, bottom=bottom)
    return figure, axes


def _speedups(results: ResultSet) -> Result:
    ours = {name: table.speedup(results, one, TEMPLATES) for name, one in table.patients().items()}
    known = {name: one for name, one in ours.items() if one}
    if not known:
        return _missing("speedups", f"{table.variant('tiled')} and a CPU with all threads")
    names = list(table.patients())
    places = np.arange(len(names))
    paper = [one.speedup for one in table.patients().values()]
    kinds = {
        "with transfers": ([known[name].total if name in known else 0 for name in names], {"color": "#0072b2"}),
        "without transfers": ([known[name].compute if name in known else 0 for name in names], {"color": "#a6cee3"}),
        f"paper: {table.data()['paper']['machine']}": (
            paper,
            {"fill": False, "edgecolor": "#444444", "linewidth": 0.6},
        ),
    }
    figure, axes = _bar_axes(kinds)
    handles: dict[str, object] = {}
    for number, (label, (heights, look)) in enumerate(kinds.items()):
        handles[label] = axes.bar(places + 0.27 * (number - 1), heights, 0.25, **look)
    axes.axhline(1, color="#777777", linewidth=0.5)
    axes.set_xticks(places, names)
    axes.set_ylabel("Speed-up over the threaded CPU")
    _panels.legend_below(figure, handles, style.COLUMN_IN)
    absent = [name for name in names if name not in known]
    return Drawing(
        name=f"{SECTION}_speedups",
        title=f"{TITLE}: speed-up over the threaded CPU",
        caption=(
            f"Time of the fastest CPU variant with all threads over that of the paper's passes, {TEMPLATES} templates, of the tile with the shortest time: with "
            f"upload and download, and without. Plans are kept between frames and are in neither. Hollow: the paper, with transfers, over {table.data()['paper']['over']}."
            + (f" Not measured: {', '.join(absent)}." if absent else "")
        ),
        alt=f"Bars of the speed-up of {', '.join(names)}: with transfers, without, and in the paper.",
        figure=figure,
        section=SECTION,
    )


def _passes(results: ResultSet) -> Result:
    fastest = passes.fastest(results)
    if not fastest:
        return _missing("passes", f"phases of {table.variant('tiled')}")
    parts = [passes.shares(one) for one in fastest.values()]
    shown = [part for part in LOOKS if any(part in own for own in parts)]
    figure, axes = _bar_axes(shown)
    handles: dict[str, object] = {}
    base = np.zeros(len(fastest))
    for part in shown:
        share = 100 * np.array([own.get(part, 0.0) for own in parts])
        look = {**dict(zip(("color", "hatch"), LOOKS[part])), "edgecolor": "white", "linewidth": 0.4}
        handles[part] = axes.bar(range(len(fastest)), share, 0.6, bottom=base, **look)
        base += share
    axes.set_xticks(range(len(fastest)), list(fastest))
    axes.set_ylabel("Share of the time [%]")
    _panels.legend_below(figure, handles, style.COLUMN_IN)
    return Drawing(
        name=f"{SECTION}_passes",
        title=f"{TITLE}: shares of the passes",
        caption=f"The paper's passes with {TEMPLATES} templates of each patient. {' '.join(passes.notes(results))}",
        alt=f"Stacked bars of the shares of the passes for {', '.join(fastest)}.",
        figure=figure,
        section=SECTION,
    )


def _compiled(every: pd.DataFrame) -> Result:
    generic, specialised = table.variant("tiled"), table.variant("specialised")
    best: dict[str, tuple[pd.Series, pd.Series]] = {}
    for name in table.patients():
        own = table.of_patient(every, name, TEMPLATES)
        if own.empty:
            continue
        left, right = (own[own["variant"] == variant] for variant in (generic, specialised))
        sides = table.with_params_of(left, right), table.with_params_of(right, left)
        if all(len(side) for side in sides):
            best[name] = (sides[0].iloc[0], sides[1].iloc[0])
    if not best:
        return _missing("compiled", f"{specialised} beside {generic}", "run-time-compilation")
    figure = Figure(figsize=(style.PAGE_IN, 2.5))
    calls, firsts = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.08, right=0.985, top=0.96, bottom=0.2, wspace=0.22)
    places = np.arange(len(best))
    handles: dict[str, object] = {}
    drawn: list[pd.DataFrame] = []
    for side, label in enumerate(one for one in COMPILED if one != COLD):
        call_us = [float(one[side]["time_us"]) for one in best.values()]
        handles[label] = calls.bar(places + 0.4 * side - 0.2, call_us, 0.38, color=COMPILED[label])
        measured = _bars.spread(
            pd.DataFrame([one[side] for one in best.values()]).infer_objects(), lambda own: own["compute_us"]
        )
        _bars.draw(calls, pd.Series(places + 0.4 * side - 0.2), measured, "#222222", 3)
        drawn.append(measured)
    for number, (label, times) in enumerate(zip(COMPILED, zip(*(_first_calls(*sides) for sides in best.values())))):
        handles[label] = firsts.bar(places + 0.27 * (number - 1), np.array(times) / 1000, 0.25, color=COMPILED[label])
    calls.set_ylabel("Time of a call [µs]")
    firsts.set(ylabel="Plan and first call [ms]", yscale="log")
    firsts.yaxis.set_major_formatter(FuncFormatter(lambda one, _: f"{one:g}"))
    for axes in (calls, firsts):
        axes.set_xticks(places, list(best))
    _panels.legend_below(figure, handles, style.PAGE_IN)
    compiled = pd.DataFrame([one[1] for one in best.values()])[["compile_us", "load_us"]].astype(float).median() / 1000
    return Drawing(
        name=f"{SECTION}_compiled",
        title=f"{TITLE}: kernels compiled for the problem",
        caption=(
            f"The paper's passes with {TEMPLATES} templates of each patient, fastest point of the kernels that serve all sizes ({generic}) and of those compiled at run time "
            f"({specialised}), of the parameters that both were measured with. Left: a call once its plan is made. Right: making the plan, and one call. Cold, the kernels are "
            f"compiled; warm, they are read from the disk. Compiling takes {compiled['compile_us']:.3g} ms the first time, and from then on {compiled['load_us']:.2g} ms to load (medians).{_bars.said(*drawn)}"
        ),
        alt=f"Bars for {', '.join(best)}: a call with kernels for all sizes and for the problem; plan and first call of both, warm and cold.",
        figure=figure,
        section=SECTION,
    )


def _first_calls(generic: pd.Series, specialised: pd.Series) -> tuple[float, float, float]:
    """Plan and first call in microseconds: kernels for all sizes; for the problem from the disk; for the problem, compiled."""
    warm = float(specialised["load_us"] + specialised["time_us"])
    return float(generic["plan_us"] + generic["time_us"]), warm, float(specialised["compile_us"]) + warm


def _crossover(every: pd.DataFrame) -> Result:
    if every.empty:
        return _missing("crossover")
    transform = table.variant("transform")
    sums = [table.variant(role) for role in ("direct", "tiled", "centred")]
    square = (every["patient"] == "") & (every["left_rows"] == every["left_cols"]) & (every["lefts"] == 1)
    own = every[square & (every["fields"] == "score=zncc:0.3") & every["variant"].isin([*sums, transform])]
    own = own.assign(sums=own["variant"] != transform)
    best = own.sort_values("time_us", kind="stable").drop_duplicates(["sums", "left_rows", "shifts"])
    by_sums, by_transform = (best[best["sums"] == one].set_index(["left_rows", "shifts"]) for one in (True, False))
    ratio = _bars.over(by_sums, by_transform).sort_index()
    if ratio.empty:
        return _missing("crossover", f"{sums[0]} and {transform}")
    sides_of = ratio["y"].groupby(level="shifts").transform("size")
    ratio = ratio[sides_of == sides_of.max()]  # single sizes of other searches are no curve
    curves = []
    for number, (area, line) in enumerate(ratio.groupby(level="shifts")):
        look = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        curves.append((f"{round(area**0.5)} x {round(area**0.5)} shifts", line.droplevel("shifts").sort_index(), look))
    sides = sorted(map(int, ratio.index.get_level_values("left_rows").unique()))
    ticks = {side: str(side) for side in sides}
    across, up = "Side of the template [pixels]", "Sums of products over transform"
    figure = _panels.curve_chart(curves, ticks, across, up, "x")
    figure.axes[0].axhline(1, color="#777777", linewidth=0.5)
    labels = ", ".join(label for label, _, _ in curves)
    return Drawing(
        name=f"{SECTION}_crossover",
        title=f"{TITLE}: where a transform overtakes sums of products",
        caption=f"Time of the fastest of {', '.join(sums)} over that of {transform}, one template, zncc, fastest point of each. Above 1 the "
        f"transform is faster.{_bars.said(ratio, ratio=True)}",
        alt=f"Line chart: ratio of times against the side of the template; curves: {labels}.",
        figure=figure,
        section=SECTION,
    )
