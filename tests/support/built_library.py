"""The built library for tests that need it: skipped where there is none, unless it is required."""

import os

import pytest

from xcorr.native.library import Library
from xcorr.paths import build_directory


def built_library() -> Library:
    """The library; skips, or fails where XCORR_REQUIRE_BUILD=1, when it is not built."""
    path = build_directory() / "libxcorr.so"
    if not path.exists():
        reason = f"{path.name} is not built (scripts/test.sh builds it)"
        if os.environ.get("XCORR_REQUIRE_BUILD") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return Library(path)
