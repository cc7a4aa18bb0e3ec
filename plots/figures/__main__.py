"""Prints the figures: module, what it shows, the experiments that measure it.

Draw one set with `python3 -m plots.render KEY`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tabulate import tabulate

from xcorr.errors import Parser, UserError
from plots import tidy
from plots.figures import _paper, modules

EPILOG = """example:
  python3 -m plots.figures --list
"""
REAL = "python3 -m experiments.inputs.{}"
SYNTHETIC = "python3 -m experiments.driver.run --experiments {}"


def rows() -> list[tuple[str, str, str]]:
    """(figure module, title, command that measures it), in report order."""
    feeds = tidy.experiment_feeds()
    found = []
    for name, module in modules().items():
        spec = _paper.specs().get(name)
        listed = spec.experiments if spec else [e for e, fed in feeds.items() if name in fed]
        experiment = getattr(module, "EXPERIMENT", "")  # on real input: one command each
        command = SYNTHETIC.format(",".join(listed))
        if experiment:
            command = REAL.format(experiment.removeprefix("real-"))
        found.append((name, module.TITLE, command))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code (0, or 2 after one line about a user's mistake)."""
    parser = Parser(
        prog="python3 -m plots.figures", description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="print every figure (the default)")
    try:
        parser.parse_args(argv)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(tabulate(rows(), headers=["figure", "what it shows", "measured by"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
