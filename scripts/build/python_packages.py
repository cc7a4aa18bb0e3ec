#!/usr/bin/env python3
"""Says which Python packages of pyproject.toml this interpreter lacks.

Standard library only and Python 3.10 without a TOML reader is enough: it runs before set-up.

  python_packages.py missing [--no-tests]   one requirement a line; exit 1 if there is any
  python_packages.py list [--no-tests]      every requirement that applies to this interpreter
  python_packages.py debian [--no-tests]    the same as Debian and Ubuntu package names
  python_packages.py format | tidy | archive | wheels   the formatters, clang-tidy, what writes archives or makes wheels,
                                            with exact versions
Example: scripts/build/python_packages.py missing
"""

import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
REQUIREMENT = re.compile(r"""^\s*"([A-Za-z0-9_-]+)>=([0-9.]+)(?:;\s*python_version\s*<\s*'([0-9.]+)')?",?\s*$""")
PINNED = re.compile(r"""^\s*"([A-Za-z0-9_-]+==[0-9.]+)",?\s*$""")
DEBIAN_NAMES = {"scikit-image": "python3-skimage", "pillow": "python3-pil"}


def numbers(text: str) -> tuple[int, ...]:
    """Leading numbers of a version: 1.5.3rc1 gives (1, 5, 3)."""
    leading = re.match(r"[0-9]+(?:\.[0-9]+)*", text)
    return tuple(int(part) for part in leading[0].split(".")) if leading else ()


def requirements(with_tests: bool) -> list[tuple[str, str]]:
    """(distribution name, lower bound) of what this interpreter needs."""
    found, section = [], ""
    for line in PYPROJECT.read_text(encoding="utf-8").splitlines():
        if header := re.match(r"(dependencies|measure|test) = \[$", line):
            section = header[1]
        elif line == "]":
            section = ""
        elif section in ("dependencies", "measure") or (section == "test" and with_tests):
            match = REQUIREMENT.match(line)
            if match is None:
                sys.exit(f"error: pyproject.toml: not one requirement a line: {line.strip()}")
            name, bound, python_below = match.groups()
            if python_below is None or sys.version_info[:2] < numbers(python_below):
                found.append((name, bound))
    return found


def pinned(group: str) -> list[str]:
    """The requirements of a group that names exact versions."""
    lines = PYPROJECT.read_text(encoding="utf-8").split(f"\n{group} = [\n")[1].split("]")[0].splitlines()
    found = [match[1] for line in lines if (match := PINNED.match(line))]
    if len(found) != len(lines):
        sys.exit(f"error: pyproject.toml: {group}: each package needs its exact version, one a line")
    return found


def satisfied(name: str, bound: str) -> bool:
    try:
        return numbers(version(name)) >= numbers(bound)
    except PackageNotFoundError:
        return False


def main(arguments: list[str]) -> int:
    if arguments in (["format"], ["tidy"], ["archive"], ["wheels"]):
        print("\n".join(pinned(arguments[0])))
        return 0
    options = {"missing", "list", "debian", "--no-tests"}
    if not arguments or not set(arguments) <= options or arguments[0] == "--no-tests":
        print(__doc__.strip())
        return 0 if arguments in (["--help"], ["-h"]) else 2
    wanted = requirements(with_tests="--no-tests" not in arguments)
    if arguments[0] == "missing":
        wanted = [item for item in wanted if not satisfied(*item)]
    for name, bound in wanted:
        if arguments[0] == "debian":
            print(DEBIAN_NAMES.get(name, f"python3-{name}"))
        else:
            print(f"{name}>={bound}")
    return 1 if arguments[0] == "missing" and wanted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
