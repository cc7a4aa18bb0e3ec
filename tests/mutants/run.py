"""Compile every mutant and see whether something notices: the emulation, conformance, or the rules on PTX.

A mutant is one of tests/mutants/*.toml: a small edit of a variant that makes it wrong. Only the unit that it edits is
compiled and linked with the objects of a build folder. A control, the same without an edit, must pass first.

Places:
  cpu        conformance of a CPU variant
  emulation  the emulated kernel on all its problems, under sanitizers; where a variant is not emulated as a whole, the test
             that has its kernels
  ptx        the rules of dependent launches and of shared memory (tests/mutants/ptx_rules.py); needs nvcc
  card       conformance on the GPU; needs a build folder with CUDA. A hang counts as caught

Exit status: 0 all caught where they must be, 1 something survived or a control failed, 2 wrong data or options.

Example: python3 -m tests.mutants.run --where emulation,cpu,ptx --record mutants.json
"""

import argparse
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from tests.mutants import ptx_rules
from tests.mutants.builds import CONFORMANCE, EMULATION, Build, DoesNotCompile
from tests.mutants.mutants import DATA, PLACES, ROOT, Mistake, Mutant, edited, load, sources, write_overlay

CONTROL = "control"
SECONDS = {"cpu": 900, "emulation": 1800, "card": 900}  # of a control, beyond which it hangs


@dataclass
class Result:
    mutant: str
    unit: str
    place: str
    outcome: str  # caught, survived, passed (a control), failed (a control), broken (does not compile)
    detail: str
    seconds: float


def first_line(text: str, *marks: str) -> str:
    for line in text.splitlines():
        if any(mark in line for mark in marks):
            return line.strip()[:300]
    return text.strip().splitlines()[-1].strip()[:300] if text.strip() else ""


def end(process: subprocess.Popen) -> None:
    """Ends a process of ours and its children; a GPU may hold it for a while."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=60)


def noticed(command: list[str], seconds: float, failure: str, passed: Callable[[int], bool]) -> tuple[bool, str]:
    """Whether a program fails, and how it says so: a line that begins with `failure`, its end, or no end at all."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
    )
    hangs = threading.Event()
    timer = threading.Timer(seconds, lambda: (hangs.set(), end(process)))
    timer.start()
    said: list[str] = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if failure and line.startswith(failure):
                end(process)
                return True, line.strip()[:300]
        code = process.wait()
    finally:
        timer.cancel()
        end(process)
    if hangs.is_set():
        return True, f"hangs: no end after {seconds:.0f} s"
    if passed(code):
        return False, ""
    marks = ("ERROR: AddressSanitizer", "runtime error", "divergence", "expected", "error:", "Fault")
    return True, first_line("".join(said), *marks) or f"ended with {code}"


def run_ptx(unit: str, overlay: Path, out: Path, source: Path) -> tuple[bool, str]:
    try:
        ptx = ptx_rules.compiled(source, out, overlay)
    except ptx_rules.NotCompiled as error:
        raise DoesNotCompile(str(error)) from error
    found = ptx_rules.broken_rules(unit, ptx)
    return bool(found), found[0][:300] if found else ""


