"""Reads the result files of the published artifact and translates names, points and samples to ours.

Layout, by the artifact's documentation and the headings of its public files: `<folder>/<group>/<algorithm>.csv`, a
folder per GPU, a line per repetition, times in nanoseconds. The long format has a line per configuration and metric,
with mean times in microseconds. A name that published_names.toml lacks is an error.
"""

import contextlib
import csv
import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from experiments.compare.artifact import FOLDER
from xcorr.errors import UserError, nearest
from xcorr.files import load_toml
from xcorr.native.variants import assignments
from xcorr.problem import Problem

NAMES = FOLDER / "published_names.toml"
FLAT_COLUMNS = ("group", "form", "rows", "cols", "lefts", "rights", "algorithm", "params", "metric", "mean_us")


@dataclass
class Point:
    """A configuration of the artifact in our names, and its repetitions (our column -> microseconds)."""

    problem: Problem
    variant: str
    family: str
    params: str
    input: str
    note: str
    samples: list[dict[str, float]] = field(default_factory=list)
    iterations: list[str] = field(default_factory=list)
    about: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        return (self.variant, self.params, self.problem.id, self.input)


@dataclass
class Found:
    """The content of a folder: points, files (name -> SHA-256), and the reasons for what was left out."""

    folder: str
    points: dict[tuple[str, ...], Point] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def add(self, points: Iterable[Point], where: str) -> None:
        """Adds the points of a file. UserError where one of them was in an earlier file."""
        for point in points:
            if point.key in self.points:
                raise UserError(f"{where}: {' '.join(point.key)} is in an earlier file too; remove one of them")
            self.points[point.key] = point


def entry_of(what: str, name: str, known: dict[str, Any], where: str) -> Any:
    """`known[name]`. UserError without it."""
    if name not in known:
        raise UserError(f"{where}: {what} {name} has no name in {NAMES.name}; {nearest(name, known)}")
    return known[name]


class Names:
    """published_names.toml."""

    def __init__(self) -> None:
        self.data = load_toml(NAMES)
        self.params: dict[str, str] = self.data["params"]

    @cached_property
    def own_params(self) -> set[str]:
        """Our names of parameters, which the long format uses."""
        return set(filter(None, self.params.values()))

    def algorithm(self, kind: str, name: str, where: str) -> dict[str, Any]:
        """The entry of the algorithm with that name of a file or of the long format (`kind`: file or flat)."""
        by_name: dict[str, Any] = self.data["algorithms"]
        if kind == "flat":
            by_name = {entry["flat"]: entry for entry in by_name.values()}
        return entry_of("algorithm", name, by_name, where)

    def group(self, name: str, where: str) -> dict[str, Any]:
        return entry_of("group", name, self.data["groups"], where)

    def unusable(self, group: str, entry: dict[str, Any]) -> str:
        """Why the rows of an algorithm in a group cannot be used, or ""."""
        reasons = {(one["group"], one["variant"]): one["reason"] for one in self.data["unusable"]}
        return reasons.get((group, entry["variant"]), "")

    def point(self, group: dict[str, Any], entry: dict[str, Any], shape: Sequence[int], raw: dict[str, str]) -> Point:
        """A point without samples. `shape`: (rows, cols, lefts, rights); `raw`: parameters in our names."""
        rows, cols, lefts, rights = shape
        copies = group.get("copies", 1)
        problem = Problem(group["form"], (rows, cols), (rows, cols), lefts * copies, rights * copies, "full")
        params = {name: self.data["values"].get(value, value) for name, value in raw.items()}
        params = entry.get("also", {}) | params
        kept = sorted(name for name in params if name not in entry.get("drop", []))
        text = ";".join(f"{name}={params[name]}" for name in kept)
        note = entry.get("notes", {}).get(group["form"], "")
        return Point(problem, entry["variant"], entry["family"], text, group.get("input", "uniform"), note)


