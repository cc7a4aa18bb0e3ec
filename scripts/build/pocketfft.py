#!/usr/bin/env python3
"""Prints the path of pocketfft's header, which a library with -Dfftw=loaded is compiled with, or the licence in it.

Looked for in FOLDER when one is given, else in /usr/include and /usr/local/include, else in the Python package mlx-cpu,
a requirement of the build in pyproject.toml: of the packages of the index, its wheel has the header. That header is
taken only if it is the known one.

  pocketfft.py path [FOLDER]     the header, pocketfft_hdronly.h or pocketfft.h
  pocketfft.py licence HEADER    the comment at its head
Example: scripts/build/pocketfft.py path ~/pocketfft
"""

import hashlib
import sys
from importlib.util import find_spec
from pathlib import Path

NAMES = ("pocketfft_hdronly.h", "pocketfft.h")
FOLDERS = ("/usr/include", "/usr/local/include")
PACKAGE, BELOW = "mlx", "include/mlx/3rdparty"
KNOWN = "0eaea21304bf324639ff11022ee63faf48a8fab64afe5c3c2d1efefbe1d7dfa6"  # of mlx-cpu 0.32.4


def header_in(folder: Path) -> Path | None:
    return next((folder / name for name in NAMES if (folder / name).is_file()), None)


def in_package() -> Path | None:
    """The header of the installed package. SystemExit if it is another one than the known."""
    spec = find_spec(PACKAGE)
    for place in spec.submodule_search_locations or () if spec else ():
        found = header_in(Path(place) / BELOW)
        if found:
            if hashlib.sha256(found.read_bytes()).hexdigest() != KNOWN:
                sys.exit(
                    f"error: {found}: its checksum is not the known one; install mlx-cpu as pyproject.toml names it"
                )
            return found
    return None


def header(folder: str) -> Path:
    """SystemExit with the way out where there is none."""
    if folder:
        found = header_in(Path(folder))
        if found is None:
            sys.exit(f"error: pocketfft: no {' or '.join(NAMES)} in {folder}; name the folder that holds it")
        return found
    found = next(filter(None, map(header_in, map(Path, FOLDERS))), None) or in_package()
    if found is None:
        sys.exit(
            "error: pocketfft: no header is found; pip install the mlx-cpu of pyproject.toml, or set -Dpocketfft=FOLDER"
        )
    return found


def licence(text: str) -> str:
    """The first comment. SystemExit where it names no licence."""
    comment = text.partition("/*")[2].partition("*/")[0].strip()
    if "Redistribution" not in comment:
        sys.exit("error: pocketfft: the header does not begin with its licence; take the one of its authors")
    return comment


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["path"] and len(arguments) <= 2:
        print(header("".join(arguments[1:])).resolve())
    elif arguments[:1] == ["licence"] and len(arguments) == 2:
        print(licence(Path(arguments[1]).read_text(encoding="utf-8")))
    else:
        print(__doc__.strip())
        return 0 if arguments in (["--help"], ["-h"]) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
