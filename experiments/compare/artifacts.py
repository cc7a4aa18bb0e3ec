"""Reads and writes EXPERIMENT.json, the file that a comparison stores in a set and that `publish` copies."""

import json
from pathlib import Path
from typing import Any

from experiments.driver.store import write_atomic
from xcorr.errors import UserError
from xcorr.files import load_json


def stored(folder: Path, experiment: str, schema: int, way_out: str) -> dict[str, Any] | None:
    """The file of the set at `folder`, which is published or local; None where there is none. UserError, which ends
    with `way_out`, for another schema or another machine."""
    for path in (folder / f"{experiment}.json", _local(folder, experiment)):
        if path.exists():
            found = load_json(path)
            if not isinstance(found, dict):
                raise UserError(f"{path}: not an object; {way_out}")
            if found.get("schema") != schema:
                raise UserError(f"{path}: schema {found.get('schema')}, not {schema}; {way_out}")
            if found.get("machine_key", folder.name) != folder.name:
                raise UserError(f"{path}: of machine {found['machine_key']}; {way_out}")
            return dict(found)
    return None


def store(folder: Path, experiment: str, found: dict[str, Any], indent: int | None = 1) -> Path:
    """Writes the file of the local set at `folder` and returns its path. UserError where it cannot be written."""
    path = _local(folder, experiment)
    write_atomic(path, (json.dumps(found, indent=indent) + "\n").encode())
    return path


def _local(folder: Path, experiment: str) -> Path:
    return folder / experiment / "artifacts" / f"{experiment}.json"
