"""Generated blocks of the README and the pages under docs/: written, compared, and mistakes."""

import json
import shutil

import pytest
from fixtures import sets

from plots import render
from plots.report import pages

FORMS = ["n-to-m", "n-to-mn", "one-to-many", "one-to-one"]
THREADS = {"name": "threads", "values": ["1", "all"], "compile_time": False}
FFTW = {"id": "cpu_fft", "family": "cpu", "backend": "cpu", "summary": "FFTW, threaded | batched", "forms": FORMS}
FFTW |= {"precisions": ["fp32"], "axes": [THREADS], "source_file": "algorithms/cpu/cpu_fft.cpp"}
HALF = {"id": "half", "family": "new", "backend": "cuda", "summary": "", "forms": ["n-to-m"], "axes": []}
LISTED = {"grid": "quick", "variants": [FFTW, {**HALF, "precisions": ["fp16", "fp32"]}]}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Results with a drawn published set."""
    results = tmp_path_factory.mktemp("drawn")
    rows = sets.model_rows(sizes=[16, 32], counts={"one-to-one": [(1, 1)], "n-to-m": [(2, 2)]})
    sets.write_set(results, rows)
    assert render.main(["--results", str(results)]) == 0
    return results


@pytest.fixture
def root(tmp_path, drawn):
    """A repository with a README, a listing and a drawn published set."""
    shutil.copytree(drawn, tmp_path / "results")
    (tmp_path / "list.json").write_text(json.dumps(LISTED))
    (tmp_path / "docs").mkdir()
    written = {
        "README.md": "# Title\n\nkept\n<!-- generated:summary_table -->\nold\n<!-- /generated -->\nkept too\n"
        "<!-- generated:beyond -->\n<!-- /generated -->\n",
        "docs/variants.md": "<!-- generated:variants -->\nold\n<!-- /generated -->\n",
        "docs/best.md": f"<!-- generated:best_table {sets.KEY} -->\n<!-- /generated -->\n",
        "docs/claims.md": "<!-- generated:claims -->\n<!-- /generated -->\n",
        "docs/artifact.md": "<!-- generated:claim_commands -->\n<!-- /generated -->\n",
    }
    for name, text in written.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def call(root, *arguments):
    places = f"--root {root} --results {root / 'results'} --list-json {root / 'list.json'}"
    return pages.main([*arguments, *places.split()])


def test_blocks_are_written_and_then_fresh(root, capsys):
    assert call(root, "--check") == 1
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "README.md: block beyond is stale",
        "README.md: block summary_table is stale",
        "docs/artifact.md: block claim_commands is stale",
        "docs/best.md: block best_table is stale",
        "docs/claims.md: block claims is stale",
        "docs/variants.md: block variants is stale",
    ]
    assert "old" in (root / "README.md").read_text()
    assert call(root) == 0
    assert call(root, "--check") == 0
    names = ("README.md", "docs/variants.md", "docs/best.md", "docs/claims.md")
    readme, variants, best, claims = ((root / name).read_text(encoding="utf-8") for name in names)
    assert "kept\n" in readme and "kept too\n" in readme and "\nold\n" not in readme + variants
    assert (
        "| [`cpu_fft`](../algorithms/cpu/cpu_fft.cpp) | cpu | cpu | fp32 | all | threads = 1, all "
        "| FFTW, threaded \\| batched |"
    ) in variants
    assert "| half | new | cuda | fp16, fp32 | n-to-m | – |  |" in variants
    assert "| Form | Matrices | 16x16 | 32x32 |" in best and "every call plans anew" in best
    measured = f"The set `{sets.KEY}` was measured on 2025-01-01, with the sources of commit 0123456; "
    assert all(measured in page for page in (readme, best, claims))
    assert "| static | 6 | 1 | 3 | 0 | 0 | 0 |" in claims and "| O07 | The best optimised" in claims


def test_the_figure_is_linked_from_where_the_page_lies(root, capsys):
    block = "<!-- generated:summary_figure -->\n<!-- /generated -->\n"
    (root / "README.md").write_text(block)
    assert call(root, "--page", "README.md") == 2
    assert "summary.svg: is not there; draw it with" in capsys.readouterr().err
    file = root / "results" / "published" / sets.KEY / "figures" / "summary.svg"
    file.write_text("<svg/>")
    for page, link in (("README.md", "results/"), ("docs/best.md", "../results/")):
        (root / page).write_text(block)
        assert call(root, "--page", page) == 0
        assert f"({link}published/{sets.KEY}/figures/summary.svg)" in (root / page).read_text()


def test_one_stale_block_is_named(root, capsys):
    assert call(root) == 0
    capsys.readouterr()
    listed = json.loads(json.dumps(LISTED))
    listed["variants"].pop()
    (root / "list.json").write_text(json.dumps(listed))
    assert call(root, "--check") == 1
    assert capsys.readouterr().out == "docs/variants.md: block variants is stale\n"


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("generated:variant -->\n<!-- /generated", "did you mean variants?"),
        ("generated:variants", "not closed"),
        ("generated:best_table test-cpu-3-cores -->\n<!-- /generated", "did you mean test-cpu-2-cores?"),
    ],
)
def test_mistakes_end_in_one_line(root, capsys, block, told):
    (root / "README.md").write_text(f"<!-- {block} -->\n")
    capsys.readouterr()
    assert call(root) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and told in error and error.count("\n") == 1


def test_without_a_build_it_says_so(root, capsys, monkeypatch):
    monkeypatch.setenv("XCORR_BUILD", str(root / "none"))
    found = pages.main(["--root", str(root), "--results", str(root / "results")])
    assert found == 2 and "build first or give --list-json" in capsys.readouterr().err
