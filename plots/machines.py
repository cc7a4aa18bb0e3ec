"""Figures that compare machines: best definition-based time, where an FFT takes over, speed-up over the baseline.

Any list of machine keys; imported sets (`published-...`) are drawn hollow. No table is written: what is imported was
not verified. The same rows give the same bytes.
"""

import dataclasses
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.driver import store
from plots import imported, metrics, style, tidy
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _panels as panels
from plots.files import encode
from plots.metrics import MICRO
from plots.report import page
from plots.sets import loaded
from plots.tables.crossover import crossed
from xcorr.errors import Parser, UserError, command
from xcorr.files import load_toml

DATA = Path(__file__).with_name("machines.toml")
CELL = ["form", "counts", "pairs", "lefts", "rights", "size", "side"]
LOOKS = list(zip(("blue", "vermillion", "green", "purple", "ochre", "slate", "sky", "wine"), "os^DvPXp"))
ACCOUNTINGS = {"fft_us": "FFT", "fft_plan_us": "FFT + plan"}
EPILOG = """example:
  python3 -m plots.machines nvidia-h200-132-sm-140-gib published-ampere published-volta published-ada

Written: machines_best_<form>, machines_speedup_<form>, machines_crossover, each as svg, pdf and png, and captions.md.
Definition-based, FFT, baseline: machines.toml says which variants are what."""


@dataclass(frozen=True)
class Machine:
    """A set as these figures see it: `cells` has a line per form, count and size with the best times in
    microseconds (definition_us, fft_us, fft_plan_us, baseline_us; NaN where there is none)."""

    key: str
    label: str
    hollow: bool
    look: style.Look
    cells: pd.DataFrame
    note: str = ""


def best_times(points: pd.DataFrame, data: dict[str, Any]) -> pd.DataFrame:
    """Best times per form, count and size over all variants of a kind and all their parameters."""
    for name, value in data["setting"].items():
        points = points[points[name] == value]
    points = points.assign(size=points["size"].astype(str))
    is_fft = points["family"].isin(data["fft"]["families"]) | points["variant"].isin(data["fft"]["variants"])
    usable = [name for name in data["baseline"]["variants"] if (points["variant"] == name).any()]
    kinds = {
        "definition_us": (~is_fft, points["compute_us"]),
        "fft_us": (is_fft, points["compute_us"]),
        "fft_plan_us": (is_fft, metrics.seconds_with_plan(points) / MICRO),
        "baseline_us": (points["variant"].isin(usable[:1]), points["compute_us"]),
    }
    cells = points[CELL].drop_duplicates().set_index(CELL).sort_index()
    for name, (mask, time) in kinds.items():
        cells[name] = points.assign(_time=time)[mask].groupby(CELL)["_time"].min()
    return cells.reset_index()


def machine(results: tidy.ResultSet, place: int, data: dict[str, Any]) -> Machine:
    """A set with its label and its look, which is that of its place in the list."""
    found = imported.record(results)
    label = dict(page.facts(results.runs)).get("Device", results.key)
    note = ""
    if found:
        label = f"{found['folder']}, published as {found['label']}"
        if found.get("guard", {}).get("behaves_like"):
            label += "*"
            note = next(text for text in imported.notes(results) if "behaves like" in text)
    hue, marker = LOOKS[place % len(LOOKS)]
    look = dataclasses.replace(style.at_place(style.HUES[hue], place), marker=marker)
    cells = best_times(results.feeding("comparison"), data)  # the grid of sizes; other shapes lie on no curve
    return Machine(results.key, label, bool(found), look, cells, note)


def shared_counts(machines: Sequence[Machine], form: str, column: str) -> pd.DataFrame:
    """The cells of a form whose counts at least two machines have (one, if only one has the form)."""
    frames = []
    for one in machines:
        own = one.cells[(one.cells["form"] == form) & one.cells[column].notna()]
        frames.append(own.assign(machine=one.key))
    cells = pd.concat(frames)
    least = min(2, cells["machine"].nunique())
    return cells[cells.groupby("counts")["machine"].transform("nunique") >= least]


def curve_style(one: Machine) -> dict[str, Any]:
    return {**one.look.line(one.hollow), "markeredgewidth": 0.9}


