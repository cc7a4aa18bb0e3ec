"""The mutations as data, and folders that hold what a mutation edits."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from xcorr.paths import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = Path(__file__).resolve().parent
PLACES = ("cpu", "emulation", "ptx", "card")
SHARED = {"units", "caught", "file"}  # fields that a group states for its mutants
FIELDS = SHARED | {"name", "equivalent", "find", "replace", "edits"}


class Mistake(Exception):
    """Something wrong with the data, the build folder or the options, in one line."""


@dataclass(frozen=True)
class Edit:
    file: str
    find: str
    replace: str


@dataclass(frozen=True)
class Mutant:
    name: str
    units: tuple[str, ...]  # ids of the variants that are compiled with the edits
    edits: tuple[Edit, ...]
    caught: tuple[str, ...] = ()  # places that must catch it
    equivalent: str = ""  # why it changes nothing that a caller can see
    source: str = field(default="", compare=False)  # where it is written down


def _mutant(group: dict, entry: dict, source: Path) -> Mutant:
    name = entry.get("name", "a mutant without a name")

    def refuse(cause: str) -> Mistake:
        return Mistake(f"{source.name}: {name}: {cause}")

    shared = {key: value for key, value in group.items() if key != "mutant"}
    if unknown := (shared.keys() | entry.keys()) - FIELDS or shared.keys() - SHARED:
        raise refuse(f"unknown field {', '.join(sorted(unknown))}")
    if "equivalent" in entry:
        shared.pop("caught", None)
    entry = {**shared, **entry}
    edits = [{**entry, **edit} for edit in entry.get("edits", [entry])]
    if (
        "name" not in entry
        or not entry.get("units")
        or not all({"file", "find", "replace"} <= edit.keys() for edit in edits)
    ):
        raise refuse("name, units, file, find and replace are needed")
    if bool(entry.get("caught")) == bool(entry.get("equivalent")):
        raise refuse("either `caught` names a place or `equivalent` gives the argument")
    if strange := set(entry.get("caught", [])) - set(PLACES):
        raise refuse(f"{', '.join(sorted(strange))} is no place; places are {', '.join(PLACES)}")
    return Mutant(
        name,
        tuple(entry["units"]),
        tuple(Edit(edit["file"], edit["find"], edit["replace"]) for edit in edits),
        tuple(entry.get("caught", [])),
        entry.get("equivalent", ""),
        source.name,
    )


def load(folder: Path = DATA) -> list[Mutant]:
    """All mutants of the TOML files of a folder; a name occurs once."""
    found: dict[str, Mutant] = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            groups = tomllib.loads(path.read_text(encoding="utf-8")).get("group", [])
        except tomllib.TOMLDecodeError as error:
            raise Mistake(f"{path.name}: {error}") from error
        for mutant in (_mutant(group, entry, path) for group in groups for entry in group.get("mutant", [])):
            if mutant.name in found:
                raise Mistake(f"{path.name}: {mutant.name}: the name is taken by one of {found[mutant.name].source}")
            found[mutant.name] = mutant
    if not found:
        raise Mistake(f"{folder}: no *.toml with mutants")
    return list(found.values())


def edited(mutant: Mutant, root: Path = ROOT) -> dict[str, str]:
    """Content of every file that the mutant edits. Each text must occur exactly once."""
    files: dict[str, str] = {}
    for edit in mutant.edits:
        if not (root / edit.file).is_file():
            raise Mistake(f"{mutant.source}: {mutant.name}: {edit.file}: there is no such file")
        text = files.get(edit.file) or (root / edit.file).read_text(encoding="utf-8")
        count = text.count(edit.find)
        if count != 1:
            raise Mistake(
                f"{mutant.source}: {mutant.name}: {edit.file}: the text to find occurs {count} times, not once"
            )
        files[edit.file] = text.replace(edit.find, edit.replace)
    return files


def write_overlay(mutant: Mutant, folder: Path, root: Path = ROOT) -> None:
    """The edited files below `folder`, which goes first on the include path."""
    for name, text in edited(mutant, root).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def sources(root: Path = ROOT) -> dict[str, Path]:
    """Source file of every variant by its id, relative to the root."""
    files: Iterable[Path] = sorted((root / "algorithms").rglob("*.c[up]*"))
    return {path.stem: path.relative_to(root) for path in files if path.suffix in (".cu", ".cpp")}
