"""Series, facets, normalisations and captions of the paper's figures, from a made-up grid."""

import numpy as np
import pytest
from fixtures import paper
from fixtures.paper import FIVE, NINE
from fixtures.paper_figures import EXPECTED, NUMBERS, PACKAGE, POINTS
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from experiments.driver import shown
from experiments.driver.points import Unit
from plots import catalogue, files, style
from plots.drawing import Drawing, Omitted
from plots.figures import __main__, _paper
from xcorr.native.variants import Variant
from xcorr.problem import Problem


@pytest.fixture(scope="module")
def lines():
    return paper.lines()


@pytest.fixture(scope="module")
def drawn(lines):
    """Every figure of the complete grid."""
    results = paper.result_set(lines)
    return {key: draw(key, results) for key in _paper.specs()}


def draw(key, results):
    with style.context():
        (one,) = catalogue.entries()[key].draw(results)
    return one


def of(lines, **wanted):
    """The points with these values; `params`: with these parameters among theirs."""
    params = wanted.pop("params", "")
    return [
        one
        for one in lines
        if all(one[k] == v for k, v in wanted.items()) and set(params.split(";")) <= {"", *one["params"].split(";")}
    ]


def curves(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def legend(drawing):
    return [text.get_text() for text in drawing.figure.legends[0].get_texts()]


def test_every_figure_of_the_paper_and_of_the_package_is_a_table_of_the_data():
    specs = _paper.specs()
    assert [spec.number for spec in specs.values() if spec.number] == NUMBERS
    assert {spec.file for spec in specs.values() if not spec.number} == PACKAGE
    assert set(specs) == set(EXPECTED)
    entries = catalogue.entries()
    assert all(entries[key].title for key in specs)
    assert [entries[f"fig{n}"].title.split(":")[0] for n in NUMBERS] == [f"Figure {n}" for n in NUMBERS]


@pytest.mark.parametrize("key", EXPECTED)
def test_facets_curves_and_axis(drawn, key):
    rows, columns, series, label = EXPECTED[key]
    drawing = drawn[key]
    axes = drawing.figure.axes
    assert len(axes) == len(rows) * len(columns)
    assert [one.get_title() for one in axes[: len(columns)]] == columns
    strips = [t.get_text() for one in axes for t in one.texts]
    assert strips == [name for name in rows if name]
    assert legend(drawing) == series
    assert label in [text.get_text() for text in drawing.figure.texts]
    sizes = NINE if _paper.specs()[key].file.startswith("one-to-one/") else FIVE
    for one in axes:
        assert one.get_yscale() == "log"
        assert one.get_xscale() == ("linear" if key == "fig16" else "log")
        for line in one.get_lines():
            assert list(line.get_xdata()) == sizes and np.isfinite(line.get_ydata()).all()
        if key != "fig17":
            assert list(curves(one)) == series
    assert "has no times of" not in drawing.caption
    assert drawing.section == ("paper" if key.startswith("fig") else "study")


@pytest.mark.parametrize("point", POINTS, ids=lambda p: f"{p[0]}-{p[1]}-{p[2]}")
def test_normalised_values(drawn, point):
    key, facet, label, size, variant, params, form, lefts, rights, divisor = point
    line = curves(drawn[key].figure.axes[facet])[label]
    found = dict(zip(line.get_xdata(), line.get_ydata()))[size]
    expected = paper.time_us(variant, params, form, lefts, rights, size) * 1e-6 / divisor
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_plan_is_added_once(drawn):
    for key, facet, form, lefts, rights in (
        ("fig17", 1, "one-to-one", 1, 1),
        ("fig20", 1, "one-to-many", 1, 8),
        ("fig23", 0, "n-to-m", 2, 2),
    ):
        line = curves(drawn[key].figure.axes[facet])["fft+plan"]
        for size, found in zip(map(int, line.get_xdata()), line.get_ydata()):
            compute = paper.time_us("cufft_paper", "", form, lefts, rights, size)
            assert found == pytest.approx((compute + paper.plan_us(size)) * 1e-6, rel=1e-12)


def test_the_two_halves_of_figure_17_show_their_own_curves(drawn):
    left, right = drawn["fig17"].figure.axes
    optimised = ["grouped-overlap", "split-row", "warp-per-overlap"]
    assert list(curves(left)) == ["baseline", *optimised]
    assert list(curves(right)) == ["fft", "fft+plan", *optimised]


def test_scales_are_common_by_row_or_free(drawn):
    def limits(key):
        return [one.get_ylim() for one in drawn[key].figure.axes]

    assert len(set(limits("fig18"))) == 1
    a, b, c, d = limits("fig22")
    assert a == b and c == d and a != c
    assert len(set(limits("fig20"))) == 3


def test_ticks_of_the_paper(drawn):
    texts = [t.get_text() for t in drawn["fig16"].figure.axes[0].get_xticklabels()]
    assert texts == ["16x16", "64x64", "128x128", "192x192", "256x256"]
    texts = [t.get_text() for t in drawn["fig15"].figure.axes[0].get_xticklabels()]
    assert texts == ["16x16", "32x32", "64x64", "128x128", "256x256"]


@pytest.mark.parametrize("time_us", [0.21, 0.51, 1.01, 2.01, 4.99])
def test_an_axis_of_nearly_equal_times_has_two_different_labels(time_us):
    problem = "split_row", "distribution=triangle;rows_per_thread=1;warps_per_block=4", "one-to-one", 1, 1
    points = [paper.line(*problem, size, compute_us=time_us * (1 + size / 1e4)) for size in FIVE]
    axes = draw("fig16", paper.result_set(points)).figure.axes[0]
    low, high = axes.get_ylim()
    texts = [text.get_text() for place, text in zip(axes.get_yticks(), axes.get_yticklabels()) if low <= place <= high]
    assert len(texts) == len(set(texts)) >= 2


def test_figure_15_says_what_it_computes_instead(drawn):
    assert "repeats one pair 4000 times; here 4000 different pairs" in drawn["fig15"].caption


def test_widths_are_the_papers(drawn):
    assert drawn["fig15"].figure.get_figwidth() == style.COLUMN_IN
    assert drawn["fig22"].figure.get_figwidth() == style.PAGE_IN
    assert all(one.figure.get_figheight() < 5.5 for one in drawn.values())


def test_curves_differ_without_colour(drawn):
    for drawing in drawn.values():
        for axes in drawing.figure.axes:
            looks = [(line.get_marker(), to_hex(line.get_color())) for line in axes.get_lines()]
            assert len({marker for marker, _ in looks}) == len(looks)
            assert len({colour for _, colour in looks}) == len(looks)


def test_a_missing_curve_is_named_and_changes_no_other_look(lines, drawn):
    kept = [one for one in of(lines, form="one-to-one") if "rows_per_thread=16" not in one["params"]]
    drawing = draw("fig16", paper.result_set(kept))
    assert legend(drawing) == ["1", "2", "4", "8", "n"]
    assert drawing.caption.endswith("This set has no times of: rows per thread 16.")
    before, after = curves(drawn["fig16"].figure.axes[0]), curves(drawing.figure.axes[0])
    assert after["n"].get_color() == before["n"].get_color()
    assert after["n"].get_marker() == before["n"].get_marker()


def test_missing_facets_sizes_and_single_curves_are_named(lines):
    kept = [
        one
        for one in of(lines, form="one-to-many")
        if one["rights"] != 8
        and one["left_rows"] < 256
        and not (one["rights"] == 2 and "right_mats=1;" in one["params"] and one["variant"] == "multi_matrix_right")
    ]
    drawing = draw("fig19", paper.result_set(kept))
    assert [one.get_title() for one in drawing.figure.axes] == ["1-to-2", "1-to-32"]
    assert drawing.caption.endswith(
        "This set has no times of: facet 1-to-8; right matrices x rows per thread 1xn in 1-to-2; size 256x256."
    )
    assert "1xn" not in curves(drawing.figure.axes[0]) and "1xn" in curves(drawing.figure.axes[1])


def test_an_empty_facet_between_others_says_so(lines):
    kept = [
        one for one in of(lines, form="n-to-m") if not (one["rights"] == 8 and one["variant"] == "multi_matrix_both")
    ]
    drawing = draw("fig22", paper.result_set(kept))
    empty = drawing.figure.axes[2]
    assert not empty.get_lines() and [t.get_text() for t in empty.texts] == ["not measured"]
    assert "no multi-matrix in 8-to-8 / no split-row" in drawing.caption


def test_a_curve_does_not_bridge_a_size(lines):
    kept = [
        one for one in of(lines, form="one-to-one") if not (one["variant"] == "warp_shuffle" and one["left_rows"] == 64)
    ]
    values = curves(draw("fig16", paper.result_set(kept)).figure.axes[0])["n"].get_ydata()
    assert np.isnan(values).tolist() == [False] * 4 + [True] + [False] * 4


@pytest.mark.parametrize("key", EXPECTED)
def test_without_rows_a_figure_is_left_out_with_the_command(lines, key):
    omitted = draw(key, paper.result_set(of(lines, variant="overlap_wise")))
    assert isinstance(omitted, Omitted) and omitted.name == key
    assert f"--experiments {','.join(_paper.specs()[key].experiments)}" in omitted.reason


def test_other_conditions_and_sizes_do_not_mix_in(drawn):
    params = "left_rows=8;overlaps_per_thread=8;warps_per_block=4"
    point = ("grouped_overlap", params, "one-to-one", 1, 1)
    others = [
        paper.line(*point, 16, precision="fp64"),
        paper.line(*point, 16, mode="latency"),
        paper.line(*point, 16, window="valid"),
        paper.line(*point, 16, input="zeros"),
        paper.line(*point, 384),
        paper.line(*point, 32, right_cols=64),
    ]
    for one in others:
        one["compute_us"] = 1e-6
    assert isinstance(draw("fig17", paper.result_set(others)), Omitted)
    drawing = draw("fig17", paper.result_set([*others, paper.line(*point, 64)]))
    assert list(curves(drawing.figure.axes[0])["grouped-overlap"].get_xdata()) == [64]


def test_a_point_with_a_parameter_that_the_figure_excludes_is_not_drawn(lines):
    """The artifact's tiles have as many rows as the block has warps: points with shmem_rows are ours."""
    key = "study_warp_per_overlap_shared_memory"
    usual = of(
        lines, variant="warp_per_overlap_shared_memory", params="overlaps_per_block=32;shmem_row=128;strided_load=1"
    )
    tall = [
        {**p, "params": p["params"].replace(";strided", ";shmem_rows=64;strided"), "compute_us": 1e-3} for p in usual
    ]
    alone, both = (draw(key, paper.result_set(one)) for one in (usual, [*tall, *usual]))
    axes = [[curves(panel)["32x128"].get_ydata() for panel in one.figure.axes] for one in (alone, both)]
    assert len(axes[0]) == 2 and np.array_equal(*axes)
    assert isinstance(draw(key, paper.result_set(tall)), Omitted)


def test_verified_points_come_first_and_published_ones_are_hollow(lines):
    one = of(lines, form="one-to-one")
    published = [{**p, "outcome": "published", "compute_us": 1e-3} for p in one]
    both = draw("fig16", paper.result_set([*published, *one]))
    assert "published" not in both.caption
    line = curves(both.figure.axes[0])["n"]
    assert to_hex(line.get_markerfacecolor()) == to_hex(line.get_color())
    alone = draw("fig16", paper.result_set(published))
    assert to_hex(curves(alone.figure.axes[0])["n"].get_markerfacecolor()) == "#ffffff"
    assert "Hollow markers were published elsewhere and not verified here." in alone.caption


def test_alternative_counts_are_named(lines):
    moved = [
        {**p, "lefts": 10, "rights": 2560, "fmas": p["fmas"]}
        for p in of(lines, variant="multi_matrix_right", lefts=100)
    ]
    drawing = draw("study_n_to_mn_multimat_right", paper.result_set(moved))
    assert "Matrices: 10-to-2560." in drawing.caption


def test_text_stays_inside_and_the_legend_below(drawn):
    for key in ("fig15", "fig16", "fig17", "fig20", "fig22", "study_grouped_overlap_lxr"):
        figure = drawn[key].figure
        renderer = FigureCanvasAgg(figure).get_renderer()
        bottom = figure.legends[0].get_window_extent(renderer)
        assert bottom.x0 >= 0 and bottom.x1 <= figure.bbox.x1 and bottom.y0 >= 0, key
        for axes in figure.axes:
            tight = axes.get_tightbbox(renderer)
            assert tight.x0 >= 0 and tight.x1 <= figure.bbox.x1 + 1, key
            assert tight.y1 <= figure.bbox.y1 + 1 and bottom.y1 <= tight.y0 + 2, key
        for text in figure.texts:
            box = text.get_window_extent(renderer)
            assert box.x0 >= 0 and box.y0 >= 0 and box.y1 <= figure.bbox.y1, key


def test_the_same_points_in_another_order_give_the_same_bytes(lines):
    one = of(lines, form="n-to-m")
    first = draw("fig23", paper.result_set(one))
    second = draw("fig23", paper.result_set(one[::-1]))
    assert isinstance(first, Drawing) and first.caption == second.caption
    assert files.encode(first) == files.encode(second)


def test_the_list_names_every_figure_and_its_command(capsys):
    assert __main__.main(["--list"]) == 0
    told = capsys.readouterr().out
    for name in catalogue.entries():
        (line,) = [one for one in told.splitlines() if one.split(" ")[0] == name]
        assert "python3 -m experiments." in line
    assert __main__.main(["--lst"]) == 2
    assert capsys.readouterr().err.startswith("error: command line: ")


def test_the_points_that_stage_final_measures_draw_every_curve_of_every_figure(lines, drawn):
    groups, times, kept = shown.shown(), {}, set()
    for line in lines:
        times.setdefault((line["variant"], Problem.of_row(line)), {})[line["params"]] = float(line["compute_us"])
    for (name, problem), own in times.items():
        params = tuple(own)
        variant = Variant(name, "", "cuda", "fft", ("fp32",), (problem.form,), params, ("stream",), "")
        unit = Unit("", problem, variant, "fp32", "stream", "uniform", params)
        kept |= {(name, problem, min(group, key=own.get)) for group in shown.groups_of(unit, groups)}
    some = [line for line in lines if (line["variant"], Problem.of_row(line), line["params"]) in kept]
    assert len(some) < len(lines) / 2
    results = paper.result_set(some)
    for key, complete in drawn.items():
        assert draw(key, results).caption == complete.caption, key  # which names what is missing
