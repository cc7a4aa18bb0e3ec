"""Programs, files and folders whose symbolic links lead in a circle: one line, whichever command they are named to."""

import importlib
from functools import partial
from pathlib import Path

import pytest
from driving import Driver

from experiments.compare.rivals import __main__ as rivals
from xcorr.errors import command

NAMED = [
    ("experiments.driver.run", "--folder"),
    ("experiments.driver.run", "--preset smoke --device cpu --folder {experiments} --results"),
    ("experiments.published.publish", "--results"),
    ("experiments.published.importing", ""),
    ("experiments.published.importing", "--folder ampere --flat"),
    ("experiments.published.auto_table", "--results"),
    ("experiments.published.l2_errors", ""),
    ("experiments.compare.artifact", "--results"),
    ("experiments.compare.counters", "--machine-key key --read"),
    ("experiments.compare.fragments", "--machine-key key --program"),
    ("experiments.compare.resources", "--build"),
    ("experiments.compare.rivals.__main__", "--rivals scipy --results"),
    ("experiments.compare.scipy_peer", "--bars"),
    ("experiments.inputs.photo", "--offline --machine-facts"),
    ("experiments.inputs.photo", "--offline --results"),
    ("plots.render", "--results"),
    ("plots.report.pages", "--check --root"),
    ("plots.report.pages", "--check --results"),
    ("plots.report.pages", "--check --page docs/variants.md --list-json"),
]


@pytest.fixture
def circle(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A link that leads to itself by another; commands ask the fake program, and measure nothing."""
    one, two = driver.base / "one", driver.base / "two"
    one.symlink_to(two)
    two.symlink_to(one)
    monkeypatch.setattr(rivals, "Library", FakeLibrary)
    monkeypatch.setattr(rivals, "measure", lambda *_: [[{"name": "xcorr-bench", "outcome": "passed"}]])
    monkeypatch.setattr("experiments.inputs.common.Library", FakeLibrary)
    return one


class FakeLibrary:
    def machine(self, _: str) -> dict[str, str]:
        return {"machine_key": "fake-2-cores"}

    def variants(self) -> list[str]:
        return []


def refusal(module: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of a command that must end with exit code 2. A bar of progress may come before it."""
    imported = importlib.import_module(module)
    run = getattr(imported, "main", None) or partial(command, imported.run)
    assert run(words) == 2
    bar, error, said = capsys.readouterr().err.rpartition("error: ")
    assert error and said.count("\n") == 1 and len(bar.split("\n")) <= 2, bar + error + said
    return said


@pytest.mark.parametrize(("module", "words"), NAMED)
def test_what_is_named_to_a_command(driver, circle, module, words, capsys):
    line = refusal(module, [*words.format(experiments=driver.folder).split(), str(circle)], capsys)
    assert str(circle) in line or "no local set; valid: none" in line


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("experiments.driver.run", []),
        ("experiments.compare.scipy_peer", []),
        ("plots.report.pages", ["--check", "--page", "docs/variants.md"]),
    ],
)
@pytest.mark.parametrize("name", ["one", "build"])
def test_the_folder_of_the_build_and_the_program_in_it(driver, circle, module, words, name, capsys, monkeypatch):
    program = driver.base / "build" / "xcorr-bench"
    program.unlink()
    program.symlink_to(circle)
    monkeypatch.setenv("XCORR_BUILD", str(driver.base / name))
    assert f"{name}/xcorr-bench: " in refusal(module, words, capsys)


def test_the_folder_in_which_few_variants_are_built(circle, capsys, monkeypatch):
    monkeypatch.setenv("XCORR_TRY_BUILD", str(circle))
    assert str(circle) in refusal("experiments.driver.trial", ["cpu_row_streaming"], capsys)
