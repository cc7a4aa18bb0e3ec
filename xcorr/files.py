"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from xcorr.errors import UserError


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
        raise UserError(
            f"{target}: cannot be written: {error.strerror or error}; choose another place"
        ) from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
