"""Calls on arrays of a device, with a card whose memory is that of the host (tests/host_card).

The card's library cannot be loaded beside the built one in one process. So the tests of tests/host_card run in a process of their own.
"""

import os
import sys

import pytest
from calls import call

from xcorr.paths import build_directory


def test_calls_on_a_card_of_the_host(tmp_path):
    built = build_directory() / "tests/host_card/libhost_card.so"
    if not built.exists():
        reason = f"{built.name} is not built (scripts/build.sh --tests builds it)"
        if os.environ.get("XCORR_REQUIRE_BUILD") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    (tmp_path / "libxcorr.so").symlink_to(built)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    words += ["tests/host_card/calls_on_card.py", "tests/host_card/producers_on_card.py"]
    done = call(*words, XCORR_BUILD=str(tmp_path))
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    assert " passed" in done.stdout and "skipped" not in done.stdout
