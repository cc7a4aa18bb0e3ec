"""Files: TOML that is read, and what is written appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from xcorr.errors import UserError

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib


def load_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file; UserError when it cannot be read or is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; give a readable file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not TOML: {error}; correct that place") from error


@contextmanager
def replaced_file(target: Path | None, keep: bool = True) -> Iterator[BinaryIO | None]:
    """A temporary file beside `target` that takes its name when the block ends well (atomic).

    None for no target. UserError where the folder or the disk refuses; `keep` false only tries.
    """
    if target is None:
        yield None
        return
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if keep:
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
            os.replace(temporary, target)
            temporary = None
    except OSError as error:
        raise UserError(f"{target}: cannot be written: {error.strerror or error}; choose another place") from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
