"""Which result sets there are, and which of them a command line means."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from plots import tidy
from xcorr.errors import UserError, nearest

KINDS = ("published", "local")


def available(results: Path) -> dict[str, list[str]]:
    """Machine keys with at least one file of rows, by kind."""
    found: dict[str, list[str]] = {}
    for kind, pattern in zip(KINDS, ("*.csv.gz", "*/*.csv.gz")):
        folders = sorted((results / kind).glob("*")) if (results / kind).is_dir() else []
        found[kind] = [f.name for f in folders if any(f.glob(pattern))]
    return found


def choose(results: Path, keys: Sequence[str], local: bool) -> list[tuple[str, str]]:
    """(kind, key) of the sets that are meant: those named, else every published one, else the only local one.
    Raises UserError naming what there is."""
    there = available(results)
    kinds = ("local",) if local else KINDS
    if keys:
        chosen = []
        for key in keys:
            kind = next((k for k in kinds if key in there[k]), None)
            if kind is None:
                known = sorted({name for k in kinds for name in there[k]})
                raise UserError(f"machine key {key}: no {' or '.join(kinds)} results; {nearest(key, known)}")
            chosen.append((kind, key))
        return chosen
    if there["published"] and not local:
        return [("published", key) for key in there["published"]]
    if len(there["local"]) == 1:
        return [("local", there["local"][0])]
    if there["local"]:
        raise UserError(f"machine key: several local sets; name one of {', '.join(there['local'])}")
    raise UserError(f"{results}: no results; measure first (python3 -m experiments.driver.run --help)")


def loaded(results: Path, keys: Sequence[str], local: bool = False) -> Iterator[tidy.ResultSet]:
    """The sets that `choose` says, read one by one."""
    for kind, key in choose(results, keys, local):
        yield tidy.load(results / kind / key, key, kind)
