"""The report of the published sets, read once, and a browser that looks at it."""

import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hangs import HANG_S

from plots.site import data
from xcorr.paths import ROOT

REPORT = ROOT / "results" / "report"
CHROMIUM = shutil.which("chromium")
NODE = shutil.which("node")
REQUIRED = os.environ.get("XCORR_REQUIRE_BROWSER") == "1"  # .ci/run sets it: what lacks is a failure there
needs_node = pytest.mark.skipif(NODE is None and not REQUIRED, reason="node is not installed")
needs_chromium = pytest.mark.skipif(CHROMIUM is None and not REQUIRED, reason="chromium is not installed")
# The end of a script of a page: writes the value `found` into the document, where `probe` reads it.
WRITE = "const out = document.createElement('pre'); out.id = 'probe'; out.textContent = JSON.stringify(found); document.body.append(out);"


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


def probed(page: Path, folder: Path, script: str, *files: str) -> Path:
    """A copy of a page with the scripts at the addresses `files` and a script at its end; links are those of the page."""
    text = page.read_text(encoding="utf-8").replace("<head>", f'<head>\n<base href="{REPORT.as_uri()}/">')
    sources = "".join(f'<script src="{one}"></script>' for one in files)
    copy = folder / "probed.html"
    copy.write_text(text.replace("</body>", f"{sources}<script>{script}</script></body>"), encoding="utf-8")
    return copy


def in_frames(page: Path, widths: Sequence[int]) -> Path:
    """A page that shows another one in frames of these widths, and writes the list of the messages that these send, one each. A window
    is never narrower than 500 pixels."""
    frames = "".join(
        f"<iframe src='{page.name}' style='border:0;width:{one}px;height:900px'></iframe>" for one in widths
    )
    listen = f"const found = []; addEventListener('message', (e) => {{found.push(e.data); if (found.length === {len(widths)}) {{{WRITE}}}}});"
    frame = page.with_name("frame.html")
    frame.write_text(f"<body><script>{listen}</script>{frames}</body>", encoding="utf-8")
    return frame


def probe(dom: str) -> Any:
    """The value that WRITE wrote."""
    found = re.search(r'<pre id="probe">(.*?)</pre>', dom, re.DOTALL)
    assert found, dom[-500:]
    return json.loads(html.unescape(found[1]))
