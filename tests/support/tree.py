"""The files of this tree, as git knows them."""

import subprocess
from pathlib import Path

from xcorr.paths import ROOT


def tree() -> list[Path]:
    """Every file that git tracks or would track, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return sorted(Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file())


TREE = tree()


def text(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")
