"""The report in a browser: answers of the chooser, widths, console. What needs no browser runs in node."""

import json
import random
import re
from collections import Counter

import pytest
import report_site
from report_site import REPORT, WRITE, browse, evaluate, in_frames, needs_chromium, needs_node, probe, probed

ASKED = "machine form counts size window boundary score result more precision mode plan".split()
USUAL = {"window": "full", "boundary": "zero", "score": "product", "result": "surface", "more": "", "precision": "fp32"}
USUAL |= {"mode": "stream", "plan": "kept"}


def questions() -> list[dict]:
    """50 lines, each asked by its choices."""
    return random.Random(49).sample(report_site.lines(), 50)


def asked(line: dict) -> dict:
    return {name: line[name] for name in ASKED}


def wanted(**values: str) -> dict:
    """Usual choices on the machine with most answers."""
    machine = Counter(one["machine"] for one in report_site.lines()).most_common(1)[0][0]
    return {"machine": machine, **USUAL, **values}


@needs_node
def test_the_chooser_answers_50_questions_with_their_rows():
    found = evaluate(f"{json.dumps([asked(one) for one in questions()])}.map((one) => Chooser.answer(one).line)")
    assert found == questions()


@needs_node
@pytest.mark.parametrize(("side", "mode"), [(701, "latency"), (701, "stream"), (61, "stream"), (5, "latency")])
def test_a_size_that_was_not_measured_is_not_answered_by_another_one(side, mode):
    measured = sorted(
        int(one["size"].split("x")[0])
        for one in report_site.lines()
        if asked(one) == wanted(form="one-to-one", counts="1-to-1", mode=mode, size=one["size"])
        and len(set(one["size"].split("x"))) == 1
    )
    smaller, larger = [one for one in measured if one < side][-1:], [one for one in measured if one > side][:1]
    expected = [*smaller, *larger] if smaller and larger else measured[-2:] if smaller else measured[:2]
    question = wanted(form="one-to-one", counts="1-to-1", size=f"{side}x{side}", mode=mode)
    found = evaluate(f"Chooser.answer({json.dumps(question)})")
    assert side not in measured and found["line"] is None
    assert [one["size"] for one in found["near"]] == [f"{one}x{one}" for one in expected]
    told = evaluate(f"Chooser.nearby({json.dumps(question)}, {json.dumps(found['near'])})")
    assert f"{side}x{side} was not measured" in told and all(f"{one}x{one}" in told for one in expected)
    assert ("All measured sizes are" in told) == (len(smaller) + len(larger) < 2)


@needs_node
@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("700", "700x700"),
        ("36 x 90", "36x90"),
        ("24x24:120x160", "24x24:120x160"),
        ("8:8", "8x8"),
        ("0", None),
        ("a", None),
        ("", None),
    ],
)
def test_a_size_is_read_as_people_write_it(text, size):
    assert evaluate(f"Chooser.size({json.dumps(text)})") == size


@needs_node
@pytest.mark.parametrize(
    ("text", "form", "counts"),
    [
        ("200-to-1", "n-to-m", "200-to-1"),
        ("2 : 8", "n-to-mn", "2-to-8"),
        ("5000", "n-to-mn", "5000-to-5000"),
        ("5000", "one-to-many", "1-to-5000"),
        ("0", "n-to-m", None),
        ("2-to-0", "n-to-m", None),
        ("many", "n-to-m", None),
    ],
)
def test_numbers_of_matrices_are_read_as_people_write_them(text, form, counts):
    assert evaluate(f"Chooser.counts({json.dumps(text)}, '{form}')") == counts


def near(question: dict) -> tuple[dict, list[dict], list[list[str]]]:
    """The answer to a question, and of each line that it names how it differs."""
    script = f"((q) => {{ const a = Chooser.answer(q); return [a, a.near.map((one) => Chooser.differs(one, q))]; }})({json.dumps(question)})"
    found, differs = evaluate(script)
    return found["line"], found["near"], differs


@needs_node
def test_numbers_of_matrices_that_were_not_measured_are_answered_by_the_nearest_size_and_numbers():
    template = {"window": "valid", "score": "zncc:0.3", "result": "peak"}
    question = wanted(form="n-to-m", counts="200-to-1", size="48x48:1080x1920") | template
    line, found, differs = near(question)
    assert line is None and len(found) == 2
    assert all(asked(one) | {"counts": "", "size": ""} == question | {"counts": "", "size": ""} for one in found)
    assert len({one["size"] for one in found}) == 1
    assert all(f"{one['counts']} in place of 200-to-1" in said for one, said in zip(found, differs))