def text_of(path: Path) -> str:
    """The text of a file. UserError where it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; give a folder or file that can be read") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: damaged (not text: {error.reason}); get the file again") from error


def table_of(path: Path, text: str) -> tuple[list[str], list[dict[str, str]]]:
    """Heading and lines of a CSV file. UserError for a file that is empty, cut off or has uneven lines."""
    try:
        lines = list(csv.reader(io.StringIO(text), strict=True))
    except csv.Error as error:
        raise UserError(f"{path}: damaged ({error}); get the file again") from error
    if len(lines) < 2 or not text.endswith("\n"):
        raise UserError(f"{path}: damaged (no lines, or the last is cut off); get the file again")
    heading = lines[0]
    for number, line in enumerate(lines, start=1):
        if len(line) != len(heading):
            raise UserError(f"{path}: damaged (line {number} has {len(line)} of {len(heading)} cells); get it again")
    return heading, [dict(zip(heading, line)) for line in lines[1:]]


def number(cell: str, kind: type, where: str) -> Any:
    """The positive number in a cell. UserError for other text."""
    value = 0
    with contextlib.suppress(ValueError):
        value = kind(cell)
    if not 0 < value < float("inf"):
        raise UserError(f"{where} = {cell!r}: damaged (not a positive number); get the file again")
    return value


def read_file(path: Path, names: Names, group_name: str) -> tuple[list[Point], str]:
    """The points of a file of the artifact, and the reason where the file is left out."""
    group = names.group(group_name, str(path.parent))
    entry = names.algorithm("file", path.stem.replace("_", "-"), str(path))
    heading, lines = table_of(path, text_of(path))
    known = names.data
    times = [name for name in heading if name in known["times"]]
    suffix = known["columns"]["iterations"]
    places = known["problem"]
    missing = [column for column in places.values() if column not in heading]
    if missing or not times:
        raise UserError(f"{path}: column {(missing or ['Kernel'])[0]} is missing; is it of the published artifact?")
    said = {*times, *places.values(), *known["columns"]["ignored"], *(name + suffix for name in times)}
    parameters = [name for name in heading if name not in said]
    ours = {name: entry_of("column", name, names.params, str(path)) for name in parameters}
    reason = names.unusable(group_name, entry)
    if reason:
        return [], reason
    points: dict[tuple[str, ...], Point] = {}
    for line_number, line in enumerate(lines, start=2):
        where = f"{path}: line {line_number}, "
        shape = [number(line[places[name]], int, where + places[name]) for name in places]
        raw = {own: line[name] for name, own in ours.items() if own}
        point = names.point(group, entry, shape, raw)
        point = points.setdefault(point.key, point)
        point.samples.append({known["times"][name]: number(line[name], float, where + name) / 1000.0 for name in times})
        point.iterations.append(line.get(times[0] + suffix, ""))
    return list(points.values()), ""


def read_folder(root: Path, folder: str, names: Names) -> Found:
    """The content of all files in the folder of a GPU."""
    found = Found(folder)
    for path in sorted(root.rglob("*.csv")):
        parts = path.relative_to(root).parts
        if len(parts) != 2:
            raise UserError(f"{path}: not in a group's folder; expected {root}/GROUP/ALGORITHM.csv")
        points, reason = read_file(path, names, parts[0])
        found.add(points, str(path))
        found.files["/".join(parts)] = hashlib.sha256(path.read_bytes()).hexdigest()
        if reason:
            found.skipped.append(f"{'/'.join(parts)}: {reason}")
    if not found.points:
        raise UserError(f"{root}: holds no results; expected {root}/GROUP/ALGORITHM.csv")
    return found


def read_flat(path: Path, folder: str, names: Names) -> Found:
    """The content of a file in the long format. Each point gets one sample, of means."""
    found = Found(folder, files={path.name: hashlib.sha256(text_of(path).encode()).hexdigest()})
    heading, lines = table_of(path, text_of(path))
    missing = [name for name in FLAT_COLUMNS if name not in heading]
    if missing:
        raise UserError(f"{path}: column {missing[0]} is missing; the long format has {', '.join(FLAT_COLUMNS)}")
    points: dict[tuple[str, ...], Point] = {}
    metrics = names.data["flat_times"]
    for line_number, line in enumerate(lines, start=2):
        where = f"{path}: line {line_number}, "
        group = names.group(line["group"], where.rstrip(", "))
        entry = names.algorithm("flat", line["algorithm"], where.rstrip(", "))
        if line["metric"] not in metrics:
            raise UserError(f"{where}metric {line['metric']}: unknown; {nearest(line['metric'], metrics)}")
        reason = names.unusable(line["group"], entry)
        if reason:
            text = f"{line['group']}, {line['algorithm']}: {reason}"
            found.skipped += [text] if text not in found.skipped else []
            continue
        shape = [number(line[name], int, where + name) for name in ("rows", "cols", "lefts", "rights")]
        raw = assignments(line["params"])
        for name in raw:
            if name not in names.own_params and name not in names.params:
                raise UserError(f"{where}parameter {name}: unknown; {nearest(name, names.own_params)}")
        point = names.point(group, entry, shape, {n: v for n, v in raw.items() if n in names.own_params})
        point = points.setdefault(point.key, point)
        point.samples = point.samples or [{}]
        column = metrics[line["metric"]]
        if column in point.samples[0]:
            raise UserError(f"{where}{line['metric']} of {' '.join(point.key)} is there twice; remove one of them")
        point.samples[0][column] = number(line["mean_us"], float, where + "mean_us")
        point.iterations = [""]
        if column in ("compute_us", "hadamard_us"):
            point.about = f"mean of {line.get('n') or '?'}, SD {line.get('sd_us') or '-'} us"
    found.add(points.values(), str(path))
    return found
