"""The report is one self-contained page that fits narrow and wide windows."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fixtures import real, sets
from hangs import HANG_S

from plots import render, tidy
from plots.report import page as report_page
from plots.report.inline_svg import inline
from plots.tables import outcomes

VOID = {"meta", "br", "img", "hr", "link", "input"}


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """A report with every section, of a small set with trouble in it."""
    root = tmp_path_factory.mktemp("results")
    rows = sets.model_rows(sizes=[16, 32, 256], counts={"one-to-one": [(1, 1)], "n-to-m": [(2, 2), (8, 8), (128, 128)]})
    wrong = {"outcome": "incorrect", "reason": "max error 3.2 > bound 0.1 at <shift> (0, 1)", "compute_us": None}
    rows.append(sets.row(variant="cpu_fft", family="cpu", params="threads=9", **wrong))
    refused = {"outcome": "not_supported", "reason": "needs a CUDA device", "compute_us": None}
    rows.append(sets.row(variant="warp_shuffle", family="warp_shuffle", **refused))
    folder = sets.write_set(root, rows)
    real.write_ebsd(folder)
    real.write_photo(folder)
    return render.render(tidy.load(folder, sets.KEY, "published"), folder).report


@pytest.fixture(scope="module")
def text(page):
    return page.read_text(encoding="utf-8")


class Tags(HTMLParser):
    """Ids, attributes that can load something, and whether elements nest."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.references: list[str] = []
        self.open: list[str] = []
        self.images: list[dict] = []

    def handle_startendtag(self, tag, attributes):
        self._see(tag, dict(attributes))

    def handle_starttag(self, tag, attributes):
        self._see(tag, dict(attributes))
        if tag not in VOID:
            self.open.append(tag)

    def _see(self, tag, attributes):
        if "id" in attributes:
            self.ids.append(attributes["id"])
        for name in ("src", "href", "xlink:href", "data", "srcset"):
            if name in attributes:
                inner = attributes[name].startswith("#")
                (self.references if inner else self.loads).append(attributes[name])
        if tag == "svg":
            self.images.append(attributes)
        assert tag != "script"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def tags(text):
    parser = Tags()
    parser.feed(text)
    assert parser.open == []
    return parser


def test_nothing_is_loaded_from_elsewhere(text, tags):
    assert all(load.startswith("data:image/png;base64,") for load in tags.loads)
    assert "@import" not in text and not re.search(r"url\((?!#)", text)
    assert len(text) < 15e6


def test_ids_are_unique_and_references_resolve(text, tags):
    assert len(tags.ids) == len(set(tags.ids))
    used = {name[1:] for name in tags.references} | set(re.findall(r"url\(#([^)]+)\)", text))
    assert used <= set(tags.ids)


def test_figures_speak_to_those_who_cannot_see_them(tags):
    assert len(tags.images) >= 7
    assert all(image["role"] == "img" and image["aria-label"] for image in tags.images)
    assert all("width" not in image and image["viewbox"] for image in tags.images)


def test_what_is_told(text):
    assert "Imaginary CPU" in text and "8 GiB" in text and "g++ 12.2.0" in text
    assert "1 point incorrect" in text
    assert "max error 3.2 &gt; bound 0.1 at &lt;shift&gt; (0, 1)" in text
    assert "needs a CUDA device" in text and "predicted" in text
    assert "substitute: package not reachable" in text and "CC BY 4.0" in text
    assert "100 %" in text and "2.39e-06" in text
    assert "Best algorithm" in text and "row streaming" in text
    assert "every call plans anew" in text


def test_the_first_screen_answers_five_questions(text):
    found = dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", text))
    assert list(found) == [
        "What was measured",
        "On which machine",
        "What is fastest",
        "How far from the floor",
        "How it was checked",
    ]
    assert "3 variants" in found["What was measured"] and "matrices from 16x16 to 256x256" in found["What was measured"]
    assert found["On which machine"].startswith("Imaginary CPU: memory 8 GiB")
    assert "row streaming on" in found["What is fastest"]
    assert found["How far from the floor"] == "Not known: the floor exists only for GPUs."
    assert "Incorrect: 1. Failed: 0." in found["How it was checked"]
    assert text.index("<dl") < text.index("<nav") < text.index('id="best"')


