"""Two builds measured in turn on one device: points of the published sets, in several processes of each build.

In each round both builds run in a process of their own, in an order that a seed shuffles, as it does the points of a
process. The mode is graph on a GPU, where the pace of the host is not in the time, else stream. Every point is verified
before it is timed. The comparison is that of experiments.compare.sets.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from tqdm import tqdm

from experiments.compare import sets
from experiments.driver import store
from experiments.driver.bench import SEED, Bench, Ended, Record, verdict_of
from experiments.driver.columns import COLUMNS, RECORDED, Row
from experiments.driver.points import Unit, select_variants
from experiments.driver.schema import Limits, Preset
from experiments.driver.sweep import legible
from xcorr.errors import Parser, UserError, command
from xcorr.files import resolved
from xcorr.native.variants import Variant
from xcorr.paths import RESULTS
from xcorr.problem import COLUMNS as PROBLEM
from xcorr.problem import Problem

EPILOG = """example:
  XCORR_BUILD=/tmp/new ./scripts/build.sh
  python3 -m experiments.compare.builds build /tmp/new --out /tmp/times
  python3 -m experiments.compare.sets /tmp/times/before.csv.gz /tmp/times/after.csv.gz

60 points and 5 rounds take about two minutes. Exit code as experiments.compare.sets."""
PROGRAM = "xcorr-bench"
LONGEST_US = {"cuda": 300.0, "cpu": 2e3}  # each process verifies each point, which takes longer than its time
TIMEOUT_S = 120.0
TIMED = Preset(repetitions=3, min_time_s=0.01, max_predicted_s=Limits(cpu=60, cuda=60))
NAMES = ("before", "after")
Place = tuple[str, Problem, str, str]  # variant, problem, params, precision
Point = tuple[Unit, str]  # with one of its parameters
Measure = Callable[[int, Sequence[Point], str], list[Row]]  # with build 0 or 1, points, and the name of the process


def places_of(rows: Iterable[Row], backend: str) -> set[Place]:
    """The points of published rows whose median time is at most LONGEST_US."""
    plain = (row for row in rows if (row["input"], row["backend"]) == ("uniform", backend))
    medians = store.medians(plain, ("variant", "params", "precision", *PROBLEM))
    return {
        (variant, Problem.of_cells(*cells), params, precision)
        for (variant, params, precision, *cells), us in medians.items()
        if us <= LONGEST_US[backend]
    }


def choose(places: Iterable[Place], variants: dict[str, Variant], count: int) -> list[Point]:
    """At most `count` of the points that the variants have: of every variant and form in turn, in an order that depends on
    nothing but their names."""

    def order(*words: object) -> str:
        return sha256(repr(words).encode()).hexdigest()

    known = [place for place in places if place[0] in variants and place[2] in variants[place[0]].points]
    met: Counter[tuple[str, str]] = Counter()
    turns = []
    for variant, problem, params, precision in sorted(known, key=lambda one: order(one[0], one[1].id, *one[2:])):
        group = (variant, problem.form)
        turns.append((met[group], order(group), variant, problem, params, precision))
        met[group] += 1
    chosen = sorted(turns, key=lambda one: one[:2])[:count]
    return [
        (_unit(variants[variant], problem, params, precision), params)
        for *_, variant, problem, params, precision in chosen
    ]


def _unit(variant: Variant, problem: Problem, params: str, precision: str) -> Unit:
    mode = "graph" if variant.backend == "cuda" and "graph" in variant.modes else "stream"
    return Unit("builds", problem, variant, precision, mode, "uniform", (params,))


def measured(bench: Bench, facts: dict[str, Any], points: Sequence[Point], process: str) -> list[Row]:
    """The rows of one process. UserError where a point is wrong or fails; one that is not supported has no row."""
    rows: list[Row] = []
    for event in bench.measure_points(points, TIMED, lambda _: TIMEOUT_S):
        if isinstance(event, Record) and event.number is not None:
            (unit, params), (outcome, reason) = points[event.number], verdict_of(event.fields)
            if outcome not in ("passed", "not_supported"):
                raise UserError(f"{bench.path}: {unit.name} {params}: {outcome}: {reason}")
            known = {"run": process, "experiment": unit.experiment, "machine_key": facts["machine_key"], "seed": SEED}
            known |= {"family": unit.variant.family, "backend": unit.variant.backend, "outcome": outcome}
            found = legible({name: event.fields[name] for name in RECORDED if name in event.fields})
            cells = {**found, **known, **unit.cells(params, "")}
            times = event.fields["repetitions"] if outcome == "passed" else []
            texts = [{**cells, **legible(one), "repetition": i} for i, one in enumerate(times)]
            rows += [{name: store.text_of(row.get(name)) for name in COLUMNS} for row in texts]
        elif isinstance(event, Ended) and event.reason:
            raise UserError(f"{bench.path}: {event.reason}")
    return rows


def in_turn(points: Sequence[Point], rounds: int, seed: int, measure: Measure) -> tuple[list[Row], list[Row]]:
    """The rows of both builds: in each round a process of each, builds and points in an order that `seed` shuffles."""
    rows: tuple[list[Row], list[Row]] = ([], [])
    shuffle = random.Random(seed)
    for number in tqdm(range(rounds), desc="rounds", file=sys.stderr):
        for build in shuffle.sample((0, 1), 2):
            rows[build].extend(measure(build, shuffle.sample(points, len(points)), f"{NAMES[build]}-{number}"))
    return rows


def points_of(
    benches: Sequence[Bench], device: str, names: Collection[str], count: int, published: Iterable[Path]
) -> list[Point]:
    """`count` points that both builds have. UserError where there are none."""
    backend = "cpu" if device == "cpu" else "cuda"
    listed = [{one.id: one for one in bench.variants() if one.backend == backend} for bench in benches]
    both = {
        name: replace(one, points=tuple(point for point in one.points if point in listed[1][name].points))
        for name, one in listed[0].items()
        if name in listed[1]
    }
    wanted = select_variants(names, list(both.values()), "variant", built=True) if names else both.keys()
    places = {place for folder in published for place in places_of(store.read_rows(folder), backend)}
    points = choose(places, {name: both[name] for name in wanted}, count)
    if not points:
        raise UserError(f"builds: no published {backend} point of both builds is below {LONGEST_US[backend]:g} us")
    return points


def run(argv: Sequence[str]) -> int:
    parser = Parser(prog="python3 -m experiments.compare.builds", description=__doc__, epilog=EPILOG)
    add = parser.add_argument
    add("before", type=Path, metavar="BEFORE", help="build folder of the older sources")
    add("after", type=Path, metavar="AFTER", help="build folder of the newer sources")
    add("--device", default="cuda:0", help="device to measure on, such as cpu (default: cuda:0)")
    add("--variants", default="", metavar="IDS", help="variants or families, comma-separated (default: all)")
    add("--points", type=int, default=60, metavar="N", help="how many points are measured (default: 60)")
    add("--rounds", type=int, default=5, metavar="N", help="processes of each build (default: 5)")
    add("--seed", type=int, default=1, help="of the order of builds and points (default: 1)")
    add("--out", type=Path, metavar="DIR", help="where before.csv.gz and after.csv.gz are written")
    add("--fail-on-slower", action="store_true", help="exit code 1 where a point is SLOWER")
    options = parser.parse_args(argv)
    if options.points < 1 or options.rounds < sets.PROCESSES:
        raise UserError(f"--points, --rounds: out of range; use 1 and {sets.PROCESSES} or more")
    programs = [folder / PROGRAM for folder in (options.before, options.after)]
    for path in programs:
        if not path.is_file():
            raise UserError(f"{path}: not built; run scripts/build.sh in its tree")
    benches = [Bench(resolved(path), options.device) for path in programs]
    published = sorted(
        one for one in (RESULTS / "published").glob("*") if one.is_dir() and not store.is_imported(one.name)
    )
    points = points_of(
        benches, options.device, list(filter(None, options.variants.split(","))), options.points, published
    )
    facts = benches[0].machine()

    def measure(build: int, some: Sequence[Point], process: str) -> list[Row]:
        return measured(benches[build], facts, some, process)

    rows = in_turn(points, options.rounds, options.seed, measure)
    if options.out:
        for name, own in zip(NAMES, rows):
            store.write_atomic(options.out / f"{name}.csv.gz", store.encode(own))
    return sets.tell(*rows, fail_on_slower=options.fail_on_slower)


main = partial(command, run)

if __name__ == "__main__":
    sys.exit(main())
