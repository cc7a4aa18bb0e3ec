"""For the tests of experiments: sets of results in a folder of the test, and runs of experiments on real input."""

from pathlib import Path

import pytest
from driving import driver

from experiments.driver import store

__all__ = ["driver"]


@pytest.fixture
def results(tmp_path: Path):
    """A function that publishes rows as the set `card` and returns the root of the results."""

    def publish(*rows: store.Row) -> Path:
        folder = tmp_path / "published" / "card"
        folder.mkdir(parents=True, exist_ok=True)
        own = [{**row, "machine_key": "card", "experiment": "one-to-one"} for row in rows]
        (folder / "one-to-one.csv.gz").write_bytes(store.encode(own))
        store.write_json(folder / "runs.json", [{"run": run} for run in sorted({row["run"] for row in own})])
        return tmp_path

    return publish


@pytest.fixture
def run_input(tmp_path, capsys):
    """A function that runs an experiment on real input; exit code, stdout, stderr and the folder of its artifacts."""
    facts = tmp_path / "facts.json"
    facts.write_text('{"machine_key": "some-machine"}')
    words = ["--preset", "smoke", "--machine-facts", str(facts), "--results", str(tmp_path / "results")]

    def call(module, library, *more):
        code = module.main([*words, *more], library)
        said = capsys.readouterr()
        return code, said.out, said.err, tmp_path / "results/local/some-machine" / module.EXPERIMENT / "artifacts"

    return call
