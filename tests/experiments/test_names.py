"""python3 -m experiments: the list of commands, and a command by its short name."""

import importlib.util
import sys

import pytest
from calls import call
from tree import ROOT

from experiments import __main__ as commands
from xcorr.errors import UserError


def test_the_list_has_every_command_with_a_line(capsys):
    assert commands.run([]) == 0
    text = capsys.readouterr().out
    found = commands.commands()
    assert {"run", "publish", "auto_table", "sets", "builds", "rivals", "resources", "ebsd", "photo"} <= set(found)
    modules = [
        path
        for package in commands.PACKAGES
        for path in (ROOT / "experiments" / package).rglob("*.py")
        if '__name__ == "__main__"' in path.read_text()
    ]
    assert len(found) == len(modules), "two commands have one name, or one is not listed"
    for name, (module, about) in found.items():
        assert name in text and about and importlib.util.find_spec(module), name


def test_a_command_runs_by_its_short_name():
    done = call(sys.executable, *"-m experiments auto_table --local nothing".split())
    assert done.returncode == 2 and done.stderr.startswith("error: machine key nothing: no local set")
    with pytest.raises(UserError, match="command publsh: unknown; did you mean publish"):
        commands.run(["publsh"])
