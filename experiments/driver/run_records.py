"""Reads run records: one for each experiment of a run, beside the rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from xcorr.errors import UserError, warn
from xcorr.files import load_json


def read_runs(folder: Path) -> dict[str, dict[str, Any]]:
    """Run records of a set by run id. A record that cannot be read is left out with a warning."""
    return by_run(run_records(folder))


def by_run(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Records by run id; the last record of a run with several experiments."""
    return {record["run"]: record for record in records}


def run_records(folder: Path, on_fault: Callable[[str], None] = warn) -> list[dict[str, Any]]:
    """Every run record of the set in `folder`, which its machine key names. Records of another machine, or in the place
    of another run, are left out like unreadable ones, and `on_fault` gets a line."""
    records: list[dict[str, Any]] = []
    for path in sorted([*folder.glob("runs.json"), *folder.glob("*/runs/*.json")]):
        try:
            found = load_json(path)
        except UserError as error:
            on_fault(f"{error}; left out")
            continue
        for record in found if isinstance(found, list) else [found]:
            fault = _record_fault(record) or _place_fault(record, path, folder.name)
            if fault:
                on_fault(f"{path}: run record cannot be read ({fault}); left out")
            else:
                records.append(record)
    return records


def _place_fault(record: dict[str, Any], path: Path, machine_key: str) -> str:
    """Why the record does not belong in its place, or ""."""
    facts = (record, record.get("before", {}), record.get("machine", {}))
    for key in (one["machine_key"] for one in facts if "machine_key" in one):
        if key != machine_key:
            return f"it is of machine {key}"
    if path.parent.name != "runs":
        return ""
    place = path.parent.parent.name, path.stem
    said = record.get("experiment", place[0]), record["run"]
    return "" if said == place else f"it is of run {said[1]} of experiment {said[0]}"


def _record_fault(record: Any) -> str:
    """Why this is no run record, or "". Readers rely on the types of its values."""
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
