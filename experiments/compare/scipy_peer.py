"""Measures the speed bars of experiments/compare/bars/speed.toml on this machine: variants against another variant, or
against scipy.signal.fftconvolve in this process.

The result of every contestant is checked before it is timed. In a round every contestant runs for the same time; its
time is the median over the rounds. Exit code 0: all bars are met; 1: one is missed; 2: a mistake in the request.

Example: python3 -m experiments.compare.scipy_peer --rounds 5 --seconds 0.3
"""

import os
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.fft
from scipy.signal import fftconvolve
from tqdm import tqdm

from experiments.compare.records import call_seconds, seconds_of
from experiments.driver.bench import program
from xcorr.errors import Parser, UserError, command
from xcorr.files import load_toml
from xcorr.native.library import Library
from xcorr.problem import Problem

BARS = Path(__file__).with_name("bars") / "speed.toml"
LARGEST_ERROR = 1e-5  # relative, L2: far above float32 rounding, far below a wrong product


@dataclass(frozen=True)
class Contestant:
    """A program for the problem. `seconds_per_call(duration)`: seconds of a call, measured for `duration` seconds."""

    name: str
    ours: bool
    result: Callable[[], np.ndarray]
    seconds_per_call: Callable[[float], float]


@dataclass(frozen=True)
class Bar:
    """An entry of speed.toml. `least_speedup`: smallest allowed ratio, fastest opponent's time to the variant's."""

    title: str
    request: Problem
    variant: str
    params: tuple[str, ...]
    against: str
    least_speedup: float


def parse_bar(entry: dict[str, Any]) -> Bar:
    """The bar of an entry. UserError names what is missing or not understood."""
    try:
        least = float(entry["at_least"]) if "at_least" in entry else 1 / float(entry["at_most"])
        request = Problem.of_id(entry["problem"])
        params = tuple(entry["params"])
        bar = Bar(entry["title"], request, entry["variant"], params, entry["against"], least)
    except (KeyError, ValueError, TypeError, UserError) as error:
        raise UserError(f"{BARS.name}: {error!r} in {entry}; see its first lines") from None
    if bar.request.form not in ("one-to-one", "n-to-m") or bar.request.window != "full":
        raise UserError(f"{BARS.name}: {entry['problem']}: use one-to-one or n-to-m, full window")
    return bar


def inputs(request: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Seeded uniform float32 left and right matrices, each (count, rows, cols)."""
    random = np.random.default_rng(1)
    left = random.random((request.lefts, *request.left), dtype=np.float32)
    return left, random.random((request.rights, *request.right), dtype=np.float32)


def convolve(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Outputs of all pairs in the full window, (pairs, rows, cols), of (lefts, h, w) and (rights, h, w)."""
    if len(left) == len(right) == 1:
        return fftconvolve(right[0], left[0, ::-1, ::-1])[None]
    out = fftconvolve(right[None], left[:, None, ::-1, ::-1], axes=(2, 3))
    return out.reshape(-1, *out.shape[2:])


def scipy_contestant(left: np.ndarray, right: np.ndarray, workers: int, name: str) -> Contestant:
    def result() -> np.ndarray:
        with scipy.fft.set_workers(workers):
            return convolve(left, right)

    return Contestant(name, False, result, partial(call_seconds, result))


def contestants(library: Library, bar: Bar) -> list[Contestant]:
    """The points of the variant, then its opponents. UserError where a result is wrong."""
    left, right = inputs(bar.request)

    def variant(name: str, params: str, ours: bool) -> Contestant:
        """A point of a variant. The result is of libxcorr, the time of xcorr-bench."""
        result = partial(library.correlate, bar.request, left, right, variant=name, params=params)
        seconds = partial(seconds_of, "cpu", name, params, bar.request, 1)
        return Contestant(f"{name} {params}".strip(), ours, result, lambda duration: seconds(duration)[0])

    chosen = [variant(bar.variant, params, True) for params in bar.params]
    if bar.against == "scipy":
        workers = os.cpu_count() or 1
        chosen.append(scipy_contestant(left, right, 1, "scipy, 1 worker"))
        chosen.append(scipy_contestant(left, right, workers, f"scipy, {workers} workers"))
    else:
        name, _, params = bar.against.partition(" ")
        chosen.append(variant(name, params, False))
    truth = convolve(left.astype(np.float64), right.astype(np.float64))
    for one in chosen:
        result = one.result()
        error = np.linalg.norm(result - truth) / np.linalg.norm(truth)
        if result.shape != truth.shape or not error <= LARGEST_ERROR:
            raise UserError(f"{one.name}: result is wrong, relative L2 error {error:.2g}")
    return chosen


def measure(bar: Bar, library: Library, rounds: int, seconds: float, progress: tqdm) -> bool:
    """Measure and print one bar; whether it is met."""
    fields = contestants(library, bar)
    times: dict[str, list[float]] = {one.name: [] for one in fields}
    for _ in range(rounds):
        for one in fields:
            times[one.name].append(one.seconds_per_call(seconds))
        progress.update()
    medians = {name: statistics.median(values) for name, values in times.items()}
    best = min(medians[one.name] for one in fields if one.ours)
    opponent = min(medians[one.name] for one in fields if not one.ours)
    met = opponent >= bar.least_speedup * best
    asked = bar.request
    lines = [f"{bar.title} ({asked.form}, {asked.left[0]} x {asked.left[1]}, {asked.lefts}:{asked.rights})"]
    for name, values in times.items():
        rounds_ms = f"(rounds {min(values) * 1e3:.3f} .. {max(values) * 1e3:.3f})"
        lines.append(f"  {name:32s} {medians[name] * 1e3:10.3f} ms   {rounds_ms}")
    verdict = f"bar {bar.least_speedup:.2f}: {'met' if met else 'MISSED'}"
    lines.append(f"  {opponent / best:.2f} times as fast as the fastest opponent; {verdict}")
    progress.write("\n".join(lines), file=sys.stdout)
    return met


def run(argv: Sequence[str]) -> int:
    parser = Parser(prog="python3 -m experiments.compare.scipy_peer", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=7, help="number of rounds, of which the median counts (default: 7)")
    add("--seconds", type=float, default=0.3, help="seconds of each contestant in a round (default: 0.3)")
    add("--bars", type=Path, default=BARS, help="TOML file with the bars (default: the shipped one)")
    options = parser.parse_args(argv)
    rounds, seconds = options.rounds, options.seconds
    if rounds < 1 or not 0 < seconds <= 60:
        raise UserError("--rounds, --seconds: out of range; use 1 or more and 0 to 60")
    bars = [parse_bar(entry) for entry in load_toml(options.bars).get("bars", [])]
    if not bars:
        raise UserError(f"{options.bars}: no [[bars]] in it; see experiments/compare/bars/speed.toml")
    program()
    library = Library()
    how = f"medians of {rounds} interleaved rounds of {seconds:g} s; float32; plans are made outside the time"
    print(f"scipy {scipy.__version__}; {how}")
    with tqdm(total=rounds * len(bars), unit="round", leave=False) as progress:
        met = [measure(bar, library, rounds, seconds, progress) for bar in bars]
    return 0 if all(met) else 1


main = partial(command, run)

if __name__ == "__main__":
    sys.exit(main())
