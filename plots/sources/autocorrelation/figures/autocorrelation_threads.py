"""Autocorrelation of images by the number of threads, which divide the images or the rows of shifts."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from experiments import folders
from plots import style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _bars, _panels
from plots.sources.autocorrelation.tables import autocorrelation
from plots.tidy import ResultSet, select
from xcorr.native.variants import assignments

ORDER = 96
NAME = "autocorrelation_threads"
TITLE = f"{autocorrelation.TABLE.title}: speed-up by the number of threads"
SECTION = autocorrelation.TABLE.name
MISSING = "not measured in this set (./scripts/reproduce.sh --device cpu --experiments autocorrelation-threads), or its machine has one core"
ROWS, IMAGES = "rows_of_shifts", "images"  # values of threads_over
CURVES: dict[str, tuple[str, dict[str, Any]]] = {
    ROWS: ("threads over rows of shifts (ours)", {"color": "#0072b2", "marker": "o", "markersize": 3.5}),
    IMAGES: ("threads over images (ISS paper)", {"color": "#d55e00", "marker": "s", "markersize": 3.5}),
}
LINEAR = ("as many times as fast as threads", {"color": "#777777", "linewidth": 0.6})
HOLLOW = {"linestyle": "None", "marker": "D", "markersize": 4.5, "color": "#d55e00", "markerfacecolor": "white"}


def speedups(results: ResultSet) -> pd.DataFrame:
    """Of each number of images (`lefts`) and each of CURVES (`over`): `speedup` over one thread by the number of `threads`, which is 1
    too, with the ends of its interval (_bars.ENDS). Empty without times of several threads."""
    spec = folders.part("autocorrelation", "figures")["drawn_by"][NAME]
    found = autocorrelation.every_point(results)
    columns = ["lefts", "over", "threads", "speedup", *_bars.ENDS]
    own = select(found, variant=spec["variant"], **spec["problem"]) if len(found) else found
    if own.empty:
        return pd.DataFrame(columns=columns)
    own = own[own["threads"] != "all"]
    own = own.assign(
        threads=own["threads"].astype(int), over=[assignments(one).get("threads_over") for one in own["params"]]
    )
    lines = []
    for lefts, of_count in own.groupby("lefts"):
        one_thread = of_count[of_count["threads"] == 1]
        for over, some in of_count.groupby("over"):  # one thread has none
            if len(one_thread):
                base = one_thread.iloc[[0] * len(some)].set_axis(some.index)
                ratios = _bars.over(base, some)[["y", *_bars.ENDS]]
                lines.append((lefts, over, 1, 1.0, 1.0, 1.0))
                lines += [(lefts, over, n, *one) for n, one in zip(some["threads"], ratios.to_numpy().tolist())]
    return pd.DataFrame(lines, columns=columns).sort_values(columns[:3], ignore_index=True)


def draw(results: ResultSet) -> list[Result]:
    found = speedups(results)
    if found.empty:
        return [Omitted(NAME, MISSING, SECTION)]
    papers = folders.part("autocorrelation", "baselines")["threads"]
    labels = {over: text for over, (text, _) in CURVES.items() if over in set(found["over"])}
    printed = papers if IMAGES in labels else []
    every = [*labels.values(), LINEAR[0], *(f"paper: {one['machine']}" for one in printed)]
    counts = sorted(found["lefts"].unique())
    width = style.COLUMN_IN if len(counts) == 1 else style.PAGE_IN
    figure, rows, width = _panels.grid(len(counts), legend=_panels.legend_lines(every, width))
    most = max(int(found["threads"].max()), *(one["threads"] for one in printed), 2)
    handles: dict[str, object] = {}
    for axes, count in zip((one for row in rows for one in row), counts):
        handles |= _panel(axes, found[found["lefts"] == count], printed, most)
        axes.set_title(f"{count} images" if count > 1 else "1 image")
    rows[0][0].set_ylabel("Speed-up over one thread")
    _panels.legend_below(figure, {text: handles[text] for text in every if text in handles}, width)
    return [
        Drawing(
            name=NAME,
            title=TITLE,
            caption=(
                "Section 2.2 of the ISS paper: time of the SIMD program with one thread over its time with several, computation alone, images of 480 x 640, "
                "R = 16. A thread has whole images, as in the paper's OpenMP program, or rows of shifts of any image, as in ours, which also serves one image."
                + _bars.said(found.assign(y=found["speedup"]), ratio=True)
                + " Hollow: what the paper says of four cores, nearly fourfold, which was not checked here."
                * bool(printed)
            ),
            alt=f"Line chart: speed-up over one thread against the number of threads, a panel for {', '.join(map(str, counts))} images; curves: {', '.join(every)}.",
            figure=figure,
            section=SECTION,
        )
    ]


def _panel(axes: Axes, own: pd.DataFrame, printed: list[dict[str, Any]], most: int) -> dict[str, object]:
    """Draws the curves of one number of images, with the paper's points where images are divided; handles of the legend by text."""
    ticks = [2**n for n in range(most.bit_length())]
    handles: dict[str, object] = {}
    (handles[LINEAR[0]],) = axes.plot(ticks, ticks, **LINEAR[1])
    for over, (text, look) in CURVES.items():
        some = own[own["over"] == over]
        if len(some):
            (handles[text],) = axes.plot(some["threads"], some["speedup"], **look)
            _bars.draw(axes, some["threads"], some.assign(y=some["speedup"]), look["color"])
    for one in printed if IMAGES in set(own["over"]) else ():
        (handles[f"paper: {one['machine']}"],) = axes.plot(one["threads"], one["speedup"], **HOLLOW)
    axes.set(xscale="log", yscale="log", xlabel="Threads")
    axes.set_xticks(ticks, list(map(str, ticks)))
    axes.set_yticks(ticks, [f"{one}x" for one in ticks])
    axes.minorticks_off()
    return handles
