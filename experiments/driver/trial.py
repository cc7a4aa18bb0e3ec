"""Is a new variant faster? Builds its unit alone, verifies it, and times it in turn with its parent, the variant that
is the fastest known one of that problem, and the floor."""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.driver.bench import Bench, Ended, Record, verdict_of
from experiments.driver.best import FEW, named, spread
from experiments.driver.points import Unit
from experiments.driver.schema import Limits, Preset
from experiments.driver.trial_build import Build, Source, Wrong, build_folder, emulate, resources, sources, verify
from xcorr.choice import table
from xcorr.choice.auto import ordered, pick
from xcorr.choice.floor import fft_flops, terms
from xcorr.errors import Parser, UserError, nearest
from xcorr.native.variants import Variant
from xcorr.paths import RESULTS
from xcorr.problem import Problem

EPILOG = """examples:
  scripts/try my_variant --device cpu
  scripts/try my_variant --problem n-to-m/64x64/64x64/8:8/full --params warps_per_block=4
  scripts/try my_variant --emulate

Prints FASTER, SLOWER or EQUAL for each rival: the median and the range, over the rounds, of the time of the rival
divided by that of the variant, both in the same round. EQUAL: the range holds 1, or is within half a percent of it.
Exit code: 0; 1 when the variant is wrong, fails or cannot compute the problem; 2 for a mistake in the request."""
ROUNDS = 5  # each a process that times everything once, in the order of the round before turned round
BRIEF = Preset(repetitions=1, min_time_s=0.005, max_predicted_s=Limits(cpu=60, cuda=60))
TIMED = Preset(repetitions=3, min_time_s=0.02, max_predicted_s=Limits(cpu=60, cuda=60))
LONGEST_S = 3600.0  # for a point: who waits longer presses Ctrl-C
SAME = 0.005  # no ratio nearer to 1 counts, however steady
NEAR_LIMIT = 0.6  # of a ceiling: what is above it is called the limit
USUAL = {"cpu": "n-to-m/32x32/32x32/4:4/full", "cuda": "n-to-m/64x64/64x64/8:8/full"}
Point = tuple[str, str]  # variant, parameters


def parse_problem(text: str) -> Problem:
    """The problem of an id such as n-to-m/64x64/64x64/8:8/full."""
    try:
        return Problem.of_id(text)
    except (ValueError, UserError) as error:
        raise UserError(
            f"problem {text}: not an id ({error}); write FORM/LEFT/RIGHT/LEFTS:RIGHTS/WINDOW, as {USUAL['cuda']}"
        ) from error


def best_known(problem: Problem, facts: Mapping[str, Any], device: str, known: Mapping[str, Source]) -> Point | None:
    """The fastest known point of the problem's cell, by the rows of this machine or the shipped table."""
    backend = "cuda" if device.startswith("cuda") else "cpu"
    times = ordered(problem, table.sources(facts, device, "fp32", RESULTS))
    for source in times:
        choice = pick(problem, source, lambda p: "" if p[0] in known and known[p[0]].backend == backend else "not here")
        if choice:
            return choice.variant, choice.params
    return None


@dataclass(frozen=True)
class Rival:
    """A rival's times beside those of the variant: a pair for each round, in microseconds."""

    name: str
    own: tuple[float, ...]
    other: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """How many times faster the variant is."""
        return [other / own for own, other in zip(self.own, self.other)]

    @property
    def verdict(self) -> str:
        """FASTER or SLOWER where every round says so, else EQUAL."""
        if min(self.ratios) > 1 + SAME:
            return "FASTER"
        return "SLOWER" if max(self.ratios) < 1 - SAME else "EQUAL"

    def __str__(self) -> str:
        ratio = statistics.median(self.ratios)
        noise = "" if self.verdict != "EQUAL" else ", within the noise"
        return (
            f"{self.verdict:<7} {ratio:.3f} times as fast as {self.name} ({min(self.ratios):.3f} to "
            f"{max(self.ratios):.3f} in {len(self.ratios)} rounds{noise}): {statistics.median(self.own):.4g} us "
            f"against {statistics.median(self.other):.4g} us"
        )


