"""Prints the figures: name, what it shows, the command that measures it.

Draw one set with `python3 -m plots.render KEY`.
"""

import sys
from collections.abc import Sequence
from functools import partial

from tabulate import tabulate

from plots import catalogue, tidy
from plots.figures import _paper
from xcorr.errors import Parser, command

EPILOG = """example:
  python3 -m plots.figures --list
"""
REAL = "python3 -m experiments.inputs.{}"
SYNTHETIC = "python3 -m experiments.driver.run --experiments {}"


def rows() -> list[tuple[str, str, str]]:
    """(figure, title, command that measures it), in report order."""
    feeds = tidy.feeds()
    found = []
    for name, one in catalogue.entries().items():
        spec = _paper.specs().get(name)
        listed = spec.experiments if spec else [e for e, fed in feeds.items() if name in fed]
        command = SYNTHETIC.format(",".join(listed))
        if one.experiment:
            command = REAL.format(one.experiment.removeprefix("real-"))
        found.append((name, one.title, one.command or command))
    return found


def run(argv: Sequence[str]) -> int:
    parser = Parser(prog="python3 -m plots.figures", description=__doc__, epilog=EPILOG)
    parser.add_argument("--list", action="store_true", help="print every figure (the default)")
    parser.parse_args(argv)
    print(tabulate(rows(), headers=["figure", "what it shows", "measured by"]))
    return 0


main = partial(command, run)  # every mistake of the user is one line

if __name__ == "__main__":
    sys.exit(main())