@needs_node
def test_what_a_machine_never_measured_is_answered_by_its_nearest_line_and_that_of_another_machine():
    question = wanted(form="n-to-mn", counts="5000-to-5000", size="96x96", result="peak")
    question |= {"machine": "amd-epyc-2-cores"}
    line, (here, there), (same, other) = near(question)
    assert line is None and here["machine"] == question["machine"] != there["machine"]
    assert "result surface in place of peak" in same
    assert there["result"] == "peak" and any("in place of AMD EPYC" in one for one in other)
    assert evaluate(f"Chooser.settled('result', 'peak', {json.dumps(question)})") == question


@needs_node
def test_only_what_occurs_is_offered_and_choices_narrow_each_other():
    question = wanted(form="one-to-one", counts="1-to-1", size="64x64", mode="latency")
    found = evaluate(f"Chooser.offered('counts', {json.dumps(question)})")
    assert found["now"] == ["1-to-1"] and set(found["other"]) == {one["counts"] for one in report_site.lines()} - {
        "1-to-1"
    }
    modes = evaluate(f"Chooser.offered('mode', {json.dumps(question)})")
    assert set(modes["now"]) == {"stream", "latency", "graph", "cold"}


@needs_node
def test_a_choice_that_fits_no_others_changes_them_to_a_measured_problem():
    question = wanted(form="one-to-one", counts="1-to-1", size="64x64")
    found = evaluate(f"Chooser.settled('counts', '32-to-32', {json.dumps(question)})")
    assert found["counts"] == "32-to-32" and found["form"] == "n-to-m" and found["mode"] == "stream"
    assert any(asked(line) == found for line in report_site.lines())


@needs_node
def test_ties_are_said_as_ties():
    tied = next(one for one in report_site.lines() if one["tied_with"])
    alone = next(one for one in report_site.lines() if not one["tied_with"] and one["runner_up"])
    told, other = (dict(one[:2] for one in evaluate(f"Chooser.facts({json.dumps(line)})")) for line in (tied, alone))
    assert "within the noise" in told["Ties with it"] and "Ties with it" not in other
    assert "times as long" in other["Runner-up"]


@needs_node
def test_the_distance_of_32_to_32_at_128_names_its_limit():
    question = wanted(form="n-to-m", counts="32-to-32", size="128x128")
    told = evaluate(f"Object.fromEntries(Chooser.facts(Chooser.answer({json.dumps(question)}).line))")
    assert re.match(
        r"\d\.\d\d times the floor of [\d.]+ µs; the limit that binds is \w+", told["Distance to the hardware"]
    )


@needs_chromium
def test_the_page_of_the_chooser_shows_the_answers(tmp_path):
    script = f"""const found = {json.dumps([asked(one) for one in questions()])}.map((one) => {{
      location.hash = new URLSearchParams(one).toString();
      dispatchEvent(new HashChangeEvent('hashchange'));
      return document.getElementById('answer').textContent;
    }}); {WRITE}"""
    dom, console = browse(probed(REPORT / "index.html", tmp_path, script), tmp_path)
    labels = report_site.answers()["labels"]
    for text, line in zip(probe(dom), questions()):
        assert text.startswith(f"AnswerUse{labels[line['best']]}"), text[:200]
        point = line["best"] if "views" in line["more"] else f"{line['best']}:{line['params']}".rstrip(":")
        assert f'variant="{point}"' in text
    assert console == ""


@needs_chromium
def test_a_machine_without_a_set_is_said_to_have_none(tmp_path):
    script = f"""location.hash = 'machine=h100&form=one-to-one&counts=1-to-1&size=64x64';
      dispatchEvent(new HashChangeEvent('hashchange'));
      const found = [document.getElementById('changed').textContent, document.getElementById('answer').textContent]; {WRITE}"""
    dom, console = browse(probed(REPORT / "index.html", tmp_path, script), tmp_path)
    said, text = probe(dom)
    assert console == "" and said.startswith("Nothing was measured on another machine") and text.startswith("AnswerUse")


