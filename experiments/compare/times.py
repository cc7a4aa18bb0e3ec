"""Short points measured with two builds in turn on one machine.

Launch-bound points of the published sets, spread over variants and forms, always the same ones. A point differs when
the medians of the two builds are further apart than the runs of one build are from each other.
"""

import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from tabulate import tabulate
from tqdm import tqdm

from experiments.driver import store
from experiments.driver.bench import Bench, Ended, Record, verdict_of
from experiments.driver.points import Unit
from experiments.driver.schema import Limits, Preset
from xcorr.errors import Parser, UserError, command
from xcorr.files import resolved
from xcorr.native.variants import Variant
from xcorr.paths import RESULTS
from xcorr.problem import COLUMNS as PROBLEM
from xcorr.problem import Problem

EPILOG = """example:
  XCORR_BUILD=/tmp/new ./scripts/build.sh
  python3 -m experiments.compare.times --before-build build --after-build /tmp/new

60 points take about three minutes. Exit code: 0 when no point differs, 1 when one does, 2 for a mistake."""
PROGRAM = "xcorr-bench"
SHORT_US = {"cuda": 8.0, "cpu": 2000.0}  # a launch is most of it; on a CPU short enough for many runs
RUNS = 5
POINTS_OF_A_UNIT = 2  # a process of its own for each point would take longer than what it measures
TIMEOUT_S = 120.0
LEAST_SPREAD = 0.005  # of the time: below it two medians are one
BRIEF = Preset(repetitions=3, min_time_s=0.01, max_predicted_s=Limits(cpu=1, cuda=1))
Place = tuple[str, Problem, str]  # variant, problem, params


def short_points(rows: Iterable[store.Row], backend: str) -> dict[Place, float]:
    """Median times, in microseconds, of the points that are launch-bound."""
    plain = (row for row in rows if (row["precision"], row["input"], row["backend"]) == ("fp32", "uniform", backend))
    found = {}
    for (variant, params, *cells), us in store.medians(plain, ("variant", "params", *PROBLEM)).items():
        if us < SHORT_US[backend]:
            found[variant, Problem.of_cells(*cells), params] = us
    return found


def choose(places: Iterable[Place], variants: dict[str, Variant], count: int) -> list[Unit]:
    """Units of at most POINTS_OF_A_UNIT points, `count` points in all: of every variant and form in turn, in an order
    that depends on nothing but their names."""
    by_unit: dict[tuple[str, Problem], list[str]] = defaultdict(list)
    for variant, problem, params in places:
        if variant in variants and params in variants[variant].points:
            by_unit[(variant, problem)].append(params)

    def order(*words: object) -> str:
        return sha256(repr(words).encode()).hexdigest()

    turns: dict[tuple[str, str], list[tuple[str, Problem]]] = defaultdict(list)
    for unit in sorted(by_unit, key=lambda one: order(one[0], one[1].id)):
        turns[(unit[0], unit[1].form)].append(unit)
    chosen: list[Unit] = []
    left = count
    for turn in range(max(map(len, turns.values()), default=0)):
        # All variants in one form before the next form, so that few points meet every variant.
        for group in sorted(turns, key=lambda one: (order(one), one)):
            if turn < len(turns[group]) and left > 0:
                variant, problem = turns[group][turn]
                points = sorted(by_unit[(variant, problem)], key=order)[: min(POINTS_OF_A_UNIT, left)]
                chosen.append(Unit("times", problem, variants[variant], "fp32", "stream", "uniform", tuple(points)))
                left -= len(points)
    return chosen


Times = dict[str, float]  # microseconds by params
Measure = Callable[[int, Unit], Times]  # with build 0 or 1


def measured(bench: Bench, unit: Unit) -> Times:
    """Medians of one run. UserError where a point does not pass."""
    found = {}
    for event in bench.measure(unit, unit.params, BRIEF, lambda _: TIMEOUT_S):
        if isinstance(event, Record):
            outcome, reason = verdict_of(event.fields)
            if outcome != "passed":
                raise UserError(f"{bench.path}: {unit.name} {event.params}: {outcome}: {reason}")
            found[event.params] = statistics.median(float(one["compute_us"]) for one in event.fields["repetitions"])
        elif isinstance(event, Ended) and event.reason:
            raise UserError(f"{bench.path}: {unit.name}: {event.reason}")
    return found


