"""Is a new variant faster? Compiles its unit, verifies it, and times it in turn with its parent and the fastest known
variant of the problem. scripts/try has the help."""

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.driver.bench import Bench, Ended, Record, verdict_of
from experiments.driver.best import FEW, named, spread
from experiments.driver.points import Unit
from experiments.driver.schema import Limits, Preset
from experiments.driver.trial_build import PROGRAMS, Build, Source, Wrong, emulate, resources, sources, verify
from xcorr.choice import table
from xcorr.choice.auto import ordered, pick
from xcorr.choice.floor import crossing_bytes, crossing_rate, fft_flops, terms
from xcorr.errors import Parser, UserError, command, nearest
from xcorr.native.variants import Variant
from xcorr.paths import RESULTS
from xcorr.problem import Problem

ROUNDS = 6  # processes that time everything; six agree by chance with a probability of 1/32
MORE_S = 8.0  # seconds for further rounds while no difference is seen
CHANCE = 0.05  # probability that the median of a ratio lies outside of its range
UNDECIDED = "no difference seen"
BRIEF = Preset(repetitions=1, min_time_s=0.005, max_predicted_s=Limits(cpu=60, cuda=60))
TIMED = Preset(repetitions=3, min_time_s=0.02, max_predicted_s=Limits(cpu=60, cuda=60))
LONGEST_S = 3600.0  # for a point
SAME = 0.005  # smallest difference of a ratio from 1 that counts
NEAR_LIMIT = 0.6  # part of a ceiling above which it is called the limit
USUAL = {"cpu": "n-to-m/32x32/32x32/4:4/full", "cuda": "n-to-m/64x64/64x64/8:8/full"}
Point = tuple[str, str]  # variant, parameters


def parse_problem(text: str) -> Problem:
    """The problem of an id such as n-to-m/64x64/64x64/8:8/full."""
    try:
        return Problem.of_id(text)
    except (ValueError, UserError) as error:
        way_out = f"write FORM/LEFT/RIGHT/LEFTS:RIGHTS/WINDOW, as {USUAL['cuda']}"
        raise UserError(f"problem {text}: not an id ({error}); {way_out}") from error


def best_known(problem: Problem, facts: Mapping[str, Any], device: str, known: Mapping[str, Source]) -> Point | None:
    """The fastest known point for the problem, by the rows of this machine or the shipped table."""
    here = {name for name, one in known.items() if one.backend == device.partition(":")[0]}
    for source in ordered(problem, table.sources(facts, device, "fp32", RESULTS)):
        choice = pick(problem, source, lambda point: "" if point[0] in here else "not here")
        if choice:
            return choice.variant, choice.params
    return None


def interval(values: Sequence[float]) -> tuple[float, float]:
    """A range that contains the median with a probability of at least 95 % for any distribution; less for fewer than 6
    values.

    Up to 8 values it is their whole range. Of more values it leaves out as many extremes on both sides as that allows.
    """
    ordered, cut = sorted(values), 0
    while 2 * sum(math.comb(len(ordered), i) for i in range(cut + 2)) <= CHANCE * 2 ** len(ordered):
        cut += 1
    return ordered[cut], ordered[-1 - cut]


@dataclass(frozen=True)
class Rival:
    """Times of the variant (`own`) and of a rival in each round, in microseconds. `itself`: largest ratio of the
    variant to itself in a round."""

    name: str
    own: tuple[float, ...]
    other: tuple[float, ...]
    itself: float

    @property
    def ratios(self) -> list[float]:
        """Rival time / variant time of each round."""
        return [other / own for own, other in zip(self.own, self.other)]

    @property
    def noise(self) -> float:
        """The larger of `itself` and half the width of the range, as a ratio."""
        low, high = interval(self.ratios)
        return max(1 + SAME, self.itself, math.sqrt(high / low))

    @property
    def verdict(self) -> str:
        """FASTER or SLOWER where the whole range of the ratio differs from 1 by more than the noise."""
        low, high = interval(self.ratios)
        return "FASTER" if low > self.noise else "SLOWER" if high * self.noise < 1 else UNDECIDED

    def __str__(self) -> str:
        low, high = interval(self.ratios)
        return (
            f"{self.verdict}: {statistics.median(self.ratios):.3f} times as fast as {self.name} ({low:.3f} to {high:.3f} "
            f"in {len(self.ratios)} rounds, noise {self.noise:.3f}): {statistics.median(self.own):.4g} us against "
            f"{statistics.median(self.other):.4g} us"
        )


