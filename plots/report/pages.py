"""Rewrites the generated blocks of README.md.

A block stands between `<!-- generated:NAME arguments -->` and `<!-- /generated -->`. Names:
`variants` (from `xcorr-bench --list=json`, the only source of that table), `best_table [key]`,
`beyond [key]`, `claims [key]` and `figures [key] [figure ...]` (from a published set; without a key the
first one).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.driver import store
from xcorr.errors import UserError, nearest
from plots import tidy
from plots.tables import best_table, beyond
from plots.tables.claims import verdicts
from plots.sets import ROOT, available
from plots.tables.text import markdown

BLOCK = re.compile(
    r"(?P<open><!-- generated:(?P<name>[\w-]+)(?P<arguments>[^>\n]*?) ?-->\n)"
    r"(?P<body>.*?)(?P<close><!-- /generated -->)",
    re.DOTALL,
)
UNBUILT = re.compile(r"\| \[`(?P<id>\w+)`\]\((?P<path>[\w/]+\.cu)\) \|")
README_CELLS = 3  # a size measured for fewer forms and counts is in the report only
DEFAULT_FIGURES = ("comparison_one-to-one", "comparison_n-to-m")
EPILOG = """example:
  python3 -m plots.readme_blocks            rewrite README.md
  python3 -m plots.readme_blocks --check    only say which blocks are stale (exit code 1)"""


class Sources:
    """Where the blocks' content comes from; read only when a block asks for it."""

    def __init__(self, root: Path, results: Path, list_json: Path | None) -> None:
        self.root, self.results, self.list_json = root, results, list_json
        self.body = ""  # what stands in the block that is being rewritten
        self._loaded: dict[str, tidy.ResultSet] = {}

    def variants(self) -> list[dict[str, Any]]:
        """Variants as the program lists them."""
        if self.list_json is not None:
            text = self._read(self.list_json)
        else:
            text = self._ask()
        try:
            return list(json.loads(text)["variants"])
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"list of variants: not what --list=json prints ({error}); build again"
            ) from error

    def _ask(self) -> str:
        build = Path(os.environ.get("XCORR_BUILD", self.root / "build"))
        program = build / "xcorr-bench"
        try:
            done = subprocess.run([program, "--list=json"], capture_output=True, text=True)
        except OSError as error:
            raise UserError(
                f"{program}: cannot be run ({error.strerror}); build first or give --list-json"
            ) from error
        if done.returncode != 0:
            raise UserError(f"{program} --list=json: exit code {done.returncode}; build again")
        return done.stdout

    @staticmethod
    def _read(path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}; give the output of --list=json") from error

    def published(self, words: Sequence[str]) -> tuple[str, list[str]]:
        """(machine key, other words): first word if a published key, else the first key."""
        keys = available(self.results)["published"]
        if not keys:
            raise UserError(f"{self.results}/published: no result set; publish one first")
        if words and words[0] in keys:
            return words[0], list(words[1:])
        if words and "_" not in words[0]:
            raise UserError(f"machine key {words[0]}: not published; {nearest(words[0], keys)}")
        return keys[0], list(words)

    def load(self, key: str) -> tidy.ResultSet:
        """The published set `key`, read once."""
        if key not in self._loaded:
            self._loaded[key] = tidy.load(self.results / "published" / key, key, "published")
        return self._loaded[key]


def variants_block(sources: Sources, _: Sequence[str]) -> str:
    """Markdown table of all variants."""
    rows = [
        "| variant | family | backend | precision | forms | parameters | what it is |\n",
        "| --- | --- | --- | --- | --- | --- | --- |\n",
    ]
    for one in sources.variants():
        axes = "; ".join(f"{a['name']} = {', '.join(a['values'])}" for a in one.get("axes", []))
        forms = one.get("forms", [])
        cells = [
            f"[`{one['id']}`]({one['source_file']})" if one.get("source_file") else one["id"],
            one.get("family", ""),
            one.get("backend", ""),
            ", ".join(one.get("precisions", [])),
            "all" if set(forms) == set(tidy.FORMS) else ", ".join(forms),
            axes or "–",
            one.get("summary", ""),
        ]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    # A build without nvcc leaves the CUDA variants out; their rows stay as the last full build wrote them.
    listed = {one["id"] for one in sources.variants()}
    for row in sources.body.splitlines(keepends=True):
        found = UNBUILT.match(row)
        if found and found["id"] not in listed and (ROOT / found["path"]).is_file():
            rows.append(row)
    return "".join(rows[:2] + sorted(rows[2:], key=lambda row: row.partition("]")[0].strip("`")))


