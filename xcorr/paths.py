"""Where the project and its compiled programs lie."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"


def build_directory() -> Path:
    """The folder of the compiled programs: env XCORR_BUILD, else <root>/build."""
    return Path(os.environ.get("XCORR_BUILD") or ROOT / "build")
