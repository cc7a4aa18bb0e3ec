"""The one limit in time of the tests: it ends what hangs, and no loaded machine reaches it. See tests/README.md."""

import time
from collections.abc import Callable

HANG_S = 4 * 3600


def wait_for(ready: Callable[[], bool], what: str, told: Callable[[], str] = str) -> None:
    """Until `ready()`. AssertionError with `what` was waited for and what `told()` says, when it never comes."""
    end = time.monotonic() + HANG_S
    while not ready():
        assert time.monotonic() < end, f"waited for {what}: {told()}"
        time.sleep(0.01)
