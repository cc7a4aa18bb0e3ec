"""The committed report: fresh, small, linked, and its answers are those of the rows."""

import ast
import math
import random
import re
import shlex
from functools import cache
from html.parser import HTMLParser
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import pandas as pd
import pytest
import report_site
from fixtures import sets
from report_site import REPORT

from experiments.driver import store
from plots import tidy
from plots.metrics import MICRO, seconds_with_plan
from plots.site import __main__ as site
from plots.site import data, lines, pages
from xcorr.call.question import Options, question_of
from xcorr.commands.correlate import build_parser
from xcorr.errors import UserError
from xcorr.paths import RESULTS
from xcorr.problem import Problem

MEGABYTE = 1_000_000


def model_set(root):
    rows = sets.model_rows(sizes=[16, 32, 64], counts={"one-to-one": [(1, 1)], "n-to-m": [(2, 2), (8, 8)]})
    wrong = {"outcome": "incorrect", "reason": "max error 3.2 > bound 0.1", "compute_us": None}
    rows.append(sets.row(variant="cpu_fft", family="cpu", params="threads=9", **wrong))
    rows.append(sets.row(variant="cpu_fft", family="cpu", score="zncc:0.3", form="n-to-m", window="valid", **wrong))
    return sets.write_set(root, rows)


@pytest.fixture(scope="module")
def published() -> dict[str, tidy.ResultSet]:
    return {key: tidy.load(RESULTS / "published" / key, key, "published") for key in report_site.answers()["machines"]}


def test_the_committed_report_is_what_the_rows_give(published):
    assert site.stale(REPORT, pages.build(list(published.values()))) == []


def test_the_same_rows_give_the_same_bytes(tmp_path, capsys):
    folder = model_set(tmp_path)
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "gone.html").write_text("old")
    assert site.main(["--results", str(tmp_path), "--check"]) == 1
    assert "gone.html: is stale" in capsys.readouterr().out and (tmp_path / "report" / "gone.html").exists()
    assert site.main(["--results", str(tmp_path)]) == 0
    once = pages.build([tidy.load(folder, sets.KEY, "published")])
    assert once == pages.build([tidy.load(folder, sets.KEY, "published")])
    assert site.stale(tmp_path / "report", once) == []
    assert site.main(["--results", str(tmp_path), "--check"]) == 0


def test_incorrect_points_are_counted_over_all_rows_and_named(tmp_path):
    built = pages.build([tidy.load(model_set(tmp_path), sets.KEY, "published")])
    assert "2 are incorrect: FFT (FFTW) (2)" in built["index.html"].decode()