def rivals_of(names: Sequence[str], rounds: Sequence[Sequence[float]]) -> list[Rival]:
    """The comparison with each rival. A round has the times of the variant, of each rival, and again of the variant."""
    low, high = interval([one[-1] / one[0] for one in rounds])
    own = tuple((one[0] + one[-1]) / 2 for one in rounds)
    return [Rival(name, own, tuple(one[i] for one in rounds), max(high, 1 / low)) for i, name in enumerate(names, 1)]


def samples_of(bench: Bench, points: Sequence[tuple[Unit, str]], preset: Preset) -> dict[int, list[float] | str]:
    """The samples of each point in microseconds, or the reason why there are none."""
    found: dict[int, list[float] | str] = dict.fromkeys(range(len(points)), "no answer")
    for event in bench.measure_points(points, preset, lambda _: LONGEST_S):
        if isinstance(event, Record) and event.number is not None:
            outcome, reason = verdict_of(event.fields)
            times = [float(one["compute_us"]) for one in event.fields["repetitions"]] if outcome == "passed" else []
            found[event.number] = times or f"{outcome}: {reason}"
        elif isinstance(event, Ended) and event.reason:
            found = {number: event.reason if said == "no answer" else said for number, said in found.items()}
    return found


def times_of(bench: Bench, points: Sequence[tuple[Unit, str]], preset: Preset) -> dict[int, float | str]:
    """The median time of each point in microseconds, or the reason why there is none."""
    found = samples_of(bench, points, preset)
    return {number: said if isinstance(said, str) else statistics.median(said) for number, said in found.items()}


def fastest(bench: Bench, unit: Unit, check_single: bool = False) -> str:
    """The fastest parameters in one short round. UserError where no point is correct. A single point is only timed with
    `check_single`, since a rival that is fast on similar problems may not compute this one."""
    if len(unit.params) == 1 and not check_single:
        return unit.params[0]
    found = times_of(bench, [(unit, one) for one in unit.params], BRIEF)
    timed = [(us, number) for number, us in found.items() if isinstance(us, float)]
    if not timed:
        cause = f"none of its points was timed, the first is {found[0]}"
        raise UserError(f"{unit.name}: {cause}; see --problem and --params")
    return unit.params[min(timed)[1]]


def in_turn(bench: Bench, points: Sequence[tuple[Unit, str]], names: Sequence[str], least: int) -> list[list[float]]:
    """At least `least` rounds for `rivals_of`, and more for MORE_S while no difference from a rival is seen. The order
    of the rivals reverses in each round, so that a drift of clock or temperature affects all of them."""
    rounds: list[list[float]] = []
    end = time.monotonic() + MORE_S
    while len(rounds) < least or (
        time.monotonic() < end and any(one.verdict == UNDECIDED for one in rivals_of(names, rounds))
    ):
        order = [0, *range(1, len(points))[:: -1 if len(rounds) % 2 else 1], 0]
        times = [0.0] * len(order)
        for place, us in times_of(bench, [points[i] for i in order], TIMED).items():
            unit, params = points[order[place]]
            if isinstance(us, str):
                raise Wrong(f"{unit.name} {params}: {us}")
            times[order[place] if place < len(points) else -1] = us
        rounds.append(times)
    return rounds


