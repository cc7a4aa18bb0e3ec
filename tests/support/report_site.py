"""The report of the published sets, read once, and a browser that looks at it."""

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from hangs import HANG_S

from plots.site import data
from xcorr.paths import ROOT

REPORT = ROOT / "results" / "report"
CHROMIUM = shutil.which("chromium")
NODE = shutil.which("node")


@cache
def answers() -> dict[str, Any]:
    """What data/answers.js of the committed report has."""
    return data.read((REPORT / "data" / "answers.js").read_text(encoding="utf-8"))


@cache
def lines() -> list[dict[str, Any]]:
    """Its lines by name of column."""
    found = answers()
    return [dict(zip(found["columns"], one)) for one in found["lines"]]


def pages() -> list[Path]:
    return sorted(REPORT.glob("*.html"))


def browse(page: Path, folder: Path, width: int = 1280) -> tuple[str, str]:
    """The document of a page after its scripts ran, in a window of `width`, and what the console said."""
    words = "--headless --no-sandbox --disable-gpu --virtual-time-budget=20000 --dump-dom --enable-logging=stderr --v=0"
    own = [f"--window-size={width},1000", f"--user-data-dir={folder / 'profile'}", page.as_uri()]
    done = subprocess.run([str(CHROMIUM), *words.split(), *own], capture_output=True, text=True, timeout=HANG_S)
    return done.stdout, "\n".join(re.findall(r"CONSOLE.*", done.stderr))


def evaluate(script: str) -> Any:
    """The JSON value of a script that runs after the data and chooser.js, without a page, in node."""
    whole = [
        "globalThis.window = globalThis;",
        *((REPORT / name).read_text(encoding="utf-8") for name in ("data/answers.js", "chooser.js")),
        f"console.log(JSON.stringify({script}));",
    ]
    done = subprocess.run([str(NODE), "-"], input="\n".join(whole), capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
