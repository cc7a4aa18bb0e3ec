"""Which rows of a set count: rows that lie where their cells say, with the record of their run.

Rows of another machine, or without their record, say nothing about this machine.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from experiments.driver.columns import Row
from experiments.driver.decoding import unknown_columns

NAMED = 3  # at most so many runs or machines are named


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
        # By fault, the file and the wrong names in the cells of each row.
        self._found: dict[str, list[tuple[Path, Sequence[str]]]] = defaultdict(list)

    def own(self, rows: Iterable[Row], path: Path, experiment: str, run: str | None = None) -> list[Row]:
        """The rows of the file `path` that count. Its place gives `experiment` and, for a file of one run, `run`."""
        kept = []
        for row in rows:
            unknown = unknown_columns(row)
            if unknown:
                self._found["column"].append((path, unknown))
            if row["machine_key"] != self._folder.name:
                self._found["machine_key"].append((path, [row["machine_key"]]))
            elif row["experiment"] != experiment:
                self._found["experiment"].append((path, [row["experiment"]]))
            elif run is not None and row["run"] != run:
                self._found["run"].append((path, [row["run"]]))
            elif not self._recorded & {(experiment, row["run"]), (None, row["run"])}:
                self._found["record"].append((path, [row["run"]]))
            else:
                kept.append(row)
        return kept

    def faults(self) -> list[str]:
        """A line for each fault: set, number of rows, an example, and the way out."""
        lines = []
        for fault, rows in self._found.items():
            names = sorted({name or "(empty)" for _, wrong in rows for name in wrong})
            more = f" and {len(names) - NAMED} others" if len(names) > NAMED else ""
            sentence = SENTENCES[fault].format(names=", ".join(names[:NAMED]) + more)
            first = rows[0][0].relative_to(self._folder)
            lines.append(f"{self._folder}: {len(rows)} rows, such as in {first}, are {sentence}")
        return lines
