"""What a tie is: the spread within a run, between the runs of a point, and the usual one of its class of time."""

import math

import pandas as pd
import pytest
from fixtures import sets
from fixtures.sets import points

from experiments.driver import store
from plots import noise, tidy
from plots.sources.jpdc.tables import table1
from plots.tables import best_table
from plots.tables.claims import measured
from plots.tables.claims.rows import Rows, parse_series

OLD, NEW = "20250101T000000-aaaaaa", "20250201T000000-aaaaaa"


def tied(*rows):
    """Whether the two variants of one cell tie."""
    (line,) = best_table.best_table(points(rows)).to_dict("records")
    return line["is_tie"]


@pytest.mark.parametrize(("fast", "slow"), [(3.0, 0.29), (5.0, 0.028), (20.0, 0.01)])
def test_a_point_of_one_run_has_the_usual_range_of_its_class(fast, slow):
    def pair(share):
        return sets.row(variant="a", compute_us=fast), sets.row(variant="b", compute_us=fast * (1 + share))

    # Of a pair that lies in one class or in two the larger range counts, here that of the slower: a share of its own time.
    assert tied(*pair(0.99 * slow)) and not tied(*pair(1.5 * slow))


def test_the_classes_end_where_they_say():
    (line,) = points([sets.row(compute_us=3.99)]).to_dict("records")
    assert line["between_us"] == pytest.approx(0.29 * 3.99) and line["runs"] == 1
    for us, share in ((4.0, 0.028), (7.99, 0.028), (8.0, 0.0)):
        assert points([sets.row(compute_us=us)])["between_us"].item() == pytest.approx(share * us)


def test_a_point_of_several_runs_has_its_own_range():
    rows = [sets.row(variant="a", compute_us=10.0, run=NEW), sets.row(variant="b", compute_us=11.5, run=NEW)]
    assert not tied(*rows)
    other = sets.row(variant="a", compute_us=12.0, run=OLD, experiment="modes")
    frame = points([*rows, other]).set_index("variant")
    assert frame.loc["a", "compute_us"] == 10.0, "the newest run gives the time"
    assert (frame.loc["a", "runs"], frame.loc["a", "between_us"]) == (2, pytest.approx(2.0))
    assert tied(*rows, other)
    # Two runs that agree replace the wide range of the class.
    near = [
        sets.row(variant=name, compute_us=us, run=run, experiment=run)
        for name, us in (("a", 3.0), ("b", 3.2))
        for run in (OLD, NEW)
    ]
    assert tied(*near[::2]) and not tied(*near)


def test_rows_of_other_conditions_are_other_points():
    rows = [
        sets.row(compute_us=10.0),
        sets.row(compute_us=30.0, mode="graph"),
        sets.row(compute_us=40.0, input="zero-mean"),
    ]
    assert points(rows)["runs"].tolist() == [1, 1, 1] and not points(rows)["between_us"].any()


def test_older_runs_that_give_no_time_count():
    now = sets.frame([sets.row(compute_us=10.0, run=NEW)])
    every = sets.frame([sets.row(compute_us=10.0, run=NEW), sets.row(compute_us=13.0, run=OLD)])
    assert tidy.tidy(now, every=every)["between_us"].item() == pytest.approx(3.0)


def test_a_local_set_knows_its_older_runs(tmp_path):
    folder = sets.write_set(tmp_path, [sets.row(compute_us=10.0)], kind="local")
    again = folder / "one-to-one" / f"{NEW}-0000.csv.gz"
    cells = {name: store.text_of(value) for name, value in sets.row(compute_us=13.0, run=NEW).items()}
    store.write_atomic(again, store.encode([cells]))
    store.write_json(folder / "one-to-one" / "runs" / f"{NEW}.json", sets.run_record(NEW, sets.KEY))
    (folder / "one-to-one" / f"{NEW}-0001.csv.gz").write_bytes(b"damaged")
    (line,) = tidy.load(folder, sets.KEY, "local").points.to_dict("records")
    assert (line["compute_us"], line["runs"], line["between_us"]) == (13.0, 2, pytest.approx(3.9))


def test_the_sets_own_median_replaces_the_stated_range_where_enough_is_known():
    def rows(count):
        return [
            sets.row(variant=f"v{i}", compute_us=us, run=run, experiment=run)
            for i in range(count)
            for us, run in ((3.0, OLD), (3.0 * (1 + 0.01 * (i % 3)), NEW))
        ]

    alone = sets.row(variant="alone", compute_us=3.0)
    few = points([*rows(noise.ENOUGH - 1), alone]).set_index("variant")
    assert few.loc["alone", "between_us"] == pytest.approx(0.87)
    frame = points([*rows(noise.ENOUGH), alone])
    assert frame.set_index("variant").loc["alone", "between_us"] == pytest.approx(0.03)
    assert "1 % of the time below 4 µs, 2.8 % of the time from 4 to 8 µs" in noise.rule(frame)
    assert f"({noise.ENOUGH} of {noise.ENOUGH + 1} points)" in noise.rule(frame)


