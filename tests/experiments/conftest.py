"""For the tests of experiments: sets of results in a folder of the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.driver import store


@pytest.fixture
def results(tmp_path: Path):
    """A function that publishes rows as the set `card` and returns the root of the results."""

    def publish(*rows: store.Row) -> Path:
        folder = tmp_path / "published" / "card"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "one-to-one.csv.gz").write_bytes(store.encode(rows))
        return tmp_path

    return publish
