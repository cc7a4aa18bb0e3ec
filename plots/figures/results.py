"""Surfaces beside peaks: time, bytes and energy of each output of a problem, a row of dots a problem."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from plots import noise, style
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _bars, _panels
from plots.tables import results as table
from plots.tables.table import duration
from plots.tidy import ResultSet

ORDER = 96
TITLE = table.TABLE.title
SECTION = "results"
MISSING = f"not measured in this set ({table.TABLE.command})"
PANELS = (("time_us", "Time ratio"), ("moved_bytes", "Bytes ratio"), ("energy_uj", "Energy ratio"))
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"
LOOKS = {  # colour by how the output is made, filled where the boundary is zeros
    one: (colour, marker, fill)
    for suffix, fill in (("", "full"), (table.CIRCULAR, "none"))
    for one, colour, marker in (
        (table.PLAIN + suffix, BLUE, "o"),
        (table.REDUCED + suffix, ORANGE, "s"),
        (table.FUSED + suffix, GREEN, "D"),
    )
}


def draw(results: ResultSet) -> list[Result]:
    """One figure of three panels; Omitted with what measures it where there is nothing."""
    lines = table.table(results)
    if lines.empty:
        return [Omitted(SECTION, MISSING, SECTION)]
    lines, problems = _relative(_with_ends(lines, results))
    seen = [one for one in table.OUTPUTS if one in set(lines["output"])]
    legend = _panels.legend_lines(seen, style.PAGE_IN)
    height = 0.4 * len(problems) + 0.72 + 0.16 * legend
    figure = Figure(figsize=(style.PAGE_IN, height))
    axes = figure.subplots(1, len(PANELS), sharey=True)
    figure.subplots_adjust(
        left=0.3, right=0.985, top=1 - 0.06 / height, bottom=(0.55 + 0.16 * legend) / height, wspace=0.1
    )
    handles: dict[str, object] = {}
    for panel, (column, text) in zip(axes, PANELS):
        _panel(panel, lines, column, handles)
        _ratio_axis(panel, lines[column].to_numpy(dtype=float), text)
    axes[0].set_yticks(range(len(problems)), problems)
    axes[0].set_ylim(len(problems) - 0.5, -0.5)
    _panels.legend_below(figure, {one: handles[one] for one in seen}, style.PAGE_IN)
    return [
        Drawing(
            name=SECTION,
            title=f"{TITLE}: time, bytes and energy",
            caption=(
                "Each dot is over the surface of its problem, whose values stand on the left (the circular one, where no other was measured): "
                "left of 1 is less. Of each output the fastest variant counts. Bytes are the least that must cross memory; a reduced surface is "
                f"written and read.{_bars.said(_ratios(lines), ratio=True)} {table.lacking(lines)}"
            ).strip(),
            alt=f"Dots of time, bytes and energy over those of the surface for {len(problems)} problems; outputs: {', '.join(seen)}.",
            figure=figure,
            section=SECTION,
        )
    ]


def _with_ends(lines: pd.DataFrame, results: ResultSet) -> pd.DataFrame:
    """The lines of the table with the ends of the interval of their time, `low_us` and `high_us`."""
    key = [*table.PLACE, "output"]
    points = table.points(results).sort_values(["compute_us", "variant"], kind="stable").drop_duplicates(key)
    ends = noise.ends_us(points.set_index(key)).reindex(pd.MultiIndex.from_frame(lines[key]))
    return lines.assign(low_us=ends["low"].to_numpy(), high_us=ends["high"].to_numpy())


def _ratios(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines that have a ratio of times, as _bars has it: of the surface it is 1, whatever its interval."""
    return lines[lines["y_low"].notna()].assign(y=lines["time_us"])


def _relative(lines: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The lines with the columns of PANELS over those of their problem's surface, and `row`; and the texts of the problems. A
    problem without a surface is left out."""
    kept: list[pd.DataFrame] = []
    texts: list[str] = []
    for _, own in lines.groupby(table.PLACE, sort=False):
        bases = [own[own["output"] == one] for one in (table.PLAIN, table.PLAIN + table.CIRCULAR)]
        base = next((one.iloc[0] for one in bases if len(one)), None)
        if base is None:
            continue
        values = [duration(base["time_us"]), table.byte_text(base["moved_bytes"]), table.energy_text(base["energy_uj"])]
        texts.append(f"{table.label(*base[table.NAMED])}\n{', '.join(one for one in values if one != table.MISSING)}")
        ends = {"y_low": own["low_us"] / base["high_us"], "y_high": own["high_us"] / base["low_us"]}
        ends = {name: values.where(own["output"] != base["output"]) for name, values in ends.items()}
        kept.append(own.assign(row=len(kept), **ends, **{column: own[column] / base[column] for column, _ in PANELS}))
    return pd.concat(kept, ignore_index=True), texts


def _panel(axes: Axes, lines: pd.DataFrame, column: str, handles: dict[str, object]) -> None:
    """The dots of a panel, those of a problem on one line, and a thin line between the least and the most."""
    known = lines[lines[column] > 0]
    axes.axvline(1, color="#777777", linewidth=0.8, zorder=0)
    for row, own in known.groupby("row"):
        axes.plot([own[column].min(), own[column].max()], [row, row], color="#cccccc", linewidth=1, zorder=1)
    for output, (colour, marker, fill) in LOOKS.items():
        own = known[known["output"] == output]
        look = {"color": colour, "marker": marker, "fillstyle": fill, "linestyle": "none", "markersize": 5}
        (handles[output],) = axes.plot(own[column], own["row"], zorder=2, label=output, **look)
        if column == "time_us":
            bars = _ratios(own)
            _bars.draw(axes, bars["row"], bars, colour, level=True)
    if known.empty:
        axes.text(0.5, 0.5, "not measured", ha="center", va="center", transform=axes.transAxes, color="#777777")


def _ratio_axis(axes: Axes, values: np.ndarray, text: str) -> None:
    """A logarithmic axis around the values and 1, labelled with factors."""
    values = np.append(values[values > 0], 1.0)
    low, high = values.min() / 1.4, values.max() * 1.4
    axes.set(xscale="log", xlim=(low, high), xlabel=text)
    subs = (1.0, 2.0, 5.0) if high / low < 100 else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(base=10.0, subs=subs, numticks=12))
    axes.xaxis.set_major_formatter(_panels.tick_text("x"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y", visible=False)
