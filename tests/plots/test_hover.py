"""The values that figures show to who points at them: each data point of a figure, where it is, with series, panel and values."""

import json
import math
import re

import pytest
import report_site
from fixtures import sets
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter
from report_site import REPORT, WRITE, browse, needs_chromium, probe, probed

from plots import hover, style, tidy
from plots.drawing import Drawing
from plots.figures import comparison
from plots.files import encode
from xcorr.paths import RESULTS

LONG, SHORT = 500, 60


def figure():
    with style.context("t"):
        made = Figure(figsize=(4, 3))
        (one, two), (three, four) = made.subplots(2, 2)
        one.plot([16, 32], [1.5e-6, 2.5e-6], marker="o", color="#ff0000")
        one.set_xticks([16, 32], ["16x16", "32x32"])
        one.yaxis.set_major_formatter(EngFormatter("s"))
        one.set_title("1-to-2: all")
        made.legend([Line2D([], [], marker="o", color="#ff0000")], ["a < b"], title="rows")
        two.plot(range(LONG), range(LONG), marker="o", label="signal")
        two.plot(range(SHORT), range(SHORT), label="distribution")
        two.axhline(3.0, color="#00ff00")
        three.bar([0, 1], [0.25, 0.5], label="forward")
        three.bar([0, 1], [0.5, 0.25], bottom=[0.25, 0.5], label="inverse")
        three.set_xticks([0, 1], ["P1", "P2"])
        three.set_ylabel("Share")
        three.set_title("Parts")
        four.imshow([[0, 1]])
        four.plot([0, 1], [0, 0], marker="o")
    return made


def points(svg):
    return {(one.series, one.values): (one.x, one.y) for one in hover.read(svg)}


def test_points_have_series_panel_and_values_and_signals_have_none():
    found = points(encode(Drawing("t", "T", "c", "a", figure()))["svg"].decode())
    assert set(found) == {
        ("rows a < b, 1-to-2: all", "16x16, 1.5 µs"),
        ("rows a < b, 1-to-2: all", "32x32, 2.5 µs"),
        ("forward, Parts", "P1, Share 0.25"),
        ("forward, Parts", "P2, Share 0.5"),
        ("inverse, Parts", "P1, Share 0.5"),
        ("inverse, Parts", "P2, Share 0.25"),
    }


def test_a_point_lies_on_its_marker():
    svg = encode(Drawing("t", "T", "c", "a", figure()))["svg"].decode()
    drawn = [tuple(map(float, one)) for one in re.findall(r'<use xlink:href="[^"]+" x="([\d.]+)" y="([\d.]+)"', svg)]
    for (series, _), (x, y) in points(svg).items():
        if series.startswith("rows"):
            assert min(math.hypot(x - a, y - b) for a, b in drawn) < 0.2


def test_a_figure_of_rows_has_a_point_a_time(tmp_path):
    """The text of a point is the time of its rows."""
    folder = sets.write_set(tmp_path, sets.model_rows(sizes=[16, 64], counts={"one-to-one": [(1, 1)]}))
    results = tidy.load(folder, sets.KEY, "published")
    with style.context("comparison"):
        (drawing,) = comparison.draw(results)
        found = points(encode(drawing)["svg"].decode())
    best = results.points.groupby(["variant", "size"])["compute_us"].min()
    for (variant, size), us in best.items():
        shown = EngFormatter("s")(float(f"{us * 1e-6:.4g}"), 0)
        assert (f"{style.label(variant)}, 1-to-1", f"{size}, {shown}") in found


PAGES = [path for path in report_site.pages() if "data/points-" in path.read_text(encoding="utf-8")]


def data(page):
    text = (REPORT / "data" / f"points-{page.stem}.js").read_text(encoding="utf-8")
    return json.loads(text.partition(" = ")[2].rstrip().removesuffix(";"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_the_points_of_its_figures(page):
    shown = set(re.findall(r'<img src="([^"]+)"', page.read_text(encoding="utf-8")))
    own = data(page)
    assert own and set(own) <= shown
    for name in shown:
        there = hover.read((REPORT / name).read_text(encoding="utf-8"))
        assert len(there) == sum(len(series) - 1 for series in own.get(name, {"series": []})["series"])


def test_most_figures_with_rows_have_values():
    """Maps have theirs as text; pictures and distributions have none."""
    figures = sorted(RESULTS.glob("published/nvidia-h200-*/figures/*.svg"))
    without = {path.stem for path in figures if not hover.read(path.read_text(encoding="utf-8"))}
    maps = {"crossover", "crossover_plan", "floor", "cache", "replay", "in_kernel", "time_series_crossover"}
    assert without <= maps | {"displacement", "photo", "velocimetry", "tracking"}


@needs_chromium
def test_the_page_tells_the_point_under_the_pointer(tmp_path):
    page = REPORT / "jpdc.html"
    name, own = next(iter(data(page).items()))
    series, (x, y, values), *_ = own["series"][0]
    script = f"""addEventListener('load', () => {{
      const image = document.querySelector('img[src="{name}"]');
      const point = (x, y) => {{
        const frame = image.getBoundingClientRect(), scale = frame.width / {own["width"]};
        image.dispatchEvent(new PointerEvent('pointermove', {{ clientX: frame.left + x * scale, clientY: frame.top + y * scale }}));
        const ring = document.querySelector('.ring');
        return ring.hidden ? '' : ring.textContent;
      }};
      const found = [point({x} + 2, {y} - 2), point(0, 0)]; {WRITE}}});"""
    dom, console = browse(probed(page, tmp_path, script), tmp_path)
    told, away = probe(dom)
    assert console == "" and f"{series}: {values}" in told.split("\n") and away == ""
