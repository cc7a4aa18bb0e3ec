"""What passes a test of a fault: its exit code and its text, both."""

import re
import shlex
import sys

import expect
import pytest
from tree import TREE, text


def told(code: int, text: str) -> list[str]:
    """A program that says `text` and ends with `code`."""
    return [sys.executable, "-c", f"import sys; print({text!r}, file=sys.stderr); sys.exit({code})"]


@pytest.mark.parametrize(
    "code, text, result",
    [
        (1, "first\nFAILED broken_sign: wrong", 0),
        (0, "FAILED broken_sign: wrong", 1),
        (2, "FAILED broken_sign: wrong", 1),
        (1, "error: variant broken_sign: unknown", 1),
        (1, "no FAILED broken_sign: wrong", 1),
        (1, "", 1),
        (77, "skipped: no sanitizer", 77),
    ],
)
def test_exit_code_and_text_are_both_needed(
    capsys: pytest.CaptureFixture[str], code: int, text: str, result: int
) -> None:
    assert expect.main(["1", "^FAILED broken_sign", "--", *told(code, text)]) == result
    printed = capsys.readouterr().out
    assert text in printed and ("NOT AS EXPECTED" in printed) == (result == 1)


def test_a_signal_is_no_exit_code() -> None:
    command = [sys.executable, "-c", "import os; print('FAILED', flush=True); os.abort()"]
    assert expect.main(["1", "FAILED", "--", *command]) == 1, shlex.join(command)


def test_a_program_is_needed() -> None:
    assert expect.main(["1", "FAILED", "--"]) == 2


def test_no_test_passes_by_any_failure() -> None:
    builds = [path for path in TREE if path.name == "meson.build"]
    assert builds and not [str(path) for path in builds if re.search(r"\bshould_fail\b", text(path))]
