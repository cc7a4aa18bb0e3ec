"""axe-core, which finds what keeps people from using a page: one script, taken from a Python package that contains it.

The package is pinned by version and checksum. The script lies in .cache, which git ignores.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
from hangs import HANG_S

from xcorr.paths import ROOT

PACKAGE, VERSION, MEMBER = "axe-playwright-python", "0.1.8", "axe_playwright_python/axe.min.js"
SHA256 = "fdd263c998388f1a8e67cad02677e612d946248bd44d163be5e8650ea31f95f8"
SCRIPT = ROOT / ".cache" / f"axe-{VERSION}.min.js"
REQUIRED = os.environ.get("XCORR_REQUIRE_BROWSER") == "1"  # .ci/run sets it


def script() -> Path:
    """The file of axe-core. Where it cannot be had the test is skipped, or fails where a browser is required."""
    if SCRIPT.is_file():
        return SCRIPT
    SCRIPT.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRIPT.parent) as folder:
        wanted = Path(folder, "requirements.txt")
        wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n", encoding="utf-8")
        words = "-m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes"
        command = [sys.executable, *words.split(), "-r", str(wanted), "-d", folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
        wheels = sorted(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            said = f"axe-core: pip cannot download {PACKAGE} {VERSION} ({(done.stderr.strip().splitlines() or ['no file'])[-1]})"
            pytest.fail(said) if REQUIRED else pytest.skip(said)
        ready = Path(folder, SCRIPT.name)
        ready.write_bytes(zipfile.ZipFile(wheels[0]).read(MEMBER))
        os.replace(ready, SCRIPT)  # several processes may do this at once
    return SCRIPT
