"""How much the time of a point differs from process to process, in mode stream and in mode graph beside it.

Every process measures all points of `noise` in experiments/beyond/baselines.toml in an order of its own, which depends on
its number alone. The noise of a point is the 90th percentile of its median times over the 10th.
"""

import math
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tabulate import tabulate
from tqdm import tqdm

from experiments import folders
from experiments.driver.bench import SEED, Bench, program
from experiments.driver.points import Unit
from experiments.driver.schema import Limits, Preset
from experiments.driver.trial import times_of
from xcorr.errors import Parser, UserError, command
from xcorr.native.variants import Variant
from xcorr.problem import Problem

EPILOG = """example:
  python3 -m experiments.compare.noise --device cuda:0

Takes about three minutes on a GPU. Exit code: 0 when mode stream is no noisier than mode graph, 1 when it is, 2 for a mistake."""
MODES = ("stream", "graph")
SHORT = Preset(repetitions=3, min_time_s=0.01, max_predicted_s=Limits(cpu=1, cuda=1))
Point = tuple[Unit, str]  # in mode stream, and its parameters
Medians = Mapping[tuple[int, str], Sequence[float]]  # microseconds of each process, by index of the point and mode


def contenders(data: Mapping[str, Any], variants: Sequence[Variant]) -> tuple[list[Point], list[str]]:
    """The points that this build measures in both modes, and the names of the others."""
    known = {one.id: one for one in variants}
    found: list[Point] = []
    absent = []
    for problem, by_variant in data["contenders"].items():
        for name, points in by_variant.items():
            for params in points:
                variant = known.get(name)
                if variant and params in variant.points and {*MODES} <= {*variant.modes}:
                    unit = Unit("noise", Problem.of_id(problem), variant, "fp32", "stream", "uniform", (params,))
                    found.append((unit, params))
                else:
                    absent.append(f"{name} {params} {problem}")
    return found, absent


def order(count: int, process: int) -> list[tuple[int, str]]:
    """(index of a point, mode) in the order of a process: points shuffled, both modes of a point side by side."""
    draw = random.Random(f"{SEED} {process}")
    return [(i, mode) for i in draw.sample(range(count), count) for mode in draw.sample(MODES, len(MODES))]


def measure(bench: Bench, points: Sequence[Point], processes: int) -> tuple[Medians, dict[int, str]]:
    """Medians of the points that every process timed in both modes, and the first reason why one has none."""
    medians: dict[tuple[int, str], list[float]] = defaultdict(list)
    failed: dict[int, str] = {}
    for process in tqdm(range(processes), desc="processes", file=sys.stderr):
        asked = order(len(points), process)
        units = [(replace(points[i][0], mode=mode), points[i][1]) for i, mode in asked]
        for number, us in times_of(bench, units, SHORT).items():
            if isinstance(us, str):
                failed.setdefault(asked[number][0], us)
            else:
                medians[asked[number]].append(us)
    return {place: times for place, times in medians.items() if place[0] not in failed}, failed


def noise_of(times: Sequence[float]) -> float:
    """90th over 10th percentile."""
    tenths = statistics.quantiles(times, n=10, method="inclusive")
    return tenths[-1] / tenths[0]


@dataclass(frozen=True)
class Class:
    """Points whose time in mode stream lies in one range, and their noise in each mode."""

    name: str
    noise: Mapping[str, Sequence[float]]

    @property
    def excess(self) -> float:
        """By how much mode stream is noisier than mode graph, in the median over the points."""
        stream, graph = (statistics.median(self.noise[mode]) for mode in MODES)
        return stream - graph


def classes(medians: Medians, ends_us: Sequence[float]) -> Iterator[Class]:
    """The classes that have points, the shortest times first."""
    middle = {number: statistics.median(times) for (number, mode), times in medians.items() if mode == "stream"}
    for low, high in zip([0, *ends_us], [*ends_us, math.inf]):
        own = [number for number, us in middle.items() if low <= us < high]
        if own:
            name = f"{low:g} to {high:g} us" if high < math.inf else f"{low:g} us or longer"
            yield Class(name, {mode: [noise_of(medians[i, mode]) for i in own] for mode in MODES})


def table(found: Sequence[Class], points: Sequence[Point], medians: Medians, tolerance: float) -> str:
    """A line for each point, a line for each class, and the verdict."""
    lines = []
    for i in sorted({number for number, _ in medians}):
        numbers = [of(medians[i, mode]) for mode in MODES for of in (statistics.median, noise_of)]
        lines.append([f"{points[i][0].name} {points[i][1]}", *numbers])
    of_points = tabulate(lines, ["point", "stream us", "noise", "graph us", "noise"], floatfmt=".3f")
    lines = []
    for one in found:
        numbers = [of(one.noise[mode]) for mode in MODES for of in (statistics.median, max)]
        lines.append([one.name, len(one.noise["stream"]), *numbers])
    head = ["time", "points", "stream: median noise", "largest", "graph: median noise", "largest"]
    noisier = [f"{one.name} by {one.excess:.3f}" for one in found if one.excess > tolerance]
    verdict = f"mode stream is noisier than mode graph: {', '.join(noisier)}; at most {tolerance:g} is allowed"
    good = f"mode stream is no noisier than mode graph by more than {tolerance:g}"
    return "\n\n".join([of_points, tabulate(lines, head, floatfmt=".3f"), verdict if noisier else good])


def run(argv: Sequence[str]) -> int:
    data = folders.part("beyond", "baselines")["noise"]
    parser = Parser(prog="python3 -m experiments.compare.noise", description=__doc__, epilog=EPILOG)
    parser.add_argument("--device", default="cuda:0", help="device to measure on (default: cuda:0)")
    most = data["processes"]
    parser.add_argument("--processes", type=int, default=most, metavar="N", help=f"at least 2 (default: {most})")
    options = parser.parse_args(argv)
    if options.processes < 2:
        raise UserError(f"--processes {options.processes}: too few for a percentile; give 2 or more")
    bench = Bench(program(), options.device)
    machine = bench.machine()["machine_key"]
    points, absent = contenders(data, bench.variants())
    for name in absent:
        print(f"left out, not in this build in both modes: {name}", file=sys.stderr)
    if not points:
        raise UserError("noise: this build has none of the points; build the CUDA variants with scripts/build.sh")
    medians, failed = measure(bench, points, options.processes)
    for i, reason in failed.items():
        print(f"left out: {points[i][0].name} {points[i][1]}: {reason}", file=sys.stderr)
    found = list(classes(medians, data["classes_us"]))
    if not found:
        raise UserError(f"noise: no point has a time on {options.device}; the lines above say why")
    print(f"{machine}: {options.processes} processes\n")
    print(table(found, points, medians, data["tolerance"]))
    return int(any(one.excess > data["tolerance"] for one in found))


main = partial(command, run)

if __name__ == "__main__":
    sys.exit(main())