def test_the_plan_has_its_range_where_it_is_part_of_the_time():
    rows = [
        sets.row(variant="a", compute_us=10.0, plan_us=plan, run=run, experiment=run)
        for plan, run in ((100.0, NEW), (150.0, OLD))
    ] + [sets.row(variant="b", compute_us=120.0)]
    lines = best_table.best_table(points(rows)).set_index("accounting")
    assert lines["is_tie"].to_dict() == {"compute": False, "compute + plan": True}


def test_without_a_range_the_spread_within_the_run_counts():
    row = points([sets.row(compute_us=10.0)]).iloc[0].rename({"compute_us": "time_us"}).drop("between_us")
    assert noise.noise_us(row, row) == pytest.approx(0.1)
    unknown = pd.concat([row, pd.Series({"between_us": math.nan})])
    assert noise.noise_us(row, unknown) == noise.noise_us(row, row)


def test_claims_and_table_1_use_the_same_rule():
    definitions = {"warp_per_overlap_division": 3.2, "split_row": 3.0, "grouped_overlap_phases": 4.5}
    rows = [sets.row(variant=name, compute_us=us, plan_us=0.0) for name, us in definitions.items()]
    frame = points([*rows, sets.row(variant="cufft_paper", compute_us=3.0, plan_us=90.0)])
    series = parse_series({"first": ["warp_per_overlap_division"], "second": ["split_row"]})
    args = {"series": ["first", "second"], "form": "one-to-one", "counts": "1-to-1", "sizes": [16]}
    (value,) = measured.fastest(Rows(frame, series), args).values
    assert value.word == "first = second"
    line = table1.cells(frame).set_index("accounting").loc["paper"]
    assert (line["winner"], line["tied_with"]) == ("S", "W"), "grouped is further behind than 29 %, the transform plans"
    kept = table1.cells(frame).set_index("accounting").loc["plan amortised"]
    assert {kept["winner"], *kept["tied_with"].split(";")} == {"S", "W", "F"}


def of_block(variant, times, block="r.0", clocks=None):
    """Rows of a point of a block, a row for each sample."""
    clock = [{}] * len(times) if clocks is None else [{noise.CLOCK: one} for one in clocks]
    return [
        {**sets.row(variant=variant, compute_us=us, repetition=i, preset="evaluation", block=block), **more}
        for i, (us, more) in enumerate(zip(times, clock))
    ]


def test_points_of_a_block_tie_where_their_intervals_overlap():
    quiet = of_block("a", [10.0, 10.1, 10.2, 10.1])
    assert tied(*quiet, *of_block("b", [10.1, 10.4, 10.3, 10.2]))
    assert not tied(*quiet, *of_block("b", [10.4, 10.5, 10.6, 10.5]))
    assert tied(*of_block("a", [10.0] * 4), *of_block("b", [10.05] * 4)), "apart, but by less than 1 %"
    # Times below 4 us of two runs differ by more; in one block they are what they are.
    assert not tied(*of_block("a", [3.0, 3.01, 3.02, 3.01]), *of_block("b", [3.3, 3.31, 3.32, 3.31]))


def test_points_of_two_blocks_are_judged_by_the_usual_range():
    assert tied(*of_block("a", [3.0] * 4, "r.0"), *of_block("b", [3.3] * 4, "r.1"))


@pytest.mark.parametrize(
    ("clock", "tie"),
    [
        ([1980] * 4, False),
        ([1800] * 4, True),  # fewer cycles in a longer time: the clock was lower
        ([1900, 1960, 1890, 1800], True),  # the cycles overlap
    ],
)
def test_points_of_a_block_tie_where_time_and_cycles_disagree(clock, tie):
    first = of_block("a", [10.0, 10.1, 10.2, 10.1], clocks=[1980] * 4)
    frame = pd.DataFrame([*first, *of_block("b", [10.5, 10.6, 10.7, 10.6], clocks=clock)])
    clocks = frame.pop(noise.CLOCK)
    found = tidy.tidy(sets.frame(frame.to_dict("records")).assign(**{noise.CLOCK: clocks}))
    (line,) = best_table.best_table(found).to_dict("records")
    assert line["is_tie"] == tie
