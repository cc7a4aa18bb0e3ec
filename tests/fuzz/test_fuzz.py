"""Random requests and files find nothing; a planted fault is found (tests/fuzz/README.md)."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from built_library import built_library
from hangs import HANG_S
from tree import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]


def fuzz(*options):
    built_library()
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz.run", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )


def counts(text):
    return {what: int(count) for count, what in re.findall(r"(\d+) ([a-z ]+)", text)}


def test_random_requests_are_computed_or_refused_in_one_line():
    done = fuzz("c_api", "--examples", "4000")
    assert done.returncode == 0, done.stdout + done.stderr
    seen = counts(done.stdout)
    for what in ("describe refused", "open refused", "supports refused", "compute done", "open done"):
        assert seen.get(what, 0) > 400, seen


def test_random_files_are_read_or_refused_in_one_line():
    done = fuzz("npy", "--examples", "4000")
    assert done.returncode == 0, done.stdout + done.stderr
    seen = counts(done.stdout)
    assert seen["read"] > 40 and seen["refused"] > 1000, seen


def test_a_planted_overrun_is_found_with_its_example():
    done = fuzz("c_api", "--examples", "50", "--plant")
    assert done.returncode == 1
    assert "AddressSanitizer" in done.stderr and "at the example ({'form'" in done.stdout