def floor_us(problem: Problem, ceilings: Mapping[str, Any]) -> dict[str, float]:
    """The terms of the floor (xcorr/choice/floor.py) by name, in microseconds: an empty launch, the compulsory bytes,
    and the cheaper of sums of products and transforms, which exchange their values. Empty where a ceiling is missing."""
    names = ("empty_launch_stream_us", "copy_bytes_per_s", "fill_bytes_per_s", "cublas_fp32_flop_per_s")
    if not all(ceilings.get(name) for name in names):
        return {}
    launch, copy, fill, product = (float(ceilings[name]) for name in names)
    work = (problem.bytes(4), problem.fmas, fft_flops(problem), crossing_bytes(problem))
    each = terms(launch, *work, max(copy, fill), product, crossing_rate(ceilings))
    found = {"an empty launch": each["launch"], "memory bandwidth": each["memory"]}
    if each["direct"] <= max(each["fft"], each["exchange"]):
        return {**found, "FP32 products": each["direct"]}
    return {**found, "FP32 transforms": each["fft"], "exchange between threads": each["exchange"]}


def limit(us: float, floor: Mapping[str, float], kernels: Sequence[Mapping[str, str]]) -> str:
    """What holds the variant: a ceiling that it is near, local memory, occupancy, or none of them."""
    near = [f"{cause} ({part / us:.0%} of the time)" for cause, part in floor.items() if part >= NEAR_LIMIT * us]
    if near:
        return ", ".join(near)
    local = [row["kernel"] for row in kernels if int(row["spill_store_bytes"] or 0) + int(row["stack_bytes"] or 0) > 0]
    if local:
        return f"local memory: {', '.join(sorted(set(local)))} has a stack or spills registers"
    if not floor:
        return "not known: no ceiling of this device is"
    shares = ", ".join(f"{cause} {part / us:.0%}" for cause, part in floor.items())
    low = [float(row["occupancy"]) for row in kernels if row["occupancy"]]
    if low and min(low) < 0.25:
        return f"latency at low occupancy ({min(low):.0%}; {shares})"
    return f"none of its ceilings ({shares}): latency, imbalance, or work beside the products"


def ceilings_of(bench: Bench, folder: Path) -> dict[str, Any]:
    """Ceilings of the device, measured once for the folder; none on a CPU."""
    if bench.device == "cpu":
        return {}
    path = folder / "ceilings.json"
    if not path.is_file():
        asked = [str(bench.path), "--ceilings", "--device", bench.device]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return {}
        path.write_text(done.stdout, encoding="utf-8")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def unit_of(variants: Mapping[str, Variant], variant: str, problem: Problem, params: str | None) -> Unit:
    """A variant on the problem with the given parameters, by default with a few points of its grid."""
    one = variants[variant]
    if problem.form not in one.forms:
        raise UserError(f"{variant}: does not compute {problem.form}; give a --problem of {', '.join(one.forms)}")
    kept = spread(one.points, FEW)
    if params is not None:
        kept = tuple(point for point in one.points if named(point, [params]))
        if not kept:
            raise UserError(f"{variant}: params {params}: no such point; {nearest(params, one.points)}")
    return Unit("try", problem, one, "fp32", "stream", "uniform", kept)


def parser() -> argparse.ArgumentParser:
    """The command line; scripts/try explains the options."""
    made = Parser(prog="scripts/try", add_help=False)
    made.add_argument("id")
    for name in ("--problem", "--params", "--device", "--arch"):
        made.add_argument(name)
    made.add_argument("--against", default="")
    made.add_argument("--rounds", type=int, default=ROUNDS)
    for name in ("--build-only", "--emulate", "--thorough"):
        made.add_argument(name, action="store_true")
    return made


def tell_kernels(kernels: Iterable[Mapping[str, str]]) -> None:
    """Prints registers, shared memory and occupancy of each kernel."""
    for row in kernels:
        spills = "" if row["spill_store_bytes"] in ("", "0") else f", spills {row['spill_store_bytes']} bytes"
        share = f"{float(row['occupancy']):.0%} occupancy" if row["occupancy"] else "occupancy not known"
        print(
            f"kernel: {row['kernel']}<{row['arguments']}>: {row['registers']} registers, {row['shared_bytes']} bytes of "
            f"static shared memory, {share} with blocks of 256 threads{spills}"
        )


