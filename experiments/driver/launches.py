"""Which rows a busy host slowed down: launches and plans are its work, not the device's.

Every row of a GPU has `launch_us`, what a launch of nothing took beside it. Four processes for four GPUs of
one host took half as long again for one as a process alone, and every time of few launches with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from experiments.driver.store import Key, Row, key_of

BUSY = 1.2  # times the shortest launch that any row of the machine shows
FEW = 8  # launches: a point that is shorter may wait for the host
PLAN_US = 50.0  # a plan that is longer is made by a library, on the host


def quiet_us(rows: Iterable[Row]) -> float:
    """The shortest launch of nothing beside any row, in microseconds; 0 when no row has one."""
    return min((float(row["launch_us"]) for row in rows if row.get("launch_us")), default=0.0)


def slowed(rows: Iterable[Row], quiet: float) -> set[tuple[str, Key]]:
    """(experiment, resume key) of the points with a time that the host decided while launches took
    more than BUSY times `quiet` microseconds."""
    return {
        (row["experiment"], key_of(row))
        for row in rows
        if row["outcome"] == "passed" and row.get("launch_us") and _by_host(row, quiet)
    }


def _by_host(row: Row, quiet: float) -> bool:
    launch = float(row["launch_us"])
    few = float(row["compute_us"] or 0) < FEW * launch or float(row["plan_us"] or 0) > PLAN_US
    return few and launch > BUSY * quiet > 0
