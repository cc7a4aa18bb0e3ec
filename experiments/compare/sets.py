"""Two sets of times, point by point: FASTER, SLOWER, SAME or UNDECIDED. A set is a commit's or a machine's.

A point is a variant with its parameters on one problem. Its interval in a set goes from the 10 % to the 90 % quantile of
all samples, of every process. In time, B is SAME where every ratio of the two intervals is within 2 % of 1, FASTER or
SLOWER where the intervals are apart and their medians differ by more than 2 %, else UNDECIDED. In cycles (time x SM
clock) the same is asked; a point whose two answers differ is UNDECIDED. Where a sample has no clock, the time alone
decides and the table says so. Fewer than 3 processes in either set decide nothing, since what differs between processes
is not in their intervals.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from experiments.compare.markdown import printed
from experiments.driver import store
from experiments.driver.columns import KEY, Row
from experiments.driver.decoding import Damaged, decode
from experiments.driver.run_records import run_records
from experiments.driver.schema import PRESETS
from experiments.driver.studies import without_studies
from xcorr.errors import Parser, UserError, command, nearest, warn
from xcorr.files import resolved
from xcorr.paths import RESULTS
from xcorr.problem import Problem

EPILOG = """examples:
  python3 -m experiments.compare.sets results/published/KEY results/local/KEY
  python3 -m experiments.compare.sets before.csv.gz after.csv.gz --fail-on-slower

