"""Rewrites the generated blocks of README.md and of the pages under docs/.

A block lies between `<!-- generated:NAME arguments -->` and `<!-- /generated -->`. NAME is one of:
  summary_figure [key]   the figure of the README
  summary_table [key]    ten typical problems: times, speed-ups, distance to the floor
  beyond [key]           two sentences on the speed-up over the paper's best
  beyond_full [key]      all that is said of it
  best_table [key]       the fastest variant of every problem, in both accountings
  claims [key]           every claim of the paper with its verdict
  steps [key]            what each step of ours brought
  claim_commands         which command measures what decides a claim
  variants               every variant, from `xcorr-bench --list=json`
A key names a published set; without one the first set is taken.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.compare.markdown import cell
from experiments.driver import store
from plots import tidy
from plots.report import claim_commands
from plots.report.page import run_lines
from plots.sets import available
from plots.tables import best_table, beyond, steps, summary
from plots.tables.claims import verdicts
from plots.tables.table import readable
from plots.tables.text import line_of, markdown
from xcorr.errors import Parser, UserError, command, nearest
from xcorr.files import resolved
from xcorr.paths import ROOT

PAGES = ("README.md", "docs/best.md", "docs/claims.md", "docs/variants.md", "docs/artifact.md")
BLOCK = re.compile(
    r"(?P<open><!-- generated:(?P<name>[\w-]+)(?P<arguments>[^>\n]*?) ?-->\n)"
    r"(?P<body>.*?)(?P<close><!-- /generated -->)",
    re.DOTALL,
)
UNBUILT = re.compile(r"\| \[`(?P<id>\w+)`\]\((?:\.\./)*(?P<path>[\w/]+\.cu)\) \|")
SHOWN_CELLS = 3  # a size measured for fewer forms and numbers of matrices is in the report only
EPILOG = """example:
  python3 -m plots.report.pages            rewrite every page
  python3 -m plots.report.pages --check    only say which blocks are stale (exit code 1)"""


class Content:
    """Reads what the blocks show, when a block asks for it."""

    def __init__(self, root: Path, results: Path, list_json: Path | None) -> None:
        self.root, self.results, self.list_json = root, results, list_json
        self.page = root  # folder of the page that is being rewritten
        self.body = ""  # text of the block that is being rewritten
        self.load = cache(lambda key: tidy.load(results / "published" / key, key, "published"))

    def variants(self) -> list[dict[str, Any]]:
        """The variants that the file `list_json` or, without one, the program lists."""
        try:
            text = self.list_json.read_text(encoding="utf-8") if self.list_json else self._ask()
        except OSError as error:
            raise UserError(f"{self.list_json}: {error.strerror}; give the output of --list=json") from error
        try:
            return list(json.loads(text)["variants"])
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"list of variants: not what --list=json prints ({error}); build again") from error

    def _ask(self) -> str:
        program = Path(os.environ.get("XCORR_BUILD", self.root / "build")) / "xcorr-bench"
        try:
            done = subprocess.run([program, "--list=json"], capture_output=True, text=True)
        except OSError as error:
            raise UserError(f"{program}: cannot be run ({error.strerror}); build first or give --list-json") from error
        if done.returncode != 0:
            raise UserError(f"{program} --list=json: exit code {done.returncode}; build again")
        return done.stdout

    def key(self, words: Sequence[str]) -> str:
        """Machine key of a published set: the first of `words`, or the first key where there are none."""
        keys = available(self.results)["published"]
        if not keys:
            raise UserError(f"{self.results}/published: no result set; publish one first")
        if words and words[0] not in keys:
            raise UserError(f"machine key {words[0]}: not published; {nearest(words[0], keys)}")
        return words[0] if words else keys[0]

    def published(self, words: Sequence[str]) -> tidy.ResultSet:
        return self.load(self.key(words))

    def link(self, path: Path) -> str:
        """`path` as the page links to it."""
        return os.path.relpath(path, self.page).replace(os.sep, "/")


def campaign(results: tidy.ResultSet) -> str:
    """Days and commits of the rows of a set, in a sentence."""
    runs = run_lines(results.runs, set(results.runs))
    days = sorted({one["utc"][:10] for one in runs})
    commits = list(dict.fromkeys(one["commit"][:7] for one in reversed(runs)))
    if not days or not all(commits):
        return ""
    when = f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[-1]}"
    which = f"commit {commits[0]}"
    if len(commits) > 1:
        which = f"{len(commits)} commits from {commits[0]} to {commits[-1]}"
    return f"The set `{results.key}` was measured {when}, with the sources of {which}; later changes are not in it."


def variants_block(content: Content, _: Sequence[str]) -> str:
    rows = [
        "| variant | family | backend | precision | forms | parameters | what it is |\n",
        "| --- | --- | --- | --- | --- | --- | --- |\n",
    ]
    for one in content.variants():
        axes = "; ".join(f"{a['name']} = {', '.join(a['values'])}" for a in one.get("axes", []))
        forms = one.get("forms", [])
        file = one.get("source_file")
        cells = [
            one.get("family", ""),
            one.get("backend", ""),
            ", ".join(one.get("precisions", [])),
            "all" if set(forms) == set(tidy.FORMS) else ", ".join(forms),
            axes or "–",
            one.get("summary", ""),
        ]
        name = f"[`{one['id']}`]({content.link(content.root / file)})" if file else cell(one["id"])
        rows.append(line_of([name, *map(cell, cells)]))
    # A build without nvcc does not list the CUDA variants: their rows are kept.
    listed = {one["id"] for one in content.variants()}
    for row in content.body.splitlines(keepends=True):
        found = UNBUILT.match(row)
        if found and found["id"] not in listed and (ROOT / found["path"]).is_file():
            rows.append(row)
    return "".join(rows[:2] + sorted(rows[2:], key=lambda row: row.partition("]")[0].strip("`")))


def best_table_block(content: Content, words: Sequence[str]) -> str:
    results = content.published(words)
    table = best_table.of_set(results)
    parts, cells = [], []
    for name in best_table.present_accountings(table):
        own = table[table["accounting"] == name]
        shown = best_table.overview(own, SHOWN_CELLS)
        cells.append(best_table.in_overview(own, shown))
        meaning = best_table.ACCOUNTINGS[name][0]
        parts.append(f"`{results.key}`, {name} ({meaning}):\n\n" + markdown(shown))
    if not parts:
        return "No verified time in the published set.\n"
    signs = [
        "`=` joins variants that tie: their difference is within the noise.",
        *best_table.footnotes(pd.concat(cells), False),
    ]
    parts.append("\n".join(f"- {line}" for line in [*signs, campaign(results)] if line) + "\n")
    return "\n".join(parts)


def beyond_block(content: Content, words: Sequence[str]) -> str:
    results = content.published(words)
    return f"{beyond.sentences(beyond.of_set(results))} {campaign(results)}".strip() + "\n"


def beyond_full_block(content: Content, words: Sequence[str]) -> str:
    results = content.published(words)
    found = beyond.of_set(results)
    return "\n".join([beyond.text(f"`{results.key}`", found), markdown(readable(found.lines, beyond.SHOWN))])


def summary_table_block(content: Content, words: Sequence[str]) -> str:
    lines = summary.typical(summary.cells(content.published(words)))
    if lines.empty:
        return "No time of one of the paper's algorithms in the set.\n"
    return markdown(readable(lines, summary.SHOWN))


def summary_figure_block(content: Content, words: Sequence[str]) -> str:
    key = content.key(words)
    file = content.results / "published" / key / "figures" / "summary.svg"
    if not file.exists():
        raise UserError(f"{file}: is not there; draw it with python3 -m plots.render {key}")
    return f"![Time against matrix size on {key}: the paper's best, cuFFT, this project, and the floor]({content.link(file)})\n"


def claims_block(content: Content, words: Sequence[str]) -> str:
    results = content.published(words)
    return f"{campaign(results)}\n\n{verdicts.page(verdicts.table(results)).markdown()}".lstrip()


def steps_block(content: Content, words: Sequence[str]) -> str:
    page = steps.page(content.published(words))
    return page.markdown() if page else "The set has no rows of these variants.\n"


WRITERS: dict[str, Callable[[Content, Sequence[str]], str]] = {
    "summary_figure": summary_figure_block,
    "summary_table": summary_table_block,
    "beyond": beyond_block,
    "beyond_full": beyond_full_block,
    "best_table": best_table_block,
    "claims": claims_block,
    "steps": steps_block,
    "claim_commands": lambda content, words: claim_commands.table(),
    "variants": variants_block,
}


def rewrite(text: str, content: Content, name: str = "README.md") -> tuple[str, list[str]]:
    """The text of page `name` with fresh blocks, and the names of those that were stale."""
    stale: list[str] = []

    def fresh(match: re.Match[str]) -> str:
        block = match["name"]
        if block not in WRITERS:
            raise UserError(f"{name}: block {block} is unknown; {nearest(block, WRITERS)}")
        content.body = match["body"]
        body = WRITERS[block](content, match["arguments"].split())
        if body != match["body"]:
            stale.append(block)
        return match["open"] + body + match["close"]

    opened = len(re.findall(r"<!-- generated:", text))
    if opened != len(BLOCK.findall(text)):
        raise UserError(f"{name}: a generated block is not closed; end it with <!-- /generated -->")
    return BLOCK.sub(fresh, text), stale


def run(argv: Sequence[str]) -> int:
    """The command; raises UserError. Exit code 1 when --check finds a stale block."""
    parser = Parser(prog="python3 -m plots.report.pages", description=__doc__, epilog=EPILOG)
    add = parser.add_argument
    add("--check", action="store_true", help="write nothing, name stale blocks")
    add("--root", type=Path, default=ROOT, metavar="DIR", help="where the pages lie (default: this tree)")
    only = f"only this page, below the root; repeatable (default: {', '.join(PAGES)})"
    add("--page", action="append", default=[], metavar="FILE", help=only)
    parser.add_results()
    add("--list-json", type=Path, metavar="FILE", help="output of xcorr-bench --list=json")
    options = parser.parse_args(argv)
    root = resolved(options.root)
    content = Content(root, resolved(options.results), options.list_json)
    code = 0
    for page in options.page or PAGES:
        try:
            old = (root / page).read_text(encoding="utf-8")
        except OSError as error:
            way_out = "name pages with --page, their folder with --root"
            raise UserError(f"{root / page}: {error.strerror}; {way_out}") from error
        content.page = (root / page).parent
        new, stale = rewrite(old, content, page)
        if not options.check and new != old:
            store.write_atomic(root / page, new.encode("utf-8"))
        for name in stale:
            print(f"{page}: block {name} {'is stale' if options.check else 'rewritten'}")
        code |= int(options.check and bool(stale))
    return code


main = partial(command, run)  # every mistake of the user is one line

if __name__ == "__main__":
    sys.exit(main())