@dataclass(frozen=True)
class Point:
    """The runs of a point with both builds, in microseconds."""

    name: str
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def spread(self) -> float:
        """How far apart the runs of one build are, the larger of both."""
        return max(max(runs) - min(runs) for runs in (self.before, self.after))

    @property
    def medians(self) -> tuple[float, float]:
        return statistics.median(self.before), statistics.median(self.after)

    @property
    def difference(self) -> float:
        return self.medians[1] - self.medians[0]

    @property
    def differs(self) -> bool:
        return abs(self.difference) > max(self.spread, LEAST_SPREAD * self.medians[0])


def in_turn(units: Sequence[Unit], measure: Measure) -> list[Point]:
    """Every unit RUNS times with both builds, the first of the two in turn."""
    runs: dict[tuple[str, str], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for turn in tqdm(range(RUNS), desc="runs", file=sys.stderr):
        for unit in units:
            for build in (0, 1) if turn % 2 == 0 else (1, 0):
                for params, time in measure(build, unit).items():
                    runs[(unit.name, params)][build].append(time)
    return [Point(" ".join(place), tuple(before), tuple(after)) for place, (before, after) in runs.items()]


def table(points: Sequence[Point]) -> str:
    """A line for each point, those that differ marked, and the verdict."""
    body = [[one.name, *one.medians, one.difference, one.spread, "differs" if one.differs else ""] for one in points]
    head = ["point", "before us", "after us", "difference", "spread of runs", ""]
    count = sum(point.differs for point in points)
    ratio = statistics.geometric_mean(after / before for before, after in (one.medians for one in points))
    verdict = f"{len(points)} points, {count} differ; after / before = {ratio:.4f} (geometric mean)"
    return tabulate(body, head, floatfmt=".3f") + "\n" + verdict


def compare(programs: Sequence[Path], device: str, count: int, sets: Iterable[Path]) -> list[Point]:
    """Measures `count` short points. UserError where there are none."""
    backend = "cpu" if device == "cpu" else "cuda"
    for path in programs:
        if not path.is_file():
            raise UserError(f"{path}: not built; run scripts/build.sh in its tree")
    benches = [Bench(resolved(path), device) for path in programs]
    listed = [{one.id: one for one in bench.variants()} for bench in benches]
    both = {}
    for name, one in listed[0].items():
        if name in listed[1] and one.backend == backend:
            both[name] = replace(one, points=tuple(point for point in one.points if point in listed[1][name].points))
    places = {place for folder in sets for place in short_points(store.read_rows(folder), backend)}
    units = choose(places, both, count)
    if not units:
        raise UserError(f"times: no published {backend} point of both builds is below {SHORT_US[backend]:.0f} us")
    return in_turn(units, lambda build, unit: measured(benches[build], unit))


def run(argv: Sequence[str]) -> int:
    parser = Parser(prog="python3 -m experiments.compare.times", description=__doc__, epilog=EPILOG)
    add = parser.add_argument
    add("--before-build", type=Path, required=True, metavar="DIR", help="build folder of the older sources")
    add("--after-build", type=Path, required=True, metavar="DIR", help="build folder of the newer sources")
    add("--device", default="cuda:0", help="device to measure on, such as cpu (default: cuda:0)")
    add("--points", type=int, default=60, metavar="N", help="how many points are measured (default: 60)")
    options = parser.parse_args(argv)
    programs = [folder / PROGRAM for folder in (options.before_build, options.after_build)]
    sets = sorted(path for path in (RESULTS / "published").iterdir() if not path.name.startswith("published-"))
    points = compare(programs, options.device, options.points, sets)
    print(table(points))
    return 1 if any(point.differs for point in points) else 0


main = partial(command, run)

if __name__ == "__main__":
    sys.exit(main())
