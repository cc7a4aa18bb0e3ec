"""Available memory, and the error for what needs more."""

import os
from contextlib import suppress
from pathlib import Path

from xcorr.errors import UserError


def available_memory(meminfo: Path = Path("/proc/meminfo"), control_group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that can be allocated now: the smaller of available memory and what the control group leaves.

    The whole memory if the system does not tell what is available; None if it tells nothing.
    """
    known: list[int] = []
    with suppress(OSError, ValueError, IndexError):
        lines = meminfo.read_text().splitlines()
        known += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    if not known:
        with suppress(OSError, ValueError):
            pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
            known += [pages * page] if pages > 0 and page > 0 else []
    with suppress(OSError, ValueError):
        limit, used = int((control_group / "memory.max").read_text()), 0  # "max" is no number: no limit
        with suppress(OSError, ValueError):
            used = int((control_group / "memory.current").read_text())
        known.append(max(limit - used, 0))
    return min(known, default=None)


def check_memory(what: str, parts: dict[str, int]) -> None:
    """UserError if the sum of `parts` (name -> bytes) exceeds the available memory."""
    needed, free = sum(parts.values()), available_memory()
    if free is not None and needed > free:
        detail = ", ".join(f"{name} {size}" for name, size in parts.items())
        raise UserError(
            f"{what}: needs {needed} bytes of memory ({detail}), {free} are available; "
            "use fewer matrices or a smaller --window"
        )
