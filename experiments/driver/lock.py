"""Allows one sweep at a time in a folder of results, or the shards of one selection.

Two sweeps would measure the same points twice and slow each other down. Every sweep holds its own lock file. The system
releases the lock when the process ends.
"""

import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from xcorr.errors import UserError, warn

GUARD = ".sweeps.lock"  # held while a sweep checks the other locks and takes its own
OWN = ".sweep-{run}.lock"
# The child of a killed driver holds its locks until it has started xcorr-bench, so a conflict counts only after this time.
PATIENCE_S = 2.0


def holder(run: str, shard: tuple[int, int], selection: Sequence[str]) -> dict[str, Any]:
    """The content of a lock file. `selection`: the options of the command line that decide the points."""
    utc = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    process = {"pid": os.getpid(), "host": socket.gethostname(), "utc": utc}
    return {"run": run, "shard": list(shard), "selection": list(selection), **process}


def beside(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two sweeps may run at the same time: they are different shards of one selection."""
    (k, n), (other_k, other_n) = one["shard"], other.get("shard") or (1, 1)
    return n == other_n and k != other_k and one["selection"] == other.get("selection")


@contextmanager
def held(folder: Path, mine: dict[str, Any]) -> Iterator[None]:
    """Locks `folder` for the sweep `mine`. UserError, which names the holder, where that sweep may not run beside it.

    On a file system without locks a line says so and the sweep continues. For a folder that cannot be written the
    caller's next check fails.
    """
    file: TextIO | None = None
    path = folder / OWN.format(run=mine["run"])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = _join(folder, path, mine)
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            warn(f"{folder}: its file system has no locks ({error.strerror}); start no other sweep in it")
            path.unlink(missing_ok=True)
    try:
        yield
    finally:
        if file is not None:
            path.unlink(missing_ok=True)
            file.close()


def _join(folder: Path, path: Path, mine: dict[str, Any]) -> TextIO:
    """The locked file of this sweep. Waits up to PATIENCE_S for conflicting sweeps."""
    end = time.monotonic() + PATIENCE_S
    while True:
        with open(folder / GUARD, "a+", encoding="utf-8") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            others = [one for one in _others(folder) if not beside(mine, one)]
            if not others:
                file = open(path, "w", encoding="utf-8")
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.write(json.dumps(mine) + "\n")
                file.flush()
                return file
        if time.monotonic() > end:
            raise UserError(_refusal(folder, mine, others[0]))
        time.sleep(0.05)


def _others(folder: Path) -> list[dict[str, Any]]:
    """The sweeps that hold the folder. Files of sweeps that have ended are removed."""
    found: list[dict[str, Any]] = []
    for path in sorted(folder.glob(OWN.format(run="*"))):
        with suppress(FileNotFoundError):  # the sweep has just ended
            found += _holder_of(path)
    return found


def _holder_of(path: Path) -> list[dict[str, Any]]:
    """The sweep that holds the file, if there is one. Another user's file can only be read, so a shared lock is tried,
    which fails while the owner holds the file."""
    try:
        file, kind = open(path, "r+", encoding="utf-8"), fcntl.LOCK_EX
    except PermissionError:
        file, kind = open(path, encoding="utf-8"), fcntl.LOCK_SH
    said: Any = None
    with file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            with suppress(ValueError):
                said = json.loads(file.read())
            return [said if isinstance(said, dict) else {}]
        with suppress(PermissionError):  # the file or the folder is another user's
            path.unlink(missing_ok=True)
    return []


def _refusal(folder: Path, mine: dict[str, Any], other: dict[str, Any]) -> str:
    who = f"process {other.get('pid', '?')} on {other.get('host', '?')}, since {other.get('utc', '?')}"
    (k, n), shard = mine["shard"], other.get("shard")
    if n > 1 and shard == [k, n]:
        cause = f"shard {k}/{n} is being measured by another sweep ({who})"
    elif n > 1 and shard and shard[1] == n:
        cause = f"another sweep with other options measures into it ({who})"
    else:
        cause = f"another sweep measures into it ({who})"
    return f"{folder}: {cause}; wait for it, end it, or choose another place with --results"
