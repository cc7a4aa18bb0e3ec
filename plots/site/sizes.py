"""How large the figures of the report are."""

import re
from pathlib import Path

from xcorr.errors import UserError

ENLARGED = 1.6  # pixels of the page for a point of a figure


def pixels(path: Path) -> tuple[int, int]:
    """Width and height at which an SVG is shown: its points, enlarged so that its smallest text has 10 pixels."""
    found = re.search(r'<svg [^>]*width="([\d.]+)pt" height="([\d.]+)pt"', path.read_text(encoding="utf-8")[:500])
    if not found:
        raise UserError(f"{path}: is no figure of this project; draw it with scripts/replot.sh")
    return round(ENLARGED * float(found[1])), round(ENLARGED * float(found[2]))
