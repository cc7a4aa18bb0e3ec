"""Several problems of a variant in one process: whatever becomes of it, no other point is lost."""

import json
from pathlib import Path

import pytest
from driving import CRASH, EXPERIMENT, POINTS, Driver, keys

from experiments.driver.points import in_processes


@pytest.fixture
def together(driver: Driver) -> Driver:
    """A driver whose preset smoke gives a process all problems of a variant."""
    driver.edit("presets.toml", "[quick]", "problems_a_process = 100\n[quick]")
    return driver


def bad(driver: Driver) -> dict[tuple[str, ...], str]:
    return {place: outcome for place, outcome in driver.outcomes().items() if outcome != "passed"}


def test_a_process_per_variant_gives_the_rows_of_a_process_per_problem(together, driver):
    assert together.run() == 0
    assert len(together.calls()) == 2
    rows = together.rows()
    assert len(rows) == 2 * POINTS
    asked = [json.loads(line) for line in Path(f"{together.log}.points").read_text().splitlines()]
    assert sorted(map(len, asked)) == [6, 12]
    assert together.run() == 0 and len(together.calls()) == 2, "resumed: nothing is left"
    together.presets()
    assert driver.run("--force") == 0
    assert len(driver.calls()) == 2 + 12
    assert keys(driver.rows()) == keys(rows)


def test_experiments_share_a_process_and_a_problem(together):
    together.experiment("again", EXPERIMENT)
    assert together.run() == 0
    assert len(together.calls()) == 2 and len(together.rows()) == 2 * 2 * POINTS
    assert {row["experiment"] for row in together.rows()} == {"many", "again"}


@pytest.mark.parametrize("kind", ["crash", "no-answer"])
def test_a_crash_loses_one_point_not_the_process(together, kind):
    together.faults({"kind": kind, **CRASH})
    assert together.run() == 1
    assert bad(together) == {("cpu_fft", "threads=1", "8", n): "failed" for n in "23"}
    assert len(together.rows()) == 2 * (POINTS - 2) + 2
    alone = [call for call in together.calls() if "--params" in call]
    assert len(alone) == 2, "each crash is repeated alone"


def test_a_lost_device_costs_only_the_point_that_lost_it(together):
    together.faults({"kind": "lost", **CRASH})
    assert together.run() == 1
    assert bad(together) == {("cpu_fft", "threads=1", "8", n): "failed" for n in "23"}
    assert len(together.calls()) == 1 + 3, "a new process after each loss"


def test_a_hanging_point_times_out_alone(together):
    together.one_hangs()
    together.run()
    assert bad(together) == {("cpu_fft", "threads=1", "4", n): "timeout" for n in "23"}
    assert len(together.rows()) == 2 * (POINTS - 2) + 2


def test_a_refused_problem_fails_alone(together):
    together.faults({"kind": "exit2", "variant": "cpu_definition", "left": "12x12"})
    assert together.run() == 1
    assert bad(together) == {("cpu_definition", "", "12", n): "failed" for n in "23"}


def test_units_meet_in_processes_by_variant():
    class One:
        def __init__(self, name: str, precision: str = "fp32") -> None:
            self.variant, self.precision = type("V", (), {"id": name})(), precision

    a, b, c, d = One("x"), One("y"), One("x"), One("x", "fp64")
    assert in_processes([a, b, c, d], 2) == [(a, c), (b,), (d,)]  # type: ignore[comparison-overlap,list-item]
    assert in_processes([a, b, c], 1) == [(a,), (b,), (c,)]  # type: ignore[comparison-overlap,list-item]
    assert in_processes([a, c, a], 2) == [(a, c), (a,)]  # type: ignore[comparison-overlap,list-item]
