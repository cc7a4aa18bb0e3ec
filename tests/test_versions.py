"""The version of the project stands in four files."""

import re

from tree import text


def test_all_files_have_one_version() -> None:
    patterns = {
        "meson.build": r"version: '([^']+)', license",
        "pyproject.toml": r'^version = "([^"]+)"',
        "CITATION.cff": r"^version: (\S+)",
        "CHANGELOG.md": r"^## (\S+)",
    }
    found = {path: re.search(pattern, text(path), re.MULTILINE) for path, pattern in patterns.items()}
    assert len({match and match[1] for match in found.values()}) == 1, found
