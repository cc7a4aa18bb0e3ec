"""Files: where they lie, TOML that is read, and what is written appears whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from xcorr.errors import UserError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


# What the project reads as a whole: its largest record takes less than 1 MiB.
MOST_BYTES = 64 * 2**20


def resolved(path: Path) -> Path:
    """Absolute, without symbolic links; UserError where these lead in a circle."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # which of them depends on the version of Python
        raise UserError(f"{path}: its symbolic links lead in a circle or nowhere; name the file itself") from error


def load_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file; UserError when it cannot be read or is not TOML."""
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return content
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; give a readable file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not TOML: {error}; correct that place") from error


def load_json(path: Path, most_bytes: int = MOST_BYTES) -> Any:
    """The value of a JSON file; UserError when it cannot be read, is larger than `most_bytes` or is no JSON."""
    try:
        with path.open("rb") as file:
            return json.loads(limited(file, most_bytes).decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from error


def limited(file: BinaryIO | gzip.GzipFile, most_bytes: int = MOST_BYTES) -> bytes:
    """The content of an open file, which may be one that is unpacked as it is read; ValueError when it is larger than
    `most_bytes`, of which no more is read or unpacked."""
    data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"more than {most_bytes >> 20} MiB")
    return data


@contextmanager
def whole_file(target: Path, keep: bool = True) -> Iterator[BinaryIO]:
    """A temporary file beside `target` that takes its name when the block ends well: a reader sees the old content or the new
    one, never a part. `keep` false only tries. OSError where the folder or the disk refuses; the old content then stays."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if keep:
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
            os.replace(temporary, target)
    finally:
        Path(temporary).unlink(missing_ok=True)


@contextmanager
def replaced_file(target: Path, keep: bool = True) -> Iterator[BinaryIO]:
    """As `whole_file`, but UserError where the folder or the disk refuses."""
    try:
        with whole_file(target, keep) as file:
            yield file
    except OSError as error:
        raise UserError(f"{target}: cannot be written: {error.strerror or error}; choose another place") from None
