"""Named metrics, speed-ups and how times are written."""

import pytest
from fixtures import sets

from plots import metrics, tidy


@pytest.fixture
def line():
    rows = [sets.row(form="n-to-m", lefts=2, rights=3, compute_us=12.0, plan_us=8.0, fmas=600)]
    return sets.points(rows)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("time", 12e-6),
        ("time_with_plan", 20e-6),
        ("time_per_fma", 2e-8),
        ("time_per_pair", 2e-6),
        ("time_per_output", 2e-6 / 961),
        ("useful_flops", 1e8),
    ],
)
def test_metrics_by_hand(line, name, value):
    metric = metrics.METRICS[name]
    assert metric.name == name
    assert metric.of(line).item() == pytest.approx(value)


def test_axis_labels_carry_units_that_ticks_do_not():
    assert metrics.METRICS["time"].axis_label == "Wall time"
    assert metrics.METRICS["useful_flops"].axis_label == "Useful work rate [FLOP/s]"


def test_speedup_is_matched_point_by_point():
    rows = [
        sets.row(variant="base", compute_us=100.0),
        sets.row(variant="base", compute_us=900.0, left_rows=32, right_rows=32),
        sets.row(variant="fast", compute_us=20.0),
        sets.row(variant="fast", compute_us=90.0, left_rows=32, right_rows=32),
        sets.row(variant="fast", compute_us=90.0, left_rows=64, right_rows=64),
    ]
    points = sets.points(rows)
    base, fast = (points[points["variant"] == name] for name in ("base", "fast"))
    found = metrics.speedup(fast, base, tidy.PROBLEM)
    assert found.tolist()[:2] == [5.0, 10.0] and found.isna().tolist() == [False, False, True]


def test_plans_that_matter():
    def points(**cells):
        return sets.points([sets.row(**cells)])

    assert not metrics.plan_matters(points())
    assert not metrics.plan_matters(points(compute_us=100.0, plan_us=1.0))
    assert metrics.plan_matters(points(compute_us=100.0, plan_us=50.0))
    assert metrics.plan_matters(points(compute_us=100.0, plan_us=1.0, forward_us=2.0))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3.669e-6, "3.67 µs"),
        (0.9996e-3, "1.00 ms"),
        (0.0123, "12.3 ms"),
        (0.153, "153 ms"),
        (123.4, "123 s"),
        (5000.0, "5000 s"),
        (2.5e-13, "250 fs"),
        (0.0, "0 s"),
        (float("nan"), "–"),
    ],
)
def test_times_with_prefixes(seconds, text):
    assert metrics.si_time(seconds) == text