A and B are folders of sets, their keys, or files of rows as experiments.compare.builds writes them. The ratios and verdicts
are of B against A. Exit code: 0; 1 with --fail-on-slower where a point is SLOWER; 2 for a mistake."""
VERDICTS = ("SLOWER", "FASTER", "UNDECIDED", "SAME")  # in the order of the table
SAME = 0.02  # a ratio this close to 1 is no difference
QUANTILES = (0.1, 0.9)
PROCESSES = 3
NO_CLOCK = "no clock"
CLOCK, PROCESS = "sm_mhz", "process"  # columns that older rows lack; without the second, a run is a process
POINT = tuple(name for name in KEY if name not in ("preset", "source_hash"))
HEAD = ("verdict", "variant", "params", "problem", "mode", "A us", "B us", "B / A", "in time", "in cycles", "processes")
Place = tuple[str, ...]  # cells of POINT


@dataclass(frozen=True)
class Samples:
    """The samples of a point: microseconds, and cycles, which are empty where a sample has no clock."""

    us: np.ndarray
    cycles: np.ndarray
    processes: int


def samples_of(rows: Iterable[Row]) -> dict[Place, Samples]:
    """Samples of the points that passed, each of its most thorough preset."""
    found: dict[Place, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["outcome"] == "passed" and row["compute_us"]:
            rank = PRESETS.index(row["preset"]) if row["preset"] in PRESETS else -1
            found[tuple(row[name] for name in POINT)][rank].append(row)
    return {place: _samples(ranks[max(ranks)]) for place, ranks in found.items()}


def _samples(rows: Sequence[Row]) -> Samples:
    us = np.array([float(row["compute_us"]) for row in rows])
    clocks = [row.get(CLOCK) for row in rows]
    cycles = us * np.array(clocks, float) if all(clocks) else np.empty(0)
    return Samples(us, cycles, len({(row["run"], row.get(PROCESS, "")) for row in rows}))


def ratios(before: np.ndarray, after: np.ndarray) -> tuple[float, float, float]:
    """Ratio of the medians, after / before, and its range by the intervals of both."""
    low, high = np.quantile(before, QUANTILES)
    new_low, new_high = np.quantile(after, QUANTILES)
    return float(np.median(after) / np.median(before)), float(new_low / high), float(new_high / low)


def verdict(before: np.ndarray, after: np.ndarray) -> str:
    """One of VERDICTS for two sets of samples in one unit."""
    middle, low, high = ratios(before, after)
    if low >= 1 / (1 + SAME) and high <= 1 + SAME:
        return "SAME"
    if low > 1 and middle > 1 + SAME:
        return "SLOWER"
    return "FASTER" if high < 1 and middle < 1 / (1 + SAME) else "UNDECIDED"


@dataclass(frozen=True)
class Compared:
    """A point of both sets."""

    place: Place
    before: Samples
    after: Samples
    processes: int  # so many must have measured it in each set

    @property
    def in_time(self) -> str:
        return verdict(self.before.us, self.after.us)

    @property
    def in_cycles(self) -> str:
        has_clock = len(self.before.cycles) and len(self.after.cycles)
        return verdict(self.before.cycles, self.after.cycles) if has_clock else NO_CLOCK

    @property
    def verdict(self) -> str:
        if min(self.before.processes, self.after.processes) < self.processes:
            return "UNDECIDED"
        return self.in_time if self.in_cycles in (self.in_time, NO_CLOCK) else "UNDECIDED"

    @property
    def cells(self) -> list[str]:
        """The cells of HEAD."""
        named = dict(zip(POINT, self.place))
        middle, low, high = ratios(self.before.us, self.after.us)
        us = [f"{np.median(one.us):.4g}" for one in (self.before, self.after)]
        counts = f"{self.before.processes}, {self.after.processes}"
        how = [one for one, usual in ((named["precision"], "fp32"), (named["input"], "uniform")) if one != usual]
        return [
            self.verdict,
            named["variant"],
            named["params"],
            Problem.of_row(named).id,
            " ".join([named["mode"], *how]),
            *us,
            f"{middle:.3f} ({low:.3f} to {high:.3f})",
            self.in_time,
            self.in_cycles,
            counts,
        ]


def compare(
    before: Mapping[Place, Samples], after: Mapping[Place, Samples], processes: int = PROCESSES
) -> list[Compared]:
    """The points of both sets, those that differ first."""
    found = [Compared(place, before[place], after[place], processes) for place in sorted(before.keys() & after.keys())]
    return sorted(found, key=lambda one: VERDICTS.index(one.verdict))


def told(points: Sequence[Compared], alone: tuple[int, int]) -> str:
    """The table, and below it the counts. `alone`: how many points only A and only B has."""
    counts = Counter(one.verdict for one in points)
    lines = [", ".join(f"{counts[name]} {name}" for name in VERDICTS) + f"; only in A {alone[0]}, only in B {alone[1]}"]
    clockless = sum(one.in_cycles == NO_CLOCK for one in points)
    if clockless:
        lines.append(f"{clockless} points have no column {CLOCK}: time alone decides them.")
    few = sum(min(one.before.processes, one.after.processes) < one.processes for one in points)
    if few:
        needed = f"{points[0].processes} processes in each set (--processes)"
        lines.append(f"{few} points are UNDECIDED because they lack {needed}.")
    return "\n\n".join([printed([one.cells for one in points], HEAD, markdown=True), *lines])


def tell(before: Iterable[Row], after: Iterable[Row], processes: int = PROCESSES, fail_on_slower: bool = False) -> int:
    """Prints the comparison of two sets of rows; the exit code. UserError where no point is in both."""
    old, new = samples_of(before), samples_of(after)
    points = compare(old, new, processes)
    if not points:
        raise UserError("A and B: no point that passed is in both; compare sets of the same experiments")
    print(told(points, (len(old.keys() - new.keys()), len(new.keys() - old.keys()))))
    return int(fail_on_slower and any(one.verdict == "SLOWER" for one in points))


def rows_of(name: str, results: Path = RESULTS) -> list[Row]:
    """The rows of a file of rows, or of a set: its folder, or its key in `results`. All runs of the newest source of each
    variant count. UserError where there is no such set, or no row in it."""
    places = [Path(name), *(results / kind / name for kind in ("local", "published"))]
    found = next((path for path in places if path.exists()), None)
    if found is None:
        known = {path.name for kind in ("local", "published") for path in (results / kind).glob("*") if path.is_dir()}
        raise UserError(f"set {name}: neither a file, a folder nor a key of {results}; {nearest(name, known)}")
    if found.is_file():
        try:
            return decode(found)
        except (Damaged, OSError) as error:
            raise UserError(f"{found}: not a file of rows ({error}); give one of experiments.compare.builds") from error
    found = resolved(found)
    rows = store.every_row(found, run_records(found), warn, warn, set_aside=False)
    if not rows:
        raise UserError(f"{found}: no rows; give results/local/KEY, results/published/KEY or a file of rows")
    return without_studies(store.newest_sources(rows))


def run(argv: Sequence[str]) -> int:
    parser = Parser(prog="python3 -m experiments.compare.sets", description=__doc__, epilog=EPILOG)
    parser.add_argument("before", metavar="A", help="folder of a set, its key, or a file of rows")
    parser.add_argument("after", metavar="B", help="likewise")
    parser.add_argument(
        "--processes",
        type=int,
        default=PROCESSES,
        metavar="N",
        help=f"fewer in a set decide nothing (default: {PROCESSES}; rows of old sets are of one)",
    )
    parser.add_argument("--fail-on-slower", action="store_true", help="exit code 1 where a point is SLOWER")
    parser.add_results()
    options = parser.parse_args(argv)
    if options.processes < 1:
        raise UserError(f"--processes {options.processes}: out of range; use 1 or more")
    before, after = (rows_of(name, options.results) for name in (options.before, options.after))
    return tell(before, after, options.processes, options.fail_on_slower)


main = partial(command, run)

if __name__ == "__main__":
    sys.exit(main())