def best_table_block(sources: Sources, words: Sequence[str]) -> str:
    """Winners of a published set, form and count by size, in both accountings."""
    key, _ = sources.published(words)
    table = best_table.of_set(sources.load(key))
    parts, cells = [], []
    for name in best_table.present_accountings(table):
        own = table[table["accounting"] == name]
        shown = best_table.overview(own, README_CELLS)
        cells.append(best_table.in_overview(own, shown))
        meaning = best_table.ACCOUNTINGS[name][0]
        parts.append(
            f"`{key}`, {name} ({meaning}); `=` joins ties:\n\n" + markdown(shown)
        )
    lines = best_table.footnotes(pd.concat(cells), places=False) if cells else []
    if lines:
        parts.append(" ".join([*lines, "`tables/best_algorithm.csv` of the set names them."]) + "\n")
    return "\n".join(parts) or "No verified time in the published set.\n"


def beyond_block(sources: Sources, words: Sequence[str]) -> str:
    """How far ahead of the paper's best and from the floor a published set is, and in which mode."""
    key, _ = sources.published(words)
    text = beyond.text(f"`{key}`", beyond.of_set(sources.load(key)))
    return f"{text}\nCell by cell: `python3 -m plots.beyond`; winners by mode: `tables/best_by_mode.md` of the set.\n"


def claims_block(sources: Sources, words: Sequence[str]) -> str:
    """Claims of the paper by verdict, and what became of those that measuring decides."""
    key, _ = sources.published(words)
    lines = verdicts.table(sources.load(key))
    machine = verdicts.readable(lines[lines["class"] == "machine"].assign(reason=""))
    return (
        f"`{key}`; every value and reason: `tables/claims.md` of the set, or "
        "`python3 -m plots.check_claims`.\n\n"
        + markdown(verdicts.counts(lines)) + "\n"
        + markdown(machine.drop(columns="Quantity"))
    )  # fmt: skip


def figures_block(sources: Sources, words: Sequence[str]) -> str:
    """Links to two (or the named) figures of a published set, with the caption as alternative."""
    key, names = sources.published(words)
    folder = sources.results / "published" / key / "figures"
    for name in names or DEFAULT_FIGURES:
        if not (folder / f"{name}.svg").exists():
            drawn = [path.stem for path in folder.glob("*.svg")]
            raise UserError(f"figure {name}: not drawn for {key}; {nearest(name, drawn)}")
    base = os.path.relpath(folder, sources.root).replace(os.sep, "/")
    lines = [
        f"[![{_words(name)} on {key}]({base}/{name}.svg)]({base}/{name}.pdf)\n"
        for name in names or DEFAULT_FIGURES
    ]
    return "\n".join(lines)


def _words(name: str) -> str:
    what, _, rest = name.partition("_")
    return f"{what.capitalize()}, {rest.replace('_', ', ')}" if rest else what.capitalize()


WRITERS: dict[str, Callable[[Sources, Sequence[str]], str]] = {
    "variants": variants_block,
    "best_table": best_table_block,
    "beyond": beyond_block,
    "claims": claims_block,
    "figures": figures_block,
}


def rewrite(text: str, sources: Sources) -> tuple[str, list[str]]:
    """The text with fresh blocks, and the names of those that were stale."""
    stale: list[str] = []

    def fresh(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in WRITERS:
            raise UserError(f"block {name}: unknown; {nearest(name, WRITERS)}")
        sources.body = match["body"]
        body = WRITERS[name](sources, match["arguments"].split())
        if body != match["body"]:
            stale.append(name)
        return match["open"] + body + match["close"]

    opened = len(re.findall(r"<!-- generated:", text))
    if opened != len(BLOCK.findall(text)):
        raise UserError("README: a generated block is not closed; end it with <!-- /generated -->")
    return BLOCK.sub(fresh, text), stale


def main(argv: Sequence[str] | None = None) -> int:
    """The command: 0, 1 when --check finds a stale block, 2 after a user's mistake."""
    parser = argparse.ArgumentParser(
        prog="python3 -m plots.readme_blocks", description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--check", action="store_true", help="write nothing, name stale blocks")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md", metavar="FILE")
    parser.add_argument("--results", type=Path, default=ROOT / "results", metavar="DIR")
    parser.add_argument(
        "--list-json", type=Path, metavar="FILE", help="output of xcorr-bench --list=json"
    )
    options = parser.parse_args(argv)
    try:
        try:
            old = options.readme.read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(f"{options.readme}: {error.strerror}; name one with --readme") from error
        sources = Sources(options.readme.resolve().parent, options.results, options.list_json)
        new, stale = rewrite(old, sources)
        if not options.check and new != old:
            store.write_atomic(options.readme, new.encode("utf-8"))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for name in stale:
        print(f"{options.readme.name}: block {name} {'is stale' if options.check else 'rewritten'}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
