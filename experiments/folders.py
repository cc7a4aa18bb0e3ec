"""Finds the files of the sources, experiments/<source>/. A source is a paper with its thesis or program, or `beyond`.

There is no list of sources: a folder that is added is found. `python3 -m experiments.folders` prints a line for each
program that `inputs.toml` of a source names: its kind, which is the key in the file, and its module.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from xcorr.errors import UserError, choose, command
from xcorr.files import load_toml
from xcorr.paths import ROOT

FOLDER = ROOT / "experiments"
SETTINGS = ("presets", "rates")  # of all experiments
# Of a source; any other TOML file of its folder is an experiment.
PARTS = ("claims", "evidence", "figures", "baselines", "inputs")
PROGRAMS = ("input", "reading")  # keys of inputs.toml


def _files(folder: Path) -> list[Path]:
    """TOML files of the folder and of its direct subfolders, sorted by file name."""
    return sorted([*folder.glob("*.toml"), *folder.glob("*/*.toml")], key=lambda path: (path.name, path))


def experiments(folder: Path = FOLDER) -> dict[str, Path]:
    """The file of each experiment by name, which is the file stem. UserError where two files have one name."""
    found: dict[str, Path] = {}
    for path in _files(folder):
        if path.stem not in (*SETTINGS, *PARTS):
            if path.stem in found:
                raise UserError(f"{path}: {found[path.stem]} has the same name; rename one of them")
            found[path.stem] = path
    return found


def parts(name: str, folder: Path = FOLDER) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Path and content of the file `name`, one of PARTS, of each source."""
    return ((path, load_toml(path)) for path in _files(folder) if path.stem == name)


def part(source: str, name: str) -> dict[str, Any]:
    """The content of the file `name`, one of PARTS, of a source. UserError where it cannot be read."""
    return load_toml(FOLDER / source / f"{name}.toml")


def programs(folder: Path = FOLDER) -> list[tuple[str, str]]:
    """(key, module) of each program in the files inputs.toml. UserError for an unknown key."""
    found = []
    for path, raw in parts("inputs", folder):
        for kind in choose(f"{path}: key", raw, PROGRAMS):
            found += [(kind, module) for module in raw[kind]]
    return found


def run(_: Sequence[str]) -> int:
    print("\n".join(" ".join(one) for one in programs()))
    return 0


if __name__ == "__main__":
    sys.exit(command(run))
