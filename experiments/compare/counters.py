"""Takes profiler counters of a few launches with ncu and stores them, for claims and figures of the thesis.

experiments/jpdc/baselines.toml names the launches and the counters of each. Each launch is one process of xcorr-bench under
ncu. The command checks the CSV that ncu prints. With --read it takes files that exist, NAME.csv for each launch.
"""

import contextlib
import csv
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from experiments import folders
from experiments.compare import artifacts
from experiments.driver.bench import problem_options, program, words_of
from xcorr.errors import Parser, UserError, command, nearest
from xcorr.native.library import Library
from xcorr.problem import Problem

EXPERIMENT = "profiler-counters"
SCHEMA = 1
LIMIT_S = 600
REFUSED = "ERR_NVGPUCTRPERM"  # ncu prints it where the user may not read counters
LONG = ("Metric Name", "Metric Value")  # columns of --page details, which prints a line for each counter
KERNEL = "Kernel Name"
EPILOG = """example:
  python3 -m experiments.compare.counters                     runs ncu for every launch and stores the counters
  python3 -m experiments.compare.counters --print             prints the commands, for another machine or another user
  python3 -m experiments.compare.counters --read FOLDER       takes FOLDER/simplified.csv and so on, as these commands wrote them

Counters of a GPU are often for administrators only: run it as root there. Publish the set afterwards with
python3 -m experiments.published.publish KEY --experiments profiler-counters."""


def data() -> dict[str, Any]:
    """Tables `metrics`, `sets` and `points` of counters in experiments/jpdc/baselines.toml."""
    return dict(folders.part("jpdc", "baselines")["counters"])


def metrics(point: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """For each counter of a launch the `metric` of ncu and, where there is one, the largest possible value `most`: those of all
    launches, and those of the sets that it names with `also`."""
    found = dict(data()["metrics"])
    for name in point.get("also", ()):
        found |= data()["sets"][name]
    return found


def bench_words(point: dict[str, Any], path: str) -> list[str]:
    """The command that launches the kernel once for the check and a few times more."""
    chosen = {"device": "cuda:0", "variant": point["variant"], "params": point["params"]}
    timing = {"repetitions": 1, "min-time": 0.001}
    return [path, *words_of({**chosen, **problem_options(Problem.of_id(point["problem"])), **timing})]


def ncu_words(point: dict[str, Any], path: str, ncu: str = "ncu") -> list[str]:
    """The command that profiles the first launch of the point's kernel and ends."""
    names = ",".join(one["metric"] for one in metrics(point).values())
    chosen = ["--kernel-name", f"regex:{point['kernel']}", "--launch-count", "1", "--kill", "yes"]
    return [ncu, "--csv", "--page", "raw", "--metrics", names, *chosen, *bench_words(point, path)]


def table(text: str, where: str) -> list[dict[str, str]]:
    """The rows of the CSV in the output of ncu. UserError where there is none."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    if REFUSED in text:
        raise UserError(f"{where}: the driver gives counters to administrators only; run it as root")
    if not lines or KERNEL not in next(csv.reader(lines[:1])):
        said = next((line for line in text.splitlines() if "==ERROR==" in line), "no line of CSV in it")
        raise UserError(f"{where}: {said.strip()}; it must be what ncu --csv prints")
    return [dict(row) for row in csv.DictReader(lines)]


def _of_kernels(rows: Iterable[dict[str, str]]) -> list[tuple[str, dict[str, str]]]:
    """(name, value by metric) of each kernel: a row of --page raw, or the rows with one id of --page details."""
    kernels: dict[str, tuple[str, dict[str, str]]] = {}
    for row in rows:
        name = row.get(KERNEL) or ""
        if name:  # not the row of units
            _, values = kernels.setdefault(row.get("ID", ""), (name, {}))
            values |= {row[LONG[0]]: row[LONG[1]]} if all(column in row for column in LONG) else row
    return list(kernels.values())


def read(text: str, point: dict[str, Any], where: str) -> dict[str, float]:
    """The counters of the point's kernel by name. UserError unless one kernel has all of them with possible values."""
    found = [values for name, values in _of_kernels(table(text, where)) if point["kernel"] in name]
    if len(found) != 1:
        raise UserError(f"{where}: {len(found)} launches of {point['kernel']}; profile exactly one, as --print says")
    counters = {}
    for name, asked in metrics(point).items():
        cell = found[0].get(asked["metric"])
        if cell is None:
            raise UserError(f"{where}: no counter {asked['metric']}; profile with the command that --print prints")
        value = math.nan
        with contextlib.suppress(ValueError):
            value = float(cell.replace(",", ""))
        if not 0 <= value <= asked.get("most", math.inf):
            raise UserError(f"{where}: {asked['metric']} is '{cell}', which cannot be; profile again")
        counters[name] = value
    return counters


stored = partial(artifacts.stored, experiment=EXPERIMENT, schema=SCHEMA, way_out="take the counters again")


def _profiled(point: dict[str, Any], ncu: str) -> str:
    words = ncu_words(point, str(program()), ncu)
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{ncu}: {error}; --print prints the commands") from None
    return done.stdout + done.stderr  # no exit code: --kill ends the program


def _tool() -> str:
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/cuda/bin"])
    found = shutil.which("ncu", path=places)
    if found is None:
        raise UserError("ncu: not found; install Nsight Compute, or run --print's commands elsewhere and give --read")
    return found


def _sources(points: dict[str, Any]) -> dict[str, str]:
    """The source hash of each launch's variant in this build, empty where the build cannot be asked."""
    try:
        words = [str(program()), "--list=json"]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=LIMIT_S)
        listed = {one["id"]: one["source_hash"] for one in json.loads(done.stdout)["variants"]}
    except (UserError, OSError, subprocess.SubprocessError, ValueError, KeyError):
        listed = {}
    return {name: listed.get(point["variant"], "") for name, point in points.items()}


