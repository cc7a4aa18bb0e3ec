"""The files of this tree, as git knows them."""

from functools import cache
from pathlib import Path

from calls import call

from xcorr.paths import ROOT


def tree() -> list[Path]:
    """Every file that git tracks or would track, relative to the root."""
    listed = call(*"git ls-files -z --cached --others --exclude-standard".split())
    assert listed.returncode == 0, listed.stderr
    return sorted(Path(name) for name in listed.stdout.split("\0") if name and (ROOT / name).is_file())


TREE = tree()


@cache
def text(path: Path) -> str:
    """A file's text; it is read once."""
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")
