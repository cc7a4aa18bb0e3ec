"""Commands and modules by name: the list of commands, and old names, which say the new ones."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys

import pytest
from tree import ROOT

import experiments
import harness
from experiments import __main__ as commands
from xcorr.errors import UserError

OLD = {f"{package.__name__}.{old}": new for package in (experiments, harness) for old, new in package.MOVED.items()}


def python(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("old", OLD)
def test_an_old_name_says_the_new_one_which_exists(old):
    assert importlib.util.find_spec(OLD[old]), f"{OLD[old]} does not exist"
    with pytest.raises(ImportError, match=f"{old}: was renamed; use {OLD[old]}$"):
        importlib.import_module(old)


@pytest.mark.parametrize(
    "words, new",
    [
        (["-m", "experiments.auto", "--left", "5"], "xcorr.auto"),
        (["-m", "experiments.equivalent", "--rows"], "experiments.compare.equivalent"),
        (["-m", "experiments.real.ebsd"], "experiments.inputs.ebsd"),
        (["-c", "from experiments.real import matrices"], "xcorr.matrices"),
        (["-c", "from harness.library import Library"], "xcorr.library"),
        (["-c", "from experiments.auto import Auto"], "xcorr.auto"),
    ],
)
def test_what_was_typed_or_imported_by_an_old_name_fails_with_the_new_one(words, new):
    done = python(*words)
    assert done.returncode != 0 and f"was renamed; use {new}" in done.stderr.splitlines()[-1]


def test_the_list_has_every_command_with_a_line(capsys):
    assert commands.run([]) == 0
    text = capsys.readouterr().out
    found = commands.commands()
    assert {"run", "publish", "auto_table", "equivalent", "resources", "ebsd", "photo"} <= set(found)
    modules = [
        path
        for package in commands.PACKAGES
        for path in (ROOT / "experiments" / package).glob("*.py")
        if '__name__ == "__main__"' in path.read_text()
    ]
    assert len(found) == len(modules), "two commands have one name, or one is not listed"
    for name, (module, about) in found.items():
        assert name in text and about and importlib.util.find_spec(module), name


def test_a_command_runs_by_its_short_name():
    done = python("-m", "experiments", "auto_table", "--local", "nothing")
    assert done.returncode == 2 and done.stderr.startswith("error: machine key nothing: no local set")
    with pytest.raises(UserError, match="command publsh: unknown; did you mean publish"):
        commands.run(["publsh"])
