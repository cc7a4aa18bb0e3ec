"""python3 -m experiments.compare.times: points that differ between two builds, always the same ones, measured in turn."""

import pytest
from calls import error_of

from experiments.compare import times
from xcorr.native.variants import Variant
from xcorr.problem import Problem


def point(before: list[float], after: list[float]) -> times.Point:
    return times.Point("v", tuple(before), tuple(after))


def test_a_point_differs_by_more_than_runs_of_a_build_do():
    assert not point([4.0, 4.1, 4.2, 4.1, 4.0], [4.2, 4.1, 4.2, 4.15, 4.2]).differs
    assert point([4.0, 4.1, 4.1, 4.1, 4.0], [4.3, 4.3, 4.25, 4.3, 4.3]).differs
    assert point([4.3, 4.3, 4.25, 4.3, 4.3], [4.0, 4.1, 4.1, 4.1, 4.0]).differs, "shorter is another time too"
    assert not point([4.0] * 5, [4.01] * 5).differs, "less than a clock shows"


def units() -> list[times.Unit]:
    def variant(name: str) -> Variant:
        return Variant(name, "f", "cuda", "definition", ("fp32",), (), ("a=1", "a=2", "a=3"), ("stream",), "h")

    problems = [
        Problem(form, (size, size), (size, size), 1, 1, "full")
        for form in ("one-to-one", "n-to-m")
        for size in (8, 16, 32)
    ]
    places = [(name, problem, f"a={i}") for name in "uvw" for problem in problems for i in (1, 2, 3, 4)]
    return times.choose(reversed(places), {name: variant(name) for name in "uvw"}, 14)


def test_points_are_spread_and_always_the_same():
    chosen = units()
    assert chosen == units() and sum(len(unit.params) for unit in chosen) == 14
    assert {(unit.variant.id, unit.problem.form) for unit in chosen} == {
        (name, form) for name in "uvw" for form in ("one-to-one", "n-to-m")
    }
    assert all("a=4" not in unit.params for unit in chosen), "a point that a build lacks"


def test_builds_are_measured_in_turn():
    order = []

    def measure(build: int, unit: times.Unit) -> dict[str, float]:
        order.append(build)
        return {params: 4.0 + build for params in unit.params}

    points = times.in_turn(units()[:1], measure)
    assert order == [0, 1, 1, 0, 0, 1, 1, 0, 0, 1]
    assert [one.differs for one in points] == [True, True]
    assert "2 points, 2 differ; after / before = 1.2500" in times.table(points)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--before-build", "{}"], "--after-build"),
        (["--before-build", "{}", "--after-build", "{}"], "xcorr-bench: not built; run scripts/build.sh in its tree"),
    ],
)
def test_mistakes_are_one_line(words, says, tmp_path, capsys):
    assert times.main([word.format(tmp_path) for word in words]) == 2
    assert says in error_of(capsys)
