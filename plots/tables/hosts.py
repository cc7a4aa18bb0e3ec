"""Result sets of other machines, for claims that compare them with one: the CPU that a GPU is attached to, or a published set by name."""

from functools import lru_cache
from pathlib import Path

import plots
from plots.tidy import ResultSet, load
from xcorr.files import load_toml
from xcorr.paths import RESULTS

DATA = Path(plots.__file__).with_name("machines.toml")
set_in = lru_cache(load)


def host_of(results: ResultSet) -> ResultSet | None:
    """The set that `[hosts]` of machines.toml names for this one; None if it names none or the set is not there. Raises
    UserError when a published file of it is damaged."""
    key = load_toml(DATA)["hosts"].get(results.key)
    folder = results.folder.parent / str(key)
    return set_in(folder, str(key), results.kind) if key and folder.is_dir() else None


def published(results: ResultSet, key: str) -> ResultSet | None:
    """The published set `key`, beside this one or in the repository; None where there is none."""
    folders = [path / key for path in (results.folder.parent, RESULTS / "published")]
    folder = next((path for path in folders if path.is_dir()), None)
    return None if folder is None else set_in(folder, key, "published")
