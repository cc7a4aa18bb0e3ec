"""Programs and commands that tests call, and the one line in which these refuse."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from hangs import HANG_S

from xcorr.paths import ROOT


def call(
    *words: object, cwd: str | Path = ROOT, env: dict[str, str] | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program that reads nothing to its end. `more`: variables beside those of `env`, or of this process."""
    environment = {**(os.environ if env is None else env), **more}
    command = [str(word) for word in words]
    pipes = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    return subprocess.run(command, cwd=cwd, env=environment, timeout=HANG_S, **pipes)


def only_error(text: str) -> str:
    """The only line of what was said on stderr, which must be an error."""
    assert text.startswith("error: ") and text.count("\n") == 1, text
    return text.rstrip("\n")


def error_of(capsys: pytest.CaptureFixture[str]) -> str:
    """The error of a command that has run in this process and said nothing else on stderr."""
    return only_error(capsys.readouterr().err)


def one_line(part: str) -> str:
    """A pattern of a message of one line with this part."""
    return rf"^.*{re.escape(part)}.*\Z"
