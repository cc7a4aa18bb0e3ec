"""Other libraries beside ours on one device, in one block: each result is verified against float64, then timed.

Ours is the variant that xcorr.auto chooses; xcorr-bench times it without Python, in mode stream. The libraries are called
from Python. A time is of the computation with data on the device; the copies to and from it stand beside. In each round all
libraries are timed in an order that a seed shuffles; a result that is wrong is not timed. A library that cannot be used is
named with the command that installs it.
"""

import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate
from tqdm import tqdm

from experiments.compare import artifacts
from experiments.compare.markdown import printed
from experiments.compare.records import call_seconds, record_of
from experiments.compare.rivals import EXPERIMENT, OURS, SCHEMA, Rival, Unsupported, found, reason_of, truth
from experiments.compare.rivals.timing import Round, Timer, once, one_by_one, timers
from xcorr.choice.auto import Auto
from xcorr.errors import LibraryError, Parser, UserError, choose, command
from xcorr.native.library import Library
from xcorr.problem import Problem

LONGEST_S = 1.0  # for the rounds of one library on one problem; a slow one has fewer rounds
EPILOG = """examples:
  python3 -m experiments.compare.rivals --list
  python3 -m experiments.compare.rivals --device cuda:0
  python3 -m experiments.compare.rivals --device cpu --kinds scores,peaks --rivals opencv,scipy

Exit code: 0; 1 where a result of ours is wrong; 2 for a mistake."""
HEAD = ("problem", "implementation", "time us", "over ours", "in us", "out us", "first us", "error", "outcome")
Row = dict[str, Any]


def usable(rivals: Sequence[Rival]) -> tuple[list[tuple[Rival, Any, str]], list[tuple[Rival, str]]]:
    """(rival, what it loaded, version) of those that can be used here, and the reasons against the others."""
    here, absent = [], []
    for rival in rivals:
        try:
            module = rival.load()
            here.append((rival, module, rival.version(module)))
        except (ImportError, OSError, RuntimeError, AttributeError) as error:
            absent.append((rival, reason_of(error)))
    return here, absent


def spread(times: Sequence[float]) -> Row:
    """Median, number and range of seconds, in microseconds."""
    us = [1e6 * one for one in times]
    return {"compute_us": statistics.median(us), "rounds": len(us), "least_us": min(us), "most_us": max(us)}


class Contestant:
    """A rival on a problem: prepared, verified, and its times. Whatever its library raises is the reason of its row."""

    def __init__(self, rival: Rival, module: Any, version: str, problem: Problem, wait: Any) -> None:
        self.rival, self._problem, self._wait, self._module = rival, problem, wait, module
        self.times: list[float] = []
        self._compute: Callable[[], Any] = lambda: None
        self._spent_s = 0.0
        self.row: Row = {"name": rival.name, "family": "rival", "variant": "", "params": "", "version": version}
        self.row |= {
            "install": rival.install,
            "settings": rival.settings,
            "precision": rival.precision,
            "outcome": "failed",
            "reason": "",
        }

    def verify(self, arrays: tuple[np.ndarray, np.ndarray], exact: truth.Exact) -> None:
        try:
            call, prepared = once(lambda: self.rival.prepare(self._module, self._problem, *arrays), self._wait)
            state, up = once(call.upload, self._wait)
            result, first = once(lambda: call.compute(state), self._wait)
            made, down = once(lambda: call.download(result), self._wait)
            self.row |= truth.judge(self._problem, made, exact, self.rival.precision)._asdict()
            for _ in range(2):  # the first copies pin and map memory
                up = min(up, once(call.upload, self._wait)[1])
                down = min(down, once(lambda: call.download(result), self._wait)[1])
            copied = {"upload_us": 1e6 * up, "download_us": 1e6 * down} if self.rival.device == "cuda" else {}
            self.row |= {"first_us": 1e6 * (prepared + first), **copied}
            self._compute = lambda: call.compute(state)
        except Unsupported as reason:
            self.row |= {"outcome": "not_supported", "reason": str(reason)}
        except Exception as error:  # of a library that is not ours
            self._fail(error)

    def round(self, duration: float) -> Iterator[Round]:
        """One round, where the result has passed and the rounds before were not too long."""
        if self.row["outcome"] == "passed" and self._spent_s < LONGEST_S:
            begin = time.perf_counter()
            yield Round(self._compute, duration, self.rival.follows_stream, self.times.append, self._fail)
            self._spent_s += time.perf_counter() - begin

    def release(self) -> None:
        """Lets go of what the library holds on the device."""
        self._compute = lambda: None

    def _fail(self, error: BaseException) -> None:
        self.row |= {"outcome": "failed", "reason": reason_of(error)}

    @property
    def finished(self) -> Row:
        return {**self.row, **(spread(self.times) if self.times and self.row["outcome"] == "passed" else {})}