@needs_chromium
def test_the_front_page_is_at_most_five_screens(tmp_path):
    script = "addEventListener('load', () => parent.postMessage(document.documentElement.scrollHeight, '*'));"
    copy = probed(REPORT / "index.html", tmp_path, script)
    dom, _ = browse(in_frames(copy, [1280]), tmp_path, 1400)
    (height,) = probe(dom)
    assert 800 < height <= 5 * 800


@needs_chromium
@pytest.mark.parametrize("page", report_site.pages(), ids=lambda page: page.stem)
def test_no_console_error_and_nothing_wider_than_the_window(page, tmp_path):
    """A frame of exactly that width measures itself: a window is never narrower than 500 pixels."""
    _, console = browse(page, tmp_path)
    assert console == ""
    script = """addEventListener('load', () => {const d = document.documentElement;
    const wide = [...document.querySelectorAll('body *')].filter((e) => !e.closest('.scroll, pre, .skip')
      && e.getBoundingClientRect().right > d.clientWidth + 1).map((e) => e.tagName + '.' + e.className);
    parent.postMessage([d.clientWidth, d.scrollWidth, wide], '*');});"""
    copy = probed(page, tmp_path, script)
    widths = (400, 1280, 2000)
    dom, _ = browse(in_frames(copy, widths), tmp_path, 2100)
    found = probe(dom)
    assert sorted(one[0] for one in found) == pytest.approx(list(widths), abs=20)
    assert all(one[1] <= one[0] and one[2] == [] for one in found), found


@needs_chromium
@pytest.mark.parametrize("page", report_site.pages(), ids=lambda page: page.stem)
def test_nothing_is_cut_off_in_print(page, tmp_path):
    """The rules for print at the width of a sheet of A4: paper does not scroll."""
    style = (REPORT / "style.css").read_text(encoding="utf-8")
    assert style.count("@media print {") == 1
    script = f"""addEventListener('load', () => {{const d = document.documentElement;
    const found = [...document.querySelectorAll('body *')].filter((e) => !e.closest('.skip')
      && e.getBoundingClientRect().right > d.clientWidth + 1).map((e) => e.tagName + '.' + e.className); {WRITE}}});"""
    copy = probed(page, tmp_path, script)
    sheet = "<style>" + style.replace("@media print {", "@media all {") + "</style>"
    text = copy.read_text(encoding="utf-8").replace('<link rel="stylesheet" href="style.css">', sheet)
    assert sheet in text
    copy.write_text(text, encoding="utf-8")
    dom, _ = browse(copy, tmp_path, 740)
    assert probe(dom) == []


@needs_chromium
def test_a_table_sorts_by_numbers_and_shows_the_lines_with_some_words(tmp_path):
    script = f"""const table = document.querySelector('table.sortable'), field = document.querySelector('.filter input');
    const column = (place) => [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.cells[place].textContent);
    const found = {{before: column(2)}};
    table.tHead.rows[0].cells[2].querySelector('button').click();
    found.up = column(2);
    table.tHead.rows[0].cells[2].querySelector('button').click();
    found.down = column(2);
    field.value = 'NPP 1:1';
    field.dispatchEvent(new Event('input'));
    found.shown = column(1); {WRITE}"""
    dom, console = browse(probed(REPORT / "rivals.html", tmp_path, script), tmp_path)
    found = probe(dom)
    assert isinstance(found, dict) and console == ""
    assert list(map(float, found["up"])) == sorted(map(float, found["before"]))
    assert list(map(float, found["down"])) == sorted(map(float, found["before"]), reverse=True)
    assert 0 < len(found["shown"]) < len(found["before"]) and all("NPP" in one for one in found["shown"])


@needs_chromium
def test_times_sort_by_their_units(tmp_path):
    script = f"""const table = document.querySelector('table.sortable'), head = table.tHead.rows[0].cells[1].querySelector('button');
    head.click();
    const found = [...table.tBodies[0].rows].map((row) => row.cells[1].textContent.split(',')[0]); {WRITE}"""
    dom, console = browse(probed(REPORT / "machines.html", tmp_path, script), tmp_path)
    scales = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
    found = [float(number) * scales[unit] for number, unit in (one.split() for one in probe(dom) if one != "–")]
    assert console == "" and len(found) > 3 and found == sorted(found)
