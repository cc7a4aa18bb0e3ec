"""Finds what lies in the folders of the sources, experiments/<source>/.

A source is a paper, with the thesis or program that belongs to it, or `beyond`, which is what no paper has. Nothing lists
them: a folder that is added is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from xcorr.errors import UserError
from xcorr.files import load_toml
from xcorr.paths import ROOT

FOLDER = ROOT / "experiments"
SETTINGS = ("presets", "rates")  # of all experiments
PARTS = ("claims", "figures", "baselines")  # of a source; any other TOML file of its folder is an experiment


def _files(folder: Path) -> list[Path]:
    """TOML files of the folder and of the folders in it, by file name."""
    return sorted([*folder.glob("*.toml"), *folder.glob("*/*.toml")], key=lambda path: (path.name, path))


def experiments(folder: Path = FOLDER) -> dict[str, Path]:
    """The file of each experiment by name, which is the stem of the file. UserError where two have one name."""
    found: dict[str, Path] = {}
    for path in _files(folder):
        if path.stem not in (*SETTINGS, *PARTS):
            if path.stem in found:
                raise UserError(f"{path}: {found[path.stem]} has the same name; rename one of them")
            found[path.stem] = path
    return found


def parts(name: str, folder: Path = FOLDER) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Path and content of the files of one of PARTS, by source."""
    return ((path, load_toml(path)) for path in _files(folder) if path.stem == name)


def part(source: str, name: str) -> dict[str, Any]:
    """The content of one of PARTS of a source. UserError when it cannot be read."""
    return load_toml(FOLDER / source / f"{name}.toml")
