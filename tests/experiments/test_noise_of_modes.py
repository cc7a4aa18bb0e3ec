"""python3 -m experiments.compare.noise: how much times differ between processes, mode stream beside mode graph."""

import json
import re
from pathlib import Path

import fake_bench
import pytest
from calls import error_of
from driving import Driver

from experiments import folders
from experiments.compare import noise
from experiments.driver import source_tree
from xcorr.native.variants import assignments
from xcorr.problem import Problem

DATA = folders.part("beyond", "baselines")["noise"]
STATED = {
    *("one-to-one/16x16/16x16/1:1/full", "one-to-one/32x32/32x32/1:1/full", "one-to-one/64x64/64x64/1:1/full"),
    *("one-to-many/32x32/32x32/1:32/full", "one-to-many/128x128/128x128/1:32/full"),
    *("n-to-mn/64x64/64x64/8:32/full", "n-to-m/32x32/32x32/8:8/full", "n-to-m/128x128/128x128/32:32/full"),
}


def test_it_has_seven_contenders_of_eight_problems_that_the_source_tree_knows():
    assert set(DATA["contenders"]) == STATED and DATA["processes"] == 10
    for problem, by_variant in DATA["contenders"].items():
        assert Problem.of_id(problem).id == problem
        assert sum(map(len, by_variant.values())) == len({(v, p) for v in by_variant for p in by_variant[v]}) == 7
        for name, points in by_variant.items():
            assert source_tree.has_variant(name), name
            for point in points:
                assert all(source_tree.has_parameter(parameter) for parameter in assignments(point)), point


def test_every_process_has_an_order_of_its_own_that_is_always_the_same():
    orders = [noise.order(5, process) for process in range(4)]
    assert orders == [noise.order(5, process) for process in range(4)] and len(set(map(tuple, orders))) == 4
    for one in orders:
        pairs = list(zip(one[::2], one[1::2]))
        assert sorted(number for (number, _), _ in pairs) == list(range(5))
        assert all(a[0] == b[0] and {a[1], b[1]} == {*noise.MODES} for a, b in pairs), "side by side"
    assert {mode for one in orders for _, mode in one[::2]} == {*noise.MODES}, "either mode comes first"


def test_noise_is_the_90th_over_the_10th_percentile():
    assert noise.noise_of([11.0, *range(1, 11)]) == 10 / 2
    assert noise.noise_of([3.0, 3.0]) == 1
    assert noise.noise_of([1.0, 2.0]) == pytest.approx(1.9 / 1.1)


def medians_of(*points):
    """Points of two processes: the time in mode stream in microseconds, and the differences of both modes."""
    return {
        (number, mode): [us - by / 2, us + by / 2]
        for number, (us, *of_modes) in enumerate(points)
        for mode, by in zip(noise.MODES, of_modes)
    }


def test_classes_are_of_the_time_in_mode_stream():
    found = list(noise.classes(medians_of((3.99, 0, 0), (4, 0, 0), (7.99, 0, 0), (900, 0, 0)), [4, 8]))
    assert [(one.name, len(one.noise["graph"])) for one in found] == [
        ("0 to 4 us", 1),
        ("4 to 8 us", 2),
        ("8 us or longer", 1),
    ]
    assert [one.name for one in noise.classes(medians_of((5, 0, 0)), [4, 8])] == ["4 to 8 us"]


@pytest.mark.parametrize(
    ("points", "noisier"),
    [
        # The percentiles of 2 us +- by / 2 are 2 +- 0.4 by: 0.05 makes 1.0202.
        ([(2, 0.048, 0), (2, 0.048, 0), (2, 0.9, 0)], False),
        ([(2, 0.052, 0), (2, 0.052, 0), (2, 0.9, 0)], True),
        ([(2, 0.052, 0.01)], False),
        ([(2, 0, 0.5)], False),
    ],
)
def test_a_class_is_noisier_by_more_than_the_tolerance_in_the_median_over_its_points(points, noisier):
    (one,) = noise.classes(medians_of(*points), [4, 8])
    assert (one.excess > DATA["tolerance"]) == noisier


