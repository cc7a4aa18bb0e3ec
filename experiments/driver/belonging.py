"""Which rows of a set count: rows that lie where their cells say, with the record of their run.

Rows of another machine, or without their record, say nothing about this machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.driver.columns import Row
from experiments.driver.decoding import unknown_columns

NAMED = 3  # at most so many runs or machines are named


@dataclass
class _Found:
    """Rows with one fault: their number, the wrong names in their cells, and the first file."""

    first: Path
    rows: int = 0
    names: set[str] = field(default_factory=set)

    def text(self) -> str:
        known = sorted(self.names)
        more = f" and {len(known) - NAMED} others" if len(known) > NAMED else ""
        return ", ".join(known[:NAMED]) + more


# Fault -> what is wrong, and the way out. `{names}`: machines, experiments, runs or columns.
SENTENCES = {
    "machine_key": "of machine {names}; they count only in the folder of that machine: move them there or delete them",
    "experiment": "of experiment {names} in files of another one; they do not count: move them back or delete them",
    "run": "of run {names} in files of another run; they do not count: give each file its name back or delete it",
    "record": (
        "without the record of their run, {names}; they do not count: restore runs/<run>.json of their experiment, or "
        "delete them and measure again"
    ),
    "column": "with a column that is unknown here, {names}; they are of a newer program: take that version of the sources",
}


class Belonging:
    """Keeps the rows of a set that count, and describes the others in a line for each fault.

    `folder`: the set's folder, named by the machine key. `records`: its run records. A record without `experiment`, as
    in imported sets, is of every experiment.
    """

    def __init__(self, folder: Path, records: Iterable[dict[str, Any]]) -> None:
        self._folder = folder
        self._recorded = {(record.get("experiment"), record["run"]) for record in records}
        self._found: dict[str, _Found] = {}

    def own(self, rows: Iterable[Row], path: Path, experiment: str, run: str | None = None) -> list[Row]:
        """The rows of the file `path` that count. Its place gives `experiment` and, for a file of one run, `run`."""
        kept = []
        for row in rows:
            unknown = unknown_columns(row)
            if unknown:
                self._note("column", path, unknown)
            if row["machine_key"] != self._folder.name:
                self._note("machine_key", path, [row["machine_key"]])
            elif row["experiment"] != experiment:
                self._note("experiment", path, [row["experiment"]])
            elif run is not None and row["run"] != run:
                self._note("run", path, [row["run"]])
            elif not self._recorded & {(experiment, row["run"]), (None, row["run"])}:
                self._note("record", path, [row["run"]])
            else:
                kept.append(row)
        return kept

    def _note(self, fault: str, path: Path, names: Iterable[str]) -> None:
        found = self._found.setdefault(fault, _Found(path))
        found.rows += 1
        found.names.update(name or "(empty)" for name in names)

    def faults(self) -> list[str]:
        """A line for each fault: set, number of rows, an example, and the way out."""
        return [
            f"{self._folder}: {found.rows} rows, such as in {found.first.relative_to(self._folder)}, are "
            + SENTENCES[fault].format(names=found.text())
            for fault, found in self._found.items()
        ]
