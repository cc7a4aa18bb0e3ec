"""All three commands: closed pipes, Ctrl-C, memory, and mistakes end in a line at most."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hangs import HANG_S
from scipy_library import ScipyLibrary, refused

from xcorr.commands import autocorr, correlate, piv
from xcorr.paths import ROOT

COMMANDS = {"xcorr": (correlate, []), "autocorr": (autocorr, ["autocorr"]), "piv": (piv, ["piv"])}


def words_of(name, save):
    frame = save("f.npy", np.random.default_rng(1).normal(size=(64, 64)))
    return [*COMMANDS[name][1], frame, *([] if name == "autocorr" else [frame])]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("error, code, said", [(KeyboardInterrupt, 130, "interrupted"), (MemoryError, 2, "memory")])
def test_ctrl_c_and_memory_end_in_a_line(name, save, capsys, monkeypatch, error, code, said):
    def ends(*_):
        raise error

    monkeypatch.setattr(COMMANDS[name][0], "run", ends)
    assert correlate.main(words_of(name, save), ScipyLibrary()) == code
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1 and said in err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_closed_pipe_is_no_error(name, save, tmp_path):
    """In a process of its own, whose output nobody reads: the pipe is closed before it starts."""
    code = "import sys; from xcorr.commands import correlate; "
    code += f"module = __import__('{COMMANDS[name][0].__name__}', fromlist=['run']); "
    code += "module.run = lambda *_: (print('x' * 100000), 0)[1]; sys.exit(correlate.main(sys.argv[1:], object()))"
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", code, *words_of(name, save)]
    options = {"env": {**os.environ, "PYTHONPATH": str(ROOT)}, "text": True, "timeout": HANG_S}
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False, **options)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_an_empty_precision_is_none(save, capsys):
    path = save("l.npy", np.ones((4, 4)))
    assert "names none" in refused(capsys, path, path, "--precision=")
