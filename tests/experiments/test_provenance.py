"""Rows whose sources nobody can look up, or whose rivals did not meet in one run, are refused by name and not published."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_bench
import pytest
from driving import EXPERIMENT, Driver, refusal
from stored import PUBLISHED

from experiments.driver import store
from experiments.driver.repository import Repository

ALWAYS = [[], ["--partial"], ["--force"], ["--add"]]


def records(driver: Driver) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(driver.local.glob("many/runs/*.json"))]


def rewrite(driver: Driver, **values: object) -> None:
    """Every record with other values."""
    for path in driver.local.glob("many/runs/*.json"):
        store.write_json(path, {**json.loads(path.read_text()), **values})


def test_a_record_names_the_commit_and_the_trees_of_its_sources(driver):
    driver.run()
    (record,) = records(driver)
    assert record["git_commit"] == driver.git("rev-parse", "HEAD") and record["git_dirty"] is False
    assert record["git_trees"] == {
        "algorithms": driver.git("rev-parse", "HEAD:algorithms"),
        "harness": driver.git("rev-parse", "HEAD:harness"),
    }


def edited(base: Path) -> None:
    (base / "algorithms" / "code.cpp").write_text("int edited;\n")


def with_a_new_variant(base: Path) -> None:
    (base / "algorithms" / "new.cpp").touch()  # the build takes every file there


def with_a_new_experiment(base: Path) -> None:
    (base / "experiments" / "new.toml").write_text(EXPERIMENT)


@pytest.mark.parametrize("change", [edited, with_a_new_variant, with_a_new_experiment])
def test_rows_of_modified_sources_are_not_published(driver, capsys, change):
    change(driver.base)
    driver.run("--experiments", "many")
    assert records(driver)[0]["git_dirty"] is True
    for arguments in ALWAYS:
        line = refusal(driver, capsys, *arguments)
        assert "are of modified sources of commit" in line and "commit the changes, then measure again" in line
    driver.git("add", "-A", "algorithms", "experiments")
    driver.git("commit", "-q", "-m", "Change")
    driver.run("--experiments", "many", "--force")
    assert driver.publish() == 0, "the way out"


def test_results_and_files_of_the_user_modify_no_sources(driver):
    driver.run()
    driver.git("add", "-f", "results")
    driver.git("commit", "-q", "-m", "Rows")
    driver.run("--force")
    (driver.base / "frames.png").touch()
    assert not Repository(driver.base).modified()


@pytest.mark.parametrize("commit", [None, "", 7])
def test_rows_of_no_commit_are_not_published(driver, capsys, commit):
    driver.run()
    rewrite(driver, git_commit=commit)
    line = refusal(driver, capsys)
    assert "are of no commit; measure again" in line and "in a git clone" in line


def test_rows_measured_without_git_are_not_published(driver, capsys):
    driver.base.joinpath(".git").rename(driver.base / "elsewhere")
    driver.run()
    assert records(driver)[0]["git_commit"] is None
    assert "are of no commit" in refusal(driver, capsys)


def test_rows_of_an_unknown_commit_are_not_published(driver, capsys):
    driver.run()
    rewrite(driver, git_commit="0" * 40)
    line = refusal(driver, capsys)
    assert "are of commit 000000000000, which this repository does not know; fetch it" in line


@pytest.mark.parametrize("trees, says", [(None, "do not name the trees"), ({"algorithms": "0" * 40}, "other trees")])
def test_rows_of_unknown_trees_are_not_published(driver, capsys, trees, says):
    driver.run()
    rewrite(driver, git_trees=trees)
    line = refusal(driver, capsys)
    assert says in line and "measure again" in line


def untracked(driver: Driver) -> None:
    driver.git("rm", "-q", "--cached", "experiments/many.toml")


def deleted(driver: Driver) -> None:
    (driver.folder / "many.toml").unlink()


@pytest.mark.parametrize("lose", [untracked, deleted])
def test_rows_of_an_experiment_that_the_repository_lacks_are_not_published(driver, capsys, lose):
    driver.run()
    lose(driver)
    line = refusal(driver, capsys, "--partial")
    assert "rows of experiment many, whose file the repository lacks; add many.toml to git" in line


def test_without_git_a_line_says_what_is_not_checked(driver, capsys):
    driver.run()
    driver.base.joinpath(".git").rename(driver.base / "elsewhere")
    capsys.readouterr()
    assert driver.publish() == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "not a git repository" in line]
    assert len(said) == 1 and "is not checked" in said[0]


def test_a_folder_of_another_repository_is_no_repository(driver):
    """Such as an archive of the sources unpacked in somebody's clone: its commit is none of these sources."""
    assert Repository(driver.base).known and not Repository(driver.folder).known
    assert Repository(driver.folder).record()["git_commit"] is None


def test_rivals_of_two_runs_are_not_published(driver, capsys):
    driver.run("--variants", "cpu_definition")
    driver.run("--variants", "cpu_fft")
    for arguments in ALWAYS:
        line = refusal(driver, capsys, *arguments)
        assert "the rivals of 6 problems did not meet in one run, such as those of one-to-many 12x12 1:2: runs " in line
        assert all(record["run"] in line for record in records(driver)) and "GPUs" not in line
        assert line.endswith("--preset smoke --experiments many --sizes 12x12 --force")
    driver.run("--force")
    assert driver.publish() == 0, "the way out"


