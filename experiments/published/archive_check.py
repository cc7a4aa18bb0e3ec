"""Compares the files of an archive with its checksums and its description."""

import hashlib
import json
import re
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

from tqdm import tqdm

from experiments.published.crate import METADATA, SUMS
from xcorr.errors import UserError

SUM = re.compile(r"([0-9a-f]{64})  (\S.*)")
CHUNK = 1 << 20
MOST_TEXT = 64 << 20  # bytes of the description and of the list of checksums


def sums_text(sums: dict[str, str]) -> str:
    """The content of SHA256SUMS, as sha256sum reads it, of SHA-256 by name."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))


def faults(path: Path) -> tuple[int, list[str]]:
    """The number of files of an archive, and a phrase for each file that is damaged, missing or extra. UserError where
    the archive cannot be read or has no checksums."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _faults(path, archive)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}; name an archive that scripts/archive.sh wrote") from error
    except zipfile.BadZipFile as error:
        raise UserError(f"{path}: no zip file, or cut off ({error}); get the archive again") from error


def _faults(path: Path, archive: zipfile.ZipFile) -> tuple[int, list[str]]:
    names = Counter(archive.namelist())
    found = [f"{name} is there {times} times" for name, times in names.items() if times > 1]
    sums = _sums(path, archive)
    found += [f"{name} is missing" for name in sorted(sums.keys() - names.keys())]
    found += [f"{name} is extra" for name in sorted(names.keys() - sums.keys() - {SUMS})]
    present = sorted(sums.keys() & names.keys())
    for name in tqdm(present, desc="checking", unit="file", leave=False):
        if digest(archive, name) != sums[name]:
            found.append(f"{name} is damaged")
    if not found:
        found = _undescribed(archive, sums)
    return len(names), found


def digest(archive: zipfile.ZipFile, name: str) -> str:
    """SHA-256 of a file of the archive; "" where it cannot be unpacked."""
    found = hashlib.sha256()
    try:
        with archive.open(name) as file:
            while data := file.read(CHUNK):
                found.update(data)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
        return ""
    return found.hexdigest()


def _text(path: Path, archive: zipfile.ZipFile, name: str) -> str:
    try:
        with archive.open(name) as file:
            return file.read(MOST_TEXT).decode("utf-8")
    except KeyError as error:
        raise UserError(f"{path}: has no {name}, so it is no archive of scripts/archive.sh; name one") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {name} is damaged ({error}); get the archive again") from error


def _sums(path: Path, archive: zipfile.ZipFile) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _text(path, archive, SUMS).splitlines():
        match = SUM.fullmatch(line)
        if match is None or match[2] in found:
            raise UserError(f"{path}: {SUMS} is damaged at '{line[:80]}'; get the archive again")
        found[match[2]] = match[1]
    return found


def _undescribed(archive: zipfile.ZipFile, sums: dict[str, str]) -> list[str]:
    """Files that the description leaves out or says otherwise. All files are as their checksums say."""
    if METADATA not in sums:
        return [f"{METADATA} is missing"]
    with archive.open(METADATA) as file:
        graph = json.loads(file.read(MOST_TEXT))["@graph"]
    said = {unquote(one["@id"]): one.get("sha256") for one in graph}
    return [
        f"{name} is not as {METADATA} says"
        for name, known in sorted(sums.items())
        if name != METADATA and said.get(name) != known
    ]
