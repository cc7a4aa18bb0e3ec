"""Draws everything of a result set: figures (SVG, PDF, PNG), tables (the best algorithm, Table 1, the
claims, accuracy), the report.

Needs neither compiler nor GPU. The same rows give the same bytes.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.driver import store
from xcorr.errors import Parser, UserError, nearest
from plots import (
    accuracy_table, best_by_mode, best_table, beyond, front, imported, real_tables, regret, report, style, table1, tidy,
)  # fmt: skip
from plots.claims import verdicts
from plots.figures import Drawing, Omitted, Result, comparison, modules
from plots.metrics import METRICS

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("published", "local")
EPILOG = """example:
  python3 -m plots.render                      every published set, or the only local one
  python3 -m plots.render --local KEY          what was measured here, on machine KEY
  python3 -m plots.render KEY --overlay published-volta --out DIR
"""
# No dates and no version stamps: they would change the bytes without changing the figure.
FORMATS: dict[str, dict[str, Any]] = {
    "svg": {"metadata": {"Date": None, "Creator": None, "Format": None, "Type": None}},
    "pdf": {"metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
    "png": {"metadata": {"Software": None}},
}


@dataclass(frozen=True)
class Written:
    """What render wrote for one set."""

    report: Path
    figures: Path
    table: Path
    drawn: list[str]
    omitted: list[Omitted]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        prog="python3 -m plots.render", description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = made.add_argument
    add("keys", nargs="*", metavar="machine-key", help="set to draw (default: see the example)")
    add("--local", action="store_true", help="local sets, even where a published one exists")
    add("--results", type=Path, default=ROOT / "results", metavar="DIR",
        help="root of the results (default: results)")  # fmt: skip
    add("--out", type=Path, metavar="DIR", help="write there instead of into the set's folder")
    add("--overlay", metavar="KEY", help="draw an imported set's points, hollow, in the figures of the others")
    add("--metric", action="append", default=[], metavar="NAME",
        help=f"draw the comparison in another metric too: {', '.join(METRICS)}")  # fmt: skip
    return made


def available(results: Path) -> dict[str, list[str]]:
    """Machine keys with at least one file of rows, by kind."""
    found: dict[str, list[str]] = {}
    for kind, pattern in zip(KINDS, ("*.csv.gz", "*/*.csv.gz")):
        folders = sorted((results / kind).glob("*")) if (results / kind).is_dir() else []
        found[kind] = [f.name for f in folders if any(f.glob(pattern))]
    return found


def choose(results: Path, keys: Sequence[str], local: bool) -> list[tuple[str, str]]:
    """(kind, key) of the sets to draw. Raises UserError naming what there is."""
    there = available(results)
    kinds = ("local",) if local else KINDS
    if keys:
        chosen = []
        for key in keys:
            kind = next((k for k in kinds if key in there[k]), None)
            if kind is None:
                known = sorted({name for k in kinds for name in there[k]})
                where = " or ".join(kinds)
                raise UserError(f"machine key {key}: no {where} results; {nearest(key, known)}")
            chosen.append((kind, key))
        return chosen
    if there["published"] and not local:
        return [("published", key) for key in there["published"]]
    if len(there["local"]) == 1:
        return [("local", there["local"][0])]
    if there["local"]:
        names = ", ".join(there["local"])
        raise UserError(f"machine key: several local sets; name one of {names}")
    raise UserError(f"{results}: no results; measure first (python3 -m experiments.driver.run --help)")


def draw_all(results: tidy.ResultSet, metrics: Sequence[str]) -> list[Result]:
    """Every figure of every module, in report order."""
    found: list[Result] = []
    for name, module in modules().items():
        with style.context(name):
            found += module.draw(results)
            if module is comparison:
                for metric in metrics:
                    found += comparison.draw(results, METRICS[metric])
    return found


def encode(drawing: Drawing) -> dict[str, bytes]:
    """The figure's file in every format, by extension."""
    files = {}
    for extension, options in FORMATS.items():
        data = io.BytesIO()
        with style.context(drawing.name):
            drawing.figure.savefig(data, format=extension, **options)
        files[extension] = data.getvalue()
    return files


def _remove_stale(folder: Path, drawn: list[str]) -> None:
    """Delete figures of an earlier rendering that have no data any more."""
    ours = re.compile(rf"({'|'.join(map(re.escape, modules()))})(_.*)?")
    for path in sorted(folder.glob("*")):
        known = path.suffix[1:] in FORMATS and ours.fullmatch(path.stem)
        if known and path.stem not in drawn:
            path.unlink()


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
    table = best_table.of_set(results)
    writers = {"md": best_table.to_markdown, "csv": best_table.to_csv, "tex": best_table.to_tex}
    for extension, write in writers.items():
        store.write_atomic(
            out / "tables" / f"best_algorithm.{extension}", write(table).encode("utf-8")
        )
    cells, claims = table1.cells(results.points), verdicts.table(results)
    tables = {
        **table1.files(cells), **verdicts.files(claims), **regret.files(results), **beyond.files(results),
        **accuracy_table.files(results), **best_by_mode.files(results),
    }  # fmt: skip
    for name, text in tables.items():
        store.write_atomic(out / "tables" / name, text.encode("utf-8"))
    page = report.build(
        results, table, drawings, omitted, svgs, real_tables.tables(results.folder),
        front.chapters(results, cells, claims),
    )
    store.write_atomic(out / "report.html", page.encode("utf-8"))
    return Written(
        out / "report.html",
        out / "figures",
        out / "tables" / "best_algorithm.md",
        [drawing.name for drawing in drawings],
        omitted,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code (0, or 2 after one line about a user's mistake)."""
    try:
        options = parser().parse_args(argv)
        for metric in options.metric:
            if metric not in METRICS:
                raise UserError(f"metric {metric}: unknown; {nearest(metric, METRICS)}")
        chosen = choose(options.results, options.keys, options.local)
        foreign = None
        if options.overlay:
            [(kind, key)] = choose(options.results, [options.overlay], False)
            foreign = tidy.load(options.results / kind / key, key, kind)
        for kind, key in chosen:
            folder = options.results / kind / key
            out = folder
            if options.out:
                out = options.out / key if len(chosen) > 1 else options.out
            results = tidy.load(folder, key, kind)
            if foreign and foreign.key != key:
                results = imported.overlay(results, foreign)
            written = render(results, out, options.metric)
            print(f"report:  {written.report}")
            print(f"figures: {written.figures} ({len(written.drawn)}, as svg, pdf and png)")
            print(f"table:   {written.table} (also csv and tex)")
            if written.omitted:
                print(f"left out: {len(written.omitted)} figures that these rows do not feed; the report says of each which "
                      "command measures it, and scripts/reproduce.sh --preset quick measures most of them")  # fmt: skip
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
