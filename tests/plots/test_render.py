"""The command that draws a set: which set, what is written, the same bytes twice."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fixtures import sets

from plots import render, style, tidy
from plots.figures import comparison
from plots.sets import choose
from xcorr.errors import UserError
from xcorr.paths import ROOT


def small(**options):
    options = {"sizes": [16, 32], "counts": {"one-to-one": [(1, 1)]}, **options}
    return sets.model_rows(**options)


def digests(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def test_twice_the_same_bytes_and_in_another_process_too(tmp_path, capsys):
    sets.write_set(tmp_path, small())
    first, second = tmp_path / "first", tmp_path / "second"
    assert render.main([sets.KEY, "--results", str(tmp_path), "--out", str(first)]) == 0
    command = [sys.executable, "-m", "plots.render", "--results", str(tmp_path)]
    other = {"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    done = subprocess.run([*command, "--out", str(second)], cwd=ROOT, capture_output=True, text=True, env=other)
    assert done.returncode == 0, done.stderr
    assert digests(first) == digests(second)
    names = set(digests(first))
    assert {"report.html", "tables/claims.md", "tables/claims.csv"} <= names
    for table in ("best_algorithm", "table1"):
        assert {f"tables/{table}.{e}" for e in ("md", "csv", "tex")} <= names
    for figure in ("comparison", "speedup", "phases"):
        assert {f"figures/{figure}_one-to-one.{e}" for e in ("svg", "pdf", "png")} <= names
    told = capsys.readouterr().out
    for path in ("report.html", "figures", "best_algorithm.md"):
        assert str(first / path) in told or str(first / "tables" / path) in told


OLD = ["comparison_n-to-m.svg", "fig15.pdf", "study_n_to_mn.png"]
FOREIGN = ["notes.svg", "fig15b.svg", "study_of_mine.svg", "fig15.txt"]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> Path:
    """A set with a variant that is named nowhere, drawn once into a folder where other figures lay."""
    results = tmp_path_factory.mktemp("drawn")
    rows = small() + small(variants=[("brand_new", "new_family", ["k=1", "k=2"], 0.001)])
    folder = sets.write_set(results, rows)
    (folder / "figures").mkdir()
    for name in (*OLD, *FOREIGN):
        (folder / "figures" / name).write_text("a file")
    assert render.main(["--results", str(results)]) == 0
    return folder


def test_no_date_and_no_version_in_any_file(drawn):
    figures = [path for path in drawn.glob("figures/*") if path.name not in FOREIGN]
    assert len(figures) > 8
    for path in figures:
        data = path.read_bytes()
        for stamp in (b"CreationDate", b"Matplotlib v", b"Software", b"dc:date"):
            assert stamp not in data, path


def test_figures_without_data_any_more_are_removed_and_foreign_files_stay(drawn):
    there = {path.name for path in (drawn / "figures").iterdir()}
    assert there & {*OLD, *FOREIGN} == set(FOREIGN)


def test_an_unknown_variant_needs_no_edit(drawn):
    assert "brand-new" in (drawn / "report.html").read_text(encoding="utf-8")
    assert "brand-new" in (drawn / "tables" / "best_algorithm.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("family", ["new_family", "warp_shuffle", "cpu"])
def test_colour_and_name_of_a_new_variant_follow_from_its_id(tmp_path, family):
    """Its curve stands in the figure under its own name, with a look that no other curve has."""
    new = [("brand_new", family, ["k=1"], 0.001)]
    sets.write_set(tmp_path, small() + small(variants=new))
    results = tidy.load(tmp_path / "published" / sets.KEY, sets.KEY, "published")
    with style.context():
        (drawing,) = comparison.draw(results)
    figure = drawing.figure
    assert "brand-new" in [text.get_text() for axes in figure.axes for text in axes.texts], "at the end of its line"
    looks = {
        line.get_label(): (line.get_color(), line.get_marker(), str(line.get_linestyle()))
        for line in figure.axes[0].get_lines()
        if not line.get_label().startswith("_")
    }
    assert len(looks) > 3 and list(looks.values()).count(looks["brand-new"]) == 1
    assert style.look("brand_new", family) == style.look("brand_new", family) != style.look("brand_newer", family)
    assert "brand_new" not in {*style.LABELS, *style.PINNED}


def test_another_metric_is_drawn_beside(tmp_path):
    folder = sets.write_set(tmp_path, small(sizes=[16]))
    assert render.main(["--results", str(tmp_path), "--metric", "useful_flops"]) == 0
    assert (folder / "figures" / "comparison_one-to-one_useful_flops.svg").exists()


def test_which_set_is_drawn(tmp_path):
    with pytest.raises(UserError, match="no results; measure first"):
        choose(tmp_path, [], False)
    sets.write_set(tmp_path, [sets.row()], key="a", kind="local")
    assert choose(tmp_path, [], False) == [("local", "a")]
    sets.write_set(tmp_path, [sets.row()], key="b", kind="local")
    with pytest.raises(UserError, match="several local sets; name one of a, b"):
        choose(tmp_path, [], False)
    sets.write_set(tmp_path, [sets.row()], key="b")
    sets.write_set(tmp_path, [sets.row()], key="c")
    assert choose(tmp_path, [], False) == [("published", "b"), ("published", "c")]
    assert choose(tmp_path, ["a", "b"], False) == [("local", "a"), ("published", "b")]
    assert choose(tmp_path, ["b"], True) == [("local", "b")]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["test-cpu-2-core"], "did you mean test-cpu-2-cores?"),
        (["--metric", "time_per_fm"], "did you mean time_per_fma?"),
        (["--nonsense"], "see --help"),
    ],
)
def test_mistakes_end_in_one_line(tmp_path, capsys, arguments, told):
    sets.write_set(tmp_path, [sets.row()])
    assert render.main([*arguments, "--results", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and told in error and error.count("\n") == 1


def test_a_damaged_published_file_is_named(tmp_path, capsys):
    folder = sets.write_set(tmp_path, [sets.row()])
    (folder / "one-to-one.csv.gz").write_bytes(b"no gzip")
    assert render.main(["--results", str(tmp_path)]) == 2
    assert "one-to-one.csv.gz" in capsys.readouterr().err


def test_help_has_an_example():
    done = subprocess.run([sys.executable, "-m", "plots.render", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "example:" in done.stdout


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX")
def test_latex_compiles(tmp_path):
    folder = sets.write_set(tmp_path, small())
    assert render.main(["--results", str(tmp_path)]) == 0
    table = (folder / "tables" / "best_algorithm.tex").read_text(encoding="utf-8")
    source = tmp_path / "t.tex"
    source.write_text("\\documentclass{article}\\begin{document}" + table + "\\end{document}")
    done = subprocess.run(["pdflatex", "-interaction=batchmode", "t.tex"], cwd=tmp_path)
    assert done.returncode == 0
