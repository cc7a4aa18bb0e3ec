"""python3 -m experiments: lists the commands of this folder, or runs one by its short name.

python3 -m experiments
python3 -m experiments run --preset smoke --dry-run      the same as python3 -m experiments.driver.run --preset ...
"""

import ast
import re
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

from xcorr.errors import UserError, command, nearest

PACKAGES = ("driver", "inputs", "compare", "published")
ENTRY = '\nif __name__ == "__main__":\n'


def commands() -> dict[str, tuple[str, str]]:
    """Of each command its module and the first sentence of its help, by the name of its file."""
    found = {}
    for package in PACKAGES:
        folder = Path(__file__).parent / package
        for path in sorted([*folder.glob("*.py"), *folder.glob("*/__main__.py")]):
            source = path.read_text(encoding="utf-8")
            if ENTRY in source:
                about = " ".join((ast.get_docstring(ast.parse(source)) or "").split())
                name = path.stem if path.parent == folder else path.parent.name
                found[name] = (f"experiments.{package}.{name}", re.split(r"\. ", about)[0].rstrip("."))
    return found


def run(argv: Sequence[str]) -> int:
    known = commands()
    if not argv or argv[0] in ("-h", "--help"):
        print(__doc__)
        print(tabulate([(name, about) for name, (_, about) in known.items()], tablefmt="plain"))
        return 0
    if argv[0] not in known:
        raise UserError(f"command {argv[0]}: unknown; {nearest(argv[0], known)}")
    sys.argv = list(argv)
    runpy.run_module(known[argv[0]][0], run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(command(run))
