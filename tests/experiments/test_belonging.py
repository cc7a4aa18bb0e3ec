"""A row counts where its own cells say that it belongs, with the record of its run; the others are named, and never published."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from driving import Driver, refusal
from stored import NEW, OLD, PUBLISHED, record, row, save

from experiments.compare import artifacts
from experiments.driver import store
from plots import tidy
from xcorr.errors import UserError


def put(path: Path, *rows: store.Row) -> None:
    store.write_atomic(path, store.encode(rows))


def beside(folder: Path, **cells: object) -> None:
    """A file of a newer run with its record; `cells` of its row are another's."""
    record(folder, NEW)
    put(folder / "one-to-one" / f"{NEW}-0000.csv.gz", row(**{"run": NEW, "machine_key": folder.name, **cells}))


def without_record(folder: Path) -> None:
    save(folder, NEW, [row(compute_us=0.01)])
    (folder / "one-to-one" / "runs" / f"{NEW}.json").unlink()


def with_a_foreign_record(folder: Path) -> None:
    save(folder, NEW, [row(compute_us=0.01)])
    record(folder, NEW, machine_key="elsewhere")


def with_the_record_of_another_run(folder: Path) -> None:
    save(folder, NEW, [row(compute_us=0.01)])
    path = folder / "one-to-one" / "runs" / f"{NEW}.json"
    path.write_text(path.read_text().replace(NEW, OLD))


CASES: list[tuple[Callable[[Path], None], str]] = [
    (
        partial(beside, machine_key="elsewhere", compute_us=0.01),
        "1 rows, such as in one-to-one/{new}-0000.csv.gz, are of machine elsewhere",
    ),
    (partial(beside, experiment="n-to-m"), "are of experiment n-to-m in files of another one"),
    (partial(beside, run=OLD, compute_us=0.01), "are of run {old} in files of another run"),
    (without_record, "are without the record of their run, {new}"),
    (with_a_foreign_record, "it is of machine elsewhere"),
    (with_the_record_of_another_run, "it is of run {old} of experiment one-to-one"),
]


@pytest.mark.parametrize("spoil, says", CASES, ids=[says for _, says in CASES])
def test_rows_that_do_not_belong_are_left_out_and_named_in_one_line(tmp_path, capsys, spoil, says):
    folder = tmp_path / "here"
    save(folder, OLD, [row(compute_us=0.1)])
    before = store.read_rows(folder)
    assert len(before) == 1 and not capsys.readouterr().err
    spoil(folder)
    assert store.read_rows(folder) == before
    lines = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if says.format(new=NEW, old=OLD) in line]) == 1, lines
    (point,) = tidy.load(folder, "here", "local").points.to_dict("records")
    assert (point["compute_us"], point["runs"]) == (0.1, 1)


def test_many_foreign_rows_take_one_line(tmp_path):
    folder = tmp_path / "here"
    for number in range(5):
        put(folder / "one-to-one" / f"{NEW}-{number:04}.csv.gz", *[row(machine_key=f"m{number}")] * 7)
    said: list[str] = []
    assert store.read_rows(folder, said.append) == []
    (line,) = said
    assert ": 35 rows, such as in one-to-one/" in line and "of machine m0, m1, m2 and 2 others;" in line


def test_a_published_set_has_rows_of_its_machine_and_runs_only(tmp_path):
    folder = tmp_path / "here"
    mine, other = row(machine_key="here"), row(machine_key="elsewhere", variant="w", compute_us=0.01)
    put(folder / "one-to-one.csv.gz", mine, other, row(machine_key="here", variant="x", run=NEW))
    store.write_json(
        folder / "runs.json", [{"run": OLD, "experiment": "one-to-one"}, {"run": NEW, "experiment": "modes"}]
    )
    said: list[str] = []
    assert [one["variant"] for one in store.read_rows(folder, said.append)] == ["v"]
    assert len(said) == 2 and "of machine elsewhere" in said[0] and f"the record of their run, {NEW}" in said[1]


def copied(driver: Driver, **cells: str) -> None:
    """The rows of the first file again, under a run of their own, with other cells."""
    path = sorted((driver.local / "many").glob("*.csv.gz"))[0]
    rows = [{**one, "run": NEW, "compute_us": "0.001", **cells} for one in store.decode(path)]
    put(path.with_name(f"{NEW}-0000.csv.gz"), *rows)


@pytest.mark.parametrize("arguments", [[], ["--partial"], ["--force"], ["--add"]])
def test_foreign_rows_are_not_published(driver, capsys, arguments):
    driver.run()
    copied(driver, machine_key="elsewhere")
    assert "of machine elsewhere; they count only in the folder" in refusal(driver, capsys, *arguments)