@pytest.fixture
def gpu(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """A fake GPU whose build has three variants, one of them without mode graph, and contenders of one problem."""
    both = {"modes": ["stream", "graph"]}
    waits = fake_bench.variant("waits", "cuda")
    listed = [{**fake_bench.variant(name, "cuda", points=("a=1", "a=2")), **both} for name in ("first", "second")]
    driver.variants([*listed, waits])
    problem = "one-to-one/8x8/8x8/1:1/full"
    asked = {"first": ["a=1", "a=2"], "second": ["a=1", "a=3"], "waits": [""], "gone": [""]}
    data = {**DATA, "processes": 2, "contenders": {problem: asked}}
    monkeypatch.setattr(folders, "part", lambda *_: {"noise": data})
    monkeypatch.setenv("FAKE_GPU", "1")
    return driver


def test_every_process_measures_both_modes_of_all_points(gpu, capsys):
    assert noise.main(["--processes", "3"]) == 0
    said = capsys.readouterr()
    left_out = [line for line in said.err.splitlines() if line.startswith("left out")]
    assert [line.split(": ")[1].split()[0] for line in left_out] == ["second", "waits", "gone"]
    assert said.out.startswith("fake-gpu: 3 processes") and "no noisier than mode graph by more than 0.02" in said.out
    assert re.search(r"first one-to-one/8x8/8x8/1:1/full a=2 +0.104 +1.000 +0.104 +1.000", said.out)
    assert re.search(r"0 to 4 us +3 +1.000 +1.000 +1.000 +1.000", said.out)
    processes = [json.loads(line) for line in Path(f"{gpu.log}.points").read_text().splitlines()]
    assert len(processes) == 3
    for process in processes:
        points = [(one["variant"], one["params"], one["mode"]) for one in process]
        known = [("first", "a=1"), ("first", "a=2"), ("second", "a=1")]
        assert sorted(points) == sorted((*point, mode) for point in known for mode in noise.MODES)


def test_a_point_that_fails_is_named_and_left_out(gpu, capsys):
    gpu.faults({"kind": "incorrect", "variant": "first", "params": "a=2"})
    assert noise.main([]) == 0
    said = capsys.readouterr()
    assert "left out: first one-to-one/8x8/8x8/1:1/full a=2: incorrect: element 3 is NaN" in said.err
    assert re.search(r"0 to 4 us +2 ", said.out)


def test_times_belong_to_their_points_and_one_that_fails_in_one_mode_is_left_out_of_both(gpu, capsys, monkeypatch):
    def times_of(_, points, __):
        us = {("first", "a=1"): 2.0, ("first", "a=2"): 5.0, ("second", "a=1"): 9.0}
        times = [us[unit.variant.id, params] + (unit.mode == "graph") / 4 for unit, params in points]
        return {i: "no memory" if time == 9.25 else time for i, time in enumerate(times)}

    monkeypatch.setattr(noise, "times_of", times_of)
    assert noise.main(["--processes", "4"]) == 0
    said = capsys.readouterr()
    assert "left out: second one-to-one/8x8/8x8/1:1/full a=1: no memory" in said.err and "second" not in said.out
    for line in ("1/full a=1 +2.000 +1.000 +2.250 +1.000", "1/full a=2 +5.000 +1.000 +5.250 +1.000", "4 to 8 us +1 "):
        assert re.search(line, said.out), line


def test_a_noisier_mode_stream_is_named(gpu, capsys, monkeypatch):
    times = iter([1.0, 1.5])

    def times_of(_, points, __):
        us = next(times)
        return {i: us if unit.mode == "stream" else 1.0 for i, (unit, _) in enumerate(points)}

    monkeypatch.setattr(noise, "times_of", times_of)
    assert noise.main([]) == 1
    # 1 and 1.5: percentiles 1.05 and 1.45.
    assert (
        f"mode stream is noisier than mode graph: 0 to 4 us by {1.45 / 1.05 - 1:.3f}; at most 0.02"
        in capsys.readouterr().out
    )


def test_mistakes_are_one_line(gpu, capsys):
    assert noise.main(["--processes", "1"]) == 2
    assert "too few for a percentile" in error_of(capsys)
    gpu.variants([])
    assert noise.main([]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: noise: this build has none of the points")
