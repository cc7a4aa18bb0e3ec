"""From a local set to a published one."""

import json
import shutil

import fake_bench
import pytest
from calls import error_of

from experiments.driver import store
from experiments.published import publish


def test_published_set_reads_like_the_local_one(driver):
    driver.run()
    assert driver.publish() == 0
    assert store.read_rows(driver.published) == driver.rows()
    runs = json.loads((driver.published / "runs.json").read_text())
    assert [run["run"] for run in runs] == sorted({one["run"] for one in driver.rows()})
    before = (driver.published / "many.csv.gz").read_bytes()
    assert driver.publish() == 0 and (driver.published / "many.csv.gz").read_bytes() == before


def test_only_newest_sources_and_the_most_thorough_preset(driver):
    driver.run()
    edited = [dict(entry, source_hash="b" * 16) for entry in fake_bench.VARIANTS]
    driver.variants(edited)
    driver.run()
    driver.run(preset="quick")
    assert driver.publish("--preset", "smoke") == 0
    assert {row["source_hash"] for row in store.read_rows(driver.published)} == {"b" * 16}
    assert driver.publish() == 0
    assert {row["preset"] for row in store.read_rows(driver.published)} == {"quick"}


def test_a_point_is_published_under_its_own_most_thorough_preset(driver):
    driver.run(preset="quick")
    driver.run("--sizes", "8", preset="paper")
    assert driver.publish() == 0
    rows = store.read_rows(driver.published)
    assert {(row["left_rows"], row["preset"]) for row in rows} == {("4", "quick"), ("8", "paper"), ("12", "quick")}
    assert len({store.key_of(row) for row in rows}) == 18
    assert driver.publish("--preset", "quick", "--force") == 0
    assert {row["preset"] for row in store.read_rows(driver.published)} == {"quick"}


def test_a_point_that_passed_is_chosen_in_place_of_a_more_thorough_failure(driver):
    driver.run(preset="quick")
    driver.faults({"kind": "incorrect", "variant": "cpu_definition", "left": "8x8"})
    assert driver.run(preset="paper") == 1
    rows = publish.select(driver.rows(), None, "many")
    found = {(row["variant"], row["left_rows"], row["preset"], row["outcome"]) for row in rows}
    assert ("cpu_definition", "8", "quick", "passed") in found and ("cpu_definition", "4", "paper", "passed") in found
    assert len({store.key_of(row) for row in rows}) == 18 and {row["outcome"] for row in rows} == {"passed"}
    assert driver.publish() == 2, "its rivals are of another run"
    assert driver.publish("--preset", "quick") == 0


def test_unfinished_experiment_is_refused(driver, capsys):
    driver.run("--sizes", "4,8")
    capsys.readouterr()
    assert driver.publish() == 2
    assert "12 of 18 points of preset smoke are measured" in capsys.readouterr().err
    assert not driver.published.exists()
    assert driver.publish("--partial") == 0


def test_damaged_set_is_refused(driver, capsys):
    driver.run()
    first = sorted((driver.local / "many").glob("*.csv.gz"))[0]
    first.write_bytes(b"x")
    assert driver.publish() == 2
    assert f"{first}.damaged: damaged" in capsys.readouterr().err and not driver.published.exists()


def test_fewer_passed_points_need_force(driver, capsys):
    driver.run()
    driver.publish()
    before = (driver.published / "many.csv.gz").read_bytes()
    driver.faults({"kind": "incorrect", "variant": "cpu_definition", "left": "12x12"})
    driver.run("--force")
    capsys.readouterr()
    assert driver.publish() == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "2 passed points would be lost, such as cpu_definition - one-to-many 12x12 1:2" in line
    assert (driver.published / "many.csv.gz").read_bytes() == before
    assert driver.publish("--force") == 0
    assert (driver.published / "many.csv.gz").read_bytes() != before


def test_files_of_their_own_schema_go_along(driver):
    driver.run()
    folder = driver.local / "real-ebsd" / "artifacts"
    folder.mkdir(parents=True)
    (folder / "real-ebsd.displacements.csv.gz").write_bytes(b"1")
    (folder / "real-ebsd.summary.json").write_text("{}")
    assert driver.publish() == 0
    names = {path.name for path in driver.published.iterdir()}
    assert {"real-ebsd.displacements.csv.gz", "real-ebsd.summary.json", "many.csv.gz"} <= names
    assert len(store.read_rows(driver.published)) == len(driver.rows())


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["fake-3-cores"], "did you mean fake-2-cores?"),
        (["--experiments", "mny"], "did you mean many?"),
        (["--preset", "paper"], "no rows of preset paper; measured: smoke"),
    ],
)
def test_mistakes(driver, capsys, arguments, says):
    driver.run("--sizes", "4")
    capsys.readouterr()
    assert driver.publish(*arguments) == 2
    assert says in error_of(capsys)


@pytest.mark.parametrize("text", ["[", '[{"run": 7}]', '[{"run": "a", "argv": null}]'])
def test_a_damaged_list_of_published_runs_is_not_written_over(driver, capsys, text):
    driver.run()
    driver.published.mkdir(parents=True)
    path = driver.published / "runs.json"
    path.write_text(text)
    capsys.readouterr()
    assert driver.publish() == 2
    (line,) = [one for one in capsys.readouterr().err.splitlines() if one.startswith("error: ")]
    assert str(path) in line and "restore it from git" in line and path.read_text() == text


def test_problems_measured_again_are_added_to_a_published_set(driver):
    driver.run()
    assert driver.publish() == 0
    published = store.read_rows(driver.published)
    shutil.rmtree(driver.results / "local")
    driver.run("--sizes", "8")
    assert driver.publish("--partial") == 2, "the points of the other sizes would be lost"
    assert driver.publish("--add") == 0
    rows = store.read_rows(driver.published)
    assert [store.key_of(row) for row in rows] == [store.key_of(row) for row in published]
    first = min(row["run"] for row in rows)
    for row in rows:
        assert (row["run"] != first) == (row["left_rows"] == "8")
    runs = json.loads((driver.published / "runs.json").read_text())
    assert {run["run"] for run in runs} == {row["run"] for row in rows}
