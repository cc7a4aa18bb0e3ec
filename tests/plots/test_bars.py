"""Bars of intervals: when a point has one, what it reaches, and that figures draw them."""

import math

import numpy as np
import pandas as pd
import pytest
from fixtures import sets
from fixtures.sets import draw, result_set
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from plots import noise
from plots.figures import _bars, comparison, speedup
from plots.metrics import METRICS

TIME = METRICS["time"].of


def point(us, samples=(), **values):
    """The tidy line of a point with these times of its repetitions."""
    rows = [sets.row(compute_us=one, repetition=place, **values) for place, one in enumerate(samples or [us] * 3)]
    return sets.points(rows)


def around(us, share):
    """Three times whose interval (two standard errors to each side) is this share of their mean from end to end."""
    step = share * us * math.sqrt(3) / 4
    return [us - step, us, us + step]


def bars(axes):
    """(place, low, high) of each bar."""
    own = [one for one in axes.collections if isinstance(one, LineCollection) and one.get_label() == _bars.LABEL]
    return [(*segment[0], segment[1][1]) for one in own for segment in one.get_segments()]


@pytest.mark.parametrize("share, has", [(0.019, False), (0.021, True), (0.5, True)])
def test_a_bar_stands_where_the_interval_is_above_two_percent(share, has):
    found = _bars.spread(point(100.0, around(100.0, share)), TIME)
    assert bool(_bars.wide(found).iloc[0]) is has
    axes = Figure().subplots()
    _bars.draw(axes, found["side"], found, "#000000")
    if has:
        ((_, low, high),) = bars(axes)
        assert (high - low) / 100e-6 == pytest.approx(share, rel=1e-6)
        assert low == pytest.approx(100e-6 * (1 - share / 2)) and _bars.said(found).startswith(f" {_bars.SAID}")
    else:
        assert not bars(axes) and _bars.said(found) == ""


def test_the_interval_is_the_one_that_decides_ties():
    fast, slow = point(100.0, around(100.0, 0.1)), point(104.0, around(104.0, 0.1), variant="other")
    first, second = (one.iloc[0].rename({"compute_us": "time_us"}) for one in (fast, slow))
    ends = [noise.ends_us(one).iloc[0] for one in (fast, slow)]
    reach = math.hypot(*((one["high"] - one["low"]) / 2 for one in ends))
    assert noise.noise_us(first, second) == pytest.approx(reach)


def test_of_a_block_it_is_that_of_the_samples():
    own = point(100.0, [90.0, 100.0, 200.0], block="b1")
    ends = noise.ends_us(own).iloc[0]
    low, high = np.quantile([90.0, 100.0, 200.0], [0.1, 0.9])
    assert (ends["low"], ends["high"]) == (pytest.approx(low), pytest.approx(high))


def test_the_range_between_runs_counts_where_it_is_larger():
    own = point(2.0)
    ends = noise.ends_us(own).iloc[0]
    between = own["between_us"].iloc[0]
    assert own["sd_us"].iloc[0] == 0 < between and ends["high"] - ends["low"] == pytest.approx(2 * between)


def test_a_rate_has_the_interval_of_its_time_and_a_plan_moves_it():
    own = point(100.0, around(100.0, 0.2))
    rate = _bars.spread(own, METRICS["useful_flops"].of).iloc[0]
    time = _bars.spread(own, TIME).iloc[0]
    assert (
        rate["y_low"] * time["y_high"]
        == pytest.approx(rate["y_high"] * time["y_low"])
        == pytest.approx(2 * own["fmas"].iloc[0])
    )
    own = own.assign(plan_us=900.0)
    planned = _bars.spread(own, METRICS["time_with_plan"].of, planned=True).iloc[0]
    assert planned["y"] == pytest.approx(1e-3)
    assert planned["y_high"] - planned["y_low"] == pytest.approx(time["y_high"] - time["y_low"])


def test_a_ratio_reaches_what_both_intervals_allow():
    above, below = point(200.0, around(200.0, 0.2)), point(100.0, around(100.0, 0.1))
    (ratio,) = _bars.over(above, below).to_dict("records")
    assert ratio["y"] == pytest.approx(2.0)
    assert (ratio["y_low"], ratio["y_high"]) == (pytest.approx(180 / 105), pytest.approx(220 / 95))


@pytest.mark.parametrize("slower, tie", [(104.0, True), (120.0, False)])
def test_the_interval_of_a_ratio_holds_1_where_the_intervals_of_the_times_overlap(slower, tie):
    (ratio,) = _bars.over(point(slower, around(slower, 0.1)), point(100.0, around(100.0, 0.1))).to_dict("records")
    assert (ratio["y_low"] <= 1 <= ratio["y_high"]) is tie


@pytest.mark.parametrize("outcome, samples", [("published", [5.0]), ("passed", [5.0])])
def test_a_point_without_repetitions_has_no_bar(outcome, samples):
    found = _bars.spread(point(5.0, samples, outcome=outcome), TIME)
    assert not _bars.wide(found).any() and not _bars.wide(found.drop(columns=_bars.ENDS)).any()
    assert not _bars.wide(pd.DataFrame({"y": [1.0]})).any(), "a number that a paper prints"


def spread_rows(share):
    rows = []
    for variant, family, us in (("overlap_wise", "overlap_wise", 100.0), ("split_row", "warp_shuffle", 50.0)):
        for size in (16, 32):
            for place, one in enumerate(around(us * size, share)):
                rows.append(
                    sets.row(variant=variant, family=family, compute_us=one, repetition=place, **sets.square(size))
                )
    return rows


def test_figures_draw_bars_and_say_once_what_they_are():
    for module, name in ((comparison, "comparison_one-to-one"), (speedup, "speedup_one-to-one")):
        drawing = draw(module, result_set(spread_rows(0.1)))[name]
        (axes,) = drawing.figure.axes
        found = bars(axes)
        assert len(found) == (4 if module is comparison else 2)
        low, high = axes.get_ylim()
        assert all(low < one < other < high for _, one, other in found), "a bar stays within its panel"
        assert drawing.caption.count(_bars.SAID) == 1
        assert (_bars.OF_RATIO in drawing.caption) is (module is speedup)
        quiet = draw(module, result_set(spread_rows(0.004)))[name]
        assert not bars(quiet.figure.axes[0]) and _bars.SAID not in quiet.caption
