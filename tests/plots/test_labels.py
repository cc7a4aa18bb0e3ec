"""Names at the ends of lines: they do not overlap, stay beside their panel, and can be read; legends stay short."""

import itertools

import numpy as np
import pandas as pd
import pytest
from fixtures import sets
from fixtures.sets import draw, result_set
from matplotlib.backends.backend_agg import FigureCanvasAgg

from plots import style
from plots.figures import _curves, _facets, _labels, _panels, _paper, comparison, phases, speedup
from plots.metrics import METRICS

MOST_ENTRIES = 9  # of a legend: more than these nobody finds again in the picture


def boxes(figure):
    """The extents of the names beside each panel."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    for axes in figure.axes:
        yield [one.get_window_extent(renderer) for one in axes.texts], figure.bbox


def no_two_overlap(figure):
    for own, page in boxes(figure):
        for one, other in itertools.combinations(own, 2):
            assert min(one.y1, other.y1) - max(one.y0, other.y0) <= 1 or not one.overlaps(other)
        for one in own:
            assert one.x0 >= page.x0 - 1 and one.x1 <= page.x1 + 1 and one.y0 >= page.y0 - 1 and one.y1 <= page.y1 + 1


@pytest.mark.parametrize("count", [1, 2, 7, 14, 19])
@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0])
def test_names_beside_one_panel_never_overlap(count, spread):
    curves = [
        (f"line {place}", pd.DataFrame({"y": [1.0, 5.0 * 10 ** (spread * place)]}, [1, 10]), {"color": "#0072b2"})
        for place in range(count)
    ]
    with style.context():
        figure = _panels.curve_chart(curves, {1: "1", 10: "10"}, "x", "y", "s")
        assert sorted(text.get_text() for text in figure.axes[0].texts) == sorted(label for label, _, _ in curves)
        no_two_overlap(figure)


def test_names_beside_facets_never_overlap():
    with style.context():
        for module in (comparison, speedup):
            for drawing in draw(module, result_set(sets.model_rows(sets.GPU, sizes=[16, 64, 256]))).values():
                no_two_overlap(drawing.figure)


def test_apart_keeps_order_distance_and_place():
    moved = _labels.apart([0.0, 0.0, 0.05, 1.9, 1.99], 2.0, 0.1)
    assert moved == sorted(moved) and min(np.diff(moved)) >= 0.1 - 1e-9 and moved[0] >= 0 and moved[-1] <= 2.0
    assert _labels.apart([0.5, 1.5], 2.0, 0.1) == [0.5, 1.5], "what is apart stays where it is"


def test_a_line_without_a_point_has_no_name():
    assert _labels.end("a", [1.0, 2.0], [np.nan, np.nan], "#000000") is None
    assert _labels.end("a", [1.0, 2.0], [3.0, np.nan], "#000000") == _labels.End("a", 1.0, 3.0, "#000000")


def test_a_panel_with_too_many_lines_has_a_legend():
    metric = METRICS["time"]
    many = [(f"v{place:02}", "cpu", [""], 0.1 * (1 + place)) for place in range(30)]
    points = sets.points(sets.model_rows(many, sizes=[16, 32], counts={"one-to-one": [(1, 1)]}))
    with style.context():
        figure = _curves.draw(points, _curves.curves(points, metric), metric)
    assert len(figure.legends[0].get_texts()) == 30 and not figure.axes[0].texts
    assert not _labels.fit(30, 2.3) and _labels.fit(10, 2.3)


def test_names_never_squeeze_a_panel():
    long = [(f"a_variant_with_a_very_long_name_{place}", "cpu", [""], 0.1 * (1 + place)) for place in range(3)]
    for variants, legends in ((long, 1), (sets.CPU, 0)):
        rows = sets.model_rows(variants, sizes=[16, 32, 64])
        figure = draw(comparison, result_set(rows))["comparison_n-to-m"].figure
        assert min(_panels.panel_width(axes) for axes in figure.axes) >= _curves.NARROWEST_IN
        assert len(figure.legends) == legends


def test_no_figure_has_a_long_legend():
    rows = sets.model_rows(sets.GPU, sizes=[16, 32])
    rows += sets.model_rows([(f"v{place}", "tiled", [""], 0.01) for place in range(30)], sizes=[16, 32])
    for module in (comparison, speedup, phases):
        for drawing in draw(module, result_set(rows)).values():
            assert sum(len(one.get_texts()) for one in drawing.figure.legends) <= MOST_ENTRIES, drawing.name
    for key, spec in _paper.specs().items():
        assert len(spec.series) <= MOST_ENTRIES, key


@pytest.mark.parametrize("colour", [*style.HUES.values(), *style.FAMILY_COLOURS.values(), "#ffffff", "#79b5d9"])
def test_names_have_the_contrast_of_text(colour):
    assert style._contrast(style.as_text(colour)) >= style.READABLE
    if style._contrast(colour) >= style.READABLE:
        assert style.as_text(colour) == colour, "what can be read keeps the colour of its line"


def test_curves_of_the_palettes_differ_without_colour():
    for palette, colours in _facets.PALETTES.items():
        looks = [_facets.look(palette, place, len(colours)) for place in range(len(colours))]
        assert len({look.marker for look in looks}) == len(looks)
