"""Pages, sections, terms and source files that comments and pages cite must exist.

A citation is `docs/design.md, Checks`, `docs/design.md, Checks and Time`, `docs/glossary.md, floor`, or the path of a
page or source file from the root.
"""

import re
from pathlib import Path

import pytest
from tree import ROOT, TREE

DESIGN, GLOSSARY = "docs/design.md", "docs/glossary.md"
TEXT = {".cpp", ".hpp", ".cu", ".cuh", ".h", ".in", ".py", ".sh", ".toml", ".md", ".build", ".txt", ""}
# Spelt apart, so that this file does not find itself.
GONE = re.compile("DESIGN" + r"(\.md)?,? section|\bPERFORMANCE" + r":|\bEXPERIMENTS" + r" (of|section)\b")
FOLDERS = "algorithms|docs|experiments|harness|plots|scripts|tests|xcorr"
PATH = re.compile(rf"(?<![\w/.*<>{{}}$-])((?:{FOLDERS})/[\w/.-]*?\.(md|hpp|cpp|cuh|cu|py|sh|toml))\b")
# Tests make trees of their own, the walk-through of README makes a file, and dated pages name what was there then.
OWN_PATHS = ("tests/", "README.md", "docs/evidence/", "docs/notebook/")


def tracked() -> list[str]:
    """Text files that git tracks or would track, without data."""
    return [path.as_posix() for path in TREE if path.suffix in TEXT and path.parts[0] != "results"]


def one_line(text: str) -> str:
    """The text without line breaks and comment markers, so that a citation may go over two lines."""
    return re.sub(r"\s*\n\s*(?://|#|\*)?\s*", " ", text)


def sections(design: str) -> set[str]:
    return set(re.findall(r"^## (.+)$", design, re.MULTILINE))


def terms(glossary: str) -> set[str]:
    return set(re.findall(r"^- \*\*(.+?)\*\*:", glossary, re.MULTILINE))


def cited_after(page: str, text: str, known: set[str]) -> list[tuple[str, bool]]:
    """What follows each `page,` in the text, and whether it starts with known names joined by `and`."""
    names = "|".join(re.escape(name) for name in sorted(known, key=len, reverse=True))
    exact = re.compile(rf"(?:{names})(?: and (?:{names}))*(?!\w)")
    return [
        (text[found.end() : found.end() + 40], exact.match(text, found.end()) is not None)
        for found in re.finditer(re.escape(page) + r"[`)\]]*, ", text)
    ]


def wrong_citations(name: str, text: str) -> list[str]:
    """What the text of the file `name` cites that does not exist."""
    found = [f"gone: {match[0]}" for match in GONE.finditer(text)]
    text = one_line(text)
    for path, kind in PATH.findall(text):
        if (kind == "md" or not name.startswith(OWN_PATHS)) and not (ROOT / path).is_file():
            found.append(f"no file {path}")
    for page, known in ((DESIGN, SECTIONS), (GLOSSARY, TERMS)):
        found += [f"{page} has no '{what}'" for what, right in cited_after(page, text, known) if not right]
    return found


SECTIONS = sections((ROOT / DESIGN).read_text(encoding="utf-8"))
TERMS = terms((ROOT / GLOSSARY).read_text(encoding="utf-8"))


def test_what_is_cited_exists():
    assert len(SECTIONS) >= 8 and len(TERMS) >= 50
    wrong = {}
    for name in tracked():
        if name.endswith((Path(__file__).name, "test_structure.py")):  # they hold the patterns
            continue
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        if found := wrong_citations(name, text):
            wrong[name] = found
    assert not wrong


def test_the_code_cites_every_contract():
    """The sections that code is written against are cited by it, so that a reader finds them."""
    text = " ".join(
        one_line((ROOT / name).read_text(encoding="utf-8", errors="replace"))
        for name in tracked()
        if Path(name).suffix in {".cpp", ".hpp", ".cu", ".py"}
    )
    for section in ("Problem", "Variant contract", "Checks", "Time", "Rows", "Emulation"):
        assert re.search(rf"{re.escape(DESIGN)}, (?:\w+ and )?{section}", text), section


def test_terms_stand_once_in_alphabetical_order():
    found = re.findall(r"^- \*\*(.+?)\*\*:", (ROOT / GLOSSARY).read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) == len({term.lower() for term in found})
    assert found == sorted(found, key=str.lower)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("// The bounds (DESIGN section 4).", "gone"),
        ("a row (DESIGN.md section 6)", "gone"),
        ("every floor (PERFORMANCE: ceilings)", "gone"),
        ("(EXPERIMENTS of the published evaluation)", "gone"),
        ("see docs/absent.md", "no file"),
        ("// in algorithms/device/absent.hpp", "no file"),
        ("// bounds (docs/design.md, Chekcs)", "has no 'Chekcs)'"),
        ("// bounds (docs/design.md,\n// Chekcs)", "has no"),
        ("// a rate (docs/glossary.md, cieling)", "has no"),
    ],
)
def test_wrong_citations_are_found(text, part):
    found = wrong_citations("harness/some.hpp", text)
    assert any(part in one for one in found), found


@pytest.mark.parametrize(
    "text",
    [
        "(docs/design.md, Checks)",
        "(docs/design.md, Checks and Time).",
        "// (docs/design.md,\n//  Variant contract)",
        "a rate (docs/glossary.md, ceiling)",
        "docs/README.md says",
        "// harness/problem/problem.hpp",
    ],
)
def test_right_citations_pass(text):
    assert wrong_citations("harness/some.hpp", text) == []
