"""Mistakes of the user, the help that goes with them, and what every command does about them."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from xcorr.paths import RESULTS


class UserError(Exception):
    """Ends a command in one line `error: <thing>: <cause>; <way out>` and exit code 2."""


class LibraryError(Exception):
    """What the library, or its loading, refuses; one line, fit for the user."""


def warn(message: str) -> None:
    """One line on stderr."""
    print(f"warning: {message}", file=sys.stderr)


class Parser(argparse.ArgumentParser):
    """A command line whose mistakes end as all others of the user do; description and epilog are printed as they are."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": argparse.RawDescriptionHelpFormatter, **options})

    def add_results(self) -> None:
        """The option --results."""
        self.add_argument(
            "--results", type=Path, default=RESULTS, metavar="DIR", help="root of the results (default: results)"
        )

    def error(self, message: str) -> Any:
        raise UserError(f"command line: {message}; see --help")


def command(run: Callable[[Sequence[str]], int], argv: Sequence[str] | None = None) -> int:
    """The exit code of `run` on `argv`, by default the words of this process; 2 after one line about a UserError."""
    try:
        return run(sys.argv[1:] if argv is None else argv)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def nearest(name: str, valid: Iterable[str]) -> str:
    """A hint that names the valid word closest to `name`, or all of them when none is close."""
    words = sorted(valid)
    close = difflib.get_close_matches(name, words, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]}?"
    return "valid: " + (", ".join(words) if words else "none")


def choose(what: str, names: Iterable[str], valid: Iterable[str]) -> list[str]:
    """`names` without repetition, in order; UserError with the nearest match on an unknown one."""
    known = list(valid)
    chosen: list[str] = []
    for name in names:
        if name not in known:
            raise UserError(f"{what} {name}: unknown; {nearest(name, known)}")
        if name not in chosen:
            chosen.append(name)
    return chosen
