"""The order of runs is that of their ids, whatever the clock of the machine says."""

import shutil
from pathlib import Path

import pytest
from driving import Driver

from experiments.driver import store
from xcorr.errors import UserError

NEW_RUN_ID = store.new_run_id  # `driver` replaces it
AHEAD = "20990101T000000-aaaaaa"


def test_an_id_follows_those_that_are_known(capsys):
    name = store.new_run_id(["20250101T000000-ffffff", AHEAD, "20270101T000000-000000"])
    assert name.startswith("20990101T000001-") and store.CHUNK_NAME.fullmatch(f"{name}-0000.csv.gz")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: the clock is at ") and AHEAD in line
    first = store.new_run_id()
    assert store.new_run_id([first]) > first and not capsys.readouterr().err, "runs of one second"


@pytest.mark.parametrize("last", ["99991231T235959-ffffff", "20261341T000000-000000"])
def test_no_id_can_follow_the_end_of_time(last):
    with pytest.raises(UserError, match=f"run {last}: no run can be later"):
        store.new_run_id([last])


def measured_ahead(driver: Driver) -> None:
    """A set whose machine had its clock in 2099."""
    driver._patch.setattr(store, "new_run_id", lambda _: AHEAD)
    assert driver.run() == 0
    driver._patch.setattr(store, "new_run_id", NEW_RUN_ID)


def runs_of(rows: list[store.Row]) -> set[str]:
    return {row["run"] for row in rows}


@pytest.mark.parametrize("where", ["local", "published"])
def test_what_is_measured_after_the_clock_was_put_back_counts(driver, capsys, where):
    measured_ahead(driver)
    if where == "published":
        assert driver.publish() == 0
        shutil.rmtree(driver.results / "local")
    before = len(store.read_rows(driver.results / where / "fake-2-cores"))
    capsys.readouterr()
    assert driver.run("--force") == 0
    assert AHEAD in capsys.readouterr().err
    assert len(driver.rows()) == before and AHEAD not in runs_of(driver.rows())
    assert driver.publish("--add") == 0
    assert runs_of(store.read_rows(driver.published)) == runs_of(driver.rows())


def test_a_damaged_file_of_a_run_ahead_counts_too(driver):
    measured_ahead(driver)
    paths = sorted((driver.local / "many").glob("*.csv.gz"))
    for path in paths:
        path.write_bytes(b"damaged")
    assert driver.run() == 0
    (run,) = runs_of(driver.rows())
    assert run > AHEAD and all(Path(f"{path}.damaged").exists() for path in paths)