def test_rivals_of_two_cards_are_named_as_such(driver, capsys, monkeypatch):
    for card, variant in ((7, "cpu_definition"), (8, "cpu_fft")):
        monkeypatch.setenv("FAKE_MACHINE", json.dumps({"uuid_hash": card}))
        driver.run("--variants", variant)
    assert " on 2 GPUs; measure again" in refusal(driver, capsys)


def test_problems_of_one_run_each_are_published_together(driver):
    driver.run("--sizes", "4")
    driver.run("--sizes", "8,12")
    assert driver.publish() == 0


def test_a_published_problem_that_is_mixed_stays_beside_others(driver, capsys):
    """Sets from before this rule have such problems."""
    driver.run("--sizes", "4,8")
    assert driver.publish("--partial") == 0
    target = driver.published
    (known,) = json.loads((target / "runs.json").read_text())
    other = "20290101T000000-abcdef"
    rows = [
        {**one, "run": other} if one["variant"] == "cpu_fft" else one for one in store.decode(target / "many.csv.gz")
    ]
    (target / "many.csv.gz").write_bytes(store.encode(rows))
    old = {name: value for name, value in known.items() if not name.startswith("git_")}
    store.write_json(target / "runs.json", [known, {**old, "run": other}])
    shutil.rmtree(driver.results / "local")
    driver.run("--sizes", "12")
    assert driver.publish("--add") == 0
    assert len({store.key_of(row) for row in store.read_rows(target)}) == 18
    driver.variants([dict(fake_bench.VARIANTS[0], source_hash="b" * 16), *fake_bench.VARIANTS[1:]])
    driver.run("--variants", "cpu_definition")
    capsys.readouterr()
    assert driver.publish("--add") == 2
    assert "did not meet in one run" in capsys.readouterr().err


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
def test_sets_from_before_this_rule_are_read(folder):
    assert store.read_rows(folder)


@pytest.fixture
def evaluated(driver, monkeypatch):
    """A set of the preset evaluation; its rows of stage final are in one block for each problem."""
    monkeypatch.setenv("FAKE_STEP", "0")
    driver.stages(0.001)
    driver.git("commit", "-q", "-am", "Stages")
    assert driver.run(preset="evaluation") == 0
    return driver


def change(driver: Driver, edit: Callable[[store.Row], None]) -> None:
    """Edits the rows of stage final on disk."""
    for path in driver.local.glob("many/*.csv.gz"):
        rows = store.decode(path)
        for row in rows:
            if row["preset"] == "evaluation":
                edit(row)
        store.write_atomic(path, store.encode(rows))


def test_an_evaluation_is_published_with_both_stages(evaluated):
    assert evaluated.publish() == 0
    rows = store.read_rows(evaluated.published)
    assert {row["preset"] for row in rows} == {"evaluation"}, "every point contends"
    assert len({row["block"] for row in rows}) == 6


def test_a_problem_that_was_measured_again_is_published_with_its_newest_block(evaluated):
    old = {row["block"] for row in evaluated.rows()}
    fft = {**fake_bench.VARIANTS[1], "points": ["threads=1"]}
    evaluated.variants([{**fake_bench.VARIANTS[0], "source_hash": "b" * 16}, fft])
    assert evaluated.run(preset="evaluation") == 0
    assert old & {row["block"] for row in evaluated.rows()} - {""}, "a point that contends no more has old rows"
    assert evaluated.publish() == 0
    assert not old & {row["block"] for row in store.read_rows(evaluated.published)} - {""}


def test_rivals_of_two_blocks_are_not_published(evaluated, capsys):
    def swap(row: store.Row) -> None:
        if row["variant"] == "cpu_fft":
            row["block"] = row["run"] + ".99"

    change(evaluated, swap)
    for arguments in ALWAYS:
        line = refusal(evaluated, capsys, *arguments)
        assert "the rivals of one-to-many 4x4 1:2 are of blocks" in line
        assert "measures the problem again in one block" in line


def test_rows_of_the_block_of_another_run_are_not_published(evaluated, capsys):
    change(evaluated, lambda row: row.update(block="20000101T000000-aaaaaa.0"))
    assert "of another run; measure again" in refusal(evaluated, capsys)


def test_an_interrupted_block_is_not_published(evaluated, capsys):
    for path in sorted(evaluated.local.glob("many/*.csv.gz")):
        rows = store.decode(path)
        if rows[0]["preset"] == "evaluation" and rows[0]["variant"] == "cpu_fft":
            store.write_atomic(path, store.encode([row for row in rows if row["process"] != "2"]))
            break
    line = refusal(evaluated, capsys)
    assert "was interrupted; measure again" in line


def test_a_problem_in_blocks_of_two_experiments_is_not_published(evaluated, capsys):
    evaluated.experiment("again", EXPERIMENT)
    evaluated.git("add", "experiments")
    evaluated.git("commit", "-q", "-m", "Again")
    assert evaluated.run("--experiments", "again", preset="evaluation") == 0
    assert "are of blocks" in refusal(evaluated, capsys)
    assert evaluated.run(preset="evaluation") == 0
    assert evaluated.publish() == 0, "the way out"
