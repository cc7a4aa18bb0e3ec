"""Tables of measured times in JSON, which experiments/driver/measured.py writes and auto reads.

A file is a list of sets. A set has `machine_key`, `backend`, `compute_capability` and `cores` of its machine, `times` by
precision and form, and `rows`, a stamp of its source files. Files:

    results/auto_table.json                          shipped: points of published sets that are fastest somewhere
    results/{published,local}/<key>/auto_table.json  every point of the set

In an installed package `results` is a folder of the package, and local sets lie in the user's data folder (xcorr/paths.py).
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xcorr.errors import UserError
from xcorr.files import load_json
from xcorr.paths import RESULTS, set_folder
from xcorr.problem import Problem

NAME = "auto_table.json"
SHIPPED = RESULTS / NAME
KINDS = ("published", "local")  # kinds of sets; times of the later replace those of the earlier
ROW_FILES = ("*.csv.gz", "*/[0-9]*T[0-9]*.csv.gz")  # files of a published and of a local set
COMMAND = "python3 -m experiments.published.auto_table"
# No memory moves the compulsory bytes of a problem at 100 TB/s, and nobody measures for a month.
BYTES_PER_US = 1e8
SHORTEST_US, LONGEST_US = 1e-3, 2.6e12

Point = tuple[str, str]  # variant, canonical parameters
Times = Mapping[Problem, Mapping[Point, float]]  # microseconds
# By precision and group_of(problem): {"points": [[variant, params], ...], "problems": {id: [us or null, ...]}}.
Digest = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Source:
    """Measured times and their origin in words."""

    where: str
    times: Times


def group_of(problem: Problem) -> str:
    """Form and fields of a problem: `n-to-mn`, or `n-to-mn/boundary=circular/result=peak`."""
    return "/".join(filter(None, (problem.form, problem.fields.text)))


def digest(times: Mapping[str, Times]) -> Digest:
    """Times by precision as JSON, four digits each; `undigest` is the inverse."""
    made: Digest = {}
    for precision, all_forms in sorted(times.items()):
        for group in sorted(set(map(group_of, all_forms))):
            own = {problem: all_forms[problem] for problem in all_forms if group_of(problem) == group}
            points = sorted({point for found in own.values() for point in found})
            made.setdefault(precision, {})[group] = {
                "points": [list(point) for point in points],
                "problems": {
                    problem.id: [float(f"{found[p]:.4g}") if p in found else None for p in points]
                    for problem, found in sorted(own.items(), key=lambda item: item[0].id)
                },
            }
    return made


def time_us(us: Any, problem: Problem) -> float:
    """A time of a problem in microseconds. ValueError for an impossible time."""
    if isinstance(us, bool) or not isinstance(us, (int, float)):
        raise ValueError(f"{problem.id}: {us!r} is no time in microseconds")
    shortest = max(SHORTEST_US, problem.bytes(4) / BYTES_PER_US)
    if not shortest <= us <= LONGEST_US:  # NaN too
        raise ValueError(f"{problem.id}: {us!r} us is impossible; the shortest possible time is {shortest:.2g} us")
    return float(us)


def undigest(made: Digest) -> dict[str, Times]:
    """Inverse of `digest`. ValueError for illegal texts and times."""
    found: dict[str, Times] = {}
    for precision, forms in made.items():
        times: dict[Problem, dict[Point, float]] = {}
        found[precision] = times
        for table in forms.values():
            points = [(variant, params) for variant, params in table["points"]]
            if wrong := [word for point in points for word in point if not isinstance(word, str)]:
                raise ValueError(f"{wrong[0]!r} is no name of a variant and no parameters")
            for name, values in table["problems"].items():
                problem = Problem.of_id(name)
                if not isinstance(values, list) or len(values) != len(points):
                    raise ValueError(f"{name}: {len(points)} times are needed, one a point")
                times[problem] = {p: time_us(us, problem) for p, us in zip(points, values) if us is not None}
    return found


def _check_set(one: Any) -> None:
    """ValueError unless `one` has times and a valid machine."""
    if not isinstance(one, dict) or not isinstance(one.get("times"), dict):
        raise ValueError("a set is an object with times")
    for field in ("machine_key", "backend"):
        if not isinstance(one.get(field), str):
            raise ValueError(f"{field} {one.get(field)!r} is no text")
    for field in ("compute_capability", "cores"):
        value = one.get(field)
        if value is not None and (isinstance(value, bool) or not 0 < float(value) < 1e6):
            raise ValueError(f"{field} {value!r} is impossible")


def text_of(sets: list[dict[str, Any]]) -> str:
    """Text of the file of these sets, a line a problem."""
    text = "[\n" + ",\n".join(json.dumps(one) for one in sets) + "\n]\n"
    for opening in ('"points": ', '"problems": {'):
        text = text.replace(opening, "\n  " + opening)
    return text.replace('], "', '],\n    "')


def read(path: Path) -> list[dict[str, Any]]:
    """Sets of a file, none if it does not exist. UserError if it is damaged."""
    try:
        if not path.exists():
            return []
        sets = load_json(path)
        if not isinstance(sets, list):
            raise ValueError("a table is a list of sets")
        for one in sets:
            _check_set(one)
            one["times"] = undigest(one["times"])
        return sets
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, UserError) as error:
        cause = f"not a table of times ({error or type(error).__name__})"
        raise UserError(f"{path}: {cause}; {_way_out(path.parent)}") from error


def _way_out(folder: Path) -> str:
    """The command that makes the table of the set in that folder."""
    return f"run {COMMAND}" + (f" --local {folder.name}" if folder.parent.name == "local" else "")


def stamp(folder: Path) -> str:
    """Hash of the names and sizes of the files of a set, which changes with its rows."""
    files = [
        (str(path.relative_to(folder)), path.stat().st_size)
        for pattern in ROW_FILES
        for path in sorted(folder.glob(pattern))
    ]
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16] if files else ""


def sources(machine: Mapping[str, Any], device: str, precision: str, results: Path) -> Iterator[Source]:
    """Sources for this machine, best first: its own times, where local replace published ones, then those of the nearest machine.
    A source without the precision gives times of fp32."""
    key = machine["machine_key"]
    own: dict[str, dict[Problem, dict[Point, float]]] = {}
    kinds = []
    for kind in KINDS:
        path = set_folder(results, kind, key) / NAME
        for one in read(path):
            if one["machine_key"] != key:
                wrong = f"times of machine {one['machine_key']}, not of {key}"
                raise UserError(f"{path}: {wrong}; {_way_out(path.parent)}")
            kinds.append(kind)
            for which, times in one["times"].items():
                for problem, found in times.items():
                    own.setdefault(which, {}).setdefault(problem, {}).update(found)
    yield from _of_precision(own, precision, f"{' and '.join(reversed(kinds))} rows of this machine, {key}")
    backend = device.partition(":")[0]
    shipped = [one for one in read(SHIPPED) if one["backend"] == backend]
    for one in sorted(shipped, key=lambda one: (_apart(one, machine), one["machine_key"]))[:1]:
        where = f"times of another machine, {one['machine_key']} (the nearest shipped)"
        yield from _of_precision(one["times"], precision, where)


def outdated(key: str, results: Path) -> str:
    """Words about rows of this machine that its table lacks, with the command that adds them; else ""."""
    for kind in reversed(KINDS):
        folder = set_folder(results, kind, key)
        rows = stamp(folder)
        if rows and rows not in [one.get("rows") for one in read(folder / NAME)]:
            return f"{kind} rows of this machine have changed since {NAME} was made: {_way_out(folder)}"
    return ""


def _of_precision(times: Mapping[str, Times], precision: str, where: str) -> Iterator[Source]:
    if precision in times:
        yield Source(where, times[precision])
    elif "fp32" in times:
        yield Source(f"{where}, in fp32", times["fp32"])


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Distance of two machines of a backend: in compute capability, on CPUs in octaves of cores."""
    if one["backend"] == "cuda":
        return abs(float(one.get("compute_capability") or 0) - float(other.get("compute_capability") or 0))
    return abs(math.log2(int(one.get("cores") or 1)) - math.log2(int(other.get("cores") or 1)))
