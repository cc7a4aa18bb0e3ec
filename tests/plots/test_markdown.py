"""What a row says stands in a table as text, whatever signs it has."""

import html
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from fixtures import sets

from experiments.compare.markdown import cell, printed
from plots import render, tidy
from plots.report import pages
from plots.tables.text import markdown

HOSTILE = "<script>alert(1)</script> a|b `x` [l](javascript:1) \\| & &lt;\nnext | line"


def unescaped(text: str) -> str:
    """The text that a reader of Markdown shows of a cell."""
    return html.unescape(re.sub(r"\\([\\|`(])", r"\1", text))


def columns(line: str) -> list[str]:
    """The cells of a line as GitHub splits it: at bars without a backslash, itself not escaped, before them."""
    return [one.strip() for one in re.findall(r"((?:\\.|[^|\\])*)\|", line)][1:]


@pytest.mark.parametrize("as_header", [False, True])
def test_a_cell_is_text(as_header: bool) -> None:
    frame = (
        pd.DataFrame([["1", "2"]], columns=[HOSTILE, "b"]) if as_header else pd.DataFrame({"a": [HOSTILE], "b": "2"})
    )
    lines = markdown(frame).splitlines()
    assert len(lines) == 3 and all(len(columns(line)) == 2 for line in lines)
    shown = columns(lines[0 if as_header else 2])[0]
    assert "<" not in shown and "](" not in shown and unescaped(shown) == HOSTILE.replace("\n", " ")


def test_plain_text_stays_as_it_is() -> None:
    plain = "split_row distribution!=none; 16x16: 3.0 µs (±1 %), § 5.2 – x*y in [-1, 1) and [%]"
    assert cell(plain) == plain


def test_tables_of_the_comparisons_are_text_too() -> None:
    lines = printed([[HOSTILE, 1.50]], ["reason", "ratio"], True).splitlines()
    assert len(lines) == 3 and unescaped(columns(lines[2])[0]) == HOSTILE.replace("\n", " ")
    assert "<script>" in printed([["<script>", 1.50]], ["reason", "ratio"], False)


def test_a_summary_of_a_variant_is_text(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"variants": [{"id": "v", "summary": HOSTILE}]}))
    block = pages.variants_block(pages.Content(tmp_path, tmp_path, path), [])
    (line,) = block.splitlines()[2:]
    assert len(columns(line)) == 7 and unescaped(columns(line)[6]) == HOSTILE.replace("\n", " ")


def test_the_report_shows_a_reason_as_text(tmp_path: Path) -> None:
    failed = sets.row(outcome="incorrect", reason="<script>alert(1)</script> a|b", compute_us=None, variant="w")
    folder = sets.write_set(tmp_path, [sets.row(), failed])
    page = render.render(tidy.load(folder, sets.KEY, "published"), folder).report.read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page and "&lt;script&gt;alert(1)&lt;/script&gt; a|b" in page
