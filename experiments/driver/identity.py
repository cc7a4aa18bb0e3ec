"""Which hashes of a variant's source stand for the same measured code (results/equivalent.csv).

A refactoring changes tokens and with them `source_hash`. Where `python3 -m experiments.compare.equivalent` finds that the
machine code and what calls enqueue are the same, it writes a line, and rows of both hashes are one.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from xcorr.errors import UserError

EQUIVALENT = Path(__file__).resolve().parents[2] / "results" / "equivalent.csv"
COLUMNS = ["variant", "before", "after", "architectures", "compiler", "compared"]
EVERY = "all"  # architectures of a line that compared sources, not what a compiler made of them


@dataclass(frozen=True)
class Line:
    """Two hashes of a variant that are one on `architectures`: compute capabilities such as 9.0, `cpu` or `all`,
    joined by spaces. `compared` says what was found equal."""

    variant: str
    before: str
    after: str
    architectures: str
    compiler: str
    compared: str


def architecture(backend: str, facts: Mapping[str, Any]) -> str:
    """What a variant of `backend` runs on, by a machine's facts (`xcorr-bench --machine`, `before` of a run's
    record): `cpu`, or a compute capability."""
    return "cpu" if backend == "cpu" else str(facts.get("compute_capability") or "unknown")


class Identities:
    """Names each class of equal hashes by one of them: the last one that a line calls `after`."""

    def __init__(self, lines: list[Line]) -> None:
        self._lines: dict[str, list[Line]] = defaultdict(list)
        for line in lines:
            self._lines[line.variant].append(line)
        self._found: dict[tuple[str, str], dict[str, str]] = {}

    def of(self, variant: str, source_hash: str, architecture: str) -> str:
        """The name of the class that a hash belongs to; itself where no line has it.

        A hash of a variant and a reduction, `HASH+HASH`, keeps that of the reduction.
        """
        place = (variant, architecture)
        if place not in self._found:
            self._found[place] = self._classes(*place)
        own, plus, reduction = source_hash.partition("+")
        return self._found[place].get(own, own) + plus + reduction

    def _classes(self, variant: str, architecture: str) -> dict[str, str]:
        classes: dict[str, set[str]] = {}
        name: dict[int, str] = {}
        for line in self._lines[variant]:
            if not {EVERY, architecture} & set(line.architectures.split()):
                continue
            joined = classes.get(line.before, {line.before}) | classes.get(line.after, {line.after})
            classes |= dict.fromkeys(joined, joined)
            name[id(joined)] = line.after
        return {one: name[id(its)] for one, its in classes.items()}


def read_lines(path: Path) -> list[Line]:
    """The lines of a file, none where it does not exist; UserError when it is damaged."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    if not rows or rows[0] != COLUMNS or any(len(row) != len(COLUMNS) or not all(row) for row in rows):
        raise UserError(f"{path}: not {','.join(COLUMNS)} in every line; restore it from git")
    return [Line(*row) for row in rows[1:]]


def add_lines(path: Path, lines: list[Line]) -> int:
    """Appends those that are not there yet; how many."""
    known = read_lines(path)
    new = [line for line in dict.fromkeys(lines) if line not in known]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *map(astuple, [*known, *new])])
    return len(new)


def identities(path: Path | None = None) -> Identities:
    """Those of a file, by default the repository's, read once."""
    path = path or EQUIVALENT
    return _identities(path, path.stat().st_mtime_ns if path.exists() else 0)


@lru_cache(maxsize=8)
def _identities(path: Path, _: int) -> Identities:
    return Identities(read_lines(path))
