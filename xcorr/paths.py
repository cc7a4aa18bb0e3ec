"""Where the project and its compiled programs lie, in a tree and in an installed package."""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent
INSTALLED = not (ROOT / "meson.build").is_file()
RESULTS = (PACKAGE if INSTALLED else ROOT) / "results"
PKG_CONFIG = PACKAGE / "lib" / "pkgconfig"  # of an installed package; it names the header and the library


def build_directory() -> Path:
    """The folder of the compiled programs: env XCORR_BUILD, else that of an installed package, else <root>/build."""
    return Path(os.environ.get("XCORR_BUILD") or (PACKAGE / "lib" if INSTALLED else ROOT / "build"))


def set_folder(results: Path, kind: str, key: str) -> Path:
    """The folder of a machine's set in these results. An installed package is read-only: its local sets lie in the user's
    data folder."""
    if INSTALLED and kind == "local" and results == RESULTS:
        from platformdirs import user_data_path  # a tree does without

        results = user_data_path("xcorr-bench") / "results"
    return results / kind / key