def run(argv: Sequence[str]) -> int:
    parser = Parser(prog="python3 -m experiments.compare.counters", description=__doc__, epilog=EPILOG)
    parser.add_argument("--read", type=Path, metavar="FOLDER", help="CSV files that ncu has written, NAME.csv a launch")
    parser.add_argument("--print", action="store_true", help="print the command of each launch, then stop")
    parser.add_argument("--machine-key", metavar="KEY", help="of the set (default: xcorr-bench is asked)")
    parser.add_results()
    options = parser.parse_args(argv)
    points = data()["points"]
    names = {name: one["metric"] for point in points.values() for name, one in metrics(point).items()}
    if options.print:
        for name, point in points.items():
            words = ncu_words(point, "build/xcorr-bench")
            print(" ".join(f"'{one}'" if any(c in one for c in ";:|") else one for one in words), f"> {name}.csv")
        return 0
    key = options.machine_key or Library().machine("cuda")["machine_key"]
    tool = "" if options.read else _tool()
    sources, found = _sources(points), {}
    for name, point in points.items():
        if options.read:
            path = options.read / f"{name}.csv"
            if not path.is_file():
                here = [one.stem for one in options.read.glob("*.csv")]
                raise UserError(f"{path}: not there; {nearest(name, here) if here else 'the folder has no CSV'}")
            text, where = path.read_text(encoding="utf-8"), str(path)
        else:
            text, where = _profiled(point, tool), f"ncu of {name}"
        counters = read(text, point, where)
        found[name] = {**point, "source_hash": sources[name], "counters": counters}
        print(f"{name}: {', '.join(f'{one} {value:g}' for one, value in counters.items())}")
    facts = {"schema": SCHEMA, "experiment": EXPERIMENT, "machine_key": key, "metrics": names, "points": found}
    print(f"stored: {artifacts.store(options.results / 'local' / key, EXPERIMENT, facts)}")
    return 0


main = partial(command, run)

if __name__ == "__main__":
    sys.exit(main())
