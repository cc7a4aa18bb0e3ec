"""The description of an archive as an RO-Crate 1.1: what each file is, its checksum, licence, authors and sources."""

import json
import mimetypes
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from xcorr.errors import UserError
from xcorr.files import load_toml

METADATA, SUMS = "ro-crate-metadata.json", "SHA256SUMS"
VERSION = "1.1"
DESCRIPTION = (
    "Result rows, sources, environment, licence and citation of xcorr-bench. Unpack the archive and, beside it, sources.tar.gz: "
    "the folder xcorr-bench is then the whole tree with its sets. Its docs/artifact.md says what to run. "
    "`sha256sum -c SHA256SUMS` checks every file."
)
TYPES = {"thesis": "Thesis", "website": "WebPage"}  # of schema.org, by the type of a reference; others are articles
LIBRARIES = ("rocrate", "pyyaml")


@dataclass(frozen=True)
class Part:
    """A file of an archive: its path there, content, SHA-256 in hexadecimal digits, and what it is."""

    name: str
    data: bytes
    sha256: str
    about: str


@dataclass(frozen=True)
class Subject:
    """What an archive is of: commit and its date, and of each set its folder in the archive and what it is."""

    commit: str
    date: datetime
    sets: dict[str, str]


def libraries(root: Path) -> tuple[Any, Any]:
    """The modules rocrate.rocrate and yaml. UserError, with the command that installs them, where one is missing."""
    try:
        import yaml
        from rocrate import rocrate
    except ImportError as error:
        wanted = " ".join(load_toml(root / "pyproject.toml")["project"]["optional-dependencies"]["archive"])
        raise UserError(
            f"{error.name}: not installed; use scripts/archive.sh, which installs it, or {sys.executable} -m pip install {wanted}"
        ) from error
    return rocrate, yaml


def metadata(root: Path, subject: Subject, parts: list[Part]) -> bytes:
    """The content of ro-crate-metadata.json; the same parts give the same bytes."""
    rocrate, yaml = libraries(root)
    cited = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    crate = rocrate.ROCrate(version=VERSION)
    crate.name, crate.description, crate.datePublished = cited["title"], DESCRIPTION, subject.date.isoformat()
    top = crate.root_dataset
    top["version"], top["identifier"] = str(cited["version"]), subject.commit

    def context(place: str, kind: str, **more: Any) -> Any:
        return crate.add(rocrate.ContextEntity(crate, place, properties={"@type": kind, **more}))

    crate.license = context(f"https://spdx.org/licenses/{cited['license']}", "CreativeWork", name=cited["license"])
    top["author"] = [context(_local(one["name"]), "Organization", name=one["name"]) for one in cited["authors"]]
    for reference in cited["references"]:
        authors = [context(_local(name), "Person", name=name) for name in map(_name, reference["authors"])]
        place = f"https://doi.org/{reference['doi']}" if "doi" in reference else reference.get("url")
        more = {"datePublished": str(reference["year"])} if "year" in reference else {}
        kind = TYPES.get(reference["type"], "ScholarlyArticle")
        place = place or reference["repository-code"]
        top.append_to("citation", context(place, kind, name=reference["title"], author=authors, **more))
    folders = {
        name: crate.add_dataset(dest_path=name, properties={"name": about}) for name, about in subject.sets.items()
    }
    for part in parts:
        said: dict[str, Any] = {
            "name": part.about,
            "sha256": part.sha256,
            "contentSize": str(len(part.data)),
            "encodingFormat": _kind(part.name),
        }
        if part.name == "sources.tar.gz":
            said |= {"@type": ["File", "SoftwareSourceCode"], "version": subject.commit}
        file = crate.add_file(dest_path=part.name, properties=said)
        for name, folder in folders.items():
            if part.name.startswith(f"{name}/"):
                folder.append_to("hasPart", file)
    crate.add_file(dest_path=SUMS, properties={"name": "SHA-256 of every file", "encodingFormat": "text/plain"})
    return (json.dumps(crate.metadata.generate(), indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _local(name: str) -> str:
    """The id of who has no page: a name within the description."""
    return f"#{quote(name)}"


def _name(author: dict[str, str]) -> str:
    if "name" in author:
        return author["name"]
    return " ".join(author[one] for one in ("given-names", "family-names", "name-suffix") if one in author)


def _kind(name: str) -> str:
    kind, packed = mimetypes.guess_type(name)
    return (
        "application/gzip"
        if packed == "gzip"
        else kind or ("text/plain" if "." not in name else "application/octet-stream")
    )