def test_rows_without_a_record_are_not_published(driver, capsys):
    driver.run()
    copied(driver)
    line = refusal(driver, capsys, "--partial")
    assert f"without the record of their run, {NEW}; " in line and "restore runs/<run>.json" in line


@pytest.mark.parametrize("points", [None, 0, -3])
def test_a_record_without_points_makes_no_set_complete(driver, capsys, points):
    driver.run()
    (path,) = (driver.local / "many" / "runs").glob("*.json")
    said = json.loads(path.read_text())
    del said["points"]
    store.write_json(path, said if points is None else {**said, "points": points})
    for file in sorted((driver.local / "many").glob("*.csv.gz"))[1:]:
        file.unlink()
    line = refusal(driver, capsys)
    assert line.startswith(f"error: {path}: points is {points!r}, ") and "measure again" in line
    assert refusal(driver, capsys, "--partial") == line


def test_published_rows_of_another_machine_are_not_kept(driver, capsys):
    driver.run()
    assert driver.publish() == 0
    path = driver.published / "many.csv.gz"
    put(path, *[{**one, "machine_key": "elsewhere"} for one in store.decode(path)])
    before = path.read_bytes()
    capsys.readouterr()
    assert driver.publish("--add") == 2
    assert "of machine elsewhere" in capsys.readouterr().err and path.read_bytes() == before


def test_an_artifact_of_another_machine_is_not_published(driver, capsys):
    driver.run()
    path = driver.local / "real-ebsd" / "artifacts" / "real-ebsd.summary.json"
    store.write_json(path, {"machine_key": "elsewhere"})
    assert f"{path}: of machine elsewhere; measure it here" in refusal(driver, capsys)
    store.write_json(path, {"machine_key": driver.local.name})
    assert driver.publish() == 0


@pytest.mark.parametrize(
    "text, says",
    [('{"schema": 1, "machine_key": "elsewhere"}', "of machine elsewhere"), ("[", "read"), ("[]", "object")],
)
def test_a_comparison_of_another_machine_does_not_count(tmp_path, text, says):
    (tmp_path / "template-rivals.json").write_text(text)
    with pytest.raises(UserError, match=says):
        artifacts.stored(tmp_path, "template-rivals", 1, "measure it here")


def with_column(path: Path, **cells: str) -> None:
    """The file's rows as a newer program has written them, with a column more."""
    rows = [{**one, "watt": "7", **cells} for one in store.decode(path)]
    text = io.StringIO()
    writer = csv.DictWriter(text, [*store.COLUMNS, "watt"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(gzip.compress(text.getvalue().encode()))


def test_rows_of_a_newer_program_are_read_and_said_and_not_published(driver, capsys):
    driver.run()
    rows = driver.rows()
    path = sorted((driver.local / "many").glob("*.csv.gz"))[0]
    with_column(path)
    capsys.readouterr()
    assert len(driver.rows()) == len(rows)
    (line,) = capsys.readouterr().err.splitlines()
    assert "a column that is unknown here, watt; they are of a newer program" in line
    assert "watt" in refusal(driver, capsys, "--partial")


@pytest.mark.parametrize("arguments", [[], ["--force"], ["--add"]])
def test_a_published_file_of_a_newer_program_is_not_written_over(driver, capsys, arguments):
    driver.run()
    assert driver.publish() == 0
    path = driver.published / "many.csv.gz"
    with_column(path)
    before = path.read_bytes()
    capsys.readouterr()
    assert driver.publish(*arguments) == 2
    (line,) = [one for one in capsys.readouterr().err.splitlines() if one.startswith("error: ")]
    assert "watt" in line and "take that version of the sources" in line and path.read_bytes() == before


def test_a_file_that_only_a_newer_program_can_read_keeps_its_name(tmp_path):
    path = save(tmp_path, OLD, [row()])
    with_column(path, outcome="postponed")
    said: list[str] = []
    assert store.read_rows(tmp_path, said.append) == [] and path.exists()
    (line,) = said
    assert "the outcome 'postponed', and column watt is of a newer program; left out" in line
    path.rename(tmp_path / "one-to-one.csv.gz")
    with pytest.raises(UserError, match="column watt .* take that version of the sources"):
        store.read_rows(tmp_path)


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
def test_every_row_that_was_published_counts(folder):
    said: list[str] = []
    assert store.read_rows(folder, said.append) and not said
