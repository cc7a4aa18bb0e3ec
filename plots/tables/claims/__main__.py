"""Says of every claim of the papers whether a result set bears it out: claim, the paper's text, its own published rows, its
program on this machine, ours by the paper's method, the best of ours, verdict.

The claims, with what decides each, are data: experiments/<source>/claims.toml. Exit code: 0 whatever the
verdicts; 2 for a mistake in the request.
"""

import sys
import textwrap
from collections.abc import Sequence
from functools import partial

import pandas as pd
from tabulate import tabulate

from plots.sets import loaded
from plots.tables.claims import verdicts
from xcorr.errors import Parser, command

EPILOG = """example:
  python3 -m plots.tables.claims                       every claim, for every published set
  python3 -m plots.tables.claims KEY --id O07 --id O09   two claims of machine KEY, with every value
"""
WIDTHS = {"claim": 36, "paper": 14, "own": 24, "program": 14, "here": 28, "ours": 20, "verdict": 34}


def text(lines: pd.DataFrame, whole: bool) -> str:
    """The table for a terminal; `whole` prints every value and the quantity."""
    shown = []
    for _, line in lines.iterrows():
        said = f"{line['verdict']}: {line['reason']}" if line["reason"] else line["verdict"]
        said += f" ({line['note']})" if whole and line["note"] else ""
        claim = f"{line['claim']} [{line['quantity']}]" if whole and line["quantity"] else line["claim"]
        cells = {
            "claim": claim,
            "paper": line["paper"],
            "own": line["own"] or "-",
            "program": line["program"] or "-",
            "here": line["values" if whole else "here"] or "-",
            "ours": line["ours_values" if whole else "ours"] or "-",
            "verdict": said,
        }
        wrapped = [textwrap.fill(cells[name], width) for name, width in WIDTHS.items()]
        shown.append([line["id"], *wrapped])
    return tabulate(shown, ["id", *WIDTHS], tablefmt="simple", disable_numparse=True)


def run(argv: Sequence[str]) -> int:
    made = Parser(prog="python3 -m plots.tables.claims", description=__doc__, epilog=EPILOG)
    add = made.add_argument
    add("keys", nargs="*", metavar="KEY", help="machine key (default: every published set)")
    add("--local", action="store_true", help="local sets, even where a published one exists")
    made.add_results()
    add("--id", action="append", default=[], metavar="ID", help="only this claim, e.g. O07")
    add("--markdown", action="store_true", help="print Markdown")
    options = made.parse_args(argv)
    verdicts.require(options.id)
    for results in loaded(options.results, options.keys, options.local):
        lines = verdicts.table(results, options.id)
        if options.markdown:
            print(verdicts.TABLE.files(verdicts.page(lines))["claims.md"])
            continue
        print(f"{results.key}\n\n{text(lines, bool(options.id))}\n")
        numbers = lines["verdict"].value_counts()
        print(", ".join(f"{numbers.get(name, 0)} {name}" for name in verdicts.VERDICTS))
    return 0


main = partial(command, run)  # every mistake of the user is one line

if __name__ == "__main__":
    sys.exit(main())
