#!/usr/bin/env python3
"""Runs clang-tidy with the checks of .clang-tidy over harness/ and the CPU variants, each as a build compiles it, on all cores.

  clang_tidy.py PROGRAM BUILD [FILE...]   FILE: only these of harness/ and algorithms/; exit 1 where something is found
Example: scripts/build/clang_tidy.py clang-tidy build harness/problem/views.cpp
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def units_of(build: Path) -> dict[Path, dict[str, Any]]:
    """Of each unit its first command, by the file that it was written in. What tests compile again is left out."""
    found: dict[Path, dict[str, Any]] = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        file = Path(entry["directory"], entry["file"]).resolve()
        if file.suffix == ".cpp" and file.parent == build:  # a stamped variant (stamp_sources.py)
            written = file.read_text(encoding="utf-8").rpartition('#include "')[2].partition('"')[0]
            found.setdefault(ROOT / written, entry)
        elif file.suffix == ".cpp" and ROOT / "harness" in file.parents:
            found.setdefault(file, entry)
    return found


def omp_header() -> str:
    """omp.h of GCC without the attribute that clang does not know; empty where there is none."""
    asked = ["c++", "-print-file-name=include/omp.h"]
    path = Path(subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip())
    return path.read_text(encoding="utf-8").replace("__malloc__ (omp_free)", "__malloc__") if path.is_file() else ""


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print((__doc__ or "").strip())
        return 0 if arguments in (["--help"], ["-h"]) else 2
    program, build = arguments[0], Path(arguments[1]).resolve()
    try:
        units = units_of(build)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {build}: names no commands of a build ({error}); run scripts/build.sh")
    wanted = [Path(name).resolve() for name in arguments[2:]] or sorted(units)
    if absent := [str(file) for file in wanted if file not in units]:
        sys.exit(
            f"error: {absent[0]}: no unit of harness/ or the CPU variants of {build}; build again, or leave it out"
        )
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        Path(folder, "compile_commands.json").write_text(json.dumps([units[file] for file in wanted]), encoding="utf-8")
        Path(folder, "omp.h").write_text(omp_header(), encoding="utf-8")
        options = ["-p", folder, "--quiet", f"--config-file={ROOT / '.clang-tidy'}", f"--extra-arg=-isystem{folder}"]

        def check(file: Path) -> int:
            place = Path(units[file]["directory"], units[file]["file"]).resolve()
            done = subprocess.run([program, *options, str(place)], capture_output=True, text=True, check=False)
            if done.returncode:
                print(done.stdout or done.stderr, end="", flush=True)
            return done.returncode

        if any(list(pool.map(check, wanted))):
            sys.exit("error: clang-tidy: it found what is named above; mend it")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
