"""Writes the report of the published sets into results/report/: pages that answer from a file or a web host, without a network.

The figures and tables of the sets are drawn before (scripts/replot.sh does both). The same rows give the same bytes.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from experiments.driver import store
from plots.sets import available, loaded
from plots.site import pages
from xcorr.errors import Parser, UserError, command

EPILOG = """example:
  python3 -m plots.site                 write results/report/
  python3 -m plots.site --check         only say which files are not what the rows give (exit code 1)"""


def stale(out: Path, files: dict[str, bytes]) -> list[str]:
    """Files of the folder that differ from `files`, lack or are too many."""
    there = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    return sorted(name for name in {*there, *files} if there.get(name) != files.get(name))


def run(argv: Sequence[str]) -> int:
    made = Parser(prog="python3 -m plots.site", description=__doc__, epilog=EPILOG)
    made.add_results()
    made.add_argument("--check", action="store_true", help="write nothing; name the files that are stale")
    options = made.parse_args(argv)
    # Imported sets, which nobody verified, are on the page of machines alone.
    keys = [one for one in available(options.results)["published"] if not store.is_imported(one)]
    if not keys:
        raise UserError(
            f"{options.results}/published: holds no set; scripts/reproduce.sh makes one, scripts/publish.sh publishes it"
        )
    files = pages.build(list(loaded(options.results, keys)))
    out = options.results / "report"
    old = stale(out, files)
    if options.check:
        for name in old:
            print(f"{out / name}: is stale")
        return int(bool(old))
    for name in old:
        if name in files:
            store.write_atomic(out / name, files[name])
        else:
            (out / name).unlink()
    print(f"report: {out / 'index.html'} ({len(files)} files, {sum(map(len, files.values())) / 1e6:.1f} MB)")
    return 0


main = partial(command, run)  # every mistake of the user is one line

if __name__ == "__main__":
    sys.exit(main())