def rivals(
    one: Source, known: Mapping[str, Source], best: Point | None, against: str
) -> list[tuple[str, str, str | None]]:
    """The rivals of the variant, each once: (description, variant, params)."""
    found: dict[str, tuple[str, str, str | None]] = {}
    if one.parent in known and known[one.parent].backend == one.backend:
        found[one.parent] = (f"its parent {one.parent}", one.parent, None)
    if best and best[0] != one.id:
        found.setdefault(best[0], (f"the fastest known, {best[0]}", *best))
    for name in filter(None, against.split(",")):
        if name not in known or known[name].backend != one.backend:
            raise UserError(f"against {name}: no variant for the same device; {nearest(name, known)}")
        found.setdefault(name, (name, name, None))
    return list(found.values())


def run(argv: Sequence[str]) -> int:
    options = parser().parse_args(argv)
    known = sources()
    if options.id not in known:
        raise UserError(f"variant {options.id}: no such file in algorithms/; {nearest(options.id, known)}")
    one = known[options.id]
    device = options.device or ("cuda:0" if one.backend == "cuda" else "cpu")
    if device.startswith("cuda") != (one.backend == "cuda"):
        raise UserError(f"device {device}: {one.id} runs on {one.backend}; leave --device out")
    if options.rounds < ROUNDS:
        raise UserError(f"rounds {options.rounds}: must be {ROUNDS} or more; fewer show no difference")
    if options.emulate:
        if one.backend != "cuda":
            raise UserError(f"emulate: {one.id} runs on the CPU as it is; leave --emulate out")
        emulate(Build(known.values(), "cpu", suffix="-emulation"), one.id)
        return 0
    if one.backend == "cuda" and shutil.which("nvcc") is None:
        raise UserError(f"{one.id}: nvcc is needed for a CUDA variant; put it on PATH, or verify with --emulate")
    problem = parse_problem(options.problem or USUAL[one.backend])
    build = Build(known.values(), one.backend, options.arch)
    if options.build_only:
        build.make([one.id], one.objects)
        print(f"compiled: {', '.join(one.units)}")
        tell_kernels(resources(build.folder, one))
        return 0
    build.make({one.id, *(rival for _, rival, _ in rivals(one, known, None, options.against))})
    bench = Bench(build.folder / PROGRAMS[0], device)
    facts = bench.machine()
    compared = rivals(one, known, best_known(problem, facts, device, known), options.against)
    wanted = {one.id, *(rival for _, rival, _ in compared)}
    if not wanted <= build.variants:
        build.make(wanted)
    verify(build, one.id, device, options.thorough)

    variants = {variant.id: variant for variant in bench.variants()}
    own = unit_of(variants, one.id, problem, options.params)
    entries = [("", own, fastest(bench, own))]
    for what, name, params in compared:
        try:
            unit = unit_of(variants, name, problem, params)
            entries.append((what, unit, fastest(bench, unit, check_single=True)))
        except UserError as error:
            print(f"left out: {what}: {error}")
    names = [f"{what} {params}".rstrip() for what, _, params in entries[1:]]
    rounds = in_turn(bench, [(unit, params) for _, unit, params in entries], names, options.rounds)
    us = statistics.median(one[0] for one in rounds)
    print(f"{one.id} {entries[0][2] or '(no parameters)'} on {problem.id}, {facts['machine_key']}")
    for rival in rivals_of(names, rounds):
        print(rival)
    if not names:
        print(f"{us:.4g} us; nothing to compare with")
    floor = floor_us(problem, ceilings_of(bench, build.folder))
    if floor:
        cause = max(floor, key=lambda name: floor[name])
        print(f"floor: {floor[cause]:.4g} us ({cause}); it takes {us / floor[cause]:.2f} times as long")
    else:
        print("floor: not known on this device")
    kernels = resources(build.folder, one)
    tell_kernels(kernels)
    print(f"limited by: {limit(us, floor, kernels)}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    try:
        return command(run, argv)
    except Wrong as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
