"""Reading of TOML and JSON; writing of files that appear whole or not at all."""

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

# Largest file that is read at once. The largest record of the project takes less than 1 MiB.
MOST_BYTES = 64 * 2**20


def resolved(path: Path) -> Path:
    """Absolute path without symbolic links. UserError for a circle of links."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError before Python 3.13
        raise UserError(f"{path}: its symbolic links lead in a circle or nowhere; name the file itself") from error


def load_toml(path: Path) -> dict[str, Any]:
    """Content of a TOML file. UserError if it cannot be read or parsed."""
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return content
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; give a readable file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not TOML: {error}; correct that place") from error


def load_json(path: Path, most_bytes: int = MOST_BYTES) -> Any:
    """Value of a JSON file. UserError if it cannot be read or parsed, or is larger than `most_bytes`."""
    try:
        with path.open("rb") as file:
            return json.loads(limited(file, most_bytes).decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from error


def limited(file: BinaryIO | gzip.GzipFile, most_bytes: int = MOST_BYTES) -> bytes:
    """Content of an open file. ValueError if it is larger than `most_bytes`; at most one byte more is read or unpacked."""
    data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"more than {most_bytes >> 20} MiB")
    return data


@contextmanager
def whole_file(target: Path, keep: bool = True) -> Iterator[BinaryIO]:
    """A temporary file that replaces `target` when the block ends without an error: readers see the old or the new content.

    `keep` False only tests whether the folder can be written. OSError of the folder or the disk leaves the old content."""
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
    """`whole_file` that raises UserError in place of OSError."""
    try:
        with whole_file(target, keep) as file:
            yield file
    except OSError as error:
        raise UserError(f"{target}: cannot be written: {error.strerror or error}; choose another place") from None
