"""The five findings of the front page: sentences whose numbers are computed from the rows of a set."""

import math
from dataclasses import dataclass

import pandas as pd

from plots import style, tidy
from plots.metrics import geometric_mean
from plots.site.counts import Counts
from plots.tables import beyond
from plots.tables.best_by_mode import MODES
from plots.tables.crossover import crossed
from plots.tidy import ResultSet
from xcorr.native.variants import is_transform


@dataclass(frozen=True)
class Finding:
    """`title` is the finding in a few words, `text` what was found with its spread, `file` the CSV file of its numbers, relative to the set."""

    title: str
    text: str
    file: str


def findings(results: ResultSet, counts: Counts) -> list[Finding]:
    """Those of the five that the set has rows for."""
    found = beyond.of_set(results)
    every = [_speed(found), _floor(found), _crossover(results), _modes(found.modes), _checked(counts)]
    return [one for one in every if one]


def spread(values: pd.Series) -> str:
    """`2.20 times (geometric mean; 80 % of the problems from 1.09 to 3.42; 1 to 4.05 in all)`."""
    low, high = values.quantile(0.1), values.quantile(0.9)
    return (
        f"{geometric_mean(values):.2f} times (geometric mean; the middle 80 % from {low:.2f} to {high:.2f}; all from "
        f"{values.min():.2f} to {values.max():.2f})"
    )


def _speed(found: beyond.Beyond) -> Finding | None:
    known = found.lines[found.lines["speedup"].notna()]
    if known.empty:
        return None
    program = int((known["paper_by"] == "baseline").sum())
    return Finding(
        f"{geometric_mean(known['speedup']):.1f} times as fast as the paper's best",
        f"On {len(known)} problems the fastest variant is {spread(known['speedup'])} as fast as the paper's best. The paper's best is the faster of "
        f"two: the program that the paper's authors published ({program} of these problems), whose calls the host enqueues one after the other and "
        f"whose outputs were not checked here, and our versions of the paper's algorithms ({len(known) - program}). "
        f"{int(known['is_tie'].sum())} of the {len(known)} are ties.",
        "tables/beyond.csv",
    )


def _floor(found: beyond.Beyond) -> Finding | None:
    far = found.lines["distance"].dropna()
    if far.empty:
        return None
    return Finding(
        f"{geometric_mean(far):.1f} times what the hardware allows",
        f"On {len(far)} problems the fastest time is {spread(far)} the floor. The floor is the shortest time that the measured limits of "
        f"this card allow: launch, memory, arithmetic, exchange between threads. {found.roofs}",
        "tables/beyond.csv",
    )


def crossovers(results: ResultSet) -> pd.DataFrame:
    """By form and counts the side from which on the best transform is faster than the best variant by definition: `low` and `high`,
    equal where it lies between measured sizes. Only lines with at least two sizes at which both were measured."""
    points = tidy.passed(results.feeding("crossover"), **tidy.USUAL)
    found = []
    points = points.assign(_transform=points["variant"].map(is_transform).astype(bool))
    for (form, counts), own in points.groupby(["form", "counts"]):
        best = own.groupby(["side", "_transform"])["compute_us"].min().unstack().dropna()
        if len(best) > 1 and len(best.columns) == 2:
            ratios = (best[False] / best[True]).map(math.log)
            low, high = crossed(list(zip(best.index, ratios)), tie_wins=False)
            found.append((form, counts, low, high))
    return pd.DataFrame(found, columns=["form", "counts", "low", "high"])


def _crossover(results: ResultSet) -> Finding | None:
    lines = crossovers(results)
    inside = lines[lines["low"] == lines["high"]]["low"]
    if inside.empty:
        return None
    rest = len(lines) - len(inside)
    outside = f" On {rest} of {len(lines)} combinations the change lies outside the measured sizes." if rest else ""
    return Finding(
        f"Transforms win from about {inside.median():.0f} x {inside.median():.0f} on",
        f"Over {len(inside)} combinations of a form with a number of matrices, the best FFT is faster than the best sum by definition from a "
        f"side of {inside.median():.0f} on (median; the middle 80 % from {inside.quantile(0.1):.0f} to {inside.quantile(0.9):.0f}; all from "
        f"{inside.min():.0f} to {inside.max():.0f}; interpolated between measured sizes, plans kept).{outside}",
        "tables/best_algorithm.csv",
    )


def _modes(modes: pd.DataFrame) -> Finding | None:
    if modes.empty:
        return None
    parts = [
        f"{mode} ({MODES[mode]}) {geometric_mean(own['speedup']):.2f} times ({own['speedup'].min():.2f} to {own['speedup'].max():.2f})"
        for mode, own in modes.groupby("mode", sort=False)
    ]
    problems = int(modes["mode"].value_counts().max())
    return Finding(
        "The gain depends on how calls follow each other",
        f"Speed-up of all variants over those without the new families, on the {problems} problems that were measured in every mode, "
        f"geometric mean and range: {'; '.join(parts)}. A program that waits for each result has mode latency.",
        "tables/beyond_modes.csv",
    )


def named(variants: dict[str, int]) -> str:
    """`autocorrelation (12), tiled-direct (71)`."""
    return ", ".join(f"{style.label(name)} ({count})" for name, count in variants.items())


def _checked(counts: Counts) -> Finding:
    wrong, failed = (counts.variants_of(name) for name in ("incorrect", "failed"))
    said = [
        f"Of {len(counts.points)} points (a variant with parameters on a problem), over all {counts.rows} rows, {counts.of('passed')} passed the "
        "comparison of every output with a float64 reference."
    ]
    said.append(f"{sum(wrong.values())} are incorrect: {named(wrong)}." if wrong else "None is incorrect.")
    said.append(f"{sum(failed.values())} failed: {named(failed)}." if failed else "None failed.")
    said.append("Points that did not pass have no time and are in no table.")
    return Finding("Every time has a check, and what is wrong is named", " ".join(said), "")
