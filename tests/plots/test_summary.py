"""The figure and the ten rows of the README: which problems, which times."""

import json

import numpy as np
import pytest
from fixtures import sets
from matplotlib.text import Text

from experiments.compare.artifact import load_baseline
from plots import style, tidy
from plots.drawing import Omitted
from plots.figures import summary as figure
from plots.tables import beyond, summary
from plots.tables.table import readable

LIBRARY = load_baseline(beyond.BASELINE)[0]["fft"]["variant"]
CEILINGS = {"copy_bytes_per_s": 4e12, "fill_bytes_per_s": 4e12, "cublas_fp32_flop_per_s": 5e13}
CEILINGS |= {"empty_launch_stream_us": 2.0, "empty_launch_graph_us": 1.5}


def times(form, lefts, rights, sides, factor=1.0):
    """Of each side: the paper's 8 us, the library's 6 us, a new variant's 4 us."""
    rows = []
    for side in sides:
        cells = {"form": form, "lefts": lefts, "rights": rights, "backend": "cuda", **sets.square(side)}
        rows += [
            sets.row(variant=variant, family=family, compute_us=us * factor, **cells)
            for variant, family, us in (
                ("split_row", "warp_shuffle", 8.0),
                (LIBRARY, "fft", 6.0),
                ("brand_new", "new_family", 4.0),
            )
        ]
    return rows


@pytest.fixture
def results(tmp_path):
    (tmp_path / "ceilings.json").write_text(json.dumps(CEILINGS))

    def of(rows, key="some-gpu"):
        raw = sets.frame(rows)
        return tidy.ResultSet(key, "published", tmp_path, raw, tidy.tidy(raw), {}, {})

    return of


def test_the_four_times_of_a_problem(results):
    (line,) = summary.cells(results(times("n-to-m", 2, 2, [32]))).to_dict("records")
    assert (line["paper_us"], line["library_us"], line["ours_us"], line["floor_us"]) == (8.0, 6.0, 4.0, 2.0)
    assert line["variant"] == "brand_new"


def test_a_problem_without_the_papers_algorithms_or_in_other_conditions_is_not_there(results):
    rows = times("n-to-m", 2, 2, [32])
    assert summary.cells(results(rows[1:])).empty
    assert summary.cells(results([{**one, "mode": "graph"} for one in rows])).empty
    assert summary.cells(results([{**one, "backend": "cpu"} for one in rows])).empty


def test_on_the_machine_of_the_baseline_its_cells_and_its_faster_times_count(results):
    raw, baseline = load_baseline(beyond.BASELINE)
    (form, side, lefts, rights), values = next(iter(baseline.items()))
    theirs = beyond.baseline_us(values)
    rows = times(form, lefts, rights, [side, 40], factor=100.0)
    found = summary.cells(results(rows, raw["beyond"]["machine_key"]))
    assert list(found["left_rows"]) == [side] and list(found["paper_us"]) == [theirs]
    assert list(summary.cells(results(rows))["left_rows"]) == [side, 40], "another machine has its own problems"


def test_of_each_form_the_count_with_most_sizes_then_most_pairs(results):
    rows = [
        *times("one-to-many", 1, 8, [16, 32, 64]),
        *times("one-to-many", 1, 2, [16, 32, 64]),
        *times("one-to-many", 1, 4000, [16, 32]),
        *times("one-to-one", 1, 1, [16]),
    ]
    assert list(summary.chosen(summary.cells(results(rows)))["counts"].unique()) == ["1-to-1", "1-to-8"]


def test_at_most_ten_rows_evenly_over_the_powers_of_two(results):
    rows = []
    for form, lefts, rights in (("one-to-one", 1, 1), ("one-to-many", 1, 8), ("n-to-mn", 2, 8), ("n-to-m", 4, 4)):
        rows += times(form, lefts, rights, [16, 24, 32, 64, 128, 256])
    found = summary.typical(summary.cells(results(rows)))
    assert list(found["form"]) == ["one-to-one"] * 3 + ["one-to-many"] * 2 + ["n-to-mn"] * 3 + ["n-to-m"] * 2
    assert list(found["left_rows"]) == [16, 64, 256, 32, 128] * 2
    shown = readable(found, summary.SHOWN).iloc[0].tolist()
    assert shown == ["one-to-one", "1-to-1", "16x16", "brand-new", "4.00 µs", "2.00x", "1.50x", "2.00x"]


def test_the_figure_has_a_panel_per_form_and_names_its_lines(results):
    rows = [*times("one-to-one", 1, 1, [16, 32, 64]), *times("n-to-mn", 2, 8, [16, 32])]
    with style.context():
        (drawing,) = figure.draw(results(rows))
    one, many = drawing.figure.axes
    assert [axes.get_title(loc="left") for axes in (one, many)] == ["One-to-one, 1-to-1", "n-to-mn, 2-to-8"]
    assert one.get_xscale() == one.get_yscale() == "log"
    assert {text.get_text() for text in one.texts} == {"paper's best", "cuFFT", "this project", "floor"}
    ours = one.get_lines()[list(summary.SERIES).index("ours_us")]
    np.testing.assert_allclose(ours.get_ydata(), 4e-6)
    assert list(ours.get_xdata()) == [16, 32, 64]


def test_names_of_lines_that_end_together_do_not_overlap(results):
    rows = [{**one, "compute_us": 4.0} for one in times("one-to-one", 1, 1, [16, 32])]
    with style.context():
        (drawing,) = figure.draw(results(rows))
    (axes,) = drawing.figure.axes
    inch = axes.get_position().height * drawing.figure.get_figheight()
    places = sorted(text.get_position()[1] * inch for text in axes.texts)
    assert len(places) == 4 and min(b - a for a, b in zip(places, places[1:])) >= figure.LABEL_IN - 1e-9


def test_text_can_be_read_where_the_figure_is_400_pixels_wide(results):
    with style.context():
        (drawing,) = figure.draw(results(times("one-to-one", 1, 1, [16, 32, 64])))
        drawing.figure.canvas.draw()
    shrunk = 400 / (72 * drawing.figure.get_figwidth())
    texts = [one for one in drawing.figure.findobj(Text) if one.get_text().strip()]
    assert texts and min(one.get_fontsize() for one in texts) * shrunk >= 8


def test_a_set_without_such_times_has_no_figure(results):
    for rows in ([], [sets.row()], times("one-to-one", 1, 1, [16])):
        (omitted,) = figure.draw(results(rows))
        assert isinstance(omitted, Omitted)