class Runner:
    def __init__(self, build: Build | None, jobs: int) -> None:
        self.build = build
        self.jobs = jobs
        self.sources = sources()
        self.card = threading.Lock()
        self.control_s: dict[tuple[str, str], float] = {}

    def possible(self, unit: str, place: str) -> bool:
        source = self.sources[unit]
        if place == "cpu":
            return source.suffix == ".cpp"
        if source.suffix != ".cu":
            return False
        if place == "ptx":
            return unit in ptx_rules.CHECKED
        if self.build is None:
            return False
        return self.build.emulated(unit) if place == "emulation" else self.build.has_kernels(unit)

    def one(self, mutant: Mutant | None, unit: str, place: str) -> Result:
        """Compiles and runs one mutant, or the control, of one unit at one place."""
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="mutant-") as name:
            out = Path(name)
            overlay = out / "overlay"
            overlay.mkdir()
            if mutant:
                write_overlay(mutant, overlay)
            try:
                found, detail = self.try_(unit, place, overlay, out)
            except DoesNotCompile as error:
                found, detail = None, str(error)[:300]
        if found is None:
            outcome = "broken"
        elif mutant:
            outcome = "caught" if found else "survived"
        else:
            outcome = "failed" if found else "passed"
        return Result(
            mutant.name if mutant else CONTROL, unit, place, outcome, detail, round(time.monotonic() - begun, 1)
        )

    def try_(self, unit: str, place: str, overlay: Path, out: Path) -> tuple[bool, str]:
        if place == "ptx":
            source = self.sources[unit]
            path = overlay / source if (overlay / source).is_file() else ROOT / source
            return run_ptx(unit, overlay, out, path)
        assert self.build is not None
        if place == "emulation":
            command = self.build.emulation_program(unit, overlay, out)
            return self.timed(unit, place, command, "")
        device = "cuda" if place == "card" else "cpu"
        command = self.build.conformance_program(unit, overlay, out, device)

        if place != "card":
            return self.timed(unit, place, command, "FAILED")
        with self.card:  # one after the other, each in a process of its own: a device may be lost
            return self.timed(unit, place, command, "FAILED")

    def timed(self, unit: str, place: str, command: list[str], failure: str) -> tuple[bool, str]:
        """As `noticed`. What takes ten times as long as the control of its unit hangs."""
        control = self.control_s.get((unit, place))
        begun = time.monotonic()
        limit = SECONDS[place] if control is None else max(20.0, 10 * control)
        found = noticed(command, limit, failure, lambda code: code == 0)
        self.control_s.setdefault((unit, place), time.monotonic() - begun)
        return found

    def all(self, work: list[tuple[Mutant | None, str, str]], report: Callable[[Result], None]) -> list[Result]:
        done: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()

        def step(item: tuple[Mutant | None, str, str]) -> None:
            try:
                done.put(self.one(*item))
            except BaseException as error:  # noqa: BLE001  handed to the caller's thread
                done.put(error)

        results = []
        with ThreadPoolExecutor(self.jobs) as pool:
            controls = [item for item in work if item[0] is None]  # they say how long the others may take
            for part in (controls, [item for item in work if item[0] is not None]):
                for item in part:
                    pool.submit(step, item)
                for _ in part:
                    result = done.get()
                    if isinstance(result, BaseException):
                        pool.shutdown(cancel_futures=True)
                        raise result
                    results.append(result)
                    report(result)
        return results


def plan(
    runner: Runner, mutants: list[Mutant], places: list[str], everywhere: bool
) -> list[tuple[Mutant | None, str, str]]:
    """What is run: each mutant where it must be caught (equivalent ones wherever they can be), controls first."""
    work: list[tuple[Mutant | None, str, str]] = []
    for mutant in mutants:
        for unit in mutant.units:
            if unit not in runner.sources:
                raise Mistake(f"{mutant.source}: {mutant.name}: {unit} is no variant")
            for place in places:
                wanted = place in mutant.caught
                if wanted and not runner.possible(unit, place):
                    raise Mistake(
                        f"{mutant.source}: {mutant.name}: {unit} cannot be run on {place} with this build folder"
                    )
                if wanted or ((everywhere or mutant.equivalent) and runner.possible(unit, place)):
                    work.append((mutant, unit, place))
    controls = sorted({(unit, place) for _, unit, place in work}, key=lambda item: (PLACES.index(item[1]), item[0]))
    return [(None, unit, place) for unit, place in controls] + work


