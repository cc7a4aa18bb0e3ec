"""Is this machine fit to measure? Prints a line for each property that affects times: its value, and ok or what to do.

Without a GPU, a line says that the lines about it are left out."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from experiments.driver.bench import Bench, Record
from experiments.driver.launches import BUSY
from experiments.driver.points import Unit
from experiments.driver.request import open_device
from experiments.driver.schema import Limits, Preset
from xcorr.errors import Parser, UserError, command
from xcorr.files import load_json
from xcorr.paths import ROOT
from xcorr.problem import Problem

EPILOG = """example:
  scripts/reproduce.sh --check
  python3 -m experiments.driver.check --device cuda:1

Exit code: 0 all ok; 1 something spoils times; 2 a mistake in the request."""
BRIEF = Preset(repetitions=1, min_time_s=0.001, max_predicted_s=Limits(cpu=60, cuda=60))
LONGEST_S = 600.0  # for a point of 8 x 8, far more than a GPU needs
SAMPLE_S = 1.0  # seconds over which the CPU load is measured
USUAL_LAUNCH_US = 5.0  # for hosts without a published set
BUSY_GPU_PERCENT = 10  # tolerated load by other programs
FREE_MEMORY = 0.9  # needed part of a GPU's memory, for the saturated problems
FREE_DISK = 1 << 30  # bytes for rows, figures and a report
LOW_CLOCK = 0.75  # lowest tolerated part of the highest clock under load
GIB = float(1 << 30)


@dataclass(frozen=True)
class Line:
    """A property of the machine. `advice` is empty where it is fit. `judged` is false where it is only printed."""

    what: str
    seen: str
    advice: str = ""
    judged: bool = True

    def __str__(self) -> str:
        verdict = f"; {self.advice or 'ok'}" if self.judged else ""
        return f"{self.what + ':':<16}{self.seen}{verdict}"


def judged(what: str, seen: str, fit: bool, advice: str) -> Line:
    return Line(what, seen, "" if fit else advice)


def busy_cores(before: Sequence[int], after: Sequence[int], cores: int) -> float:
    """Cores in use between two readings of the first line of /proc/stat."""
    spent = [b - a for a, b in zip(before, after)]
    idle = sum(spent[3:5])
    return cores * (1 - idle / sum(spent)) if sum(spent) > 0 else 0.0


def _ticks() -> list[int]:
    with open("/proc/stat", encoding="ascii") as file:
        return [int(word) for word in file.readline().split()[1:9]]


def cpu_line(busy: float, cores: int, on_gpu: bool) -> Line:
    """The CPU load. The host of a GPU needs a free core, the CPU variants need all cores."""
    fits = busy <= max(0.25, cores - 1.5) if on_gpu else busy <= 0.25 + 0.02 * cores
    need = "launches need a core that nothing else uses" if on_gpu else "the CPU variants use every core"
    return judged("CPU load", f"{busy:.1f} of {cores} cores in use", fits, f"end other programs: {need}")


def disk_line(folder: Path) -> Line:
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    advice = "free some: 1 GiB is needed, or name another place with --results"
    return judged("disk", f"{free / GIB:.1f} GiB free for {folder}", free >= FREE_DISK, advice)


def _smi(*arguments: str) -> list[list[str]] | None:
    """Cells of the output of nvidia-smi; None where it is missing or fails."""
    command = ["nvidia-smi", *arguments, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line.strip()]


QUERY = "name utilization.gpu memory.free memory.total ecc.mode.current".split()
QUERY += ["ecc.errors.uncorrected.volatile.total", "mig.mode.current"]


def smi_lines(gpu: str, name: str) -> Iterator[Line]:
    """Properties that only nvidia-smi reports: other processes, load, memory, ECC and MIG."""
    found = _smi(f"--id={gpu}", f"--query-gpu={','.join(QUERY)}")
    if not found or len(found[0]) != len(QUERY) or found[0][0] != name:
        why = f"names another GPU ({found[0][0]})" if found and found[0] else "gives no answer"
        yield Line("nvidia-smi", f"{why}: other processes, free memory, ECC and MIG are left out", judged=False)
        return
    _, load, free, total, ecc, errors, mig = found[0]
    others = _smi(f"--id={gpu}", "--query-compute-apps=pid,process_name,used_memory")
    programs = ", ".join(Path(cells[1]).name for cells in others or [] if len(cells) > 1)
    if others is None:
        yield Line("GPU processes", "nvidia-smi does not tell", judged=False)
    else:
        seen = f"{len(others)}" + (f" ({programs})" if programs else "")
        yield judged("GPU processes", seen, not others, "end them, or choose another GPU with --device cuda:N")
    if load.isdigit():
        advice = "something else uses the GPU: end it, or choose another GPU"
        yield judged("GPU load", f"{load} %", int(load) <= BUSY_GPU_PERCENT, advice)
    if free.isdigit() and total.isdigit():
        seen = f"{int(free) / 1024:.1f} of {int(total) / 1024:.1f} GiB free"
        advice = "end what holds the rest: large problems would be out_of_memory"
        yield judged("GPU memory", seen, int(free) >= FREE_MEMORY * int(total), advice)
    states = [one.lower() if one in ("Enabled", "Disabled") else "none on this GPU" for one in (ecc, mig)]
    advice = f"{errors} uncorrected errors since the last reset: have the GPU reset or replaced"
    yield judged("ECC", states[0], not errors.isdigit() or int(errors) == 0, advice)
    advice = "a part of the GPU would be measured as if it were all: switch MIG off (nvidia-smi -mig 0)"
    yield judged("MIG", states[1], mig != "Enabled", advice)


def expected_launch_us(key: str, published: Path) -> float:
    """Longest empty launch of an idle host, in microseconds: of the published set with a margin, or a usual one."""
    try:
        known = load_json(published / key / "ceilings.json")
        host = known.get("empty_launch_host_us") or known["empty_launch_stream_us"]  # older sets have the second alone
        return BUSY * float(host)
    except (UserError, ValueError, KeyError, TypeError):
        return USUAL_LAUNCH_US


def first_passed(bench: Bench) -> tuple[Mapping[str, Any] | None, str]:
    """The record of a small problem by the first CUDA variant that computes it; or None and the reason. A variant that
    does not support the problem says so in its record."""
    reason = "no CUDA variant"
    for variant in bench.variants():
        if variant.backend != "cuda" or variant.algorithm_class != "definition" or "one-to-one" not in variant.forms:
            continue
        problem = Problem("one-to-one", (8, 8), (8, 8), 1, 1, "full")
        unit = Unit("check", problem, variant, "fp32", "paper", "uniform", variant.points[:1])
        events = list(bench.measure(unit, unit.params, BRIEF, lambda _: LONGEST_S))
        records = [event.fields for event in events if isinstance(event, Record)]
        if records and records[0].get("outcome") == "passed":
            return records[0], ""
        said = records[0].get("reason") if records else getattr(events[-1], "reason", "") if events else ""
        reason = f"{variant.id}: {said or 'no answer'}"
        if not records or records[0].get("outcome") != "not_supported":
            break
    return None, reason


def gpu_lines(bench: Bench, facts: Mapping[str, Any], published: Path) -> Iterator[Line]:
    """Properties that xcorr-bench reports during and after a first small point."""
    fields, reason = first_passed(bench)
    if fields is None:
        yield Line("first point", reason, "nothing can be measured: see scripts/test.sh")
        return
    launch = fields.get("launch_us")
    limit = expected_launch_us(str(facts.get("machine_key")), published)
    if launch is not None:
        seen = f"{launch:.1f} us for a launch of nothing, at most {limit:.1f} us expected"
        slow = "the host is busy or slow: end other programs; short points will wait for it"
        yield judged("launch pace", seen, launch <= limit, slow)
    now = bench.machine()
    throttled = str(now.get("throttle_reasons") or "")
    cool = "let the GPU cool down, or look at its power limit (nvidia-smi -q -d POWER,TEMPERATURE)"
    yield judged("throttling", throttled or "none", not throttled, cool)
    clock, highest = now.get("clock_mhz"), now.get("max_clock_mhz")
    if clock and highest:
        free_to_rise = not throttled or clock >= LOW_CLOCK * highest
        seen = f"SM {clock:.0f} of at most {highest:.0f} MHz (an idle GPU lowers it)"
        yield judged("clocks", seen, free_to_rise, "the clock is held down: see throttling")


def lines(device: str, results: Path) -> Iterator[Line]:
    """All lines, the cheapest first."""
    bench, facts = open_device(device)
    on_gpu = bench.device != "cpu"
    name = str(facts.get("device_name") or facts["machine_key"])
    yield Line("machine", f"{name} ({bench.device})", judged=False)
    cores = len(os.sched_getaffinity(0))
    before = _ticks()
    time.sleep(SAMPLE_S)
    yield cpu_line(busy_cores(before, _ticks(), os.cpu_count() or cores), cores, on_gpu)
    yield disk_line(results)
    if not on_gpu:
        has_tool = bool(shutil.which("nvidia-smi"))
        why = "nvidia-smi is here, but no GPU works with this build" if has_tool else "none is measured"
        seen = f"{why}: processes, memory, ECC, MIG, launch pace, throttling and clocks are left out"
        yield Line("GPU", seen, judged=False)
        return
    published = results / "published"
    index = int(bench.device.partition(":")[2] or 0)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").replace(",", " ").split()  # CUDA counts only these
    yield from smi_lines(visible[index] if index < len(visible) else str(index), name)
    yield from gpu_lines(bench, facts, published if published.is_dir() else ROOT / "results" / "published")


def run(argv: Sequence[str]) -> int:
    made = Parser(prog="python3 -m experiments.driver.check", description=__doc__, epilog=EPILOG)
    device_help = "cpu, cuda, cuda:N or auto, the first GPU if any (default: auto)"
    made.add_argument("--device", default="auto", help=device_help)
    made.add_results()
    made.add_argument("--brief", action="store_true", help="only the lines that say what to do")
    options = made.parse_args(argv)
    unfit = 0
    for line in lines(options.device, options.results):
        unfit += bool(line.advice)
        if line.advice or not options.brief:
            print(line, flush=True)
    if unfit or not options.brief:
        print(f"{unfit} of these would spoil times" if unfit else "fit to measure")
    return 1 if unfit else 0


main = partial(command, run)

if __name__ == "__main__":
    sys.exit(main())
