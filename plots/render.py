"""Draws a result set: figures (SVG, PDF, PNG), tables (Markdown, CSV, LaTeX) and the report (HTML).

Neither compiler nor GPU is needed. The same rows give the same bytes.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from experiments.driver import store
from plots import catalogue, imported, style, tidy
from plots.drawing import Drawing, Omitted, Result
from plots.figures import comparison
from plots.files import FORMATS, encode
from plots.metrics import METRICS
from plots.report import page
from plots.sets import choose, loaded
from plots.tables import table as tables
from plots.tables.text import csv
from xcorr.errors import Parser, command
from xcorr.errors import choose as choose_names

EPILOG = """example:
  python3 -m plots.render                      every published set, or the only local one
  python3 -m plots.render --local KEY          what was measured here, on machine KEY
  python3 -m plots.render KEY --overlay published-volta --out DIR
"""


@dataclass(frozen=True)
class Written:
    """What render wrote for one set."""

    report: Path
    figures: Path
    table: Path
    drawn: list[str]
    omitted: list[Omitted]


def draw_all(results: tidy.ResultSet, metrics: Sequence[str]) -> list[Result]:
    """Every figure, in report order."""
    found: list[Result] = []
    for name, entry in catalogue.entries().items():
        with style.context(name):
            found += entry.draw(results)
            if entry.draw is comparison.draw:
                for metric in metrics:
                    found += comparison.draw(results, METRICS[metric])
    return found


def _remove_stale(folder: Path, drawn: list[str]) -> None:
    """Delete figures of an earlier rendering that have no data any more."""
    ours = re.compile(rf"({'|'.join(map(re.escape, catalogue.entries()))})(_.*)?")
    for path in sorted(folder.glob("*")):
        known = path.suffix[1:] in FORMATS and ours.fullmatch(path.stem)
        if known and path.stem not in drawn:
            path.unlink()


def words(drawings: Sequence[Drawing]) -> str:
    """Title, caption and text for those who cannot see it of each figure, as CSV: plots.site shows them beside the figures."""
    names = ["name", "title", "caption", "alt"]
    return csv(pd.DataFrame([[getattr(one, name) for name in names] for one in drawings], columns=names))


def render(results: tidy.ResultSet, out: Path, metrics: Sequence[str] = ()) -> Written:
    """Write figures, tables and the report of one set into `out`."""
    from tqdm import tqdm

    found = draw_all(results, metrics)
    drawings = [one for one in found if isinstance(one, Drawing)]
    omitted = [one for one in found if isinstance(one, Omitted)]
    svgs = {}
    for drawing in tqdm(drawings, desc=results.key, unit="figure", file=sys.stderr):
        for extension, data in encode(drawing).items():
            store.write_atomic(out / "figures" / f"{drawing.name}.{extension}", data)
            if extension == "svg":
                svgs[drawing.name] = data.decode("utf-8")
    _remove_stale(out / "figures", [drawing.name for drawing in drawings])
    store.write_atomic(out / "tables" / "figures.csv", words(drawings).encode("utf-8"))
    pages = tables.pages(results)
    for table, said in pages:
        for name, text in table.files(said).items():
            store.write_atomic(out / "tables" / name, text.encode("utf-8"))
    html = page.build(results, drawings, omitted, svgs, pages)
    store.write_atomic(out / "report.html", html.encode("utf-8"))
    table_file = out / "tables" / "best_algorithm.md"
    return Written(out / "report.html", out / "figures", table_file, [one.name for one in drawings], omitted)


def run(argv: Sequence[str]) -> int:
    made = Parser(prog="python3 -m plots.render", description=__doc__, epilog=EPILOG)
    add = made.add_argument
    add("keys", nargs="*", metavar="machine-key", help="set to draw (default: see the example)")
    add("--local", action="store_true", help="local sets, even where a published one exists")
    made.add_results()
    add("--out", type=Path, metavar="DIR", help="write there instead of into the set's folder")
    add("--overlay", metavar="KEY", help="draw an imported set's points, hollow, in the figures of the others")
    too = f"draw the comparison in another metric too: {', '.join(METRICS)}"
    add("--metric", action="append", default=[], metavar="NAME", help=too)
    options = made.parse_args(argv)
    metrics = choose_names("metric", options.metric, METRICS)
    foreign = None
    if options.overlay:
        (foreign,) = loaded(options.results, [options.overlay])
    several = len(choose(options.results, options.keys, options.local)) > 1
    for results in loaded(options.results, options.keys, options.local):
        out = results.folder
        if options.out:
            out = options.out / results.key if several else options.out
        if foreign and foreign.key != results.key:
            results = imported.overlay(results, foreign)
        written = render(results, out, metrics)
        print(f"report:  {written.report}")
        print(f"figures: {written.figures} ({len(written.drawn)}, as svg, pdf and png)")
        print(f"table:   {written.table} (also csv and tex)")
        if written.omitted:
            print(
                f"left out: {len(written.omitted)} figures that these rows do not feed; the report says of each which "
                "command measures it, and scripts/reproduce.sh --preset quick measures most of them"
            )
    return 0


main = partial(command, run)  # every mistake of the user is one line

if __name__ == "__main__":
    sys.exit(main())
