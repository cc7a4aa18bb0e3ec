"""Results folders for tests of `auto`, which reads tables of times."""

from pathlib import Path

import pytest

from xcorr.choice import table


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty results folder; nothing is shipped."""
    monkeypatch.setattr(table, "SHIPPED", tmp_path / "empty.json")
    table.SHIPPED.write_text("[]")
    return tmp_path / "results"
