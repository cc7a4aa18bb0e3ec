"""python3 -m experiments.compare.halving: stage select beside the whole grid."""

import pytest

from experiments.compare import halving
from experiments.driver import stages
from experiments.driver.points import Unit
from xcorr.native.variants import Variant
from xcorr.problem import Problem

VARIANT = Variant("v", "f", "cpu", "fft", ("fp32",), ("one-to-one",), ("a", "b", "c"), ("stream",), "")


def unit(size: int = 4) -> Unit:
    problem = Problem("one-to-one", (size, size), (size, size), 1, 1)
    return Unit("e", problem, VARIANT, "fp32", "stream", "uniform", VARIANT.points)


def judged(selected, **grid):
    one = unit()
    (choice,) = halving.choices([one], (), {stages.cell_of(one): grid}, {stages.cell_of(one): selected})
    return choice


def test_a_choice_is_wrong_where_it_is_slower_beyond_its_noise():
    times = {"a": [1.0, 1.01, 1.02], "b": [1.03, 1.04, 1.05], "c": [1.0, 1.04, 1.05]}
    right, wrong, noisy = (judged({one: [1.0]}, **times) for one in "abc")
    assert (right.chosen, right.fastest, right.ratio, right.wrong) == ("a", "a", 1.0, False)
    assert wrong.wrong and wrong.ratio == pytest.approx(1.04 / 1.01)
    assert noisy.ratio == wrong.ratio and not noisy.wrong, "its samples meet those of the fastest"
    nothing = judged({}, **times)
    assert nothing.wrong and nothing.chosen == ""


def test_a_single_point_is_no_choice():
    one = unit()
    assert halving.choices([one], (), {stages.cell_of(one): {"a": [1.0]}}, {}) == []


def test_the_report_names_wrong_choices():
    one = unit()
    grid = {stages.cell_of(one): {"a": [1.0], "b": [2.0]}}
    for chosen, verdict in (("a", "choices: 1, wrong: 0"), ("b", "choices: 1, wrong: 1")):
        selected = {stages.cell_of(one): {chosen: [1.0, 1.0]}}
        lines = halving.report(halving.choices([one], (), grid, selected), grid, selected).splitlines()
        assert lines[-1] == verdict and one.problem.id in lines[2]
    assert lines[-2] == f"{one.name}: b for a, 2.000"


class OfWork:
    """Predicts that a problem takes as many seconds as its matrices have rows."""

    def series_s(self, units):
        return units[0].problem.left[0]


def test_problems_are_taken_evenly_by_work(monkeypatch):
    monkeypatch.setattr(halving, "LEAST_POINTS", 3)
    units = [unit(size) for size in (9, 3, 5, 7, 16)]
    assert [one.problem.left[0] for one in halving.some(units, OfWork(), 3)] == [3, 5, 9], "16 takes too long"
    assert [one.problem.left[0] for one in halving.some(units, OfWork(), 9)] == [3, 5, 7, 9]
    monkeypatch.setattr(halving, "LEAST_POINTS", 4)
    assert halving.some(units, OfWork(), 3) == []


def test_the_command(driver, monkeypatch, capsys):
    driver.stages(1000)
    monkeypatch.setattr(halving, "LEAST_POINTS", 3)
    for name in ("load_experiments", "load_presets"):
        loaded = getattr(halving, name)
        monkeypatch.setattr(halving, name, lambda load=loaded: load(driver.folder))
    monkeypatch.setattr(halving, "shown", tuple)
    assert halving.main(["--device", "cpu", "--problems", "2"]) == 0
    said = capsys.readouterr().out
    assert "choices: 2, wrong: 0" in said and said.count("one-to-many/") == 2
    assert not driver.results.exists(), "rows are thrown away"
    assert halving.main(["--problems", "0"]) == 2