def curves(machines: Sequence[Machine], form: str, columns: tuple[str, str], unit: str, axis: str) -> Figure | None:
    """Lines against size, a facet per count, a line per machine: the first column (in seconds), or the second over
    the first if there is a second. None when no machine has both."""
    measured, over = columns
    drawn = []
    for one in machines:
        value = one.cells[over] / one.cells[measured] if over else one.cells[measured] * MICRO
        drawn.append(dataclasses.replace(one, cells=one.cells.assign(y=value)))
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
            own = one.cells[(one.cells["form"] == form) & (one.cells["counts"] == counts)]
            own = own.dropna(subset=["y"]).sort_values("side")
            if len(own):
                (artist,) = one_axes.plot(own["side"], own["y"], **curve_style(one))
                handles.setdefault(one.label, artist)
        shared = 2 * frame["size"].nunique() > drawn_sizes["size"].nunique()
        panels.size_axis(one_axes, drawn_sizes if shared else frame)
        panels.log_axis(one_axes, points["y"].to_numpy(dtype=float), panels.tick_text(unit))
        one_axes.set_title(counts)
        if over:
            one_axes.axhline(1.0, color="#444444", linewidth=0.8, zorder=1)
    for row in axes:
        row[0].set_ylabel(axis)
    panels.legend_below(figure, {name: handles[name] for name in labels if name in handles}, width)
    return figure


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


def distinct(machines: Sequence[Machine]) -> list[Machine]:
    """The same machines; where two have one label, with their keys behind it."""
    labels = [one.label for one in machines]
    return [
        dataclasses.replace(one, label=f"{one.label} ({one.key})") if labels.count(one.label) > 1 else one
        for one in machines
    ]


def draw(machines: Sequence[Machine]) -> list[Result]:
    """All figures, those without data as Omitted."""
    machines = distinct(machines)
    names = ", ".join(one.label for one in machines)
    tail = " Hollow: published elsewhere, not verified here." if any(one.hollow for one in machines) else ""
    notes = [one.note for one in machines if one.note]
    if notes:
        short = [text.partition(". ")[0] for text in notes]
        tail += f" * {'. '.join(short)}. No label was changed."
    made: list[tuple[str, str, str, Figure | None, str]] = []
    forms = sorted({form for one in machines for form in one.cells["form"]}, key=tidy.form_order)
    what = "best definition-based time of each machine, any variant and parameters"
    for form in forms:
        best = f"{what[0].upper()}{what[1:]}, {form}. Counts that one machine alone has are left out."
        speedup = f"Time of the baseline over the {what}, {form}. Each machine against its own baseline."
        for kind, over, unit, axis, text, missing in (
            ("best", "", "s", "Best definition-based time", best, "definition-based"),
            ("speedup", "baseline_us", "x", "Speed-up over the baseline", speedup, "baseline"),
        ):
            name = f"machines_{kind}_{form}"
            with style.context(name):
                figure = curves(machines, form, ("definition_us", over), unit, axis)
            made.append((name, f"{axis}, {form}", text, figure, missing))
    with style.context("machines_crossover"):
        figure = crossover_figure(machines)
    text = (
        "Size from which the best FFT is faster than the best definition-based variant, log-log interpolation between "
        "measured sizes, without and with its plan; both are the set's own (an imported one has the paper's FFT only). "
        "Arrows: beyond the sizes that were measured on that side. Counts of one machine alone are left out."
    )
    made.append(("machines_crossover", "Crossover against FFT", text, figure, "FFT and definition-based"))
    return [
        Drawing(name, title, caption + tail, f"{title}: {names}.", figure)
        if figure is not None
        else Omitted(name, f"no machine of the list has a {missing} time at a shared problem")
        for name, title, caption, figure, missing in made
    ]


def run(argv: Sequence[str]) -> int:
    made = Parser(prog="python3 -m plots.machines", description=__doc__, epilog=EPILOG)
    made.add_argument("keys", nargs="+", metavar="machine-key", help="sets to compare, in the order of the legend")
    made.add_results()
    made.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: machines/ of the results)")
    asked = made.parse_args(argv)
    twice = next((key for key in asked.keys if asked.keys.count(key) > 1), None)
    if twice:
        raise UserError(f"machine key {twice}: is named twice; name each set once")
    data = load_toml(DATA)
    machines = [machine(results, place, data) for place, results in enumerate(loaded(asked.results, asked.keys))]
    out = asked.out or asked.results / "machines"
    captions = ["# Machines compared\n"]
    for one in draw(machines):
        if isinstance(one, Omitted):
            print(f"left out: {one.name.replace('_', ' ')}: {one.reason}")
            continue
        for extension, content in encode(one).items():
            store.write_atomic(out / f"{one.name}.{extension}", content)
        captions.append(f"## {one.name}\n\n{one.title}. {one.caption}\n")
        print(f"{out / one.name}.svg (also pdf and png)")
    store.write_atomic(out / "captions.md", "\n".join(captions).encode("utf-8"))
    print(f"captions: {out / 'captions.md'}")
    for note in filter(None, (one.note for one in machines)):
        print(f"* {note}")
    return 0


main = partial(command, run)  # every mistake of the user is one line

if __name__ == "__main__":
    sys.exit(main())
