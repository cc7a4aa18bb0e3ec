"""Writes the artifact as one file: rows of sets, sources, environment, licence and citation, with a checksum of each file.

The file is a zip of an RO-Crate 1.1 (https://w3id.org/ro/crate/1.1). The same commit and rows give the same bytes on the same machine."""

import hashlib
import json
import sys
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tqdm import tqdm

from experiments.driver.run_records import run_records
from experiments.published import archive_check, crate
from experiments.published.archive_sources import SETS, TOP, Sources
from experiments.published.crate import Part, Subject
from experiments.published.environment import environment
from xcorr.errors import NOTHING_WRITTEN, Parser, UserError, command, nearest
from xcorr.files import load_toml

EPILOG = """example:
  scripts/archive.sh                                        every published set, into xcorr-bench-VERSION-COMMIT.zip
  scripts/archive.sh nvidia-h200-132-sm-140-gib --output artifact.zip
  scripts/archive.sh --local amd-epyc-2-cores               also what was measured here
  scripts/archive.sh --check artifact.zip                   damaged, missing and extra files

scripts/archive.sh installs the packages that write the description (rocrate, pyyaml) into .cache; --check needs none. A tree
that is not as its commit is refused, and no file is overwritten."""
LOCAL = "results/local"
DRAWN = (".png", ".pdf", ".html", ".damaged", ".part", ".tmp")  # of a local set: drawn again, or no result
SHOWN = 5  # faults that are named


def part(name: str, data: bytes, about: str) -> Part:
    return Part(name, data, hashlib.sha256(data).hexdigest(), about)


def published_files(sources: Sources, keys: Sequence[str]) -> dict[str, list[str]]:
    """Paths from the root of the tracked files of each named published set, of every one where none is named. UserError
    for a set that git does not have."""
    there = sorted(one.name for one in (sources.root / SETS).glob("*") if sources.files_of_set(one.name))
    for key in keys:
        if key not in there:
            raise UserError(f"machine key {key}: no published set in git; {nearest(key, there)}")
    if not there:
        raise UserError(f"{sources.root / SETS}: holds no set; publish one first (scripts/publish.sh)")
    return {f"{SETS}/{key}": sources.files_of_set(key) for key in dict.fromkeys(keys or there)}


def local_files(root: Path, keys: Sequence[str]) -> dict[str, list[str]]:
    """Paths from the root of the files of each named local set. UserError for a set that is not there."""
    there = sorted(one.name for one in (root / LOCAL).glob("*") if one.is_dir())
    found = {}
    for key in dict.fromkeys(keys):
        if key not in there:
            raise UserError(f"machine key {key}: no local set; {nearest(key, there)}")
        files = [one for one in sorted((root / LOCAL / key).rglob("*")) if one.is_file() and one.suffix not in DRAWN]
        names = [one.relative_to(root).as_posix() for one in files if not one.name.startswith(".")]
        if not names:
            raise UserError(f"{root / LOCAL / key}: holds nothing; run an experiment first")
        found[f"{LOCAL}/{key}"] = names
    return found


def gather(sources: Sources, published: Sequence[str], local: Sequence[str]) -> tuple[Subject, list[Part]]:
    """All files of an archive but its description and checksums."""
    files = published_files(sources, published) | local_files(sources.root, local)
    parts = [
        part("sources.tar.gz", sources.packed(), f"sources at commit {sources.commit()}, without the published sets"),
        part("LICENSE", (sources.root / "LICENSE").read_bytes(), "licence"),
        part(
            "CITATION.cff", (sources.root / "CITATION.cff").read_bytes(), "citation of this software and of its sources"
        ),
        part("artifact.md", (sources.root / "docs/artifact.md").read_bytes(), "how to evaluate the artifact"),
    ]
    records = {place: run_records(sources.root / place) for place in files}
    facts = json.dumps(environment(sources.root, records), indent=1, sort_keys=True) + "\n"
    parts.append(part("environment.json", facts.encode(), "versions of programs and packages, machines of the sets"))
    for names in files.values():
        for name in names:
            parts.append(part(f"{TOP}/{name}", (sources.root / name).read_bytes(), Path(name).name))
    about = {f"{TOP}/{place}": f"{place.split('/')[1]} set of the machine {Path(place).name}" for place in files}
    return Subject(sources.commit(), sources.date(), about), parts


def write(target: Path, subject: Subject, parts: list[Part], description: bytes) -> None:
    """Writes the archive. UserError where the target exists, or cannot be written; then nothing is left there."""
    parts = [*parts, part(crate.METADATA, description, "")]
    sums = archive_check.sums_text({one.name: one.sha256 for one in parts})
    try:
        file = target.open("xb")
    except FileExistsError as error:
        raise UserError(f"{target}: exists; name another file with --output, or remove it") from error
    except OSError as error:
        raise UserError(f"{target}: cannot be written: {error.strerror}; name another file with --output") from error
    try:
        with file, zipfile.ZipFile(file, "w") as archive:
            every = sorted([*parts, part(crate.SUMS, sums.encode(), "")], key=lambda one: one.name)
            for one in tqdm(every, desc="archiving", unit="file", leave=False):
                entry = zipfile.ZipInfo(one.name, subject.date.timetuple()[:6])
                entry.external_attr = 0o644 << 16
                entry.compress_type = zipfile.ZIP_STORED if one.name.endswith(".gz") else zipfile.ZIP_DEFLATED
                archive.writestr(entry, one.data)
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UserError(
                f"{target}: cannot be written: {error.strerror}; name another file with --output"
            ) from error
        raise


def check(path: Path) -> int:
    """The command --check: a line, or UserError that names what is wrong."""
    files, found = archive_check.faults(path)
    if found:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise UserError(f"{path}: {', '.join(found[:SHOWN])}{more}; get the archive again")
    print(f"{path}: {files} files, all of them as {crate.SUMS} and {crate.METADATA} say")
    return 0


def run(argv: Sequence[str], root: Path | None = None) -> int:
    parser = Parser(prog="scripts/archive.sh", description=__doc__, epilog=EPILOG)
    add = parser.add_argument
    add("machine_keys", nargs="*", metavar="machine-key", help="published sets (default: all)")
    add("--local", action="append", default=[], metavar="KEY", help="also this local set; repeatable")
    add("--output", type=Path, metavar="FILE", help="where to write (default: xcorr-bench-VERSION-COMMIT.zip, here)")
    add("--check", type=Path, metavar="FILE", help="write nothing, check this archive")
    options = parser.parse_args(argv)
    if options.check:
        if options.machine_keys or options.local or options.output:
            raise UserError("command line: --check takes no other options; see --help")
        return check(options.check)
    sources = Sources(root)
    sources.check()
    version = load_toml(sources.root / "pyproject.toml")["project"]["version"]
    target = options.output or Path(f"xcorr-bench-{version}-{sources.commit()[:12]}.zip")
    if target.exists():
        raise UserError(f"{target}: exists; name another file with --output, or remove it")
    crate.libraries(sources.root)
    subject, parts = gather(sources, options.machine_keys, options.local)
    write(target, subject, parts, crate.metadata(sources.root, subject, parts))
    check(target)
    print(f"SHA-256 of the archive: {hashlib.sha256(target.read_bytes()).hexdigest()}")
    return 0


main = partial(command, run, interrupted=NOTHING_WRITTEN)

if __name__ == "__main__":
    sys.exit(main())