def machine() -> str:
    """The GPU, if there is one, and the processor."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True
        )
        gpu = done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else ""
    except OSError:
        gpu = ""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace") if Path("/proc/cpuinfo").exists() else ""
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")]
    return ", ".join(part for part in (gpu, f"{names[0]} ({len(names)} threads)" if names else "") if part)


def commit() -> str:
    def git(*words: str) -> str:
        try:
            return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True).stdout.strip()
        except OSError:
            return ""

    head = git("rev-parse", "HEAD")
    return (head + (" with changes" if git("status", "--porcelain", "algorithms", "tests") else "")) or "unknown"


def verdicts(mutants: list[Mutant], results: list[Result]) -> list[str]:
    """What is wrong with a run, one line each; none if all is well."""
    by_name = {mutant.name: mutant for mutant in mutants}
    wrong = []
    for result in results:
        what = f"{result.mutant} ({result.unit}, {result.place})"
        if result.outcome == "broken":
            wrong.append(f"DOES NOT COMPILE {what}: {result.detail}")
        elif result.outcome == "failed":
            wrong.append(f"CONTROL FAILED {what}: {result.detail}")
        elif result.mutant != CONTROL and by_name[result.mutant].equivalent and result.outcome == "caught":
            wrong.append(f"NOT EQUIVALENT {what}: {result.detail}")
        elif result.outcome == "survived" and result.place in by_name[result.mutant].caught:
            wrong.append(f"SURVIVED {what}")
    return wrong


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.mutants.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--where", default="emulation,cpu,ptx", help="places, with commas; default %(default)s")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this mutant; may be repeated")
    parser.add_argument("--everywhere", action="store_true", help="also where a mutant need not be caught")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="compiled at once; default all processors"
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="build folder; default build")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the TOML files")
    parser.add_argument("--record", type=Path, help="write everything that was found as JSON")
    parser.add_argument("--list", action="store_true", help="check that every text is found, print the mutants, end")
    return parser.parse_args(argv)


def run(args: argparse.Namespace) -> int:
    places = args.where.split(",")
    if strange := set(places) - set(PLACES):
        raise Mistake(f"--where: {', '.join(sorted(strange))} is no place; places are {', '.join(PLACES)}")
    if args.jobs < 1:
        raise Mistake(f"--jobs: {args.jobs} is not at least 1")
    mutants = load(args.data)
    for mutant in mutants:
        edited(mutant)
    if args.only:
        if missing := set(args.only) - {mutant.name for mutant in mutants}:
            raise Mistake(f"--only: {', '.join(sorted(missing))} is no mutant; --list prints them")
        mutants = [mutant for mutant in mutants if mutant.name in args.only]
    if args.list:
        for mutant in mutants:
            print(f"{mutant.name}: {', '.join(mutant.units)}: {', '.join(mutant.caught) or 'equivalent'}")
        print(f"{len(mutants)} mutants")
        return 0
    if "ptx" in places:
        try:
            ptx_rules.find_nvcc()
        except Mistake as error:
            if places == ["ptx"]:
                raise
            print(f"note: {error}; ptx is left out")
            places.remove("ptx")
    build = Build(args.build) if set(places) - {"ptx"} else None
    if build:
        needed = {"cpu": CONFORMANCE, "card": CONFORMANCE, "emulation": EMULATION}
        build.require("libxcorr.so", *{needed[place] for place in places if place in needed})
    runner = Runner(build, args.jobs)
    work = plan(runner, mutants, places, args.everywhere)
    if not work:
        raise Mistake(f"--where {args.where}: none of the mutants chosen is to be caught there")
    begun = time.monotonic()
    count = 0

    def report(result: Result) -> None:
        nonlocal count
        count += 1
        print(
            f"[{count:3}/{len(work)}] {result.outcome:8} {result.place:9} {result.mutant} ({result.unit}) "
            f"{result.seconds:.1f} s{': ' if result.detail else ''}{result.detail[:110]}",
            flush=True,
        )

    results = runner.all(work, report)
    wrong = verdicts(mutants, results)
    counts = {outcome: sum(r.outcome == outcome for r in results) for outcome in sorted({r.outcome for r in results})}
    if args.record:
        record = {
            "commit": commit(),
            "machine": machine(),
            "utc": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M"),
            "seconds": round(time.monotonic() - begun),
            "places": places,
            "counts": counts,
            "results": [asdict(result) for result in results],
        }
        args.record.parent.mkdir(parents=True, exist_ok=True)
        args.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print("\n".join([*wrong, ", ".join(f"{n} {outcome}" for outcome, n in counts.items())]))
    return 1 if wrong else 0


def main(argv: list[str] | None = None) -> int:
    try:
        return run(parse(argv))
    except Mistake as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error.filename or 'system'}: {error.strerror}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
