"""A copy of the tree that a test may build in, edit and measure with."""

import shutil
from pathlib import Path

from hangs import HANG_S
from tree import ROOT, TREE


def copy_tree(target: Path) -> Path:
    """Every tracked file but the result sets. Its smoke preset has no limit in time that a loaded machine reaches."""
    for path in TREE:
        if path.parts[0] != "results" or len(path.parts) == 2:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, target / path)
    presets = target / "experiments/presets.toml"
    before, heading, after = presets.read_text().partition("[smoke]")
    comment, newline, settings = after.partition("\n")
    assert heading and "min_timeout_s" not in settings.split("[")[0]
    presets.write_text(f"{before}{heading}{comment}{newline}min_timeout_s = {HANG_S}\n{settings}")
    return target
