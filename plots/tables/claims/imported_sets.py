"""Claims about the published data (class `published`): the imported sets that decide them, and computations over several of them.

Computations on Rows (measured.py) run over each of the sets, and the values say of which folder they are. Those here take
all sets at once. A label is that of the published folder; where folders look exchanged, no label was changed.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.driver import store
from experiments.published.guard import Gpu, load_peaks, padding
from plots import imported
from plots.sets import available
from plots.tables.claims import measured
from plots.tables.claims.rows import Cell, Rows
from plots.tables.claims.values import Arguments, Found, Value, known, named
from plots.tables.hosts import published, set_in
from plots.tidy import ResultSet
from xcorr.native.variants import assignments, is_transform
from xcorr.paths import RESULTS

COMPLEX_BYTES = 8
MEAN_OF = r"mean of (\d+)"  # in the reason of a row of means: how many repetitions


@dataclass(frozen=True)
class Import:
    """An imported set: its published folder, the GPU that it is labelled with, and its rows."""

    folder: str
    label: str
    gpu: Gpu
    rows: Rows
    raw: pd.DataFrame


Computation = Callable[[list[Import], Arguments], Found]


def of(results: ResultSet, rows: Rows) -> list[Import]:
    """The imported sets beside a set, or else those of the repository, by folder; none where nothing was imported."""
    if "imports" not in rows.kept:
        beside = _imported_keys(results.folder.parent.parent)
        keys = beside or _imported_keys(RESULTS)
        found = [results if key == results.key else published(results, key) for key in keys]
        rows.kept["imports"] = [_import(one, rows) for one in found if one and imported.record(one)]
    sets: list[Import] = rows.kept["imports"]
    return sets


def _imported_keys(results: Path) -> list[str]:
    return [key for key in available(results)["published"] if store.is_imported(key)]


@lru_cache
def _rows(folder: Path, key: str) -> Rows:
    """The rows of a published set without series; made once, since every page of claims needs them."""
    return Rows(set_in(folder, key, "published").points, {}, folder)


def _import(results: ResultSet, rows: Rows) -> Import:
    record, gpus = imported.record(results), load_peaks().gpus
    own = rows
    if rows.folder != results.folder:
        own = copy.copy(_rows(results.folder, results.key))
        own.series, own.missing, own.kept = rows.series, {}, {}
    return Import(record["folder"], record["gpu"], gpus[record["gpu"]], own, results.rows)


def each(computation: Callable[[Rows, Arguments], Found], sets: list[Import], args: Arguments) -> Found:
    """What a computation on Rows finds in each set; `folders` of the arguments names those that the claim is about."""
    own = {name: value for name, value in args.items() if name != "folders"}
    values: list[Value] = []
    missing: list[str] = []
    hints: list[str] = []
    for one in sets:
        if one.folder in args.get("folders", [one.folder]):
            found = computation(one.rows, own)
            values += [
                replace(v, label=f"{one.folder} {v.label}".strip(), group=f"{one.folder} {v.group}")
                for v in found.values
            ]
            missing += [f"{one.folder}: {text}" for text in found.missing]
            hints += [f"{one.folder}: {text}" for text in found.hints]
    return Found(values, missing, hints)


def single_rows(sets: list[Import], args: Arguments) -> Found:
    """Share of the configurations of `form` with a single repetition."""
    values = []
    for one in sets:
        own = one.raw[(one.raw["form"] == args["form"]) & ~one.raw["variant"].map(is_transform).astype(bool)]
        said = own["reason"].astype(str).str.extract(MEAN_OF)[0]
        counted = own.groupby(["variant", "params", "left_rows", "lefts", "rights", "input"])["run"].transform("size")
        repetitions = said.astype(float).fillna(counted.astype(float))
        if len(own):
            values.append(known(one.folder, float((repetitions == 1).mean())))
    return Found(values, [] if values else ["imported rows"])


def alike(sets: list[Import], args: Arguments) -> Found:
    """Of each of `speedups`, arguments of ratios by claim, the largest over the smallest of the sets, cell by cell."""
    values = []
    for name, compute in args["speedups"].items():
        found = [{v.label: v.low for v in measured.ratio(one.rows, compute).values} for one in sets]
        for label in found[0] if found else {}:
            numbers = [own[label] for own in found if label in own]
            if len(numbers) == len(sets) > 1:
                values.append(known(f"{name} at {label}", max(numbers) / min(numbers)))
    return Found(values, [] if values else ["imported sets of several GPUs"])


def executed_above_peak(sets: list[Import], args: Arguments) -> Found:
    """Problems of `form` whose fastest executed work exceeds the peak of the label, those left out whose useful work does too."""
    values = []
    for one in sets:
        padded = _padded(one.rows.points)
        best = padded[padded["form"] == args["form"]]
        best = best.loc[best.groupby(["counts", "left_rows"])["compute_us"].idxmin()]
        useful = 2e6 * best["fmas"] / best["compute_us"]
        executed = useful * best["left_rows"].map(lambda size: padding(int(size)))
        values.append(known(one.folder, int(((executed > one.gpu.flops) & (useful <= one.gpu.flops)).sum())))
    return Found([v for v in values if v.label in args.get("folders", [v.label])])


def _padded(points: pd.DataFrame) -> pd.DataFrame:
    """The points whose lanes multiply padding too (gpu_peaks.toml)."""
    return points[points["family"].isin(load_peaks().padded_families)]


def product_rate(sets: list[Import], args: Arguments) -> Found:
    """Bytes/s of the product phase over the memory rate of the label, at a problem. `moved`: what is counted of each pair's spectrum,
    1 where it is written, 2 where it is also read."""
    size, at = args["size"], Cell(args["form"], args["counts"], args["size"])
    values, missing = [], []
    for one in sets:
        own = one.rows.at(at)
        own = own[own["hadamard_us"].notna()]
        if own.empty:
            missing.append(f"{one.folder}: the product phase at {at.form} {at.counts} {size}")
            continue
        line = own.loc[own["hadamard_us"].idxmin()]
        amount = args["moved"] * line["pairs"] * COMPLEX_BYTES * 2 * size * (size + 1)
        values.append(known(one.folder, float(amount / (line["hadamard_us"] * 1e-6) / one.gpu.dram)))
    return Found(values, missing if not values else [])


def transforms_of_less_memory(sets: list[Import], args: Arguments) -> Found:
    """Problems whose transform is there in a set of a label with less memory, and absent in one of a label with more, by folder of
    the latter."""
    there = {one.folder: set(_problems(one.rows.points[one.rows.points["hadamard_us"].notna()])) for one in sets}
    values = []
    for one in sets:
        less = [other for other in sets if other.gpu.memory < one.gpu.memory]
        absent = set().union(*(there[other.folder] for other in less)) - there[one.folder]
        values += [known(f"{one.folder}, of {one.gpu.memory / 1e9:.0f} GB", len(absent))] if less else []
    return Found(values, [] if values else ["imported sets of several GPUs"])


def _problems(points: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(points[["form", "counts", "left_rows"]].itertuples(index=False, name=None))


def launched(sets: list[Import], args: Arguments) -> Found:
    """Of the labels `allowed` (true where the registers of the architecture allow a launch), how many sets differ: have points of
    `variant` with these parameters although they should not, or lack them."""
    wrong: list[str] = []
    seen = 0
    for one in sets:
        if one.label in args["allowed"]:
            points = one.rows.points[one.rows.points["variant"] == args["variant"]]
            params = args["params"].items()
            there = any(params <= dict(assignments(text)).items() for text in points["params"].unique())
            seen += 1
            wrong += [one.folder] if there != args["allowed"][one.label] else []
    return Found([known(", ".join(wrong), len(wrong))] if seen else [], [] if seen else ["imported sets"])


def cycles(sets: list[Import], args: Arguments) -> Found:
    """Time of the fastest definition-based point at a problem times the clock of the label (`clocks`, GHz), over the geometric mean
    of the sets."""
    at = Cell(args["form"], args["counts"], args["size"])
    found = {}
    for one in sets:
        own = one.rows.at(at)
        own = own[~own["variant"].map(is_transform).astype(bool)]
        if len(own):
            found[one.folder] = float(own["compute_us"].min()) * args["clocks"][one.label]
    if len(found) < 2:
        return Found([], ["imported sets of several GPUs"])
    mean = math.exp(float(np.log(list(found.values())).mean()))
    return Found([known(folder, value / mean) for folder, value in found.items()])


def shares_as(sets: list[Import], args: Arguments) -> Found:
    """Largest executed work, padding included, over the peak of the label that `labels` gives a folder: of the first of the
    folders over that of the second."""
    peaks = load_peaks().gpus
    shares = {}
    for one in sets:
        if one.folder in args["labels"]:
            own = _padded(one.rows.points)
            executed = 2e6 * own["fmas"] / own["compute_us"] * own["left_rows"].map(lambda size: padding(int(size)))
            shares[one.folder] = float(executed.max()) / peaks[args["labels"][one.folder]].flops
    if len(shares) < len(args["labels"]):
        return Found([], ["imported sets of several GPUs"])
    first, second = args["labels"]
    return Found(
        [known(f"{first} {shares[first]:.3g}, {second} {shares[second]:.3g}, ratio", shares[first] / shares[second])]
    )


COMPUTATIONS: dict[str, Computation] = named(
    single_rows, alike, executed_above_peak, product_rate, transforms_of_less_memory, launched, cycles, shares_as
)
