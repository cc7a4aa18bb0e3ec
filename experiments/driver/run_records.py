"""Run records on disk: one for each experiment of a run, beside the rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from xcorr.errors import warn


def read_runs(folder: Path) -> dict[str, dict[str, Any]]:
    """Run records of a set by run id; a record that cannot be read is left out with a warning."""
    return {record["run"]: record for record in run_records(folder)}


def run_records(folder: Path, on_fault: Callable[[str], None] = warn) -> list[dict[str, Any]]:
    """As read_runs, every record: a run has one for each of its experiments."""
    records: list[dict[str, Any]] = []
    paths = [*folder.glob("runs.json"), *folder.glob("runs/*.json"), *folder.glob("*/runs/*.json")]
    for path in sorted(paths):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            on_fault(f"{path}: run record cannot be read ({error}); left out")
            continue
        for record in found if isinstance(found, list) else [found]:
            fault = _record_fault(record)
            if fault:
                on_fault(f"{path}: run record cannot be read ({fault}); left out")
            else:
                records.append(record)
    return records


def _record_fault(record: Any) -> str:
    """Why this is no run record, "" where it is one: readers rely on the types of what is there."""
    if not isinstance(record, dict):
        return "not a JSON object"
    if not isinstance(record.get("run"), str):
        return "run is missing or no text"
    argv = record.get("argv", [])
    if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
        return "argv is no list of texts"
    kinds = {"experiment": str, "points": int, "before": dict, "after": dict, "machine": dict, "imported": dict}
    wrong = [name for name, kind in kinds.items() if not isinstance(record.get(name, kind()), kind)]
    return f"{wrong[0]} has another type" if wrong else ""
