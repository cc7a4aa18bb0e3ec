"""Mistakes of the user, and the help that goes with them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Ends a command in one line `error: <thing>: <cause>; <way out>` and exit code 2."""


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
