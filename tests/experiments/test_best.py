"""Presets that measure only the fastest points of an earlier pass, and those that an experiment names."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from driving import EXPERIMENT, Driver, driver
from experiments.driver import best, schema
from xcorr.errors import UserError
from experiments.driver.points import Unit, Variant
from xcorr.problem import Problem

__all__ = ["driver"]
GRID = ("a=1;b=1", "a=1;b=2", "a=2;b=1", "a=2;b=2")
PROBLEM = Problem("one-to-one", (8, 8), (8, 8), 1, 1, "full")
VARIANT = Variant("fast", "cpu", "cpu", "definition", ("fp32",), ("one-to-one",), GRID, ("stream",), "0" * 16)
UNIT = Unit("e", PROBLEM, VARIANT, "fp32", "stream", "uniform", GRID)


def experiment(**preset: object) -> dict[str, schema.Experiment]:
    return {
        "e": schema.Experiment(
            title="t", form="one-to-one", feeds=["comparison"], problems=[{"sizes": [8], "counts": ["1:1"]}],
            presets={"paper": preset},
        )
    }  # fmt: skip


def row(params: str, us: float, **cells: str) -> dict[str, str]:
    cell = dict(zip(best.CELL, ("fast", "fp32", "one-to-one", *["8"] * 4, "1", "1", "full")))
    return {**cell, "params": params, "outcome": "passed", "mode": "stream", "compute_us": str(us), "experiment": "e", **cells}


def kept(rows: list[dict[str, str]], **preset: object) -> tuple[str, ...]:
    units, _ = best.keep_best([UNIT], experiment(**preset), "paper", best.ranking(rows))
    return units[0].params if units else ()


def test_the_fastest_are_kept_by_their_median() -> None:
    rows = [row(GRID[0], 3), row(GRID[1], 1), row(GRID[1], 100), row(GRID[1], 2), row(GRID[2], 4), row(GRID[3], 5)]
    assert kept(rows, best=1) == (GRID[1],), "the median of 1, 2 and 100 is 2"
    assert kept(rows, best=2) == GRID[:2], "in the order of the grid"
    assert kept(rows, best=9) == GRID


def test_only_what_passed_in_the_same_cell_counts() -> None:
    for cells in ({"outcome": "incorrect"}, {"mode": "graph"}, {"form": "n-to-m"}, {"left_rows": "9"}, {"precision": "fp64"}):
        assert kept([row(GRID[0], 1, **cells), row(GRID[3], 2)], best=1) == (GRID[3],), cells
    assert kept([row("a=3;b=1", 1), row(GRID[2], 2)], best=1) == (GRID[2],), "a point that is not built is not the best"


def test_a_side_experiment_ranks_only_what_nothing_else_measured() -> None:
    assert kept([row(GRID[0], 3), row(GRID[0], 1, experiment="modes"), row(GRID[1], 2)], best=1) == (GRID[1],)
    assert kept([row(GRID[0], 1, experiment="modes"), row(GRID[1], 2)], best=1) == (GRID[0],)


def test_named_points_are_kept_whatever_their_time() -> None:
    rows = [row(GRID[0], 1)]
    assert kept(rows, best=1, points={"fast": ["b=2"]}) == (GRID[0], GRID[1], GRID[3])
    assert kept([], best=1, points={"fast": ["a=2;b=1"]}) == (GRID[2],)
    assert kept([], best=1, points={"other": ["a=2"]}) == ()


def test_what_cannot_be_ranked_is_counted() -> None:
    other = dataclasses.replace(UNIT, variant=dataclasses.replace(VARIANT, id="other"))
    units, empty = best.keep_best([UNIT, other], experiment(best=1), "paper", best.ranking([row(GRID[0], 1)]))
    assert [unit.variant.id for unit in units] == ["fast"] and empty == [other]
    assert best.keep_best([UNIT, other], experiment(best=1), "quick", {}) == ([UNIT, other], []), "another preset"


@pytest.mark.parametrize(
    ("preset", "says"),
    [("best = 0", "give a positive integer"), ("points = { cpu_fft = ['threads=1'] }", "add best"),
     ("best = 'all'", "give a positive integer")],
)  # fmt: skip
def test_mistakes(tmp_path: Path, preset: str, says: str) -> None:
    path = tmp_path / "many.toml"
    path.write_text(EXPERIMENT + f"[presets.paper]\n{preset}\n")
    with pytest.raises(UserError) as caught:
        schema.load_experiment(path)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_paper_measures_the_best_of_quick(driver: Driver, capsys: pytest.CaptureFixture[str]) -> None:
    driver.experiment("many", EXPERIMENT + "[presets.paper]\nbest = 1\n")
    assert driver.run(preset="paper") == 2, "nothing says which points are best"
    assert "measure the preset quick first" in capsys.readouterr().err
    assert driver.run(preset="quick") == 0
    assert driver.run(preset="paper") == 0
    points = {(r["variant"], r["params"], r["left_rows"], r["rights"]) for r in driver.rows() if r["preset"] == "paper"}
    assert len(points) == 3 * 2 * 2, "one point of each variant on each problem"


def test_energy_is_asked_for(driver: Driver) -> None:
    driver.run("--variants", "cpu_definition")
    assert not any("--energy-time" in call for call in driver.calls())
    driver.experiment("metered", EXPERIMENT.replace("[[problems]]", "energy_s = 0.5\n[[problems]]"))
    driver.run("--experiments", "metered", "--variants", "cpu_definition")
    call = driver.calls()[-1]
    assert call[call.index("--energy-time") + 1] == "0.5"