def ours(
    auto: Any, library: Any, device: str, problem: Problem, arrays: tuple[np.ndarray, np.ndarray], exact: truth.Exact,
    rounds: int, duration: float,
) -> Row:  # fmt: skip
    """The row of the variant that auto chooses on the device."""
    row: Row = {"name": OURS, "settings": "mode stream", "version": "", "precision": "fp32", "reason": ""}
    try:
        choice = auto.choose(problem)
        chosen = {"variant": choice.variant, "params": choice.params}
        result = library.correlate(problem, *arrays, precision="fp32", device=device, **chosen)
        if problem.fields.result_kind == "peak":
            starts, cols = [shifts.start for shifts in problem.shifts], problem.output[1]
            result = (result["sy"] - starts[0]) * cols + result["sx"] - starts[1], result["value"]
        row |= {**chosen, **truth.judge(problem, result, exact, "fp32")._asdict()}
        record = record_of(device, choice.variant, choice.params, problem, rounds, duration)
        copied = {name: record.get(name) for name in ("upload_us", "download_us") if device != "cpu"}
        times = [1e-6 * float(one["compute_us"]) for one in record["repetitions"]]
        return {**row, "family": record["family"], **copied, **spread(times)}
    except (UserError, LibraryError) as error:
        return {**row, "family": "", "variant": "", "params": "", "outcome": "failed", "reason": reason_of(error)}


@dataclass
class Block:
    """The rows of a problem: ours, then the rivals'. Some timers know the times of the rivals at the end of all problems."""

    common: Row
    own: Row
    contestants: Sequence[Contestant]

    @property
    def rows(self) -> list[Row]:
        return [{**self.common, **row} for row in (self.own, *(one.finished for one in self.contestants))]


def measure(
    library: Any, device: str, here: Sequence[tuple[Rival, Any, str]], problems: Sequence[tuple[str, Problem]],
    timer: Timer, wait: Any, rounds: int, duration: float, seed: int = 1, done: Callable[[list[Block]], Any] = lambda _: None,
) -> list[Row]:  # fmt: skip
    """The rows of all problems. `done` gets the blocks so far after each of them."""
    auto, shuffle, blocks = Auto(library, device), random.Random(seed), list[Block]()

    def every_round() -> Iterator[Round]:
        for kind, problem in problems:
            arrays = truth.inputs(problem)
            exact = truth.exact(problem, *arrays)
            contestants = [Contestant(*one, problem, wait) for one in here]
            for one in contestants:
                one.verify(arrays, exact)
            own = ours(auto, library, device, problem, arrays, exact, rounds, duration)
            common = {"kind": kind, "problem": problem.id, "device": device.partition(":")[0]}
            blocks.append(Block(common, own, contestants))
            for _ in range(rounds):
                for one in shuffle.sample(contestants, len(contestants)):
                    yield from one.round(duration)
            for one in contestants:
                one.release()
            done(blocks)

    timer(every_round(), len(problems) * rounds * len(here))
    return [row for block in blocks for row in block.rows]


def cells_of(row: Mapping[str, Any], own_us: float | None) -> list[str]:
    """The cells of HEAD."""

    def us(name: str) -> str:
        return f"{row[name]:.4g}" if row.get(name) is not None else ""

    name = " ".join(filter(None, [row["name"], row["variant"], row["version"].partition(" for ")[0]]))
    over = f"{row['compute_us'] / own_us:.3g}" if own_us and row.get("compute_us") else ""
    error = f"{row['max_error']:.1e}" if "max_error" in row else ""
    said = ": ".join(filter(None, [row["outcome"], row["reason"]]))
    copies = [us(one) for one in ("upload_us", "download_us", "first_us")]
    return [row["problem"], name, us("compute_us"), over, *copies, error, said]


