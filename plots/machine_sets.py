"""Result sets as figures that compare machines see them: the best time of each kind of variant on each problem.

Whether a variant is a transform is its algorithm class in the registry, whatever its family. Imported sets have names of
ours for the paper's algorithms (experiments/jpdc/artifact/published_names.toml), so the same rule holds for them.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.published.guard import load_peaks
from plots import imported, metrics, noise, style, tidy
from plots.metrics import MICRO
from plots.report import page
from xcorr.native.variants import is_transform

DATA = Path(__file__).with_name("machines.toml")
CELL = ["form", "counts", "pairs", "lefts", "rights", "size", "side"]
WORK = ["fmas", "bytes"]
ENDS = ("_low", "_high")
LOOKS = list(zip(("blue", "vermillion", "green", "purple", "ochre", "slate", "sky", "wine"), "os^DvPXp"))
# A column of `cells` with a time -> the column with the variant and the parameters that it is of.
NAMED = {"definition_us": "definition", "fft_us": "fft"}


@dataclass(frozen=True)
class Machine:
    """A set as these figures see it: `cells` has a line per form, count and size with the best times in microseconds
    (definition_us, fft_us, fft_plan_us, baseline_us, one column for each of the optimisations; NaN where there is none),
    the points that they are of (definition, fft), and the work (fmas, bytes). `flops`, `dram`: nominal peaks, where known."""

    key: str
    label: str
    hollow: bool
    look: style.Look
    cells: pd.DataFrame
    note: str = ""
    flops: float = float("nan")
    dram: float = float("nan")
    # Of each cell the ends of the intervals of its times, `<time>_low` and `<time>_high`; NaN where nobody repeated them.
    ends: pd.DataFrame = dataclasses.field(default_factory=pd.DataFrame)


def best_times(points: pd.DataFrame, data: Mapping[str, Any]) -> pd.DataFrame:
    """Best times per form, count and size over all variants of a kind and all their parameters, with the ends of their intervals."""
    points = tidy.select(points, **data["setting"])
    if points.empty:
        return pd.DataFrame(columns=[*CELL, *WORK])
    points = points.assign(size=points["size"].astype(str))
    is_fft = points["variant"].map(is_transform).astype(bool)
    usable = [name for name in data["baseline"]["variants"] if (points["variant"] == name).any()]
    kinds = {
        "definition_us": (~is_fft, points["compute_us"]),
        "fft_us": (is_fft, points["compute_us"]),
        "fft_plan_us": (is_fft, metrics.seconds_with_plan(points) / MICRO),
        "baseline_us": (points["variant"].isin(usable[:1]), points["compute_us"]),
    }
    for name, variants in data["optimisations"].items():
        kinds[name] = (points["variant"].isin(variants), points["compute_us"])
    cells = points[CELL].drop_duplicates().set_index(CELL).sort_index()
    for name in WORK:
        cells[name] = points.groupby(CELL)[name].min()
    for name, (mask, time) in kinds.items():
        own = points.assign(_time=time)[mask].sort_values(["_time", "variant", "params"], kind="stable")
        first = own.drop_duplicates(CELL).set_index(CELL)
        cells[name] = first["_time"]
        ends = noise.ends_us(first, planned=name == "fft_plan_us")
        cells[f"{name}_low"], cells[f"{name}_high"] = ends["low"], ends["high"]
        if name in NAMED:
            cells[NAMED[name]] = first["variant"]
    return cells.reset_index()


def _peaks(results: tidy.ResultSet) -> tuple[float, float]:
    """FLOP/s and bytes/s that the maker states: of a GPU that was measured by its record, of an imported set by the label
    that it was published with; NaN of CPUs, whose record has limits of the guard alone."""
    unknown = float("nan")
    if found := imported.record(results):
        gpu = load_peaks().gpus.get(found["gpu"])
        return (gpu.flops, gpu.dram) if gpu else (unknown, unknown)
    facts = [run.get("before") or run.get("machine") or {} for run in results.runs.values()]
    gpus = [one for one in facts if one.get("compute_capability") and "peak_fma_per_s" in one]
    if not gpus:
        return unknown, unknown
    return 2.0 * float(gpus[-1]["peak_fma_per_s"]), float(gpus[-1].get("peak_bytes_per_s", unknown))


def machine(results: tidy.ResultSet, place: int, data: Mapping[str, Any]) -> Machine:
    """A set with its label and its look, which is that of its place in the list. A local set is said to be of here."""
    found = imported.record(results)
    label = dict(page.facts(results.runs)).get("Device", results.key)
    note = ""
    if found:
        label = f"{found['folder']}, published as {found['label']}"
        if found.get("guard", {}).get("behaves_like"):
            label += "*"
            note = next(text for text in imported.notes(results) if "behaves like" in text)
    elif results.kind == "local":
        label += ", measured here"
    hue, marker = LOOKS[place % len(LOOKS)]
    look = dataclasses.replace(style.at_place(style.HUES[hue], place), marker=marker)
    cells = best_times(results.feeding("comparison"), data)  # the grid of sizes; other shapes lie on no curve
    key = f"{results.kind}/{results.key}"  # a machine can have a local set and a published one
    reached = [name for name in cells if str(name).endswith(ENDS)]
    ends = cells[[*CELL, *reached]]
    return Machine(key, label, bool(found), look, cells.drop(columns=reached), note, *_peaks(results), ends)


def distinct(machines: Sequence[Machine]) -> list[Machine]:
    """The same machines; where two have one label, with their keys behind it."""
    labels = [one.label for one in machines]
    return [
        dataclasses.replace(one, label=f"{one.label} ({one.key})") if labels.count(one.label) > 1 else one
        for one in machines
    ]


def curve_style(one: Machine) -> dict[str, Any]:
    return {**one.look.line(one.hollow), "markeredgewidth": 0.9}


def shared_counts(machines: Sequence[Machine], form: str, column: str) -> pd.DataFrame:
    """The cells of a form whose counts at least two machines have (one, if only one has the form)."""
    frames = []
    for one in machines:
        own = one.cells[(one.cells["form"] == form) & one.cells[column].notna()]
        frames.append(own.assign(machine=one.key))
    cells = pd.concat(frames)
    least = min(2, cells["machine"].nunique())
    return cells[cells.groupby("counts")["machine"].transform("nunique") >= least]