def times_of(bench: Bench, points: Sequence[tuple[Unit, str]], preset: Preset) -> dict[int, float | str]:
    """Of each point its median time in microseconds, or why it has none."""
    found: dict[int, float | str] = {}
    ended = ""
    for event in bench.measure_points(points, preset, lambda _: LONGEST_S):
        if isinstance(event, Record) and event.number is not None:
            outcome, reason = verdict_of(event.fields)
            times = [float(one["compute_us"]) for one in event.fields["repetitions"]] if outcome == "passed" else []
            found[event.number] = statistics.median(times) if times else f"{outcome}: {reason}"
        elif isinstance(event, Ended):
            ended = event.reason
    for number in range(len(points)):
        found.setdefault(number, ended or "no answer")
    return found


def fastest(bench: Bench, unit: Unit, check_single: bool = False) -> str:
    """The parameters that are fastest in one short round. UserError where none is right. A single point is taken unseen
    unless `check_single`: a rival that is fast on problems nearby may not compute this one."""
    if len(unit.params) == 1 and not check_single:
        return unit.params[0]
    found = times_of(bench, [(unit, one) for one in unit.params], BRIEF)
    timed = [(us, number) for number, us in found.items() if isinstance(us, float)]
    if not timed:
        raise UserError(
            f"{unit.name}: none of its points was timed, the first is {found[0]}; see --problem and --params"
        )
    return unit.params[min(timed)[1]]


def in_turn(bench: Bench, points: Sequence[tuple[Unit, str]], rounds: int) -> list[list[float]]:
    """The time of each point in each round. The order turns round from one round to the next, so that a drift of the
    clock or the temperature harms nobody."""
    times: list[list[float]] = [[] for _ in points]
    for number in range(rounds):
        order = list(range(len(points)))[:: 1 if number % 2 == 0 else -1]
        found = times_of(bench, [points[i] for i in order], TIMED)
        for place, i in enumerate(order):
            us = found[place]
            if isinstance(us, str):
                raise Wrong(f"{points[i][0].name} {points[i][1]}: {us}")
            times[i].append(us)
    return times


def floor_us(problem: Problem, ceilings: Mapping[str, Any]) -> dict[str, float]:
    """The terms of the floor (xcorr/choice/floor.py) by what they are, in microseconds: an empty launch, the compulsory bytes,
    and the cheaper one of sums of products and transforms. Empty where a ceiling is missing."""
    names = ("empty_launch_stream_us", "copy_bytes_per_s", "fill_bytes_per_s", "cublas_fp32_flop_per_s")
    if not all(ceilings.get(name) for name in names):
        return {}
    launch, copy, fill, product = (float(ceilings[name]) for name in names)
    each = terms(launch, problem.bytes(4), problem.fmas, fft_flops(problem), max(copy, fill), product)
    cheaper = "direct" if each["direct"] <= each["fft"] else "fft"
    name = {"direct": "FP32 products", "fft": "FP32 transforms"}[cheaper]
    return {"an empty launch": each["launch"], "memory bandwidth": each["memory"], name: each[cheaper]}


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
    """Ceilings of the device, measured once for the folder; none on a CPU, where nobody wrote them."""
    if bench.device == "cpu":
        return {}
    path = folder / "ceilings.json"
    if not path.is_file():
        command = [str(bench.path), "--ceilings", "--device", bench.device]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return {}
        path.write_text(done.stdout, encoding="utf-8")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def unit_of(variants: Mapping[str, Variant], variant: str, problem: Problem, params: str | None) -> Unit:
    """A variant on the problem with the parameters that were asked for, else with a few of its grid."""
    one = variants[variant]
    if problem.form not in one.forms:
        raise UserError(f"{variant}: does not compute {problem.form}; give a --problem of {', '.join(one.forms)}")
    if params is None:
        return Unit("try", problem, one, "fp32", "stream", "uniform", spread(one.points, FEW))
    kept = tuple(point for point in one.points if named(point, [params]))
    if not kept:
        raise UserError(f"{variant}: params {params}: no such point; {nearest(params, one.points)}")
    return Unit("try", problem, one, "fp32", "stream", "uniform", kept)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        prog="scripts/try", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = made.add_argument
    add("id", help="the variant, the stem of its file")
    add(
        "--problem",
        metavar="ID",
        help=f"FORM/LEFT/RIGHT/LEFTS:RIGHTS/WINDOW (default: {USUAL['cuda']} on a GPU, {USUAL['cpu']} on the CPU)",
    )
    add("--params", metavar="KEY=VALUE;...", help="which of its points (default: the fastest of a few)")
    add("--device", help="cpu or cuda:N (default: cuda:0 for a CUDA variant, else cpu)")
    add("--rounds", type=int, default=ROUNDS, help=f"how often everything is timed in turn (default: {ROUNDS})")
    add("--against", metavar="IDS", default="", help="further variants to compare with, comma-separated")
    add("--arch", default="native", help="GPU architecture to compile for, as 90 (default: that of this machine)")
    add("--build-only", action="store_true", help="build the unit and print its registers; needs no GPU")
    add(
        "--emulate",
        action="store_true",
        help="verify a kernel under the emulation and stop; needs neither GPU nor nvcc",
    )
    add("--thorough", action="store_true", help="all of conformance, which takes minutes")
    return made


