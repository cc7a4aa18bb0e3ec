"""Generated blocks of a README: written, compared, and mistakes."""

from __future__ import annotations

import json
import shutil

import pytest

from fixtures import sets
from plots import render
from plots.report import pages as readme_blocks

LISTED = {
    "grid": "quick",
    "variants": [
        {"id": "cpu_fft", "family": "cpu", "summary": "FFTW, threaded | batched", "backend": "cpu",
         "precisions": ["fp32"], "forms": ["n-to-m", "n-to-mn", "one-to-many", "one-to-one"],
         "axes": [{"name": "threads", "values": ["1", "all"], "compile_time": False}],
         "source_file": "algorithms/cpu/cpu_fft.cpp"},
        {"id": "half", "family": "new", "summary": "", "backend": "cuda", "axes": [],
         "precisions": ["fp16", "fp32"], "forms": ["n-to-m"]},
    ],
}  # fmt: skip


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
    (tmp_path / "README.md").write_text(
        "# Title\n\nkept\n<!-- generated:variants -->\nold\n<!-- /generated -->\n\n"
        "<!-- generated:best_table -->\n<!-- /generated -->\nkept too\n"
        "<!-- generated:claims -->\n<!-- /generated -->\n"
        f"<!-- generated:figures {sets.KEY} speedup_n-to-m -->\n<!-- /generated -->\n"
    )
    return tmp_path


def call(root, *arguments):
    return readme_blocks.main(
        [*arguments, "--readme", str(root / "README.md"), "--results", str(root / "results"),
         "--list-json", str(root / "list.json")]
    )  # fmt: skip


def test_blocks_are_written_and_then_fresh(root, capsys):
    assert call(root, "--check") == 1
    told = capsys.readouterr().out
    assert all(f"block {name} is stale" in told
               for name in ("variants", "best_table", "claims", "figures"))
    assert "old" in (root / "README.md").read_text()
    assert call(root) == 0
    assert call(root, "--check") == 0
    text = (root / "README.md").read_text(encoding="utf-8")
    assert "kept\n" in text and "kept too\n" in text and "\nold\n" not in text
    assert ("| [`cpu_fft`](algorithms/cpu/cpu_fft.cpp) | cpu | cpu | fp32 | all | threads = 1, all "
            "| FFTW, threaded \\| batched |") in text  # fmt: skip
    assert "| half | new | cuda | fp16, fp32 | n-to-m | – |  |" in text
    assert "| Form | Matrices | 16x16 | 32x32 |" in text and "every call plans anew" in text
    assert "| static | 6 | 4 | 0 |" in text and "| O07 | The best optimised" in text
    assert f"(results/published/{sets.KEY}/figures/speedup_n-to-m.svg)" in text


def test_one_stale_block_is_named(root, capsys):
    assert call(root) == 0
    capsys.readouterr()
    listed = json.loads(json.dumps(LISTED))
    listed["variants"].pop()
    (root / "list.json").write_text(json.dumps(listed))
    assert call(root, "--check") == 1
    assert capsys.readouterr().out == "README.md: block variants is stale\n"


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("generated:variant -->\n<!-- /generated", "did you mean variants?"),
        ("generated:variants", "not closed"),
        (f"generated:figures {sets.KEY} speedup_n-to-mm -->\n<!-- /generated",
         "did you mean speedup_n-to-m?"),
        ("generated:best_table test-cpu-3-cores -->\n<!-- /generated",
         "did you mean test-cpu-2-cores?"),
    ],
)  # fmt: skip
def test_mistakes_end_in_one_line(root, capsys, block, told):
    (root / "README.md").write_text(f"<!-- {block} -->\n")
    capsys.readouterr()
    assert call(root) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and told in error and error.count("\n") == 1


def test_without_a_build_it_says_so(root, capsys, monkeypatch):
    monkeypatch.setenv("XCORR_BUILD", str(root / "none"))
    found = readme_blocks.main(["--readme", str(root / "README.md"), "--results",
                                str(root / "results")])  # fmt: skip
    assert found == 2 and "build first or give --list-json" in capsys.readouterr().err