def test_local_and_empty_sets_have_a_report_too(tmp_path):
    rows = [sets.row(outcome="failed", compute_us=None, reason="")]
    folder = sets.write_set(tmp_path, rows, kind="local")
    written = render.render(tidy.load(folder, sets.KEY, "local"), folder)
    text = written.report.read_text(encoding="utf-8")
    assert written.drawn == [] and "No verified time in this set" in text
    assert "Figures left out" in text and "real-ebsd was not run" in text


def test_outcomes_count_points_once():
    rows = [
        sets.row(repetition=0),
        sets.row(repetition=1),
        sets.row(preset="smoke"),
        sets.row(preset="smoke", params="a=1", outcome="not_selected", reason="predicted 3.5 s"),
        sets.row(preset="quick", params="a=1"),
        sets.row(params="a=2", outcome="not_selected", reason="predicted 9 s"),
        sets.row(params="a=3", outcome="not_selected", reason="predicted 1e+03 s"),
        sets.row(params="a=4", outcome="failed", reason="signal 11"),
    ]
    frame = sets.frame(rows)
    (line,) = outcomes.counts(frame).to_dict("records")
    assert line == {"variant": "some_variant", "points": 5, "passed": 2, "failed": 1, "not_selected": 2}
    told = outcomes.reasons(frame)
    assert told[["outcome", "points", "reason"]].values.tolist() == [
        ["failed", 1, "signal 11"],
        ["not_selected", 2, "predicted 9 s"],
    ]


def test_facts_come_from_the_newest_run():
    new = {"device_name": "new", "memory_bytes": 2**31, "cuda": "", "host": {"kernel": "6.1"}}
    runs = {"20250101T000000-a": {"before": {"device_name": "old"}}, "20250102T000000-a": {"before": new}}
    assert report_page.facts(runs) == [("Device", "new"), ("Memory", "2 GiB"), ("Host kernel", "6.1")]
    assert report_page.facts({}) == []


def test_inlined_svg_keeps_its_style_to_itself():
    svg = (
        '<?xml version="1.0"?><!DOCTYPE svg><svg width="72pt" height="36pt" viewBox="0 0 72 36" role="img">'
        '<title>of the file</title><desc>of the file</desc><metadata>x</metadata><style>*{stroke-linejoin:round}.s0{fill:url(#b)}</style><g id="a">'
        '<use xlink:href="#b" clip-path="url(#c)"/></g></svg>'
    )
    text = inline(svg, "fig-1", 'a "label" <b>')
    assert text.startswith("<svg ") and "metadata" not in text and "<style>[id='fig-1'] *{" in text
    assert "[id='fig-1'] .s0{fill:url(#fig-1.b)}" in text
    assert 'id="fig-1.a"' in text and '#fig-1.b"' in text and "url(#fig-1.c)" in text
    assert 'aria-label="a &quot;label&quot; &lt;b&gt;"' in text and "36pt" not in text
    assert text.count("role=") == text.count("<title>") == 1 and "of the file" not in text


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [1280, 400])
def test_no_horizontal_overflow(page, tmp_path, width):
    """A frame of exactly `width` pixels (a window is never narrower than 500) measures itself."""
    frame, copy = tmp_path / "frame.html", tmp_path / "copy.html"
    probe = (
        "<script>addEventListener('load', () => {const d = document.documentElement;"
        "const wide = [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll')"
        " && e.getBoundingClientRect().right > d.clientWidth + 1).map(e => e.tagName);"
        "parent.postMessage([d.clientWidth, d.scrollWidth, wide.join(',')].join(';'), '*')});"
        "</script></body>"
    )
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", probe), encoding="utf-8")
    frame.write_text(
        f"<iframe src='copy.html' style='border:0;width:{width}px;height:900px'></iframe>"
        "<script>addEventListener('message', e => document.title = 'found ' + e.data)</script>"
    )
    words = (
        "chromium --headless --no-sandbox --disable-gpu --window-size=1400,1000 --virtual-time-budget=20000 --dump-dom"
    )
    command = [*words.split(), f"--user-data-dir={tmp_path / 'profile'}", frame.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
    found = re.search(r"<title>found (\d+);(\d+);([^<]*)</title>", done.stdout)
    assert found, done.stderr[-500:]
    assert int(found[1]) >= width - 20 and int(found[2]) <= int(found[1]) and found[3] == ""


def test_code_in_a_sentence_is_code():
    assert str(report_page.prose("Run `a --b <c>` & wait")) == "Run <code>a --b &lt;c&gt;</code> &amp; wait"
    assert str(report_page.prose("one ` alone")) == "one ` alone"