def table(rows: Sequence[Row], markdown: bool = True) -> str:
    """A line for each problem and implementation, the fastest of a problem first; none where it is not supported."""
    own = {row["problem"]: row.get("compute_us") for row in rows if row["name"] == OURS}
    place = {name: i for i, name in enumerate(own)}
    shown = [row for row in rows if row["outcome"] != "not_supported"]
    shown.sort(key=lambda row: (place[row["problem"]], row.get("compute_us", float("inf"))))
    return printed([cells_of(row, own[row["problem"]]) for row in shown], HEAD, markdown)


def listed(here: Sequence[tuple[Rival, Any, str]], absent: Sequence[tuple[Rival, str]]) -> str:
    lines = [(one.name, one.device, version, one.settings) for one, _, version in here]
    lines += [(one.name, one.device, f"absent: {why}", one.install) for one, why in absent]
    return tabulate(lines, ("rival", "device", "version", "settings, or how to install"), disable_numparse=True)


def run(argv: Sequence[str]) -> int:
    parser = Parser(prog="python3 -m experiments.compare.rivals", description=__doc__, epilog=EPILOG)
    add = parser.add_argument
    add("--list", action="store_true", help="only say which libraries can be used here, and how to install the others")
    add("--device", default="cpu", help="cpu or cuda:0: its libraries and ours (default: cpu)")
    add("--kinds", default="", metavar="KINDS", help="of problems: plain, scores, peaks, series (default: all)")
    add("--rivals", default="", metavar="WORDS", help="only names that contain one of these, comma-separated")
    add("--rounds", type=int, default=5, help="of which the median counts (default: 5)")
    add("--seconds", type=float, default=0.02, help="of each library in a round (default: 0.02)")
    add("--timer", choices=("auto", "nvbench", "events"), default="auto", help="of libraries on a GPU (default: auto)")
    add("--seed", type=int, default=1, help="of the order in a round (default: 1)")
    parser.add_results()
    options = parser.parse_args(argv)
    if options.rounds < 1 or not 0 < options.seconds <= 60:
        raise UserError("--rounds, --seconds: out of range; use 1 or more and 0 to 60")
    if options.device not in ("cpu", "cuda:0"):
        raise UserError(f"device {options.device}: use cpu or cuda:0; CUDA_VISIBLE_DEVICES chooses another GPU")
    words = list(filter(None, options.rivals.lower().split(",")))
    rivals = [one for one in found() if not words or any(word in one.name.lower() for word in words)]
    if options.list:
        print(listed(*usable(rivals)))
        return 0
    kinds = choose("kind", filter(None, options.kinds.split(",")), truth.data()["problems"])
    library = Library()
    key = library.machine(options.device)["machine_key"]
    here, absent = usable([one for one in rivals if one.device == options.device.partition(":")[0]])
    nothing = ("", one_by_one(call_seconds), lambda: None)
    timed_by, timer, wait = timers(options.device, options.timer) if here else nothing
    problems = truth.problems(kinds)
    known = {"machine_key": key, "timed_by": timed_by, "rounds": options.rounds, "seed": options.seed}
    known["absent"] = {one.name: {"reason": why, "install": one.install} for one, why in absent}
    folder: Path = options.results / "local" / key

    def store(rows: list[Row]) -> None:
        artifacts.store(folder, EXPERIMENT, {"schema": SCHEMA, "experiment": EXPERIMENT, **known, "rows": rows})

    with tqdm(total=len(problems), desc="problems", file=sys.stderr) as progress:

        def done(blocks: list[Block]) -> None:
            store([row for block in blocks for row in block.rows])
            progress.update()

        wanted = (options.rounds, options.seconds, options.seed)
        rows = measure(library, options.device, here, problems, timer, wait, *wanted, done)
    store(rows)
    print(table(rows))
    print(f"\n{timed_by}; medians of {options.rounds} rounds; ratios are to ours on this device")
    for one, why in absent:
        print(f"left out: {one.name}: {why}; {one.install}")
    print(f"stored: {folder / EXPERIMENT}")
    return int(any(row["name"] == OURS and row["outcome"] == "incorrect" for row in rows))


main = partial(command, run)

if __name__ == "__main__":
    sys.exit(main())
