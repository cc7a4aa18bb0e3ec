"""Finds rows that a busy host slowed down. The host, not the device, makes launches and plans.

Every row of a GPU has `launch_us`, the time of an empty launch beside the measurement. With four processes for four
GPUs of one host an empty launch took 1.5 times as long as with one process, and so did all times of few launches. The
pace of the host is not in a row whose `host_paced` is `no`, nor in its `launch_us`; such rows are left out.
"""

from collections.abc import Iterable

from experiments.driver.store import Key, Row, key_of

BUSY = 1.2  # as a multiple of the shortest launch of the machine
FEW = 8  # launches; a shorter point may wait for the host
PLAN_US = 50.0  # a longer plan is made by a library on the host


def quiet_us(rows: Iterable[Row]) -> float:
    """The shortest empty launch by the host of all rows, in microseconds; 0 where no row has one."""
    return min((float(row["launch_us"]) for row in rows if row.get("launch_us") and _by_host(row)), default=0.0)


def slowed(rows: Iterable[Row], quiet: float) -> set[tuple[str, Key]]:
    """(experiment, resume key) of points whose time depends on the host, with launches above BUSY * `quiet` us."""
    found = set()
    for row in rows:
        launch = float(row.get("launch_us") or 0)
        by_host = float(row["compute_us"] or 0) < FEW * launch or float(row["plan_us"] or 0) > PLAN_US
        if row["outcome"] == "passed" and _by_host(row) and by_host and launch > BUSY * quiet > 0:
            found.add((row["experiment"], key_of(row)))
    return found


def _by_host(row: Row) -> bool:
    return row.get("host_paced") != "no"
