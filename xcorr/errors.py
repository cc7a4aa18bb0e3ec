"""User errors, hints, and how every command ends."""

import argparse
import difflib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from xcorr.paths import RESULTS

INTERRUPTED = 130  # exit code after Ctrl-C
NOTHING_WRITTEN = "interrupted; no output was written"


class UserError(Exception):
    """Ends a command with one line `error: <thing>: <cause>; <way out>` and exit code 2."""


class LibraryError(Exception):
    """An error of the library or of its loading, in one line for the user."""


class NotEnqueued(LibraryError):
    """A variant that takes no arrays of a device; another one may."""


def warn(message: str) -> None:
    """One line on stderr."""
    print(f"warning: {message}", file=sys.stderr)


class Parser(argparse.ArgumentParser):
    """A command line that raises UserError. Description and epilog are printed without rewrapping."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": argparse.RawDescriptionHelpFormatter, **options})

    def add_results(self) -> None:
        """The option --results."""
        self.add_argument(
            "--results", type=Path, default=RESULTS, metavar="DIR", help="root of the results (default: results)"
        )

    def error(self, message: str) -> Any:
        raise UserError(f"command line: {message}; see --help")


def command(run: Callable[[Sequence[str]], int], argv: Sequence[str] | None = None, interrupted: str = "") -> int:
    """Exit code of `run(argv)`; `argv` defaults to the arguments of this process.

    2 after one line on stderr about a UserError, LibraryError or MemoryError; 1 where stdout is a closed pipe. Ctrl-C raises
    KeyboardInterrupt, or prints `interrupted` and returns INTERRUPTED.
    """
    try:
        code = run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()  # a closed pipe cannot be caught when Python flushes at exit
        return code
    except (UserError, LibraryError) as error:
        message = " ".join(str(error).splitlines())
    except MemoryError:
        message = "memory: exhausted; use fewer or smaller matrices, or a smaller window"
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        if not interrupted:
            raise
        print(f"error: {interrupted}", file=sys.stderr)
        return INTERRUPTED
    print(f"error: {message}", file=sys.stderr)
    return 2


def nearest(name: str, valid: Iterable[str]) -> str:
    """A hint: the valid word closest to `name`, or all valid words where none is close."""
    words = sorted(valid)
    close = difflib.get_close_matches(name, words, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]}?"
    return "valid: " + (", ".join(words) if words else "none")


def choose(what: str, names: Iterable[str], valid: Iterable[str]) -> list[str]:
    """`names` in order, without repetition. UserError for an unknown name."""
    known, chosen = list(valid), list(dict.fromkeys(names))
    for name in chosen:
        if name not in known:
            raise UserError(f"{what} {name}: unknown; {nearest(name, known)}")
    return chosen