def test_no_set_is_one_line_that_names_the_way_out(tmp_path, capsys):
    (tmp_path / "published").mkdir()
    assert site.main(["--results", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and "scripts/reproduce.sh" in error and error.count("\n") == 1


def test_the_report_is_small():
    sizes = {path: path.stat().st_size for path in REPORT.rglob("*") if path.is_file()}
    assert sum(sizes.values()) <= 4 * MEGABYTE
    assert not {path.name: size for path, size in sizes.items() if size > MEGABYTE}


class Page(HTMLParser):
    """Links, images, ids, headings, and cells of headers of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.ids: list[str] = []
        self.headings: list[int] = []
        self.tables: list[int] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.links += [found[name] for name in ("href", "src") if found.get(name)]
        if tag == "img":
            self.images.append(found)
        if "id" in found:
            self.ids.append(found["id"])
        if tag in ("h1", "h2", "h3", "h4"):
            self.headings.append(int(tag[1]))
        if tag == "table":
            self.tables.append(0)
        if tag == "th" and "scope" in found:
            self.tables[-1] += 1


@cache
def page(path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", report_site.pages(), ids=lambda path: path.stem)
def test_links_and_images_exist(path):
    broken = []
    for link in page(path).links:
        parts = urlsplit(link)
        if parts.scheme in ("http", "https", "data"):
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        same = target.suffix == ".html" and target.parent == REPORT and parts.fragment and "=" not in parts.fragment
        if not target.exists() or (same and parts.fragment not in page(target).ids):
            broken.append(link)
    assert not broken
    assert not [link for link in page(path).links if link.endswith((".js", ".css")) and urlsplit(link).scheme]


@pytest.mark.parametrize("path", report_site.pages(), ids=lambda path: path.stem)
def test_a_page_speaks_to_those_who_cannot_see_it(path):
    found = page(path)
    assert found.headings[0] == 1 and found.headings.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(found.headings, found.headings[1:])), found.headings
    assert len(found.ids) == len(set(found.ids))
    assert all(image["alt"] and image["width"] and image["height"] for image in found.images)
    assert all(found.tables), "a table without headers"


def test_every_source_has_a_page_with_figures():
    names = {path.stem for path in report_site.pages()}
    assert names == {"index", "machines", "accuracy", "rivals", "method", *pages.chapters.sources()}
    assert all(page(REPORT / f"{one}.html").images for one in pages.chapters.sources())


def test_every_figure_stands_on_one_page_with_a_link_to_its_numbers():
    shown = [image["src"] for path in report_site.pages() for image in page(path).images]
    own = [path for path in RESULTS.glob("published/*/figures/*.svg") if not store.is_imported(path.parts[-3])]
    there = [f"../published/{path.relative_to(RESULTS / 'published')}" for path in own]
    there += [f"../../results/machines/{path.name}" for path in RESULTS.glob("machines/*.svg")]
    assert sorted(shown) == sorted(there)
    for path in report_site.pages():
        captions = re.findall(r"<figcaption.*?</figcaption>", path.read_text(encoding="utf-8"), re.DOTALL)
        assert not [one for one in captions if ".csv" not in one], path


def test_the_front_page_has_five_findings_with_the_name_of_the_card():
    text = (REPORT / "index.html").read_text(encoding="utf-8")
    assert text.count('<span class="card">') == 5


def frames(results: tidy.ResultSet, line: dict) -> pd.DataFrame:
    """The points among which the answer of a line is the fastest."""
    if line["mode"] in ("latency", "graph", "cold"):
        fed = results.feeding("best_by_mode")
        return fed if (fed["mode"] == line["mode"]).any() and not fields_text(line) else joined(results)
    main = results.feeding("best_table")
    return pd.concat([main, *([] if of_line(main, line).any() else [joined(results)])])


def joined(results: tidy.ResultSet) -> pd.DataFrame:
    return pd.concat([one for one in (results.points, results.with_fields) if len(one)])


def fields_text(line: dict) -> str:
    given = [f"{name}={line[name]}" for name in ("boundary", "score", "result") if line[name] != lines_default(name)]
    return "/".join(sorted([*given, *filter(None, line["more"].split("/"))], key=order))


def lines_default(name: str) -> str:
    return {"boundary": "zero", "score": "product", "result": "surface"}[name]


def order(text: str) -> int:
    return ["boundary", "score", "masks", "result", "same", "views"].index(text.partition("=")[0])


def of_line(points: pd.DataFrame, line: dict) -> pd.Series:
    mask = (points["outcome"] == "passed") & (points["input"] == "uniform") & (points["fields"] == fields_text(line))
    for name in ("form", "counts", "size", "window", "precision", "mode"):
        mask &= points[name] == line[name]
    return mask


def questions(number: int, seed: int) -> list[dict]:
    return random.Random(seed).sample(report_site.lines(), number)


@pytest.mark.parametrize("line", questions(50, 47), ids=lambda line: f"{line['form']}-{line['size']}-{line['mode']}")
def test_an_answer_is_the_fastest_of_its_rows(published, line):
    points = frames(published[line["machine"]], line)
    own = points[of_line(points, line)]
    times = own["compute_us"] if line["plan"] == lines.KEPT else seconds_with_plan(own) / MICRO
    assert math.isclose(times.min(), line["time_us"], rel_tol=1e-5)
    first = own.loc[times == times.min()] if not own.index.has_duplicates else own[times.to_numpy() == times.min()]
    assert line["best"] in set(first["variant"]) and line["params"] in set(first["params"])
    assert line["low_us"] <= line["time_us"] <= line["high_us"]
    others = own[own["variant"] != line["best"]]
    assert line["contenders"] == 1 + others["variant"].nunique()
    assert bool(line["runner_up"]) == bool(len(others))


def test_no_question_has_two_answers():
    keys = [tuple(one[name] for name in lines.ASKED) for one in report_site.lines()]
    assert len(keys) == len(set(keys)) > 500
    assert {one["mode"] for one in report_site.lines()} >= {"stream", "latency", "graph", "cold"}


def asked_in_python(text: str) -> tuple[Problem, str]:
    """The problem and the variant that Python lines of an answer ask for, as the call reads them."""
    if not text.startswith("#"):  # matrices in a larger array
        found: list[tuple[Problem, str]] = []

        class Library:
            def correlate(self, problem, *_, variant, params="", **__):
                found.append((problem, f"{variant}:{params}".rstrip(":")))

        assert text.startswith("from xcorr.native.library import Library\nfrom xcorr.problem import Problem\n")
        arrays = dict.fromkeys(("left", "right", "left_mask", "right_mask"))
        exec(text.partition("Problem\n")[2], {"Library": Library, "Problem": Problem, **arrays})
        return found[0]
    comment, call = text.split("\n")
    shapes = {side: ast.literal_eval(shape) for side, shape in re.findall(r"(left|right) (\([^)]*\))", comment)}
    found = []

    def correlate(left, right, *, mask_left=None, mask_right=None, form=None, variant="auto", precision=None, **words):
        masked = tuple(side for side, mask in (("left", mask_left), ("right", mask_right)) if mask)
        all_of = {"window": "full", "score": "product", "boundary": "zero", "result": "surface"} | words
        options = Options(form, *all_of.values(), precision, variant, masked)
        found.append((question_of(options, (left, right), ("float32", "float32")).problem, variant))

    names = {**shapes, "right": shapes.get("right"), "mask_left": True, "mask_right": True}
    exec(call, {**names, "xcorr": SimpleNamespace(correlate=correlate)})
    return found[0]


@pytest.mark.parametrize("line", questions(50, 48), ids=lambda line: f"{line['form']}-{line['size']}-{line['mode']}")
def test_command_and_python_lines_ask_for_the_problem(line):
    made, variant = asked_in_python(line["python"])
    assert (made.form, f"{made.lefts}-to-{made.rights}", made.window) == (line["form"], line["counts"], line["window"])
    assert tidy.size_label(*made.left, *made.right) == line["size"]
    assert made.fields.text == fields_text(line)
    assert variant == f"{line['best']}:{line['params']}".rstrip(":")
    if line["command"]:
        options = build_parser().parse_args(shlex.split(line["command"]))
        assert (options.variant, options.params, options.form) == (line["best"], line["params"], line["form"])
        assert (options.score, options.result, options.window) == (line["score"], line["result"], line["window"])
    else:
        assert "views=" in line["more"]


def test_what_is_no_option_of_the_command_is_refused():
    with pytest.raises(UserError):
        build_parser().parse_args(["A.npy", "B.npy", "--no-such-option"])


def test_the_data_file_is_read_back():
    frame = pd.DataFrame([{name: math.nan if name == "floor_us" else "a;b" for name in lines.COLUMNS}])
    found = data.read(data.answers(frame, {"k": "Machine"}))
    assert found["lines"] == [[None if name == "floor_us" else "a;b" for name in lines.COLUMNS]]
    assert found["machines"] == {"k": "Machine"}
