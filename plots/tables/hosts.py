"""The result set of the CPU that a GPU is attached to, for claims that compare both."""

from functools import lru_cache
from pathlib import Path

import plots
from plots.tidy import ResultSet, load
from xcorr.files import load_toml

DATA = Path(plots.__file__).with_name("machines.toml")
set_in = lru_cache(load)


def host_of(results: ResultSet) -> ResultSet | None:
    """The set that `[hosts]` of machines.toml names for this one; None if it names none or the set is not there. Raises
    UserError when a published file of it is damaged."""
    key = load_toml(DATA)["hosts"].get(results.key)
    folder = results.folder.parent / str(key)
    return set_in(folder, str(key), results.kind) if key and folder.is_dir() else None
