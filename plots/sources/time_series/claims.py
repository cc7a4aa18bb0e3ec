"""Computations on time series. Each takes the set and its arguments of claims.toml.

A side names points of the problem of Table 2: `variants` (default: any), `without` (variants that do not count),
`precision`, `params` (values that parameters must have). Of them the fastest counts.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from experiments.compare import fragments as fragment_dump
from plots import real
from plots.sources.time_series.tables import time_series
from plots.tables import hosts, selection
from plots.tables.claims.values import Arguments, Found, Value, known, named, quotient
from plots.tables.selection import of_side
from plots.tidy import ResultSet
from xcorr.errors import choose
from xcorr.native.variants import assignments

CLASS, ORDER = "series", 10
ABOUT = "about time series on tensor cores, decided by measuring"
METRICS = {
    "time": lambda one: one["compute_us"],
    "time_without_building": lambda one: one["compute_us"] - (0.0 if pd.isna(one["build_us"]) else one["build_us"]),
    "error": lambda one: one["normalised_error"],
}


def points(results: ResultSet, side: Mapping[str, Any]) -> pd.DataFrame:
    """The points of a side, the fastest first. UserError for an unknown key."""
    found = of_side(time_series.headline(time_series.every_point(results)), side)
    return found.sort_values("compute_us", kind="stable")


def describe(side: Mapping[str, Any]) -> str:
    """What rows a side needs, in words."""
    return selection.describe(side, "a variant of time series", side.get("precision", ""))


def _number(results: ResultSet, side: Mapping[str, Any], metric: str) -> float | None:
    choose("metric", [metric], METRICS)
    found = points(results, side)
    if found.empty:
        return None
    number = float(METRICS[metric](found.iloc[0]))
    return None if pd.isna(number) else number


def ratio(results: ResultSet, args: Arguments) -> Found:
    """`metric` of `of` over that of `to`."""
    return quotient(lambda side: _number(results, side, args.get("metric", "time")), describe, args)


def over_cpu(results: ResultSet, args: Arguments) -> Found:
    """`metric` of `of` in the published set `cpu` over that of `to` here."""
    cpu, metric = hosts.published(results, args["cpu"]), args.get("metric", "time")

    def number(side: Mapping[str, Any]) -> float | None:
        where = cpu if side is args["of"] else results
        return None if where is None else _number(where, side, metric)

    def wanted(side: Mapping[str, Any]) -> str:
        return f"{describe(side)} in {args['cpu']}" if side is args["of"] else describe(side)

    return quotient(number, wanted, args)


def nominal_share(results: ResultSet, args: Arguments) -> Found:
    """Share of the nominal peak of this machine, in percent, that `of` reaches."""
    found = points(results, args["of"])
    if found.empty:
        return Found([], [describe(args["of"])])
    one = found.iloc[0]
    peak = time_series.nominal(results.key).get(one["precision"])
    if peak is None:
        return Found([], [f"the nominal peak of {results.key} (experiments/time_series/baselines.toml)"])
    return Found([known("", 1e14 * one["tflops"] / peak)])


def best_value(results: ResultSet, args: Arguments) -> Found:
    """The value of `parameter` at the fastest point of `of`; undecided with fewer than two values."""
    name, found = args["parameter"], points(results, args["of"])
    values = [assignments(params).get(name) for params in found["params"]]
    if len(set(values)) < 2:
        return Found([], [f"{describe(args['of'])} at several values of {name}"])
    return Found([Value("", word=str(values[0]))])


def lost(results: ResultSet, args: Arguments) -> Found:
    """`none` or `some`, of `of` and then of `to`, joined by ` / `: whether any output was lost at any amplitude
    (series-amplitudes). A side may name `precision`, `variants` and `without` only."""
    data = real.load(results.folder, real.AMPLITUDES)
    if isinstance(data, str):
        return Found([], [f"{data} (python3 -m experiments.inputs.amplitudes)"])
    words, counts, missing = [], [], []
    for side in (args["of"], args["to"]):
        rows = of_side(data.rows, side)
        if rows.empty:
            missing.append(describe(side))
            continue
        words.append("some" if rows["lost"].any() else "none")
        counts.append(f"{int(rows['lost'].sum())} of {int(rows['outputs'].sum())}")
    if missing:
        return Found([], missing)
    return Found([Value(f"lost {' and '.join(counts)}", word=" / ".join(words))])


def waveform_ratio(results: ResultSet, args: Arguments) -> Found:
    """ERR on real waveforms of `of` over that of `to` (series-waveforms); of several variants or precisions, the smallest. A side may name
    `precision`, `variants` and `without` only."""
    data = real.load(results.folder, real.WAVEFORMS)
    if isinstance(data, str):
        return Found([], [f"{data} (python3 -m experiments.inputs.waveforms)"])
    rows = data.rows[data.rows["input"] == "waveforms"]

    def number(side: Mapping[str, Any]) -> float | None:
        found = of_side(rows, side)
        return None if found.empty else float(found["error"].min())

    return quotient(number, describe, args)


def fragments(results: ResultSet, args: Arguments) -> Found:
    """Which of the matrices have the elements that `printed` gives (matrix -> elements of lane 0) in the registers of lane
    0, joined by `, `. `by_columns` names the matrices whose elements are counted column by column."""
    places = (results.folder, results.folder / fragment_dump.EXPERIMENT / "artifacts")
    files = [path / f"{fragment_dump.EXPERIMENT}.json" for path in places]
    texts = [path.read_text(encoding="utf-8") for path in files if path.exists()]
    if not texts:
        return Found([], ["fragments, read back from a GPU (python3 -m experiments.compare.fragments)"])
    found, same, shown = fragment_dump.read(texts[0]), [], []
    for name, printed in args["printed"].items():
        own = found[name][0]
        if name in args.get("by_columns", []):
            own = [fragment_dump.by_columns(one) for one in own]
        shown.append(f"{name.upper()} {','.join(map(str, own))}")
        if own == list(printed):
            same.append(name.upper())
    return Found([Value("; ".join(shown), word=", ".join(same) or "none")])


COMPUTATIONS = named(ratio, over_cpu, nominal_share, best_value, lost, waveform_ratio, fragments)
