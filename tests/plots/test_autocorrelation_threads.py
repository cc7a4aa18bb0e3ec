"""Autocorrelation by the number of threads: speed-ups, the figure with the paper's point, the claim, the experiment."""

import pytest
from fixtures.sets import loaded
from stored import row

from experiments import folders
from experiments.driver import schema
from plots.drawing import Drawing, Omitted
from plots.sources.autocorrelation.figures import autocorrelation_threads as figure
from plots.sources.autocorrelation.tables import autocorrelation
from plots.tables.claims import verdicts
from xcorr.native.variants import assignments

IMAGE = {"left_rows": 480, "left_cols": 640, "right_rows": 480, "right_cols": 640, "same": "yes"}
PAPER = "paper: Core2 Quad Q6600"


def timed(params, us, count=64, **cells):
    form = "n-to-mn" if count > 1 else "one-to-one"
    given = {**IMAGE, "window": "sy:0..16,sx:-16..16", "experiment": "autocorrelation-threads", **cells}
    given |= {"family": "autocorrelation", "form": form, "lefts": count, "rights": count}
    return row(variant="autocorr_simd", params=params, compute_us=us, **given)


def several(threads, over):
    return f"threads={threads};threads_over={over}"


@pytest.fixture
def measured(tmp_path):
    own = [timed("threads=1", 640.0), timed("threads=all", 90.0)]
    for threads in (2, 4, 8):
        own += [timed(several(threads, figure.IMAGES), 700.0 / threads)]
        own += [timed(several(threads, figure.ROWS), 680.0 / threads)]
    own += [timed("threads=1", 10.0, 1), timed(several(2, figure.ROWS), 6.0, 1)]
    own += [timed("threads=1", 9.0, 1, window="sy:0..17,sx:-17..17"), timed(several(2, figure.ROWS), 1.0, 16)]
    return loaded(tmp_path, own)


def test_a_speedup_is_over_one_thread_of_the_same_problem(measured):
    found = figure.speedups(measured)
    assert sorted(found["lefts"].unique()) == [1, 64], "16 images have no time of one thread"
    by = found.set_index(["lefts", "over", "threads"])["speedup"]
    assert by[64, figure.IMAGES, 4] == pytest.approx(640 / 175) and by[64, figure.ROWS, 8] == pytest.approx(640 / 85)
    assert by[1, figure.ROWS, 2] == pytest.approx(10 / 6) and by[1, figure.ROWS, 1] == by[64, figure.IMAGES, 1] == 1
    assert len(found) == 2 * 4 + 2


def test_a_panel_has_a_curve_a_division_and_the_papers_point_where_images_are_divided(measured):
    (drawn,) = figure.draw(measured)
    assert isinstance(drawn, Drawing) and "nearly fourfold" in drawn.caption
    one, many = drawn.figure.axes
    assert (one.get_title(), many.get_title()) == ("1 image", "64 images")
    assert len(one.lines) == 2, "one image: the line of as many times as threads, and rows of shifts"
    hollow = [line for line in many.lines if line.get_linestyle() == "None"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in hollow] == [(4, 4)]
    assert hollow[0].get_markerfacecolor() == "white"
    texts = [text.get_text() for text in drawn.figure.legends[0].get_texts()]
    assert texts == [*(text for text, _ in figure.CURVES.values()), figure.LINEAR[0], PAPER]
    assert [text.get_text() for text in many.get_xticklabels()] == ["1", "2", "4", "8"]


def test_without_several_threads_it_says_what_measures_them(tmp_path):
    for number, rows in enumerate(([row()], [timed("threads=1", 5.0), timed("threads=all", 5.0)])):
        (one,) = figure.draw(loaded(tmp_path / str(number), rows))
        assert isinstance(one, Omitted) and "--experiments autocorrelation-threads" in one.reason


def test_rows_of_shifts_alone_have_no_point_of_the_paper(tmp_path):
    own = [timed("threads=1", 10.0, 1), timed(several(2, figure.ROWS), 6.0, 1)]
    (drawn,) = figure.draw(loaded(tmp_path, own))
    assert isinstance(drawn, Drawing) and "fourfold" not in drawn.caption and len(drawn.figure.axes) == 1
    assert PAPER not in [text.get_text() for text in drawn.figure.legends[0].get_texts()]


def test_the_other_tables_have_one_thread_and_all(measured):
    assert set(autocorrelation.points(measured)["threads"]) == {"1", "all"}
    assert {"2", "4", "8"} < set(autocorrelation.every_point(measured)["threads"])


@pytest.mark.parametrize("us, verdict", [(160.0, "holds"), (199.0, "holds"), (201.0, "differs here")])
def test_the_claim_is_on_four_threads_over_images(tmp_path, us, verdict):
    own = [timed("threads=1", 640.0), timed(several(4, figure.IMAGES), us), timed(several(4, figure.ROWS), 128.0)]
    (line,) = verdicts.table(loaded(tmp_path / "a", own), ["I14"]).to_dict("records")
    assert line["verdict"] == verdict and line["ours"] == "5"
    (line,) = verdicts.table(loaded(tmp_path / "b", own[:1]), ["I14"]).to_dict("records")
    assert line["verdict"] == "not measured" and "64 images of 480x640" in line["reason"]


def test_the_experiment_measures_what_the_figure_draws():
    own = schema.load_experiments()["autocorrelation-threads"]
    assert own.feeds == [figure.NAME]
    problems = schema.grid(own, "")
    spec = folders.part("autocorrelation", "figures")["drawn_by"][figure.NAME]
    size = (spec["problem"]["left_rows"], spec["problem"]["left_cols"])
    assert {one.left for one in problems} == {size} and own.variants == [spec["variant"]]
    assert {autocorrelation.plane_of(one.window) for one in problems} == {
        (spec["problem"]["plane"], spec["problem"]["radius"])
    }
    assert sorted(one.pairs for one in problems) == [1, 4, 16, 64]
    points = [dict(assignments(one)) for one in own.drawn[spec["variant"]]]
    numbers = {int(one["threads"]) for one in points if one.get("threads_over") == figure.IMAGES}
    assert numbers == {int(one["threads"]) for one in points if one.get("threads_over") == figure.ROWS}
    assert max(numbers) <= max(one.pairs for one in problems), "every thread has an image"
    assert {4} < numbers and {"threads": "1"} in points