def tell_kernels(kernels: Iterable[Mapping[str, str]]) -> None:
    """Registers, shared memory and occupancy of each kernel."""
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
    """(what it is, variant, params) of what the variant is compared with, each once."""
    found: list[tuple[str, str, str | None]] = []
    if one.parent in known and known[one.parent].backend == one.backend:
        found.append((f"its parent {one.parent}", one.parent, None))
    if best and best[0] != one.id:
        found.append((f"the fastest known, {best[0]}", best[0], best[1]))
    for name in filter(None, against.split(",")):
        if name not in known or known[name].backend != one.backend:
            raise UserError(f"against {name}: no variant for the same device; {nearest(name, known)}")
        found.append((name, name, None))
    first: dict[str, tuple[str, str, str | None]] = {}
    for rival in found:
        first.setdefault(rival[1], rival)
    return list(first.values())


def run(argv: Sequence[str]) -> int:
    """The command."""
    options = parser().parse_args(argv)
    known = sources()
    if options.id not in known:
        raise UserError(f"variant {options.id}: no such file in algorithms/; {nearest(options.id, known)}")
    one = known[options.id]
    device = options.device or ("cuda:0" if one.backend == "cuda" else "cpu")
    if device.startswith("cuda") != (one.backend == "cuda"):
        raise UserError(f"device {device}: {one.id} runs on {one.backend}; leave --device out")
    if options.rounds < 1:
        raise UserError(f"rounds {options.rounds}: must be 1 or more; leave --rounds out for {ROUNDS}")
    if options.emulate:
        if one.backend != "cuda":
            raise UserError(f"emulate: {one.id} runs on the CPU as it is; leave --emulate out")
        emulate(Build(build_folder().with_name(build_folder().name + "-emulation"), "cpu", ""), one.id)
        return 0
    if one.backend == "cuda" and shutil.which("nvcc") is None:
        raise UserError(f"{one.id}: nvcc is needed for a CUDA variant; put it on PATH, or verify with --emulate")
    problem = parse_problem(options.problem or USUAL[one.backend])
    build = Build(build_folder(), one.backend, options.arch)
    wanted = {one.id, *(rival for _, rival, _ in rivals(one, known, None, options.against))}
    build.make(wanted)
    if options.build_only:
        tell_kernels(resources(build.folder, one.id))
        return 0
    bench = Bench(build.folder / "xcorr-bench", device)
    facts = bench.machine()
    compared = rivals(one, known, best_known(problem, facts, device, known), options.against)
    wanted |= {rival for _, rival, _ in compared}
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
    times = in_turn(bench, [(unit, params) for _, unit, params in entries], options.rounds)
    print(f"{one.id} {entries[0][2] or '(no parameters)'} on {problem.id}, {facts['machine_key']}")
    for (what, _, params), other in zip(entries[1:], times[1:]):
        print(Rival(f"{what}{f' {params}' if params else ''}", tuple(times[0]), tuple(other)))
    if len(entries) == 1:
        print(f"{statistics.median(times[0]):.4g} us; nothing to compare with")
    floor = floor_us(problem, ceilings_of(bench, build.folder))
    us = statistics.median(times[0])
    if floor:
        cause = max(floor, key=lambda name: floor[name])
        print(f"floor: {floor[cause]:.4g} us ({cause}); it takes {us / floor[cause]:.2f} times as long")
    else:
        print("floor: not known on this device")
    kernels = resources(build.folder, one.id)
    tell_kernels(kernels)
    print(f"limited by: {limit(us, floor, kernels)}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    try:
        return run(sys.argv[1:] if argv is None else argv)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except Wrong as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
