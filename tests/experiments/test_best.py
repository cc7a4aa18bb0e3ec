"""Presets that measure only the fastest points of an earlier pass, and those that an experiment names."""

import dataclasses

import pytest
import stored
from calls import one_line
from driving import EXPERIMENT

from experiments.driver import best, schema, store
from experiments.driver.points import Unit
from xcorr.errors import UserError
from xcorr.native.variants import Variant
from xcorr.problem import Problem

GRID = ("a=1;b=1", "a=1;b=2", "a=2;b=1", "a=2;b=2")
PROBLEM = Problem("one-to-one", (8, 8), (8, 8), 1, 1, "full")
VARIANT = Variant("fast", "cpu", "cpu", "definition", ("fp32",), ("one-to-one",), GRID, ("stream",), "0" * 16)
UNIT = Unit("e", PROBLEM, VARIANT, "fp32", "stream", "uniform", GRID)


def experiment(**preset: object) -> dict[str, schema.Experiment]:
    problems = [{"sizes": [8], "counts": ["1:1"]}]
    about = {"title": "t", "form": "one-to-one", "feeds": ["comparison"]}
    return {"e": schema.Experiment(**about, problems=problems, presets={"paper": preset})}


def row(params: str, us: float, **cells: object) -> dict[str, str]:
    about = {"variant": "fast", "experiment": "e", "params": params, "compute_us": us}
    return stored.row(**{**stored.square(8), **about, **cells})


def kept(rows: list[dict[str, str]], **preset: object) -> tuple[str, ...]:
    units, _ = best.keep_best([UNIT], experiment(**preset), "paper", best.ranking(rows))
    return units[0].params if units else ()


def test_architectures_of_machines():
    assert best.architecture("cuda", {"device": "cuda:0", "compute_capability": "9.0"}) == "9.0"
    assert best.architecture("cpu", {"device": "cuda:0", "compute_capability": "9.0"}) == "cpu"
    assert best.architecture("cuda", {}) == "unknown"


def test_the_fastest_are_kept_by_their_median():
    rows = [row(GRID[0], 3), row(GRID[1], 1), row(GRID[1], 100), row(GRID[1], 2), row(GRID[2], 4), row(GRID[3], 5)]
    assert kept(rows, best=1) == (GRID[1],), "the median of 1, 2 and 100 is 2"
    assert kept(rows, best=2) == GRID[:2], "in the order of the grid"
    assert kept(rows, best=9) == GRID


def test_only_what_passed_in_the_same_cell_counts():
    other = {"outcome": "incorrect", "mode": "graph", "form": "n-to-m", "left_rows": "9", "precision": "fp64"}
    for name, cell in other.items():
        assert kept([row(GRID[0], 1, **{name: cell}), row(GRID[3], 2)], best=1) == (GRID[3],), name
    assert kept([row("a=3;b=1", 1), row(GRID[2], 2)], best=1) == (GRID[2],), "a point that is not built is not the best"


def test_a_side_experiment_ranks_only_what_nothing_else_measured():
    assert kept([row(GRID[0], 3), row(GRID[0], 1, experiment="modes"), row(GRID[1], 2)], best=1) == (GRID[1],)
    assert kept([row(GRID[0], 1, experiment="modes"), row(GRID[1], 2)], best=1) == (GRID[0],)


def test_named_points_are_kept_whatever_their_time():
    rows = [row(GRID[0], 1)]
    assert kept(rows, best=1, points={"fast": ["b=2"]}) == (GRID[0], GRID[1], GRID[3])
    assert kept([], best=1, points={"fast": ["a=2;b=1"]}) == (GRID[2],)
    assert kept([], best=1, points={"other": ["a=2"]}) == ()


def test_what_cannot_be_ranked_is_counted():
    other = dataclasses.replace(UNIT, variant=dataclasses.replace(VARIANT, id="other"))
    units, empty = best.keep_best([UNIT, other], experiment(best=1), "paper", best.ranking([row(GRID[0], 1)]))
    assert [unit.variant.id for unit in units] == ["fast"] and empty == [other]
    assert best.keep_best([UNIT, other], experiment(best=1), "quick", {}) == ([UNIT, other], []), "another preset"


@pytest.mark.parametrize(
    ("preset", "says"),
    [
        ("best = 0", "give a positive integer"),
        ("points = { cpu_fft = ['threads=1'] }", "add best"),
        ("best = 'all'", "give a positive integer"),
    ],
)
def test_mistakes(tmp_path, preset, says):
    path = tmp_path / "many.toml"
    path.write_text(EXPERIMENT + f"[presets.paper]\n{preset}\n")
    with pytest.raises(UserError, match=one_line(says)):
        schema.load_experiment(path)


def test_paper_measures_the_best_of_quick(driver, capsys):
    driver.experiment("many", EXPERIMENT + "[presets.paper]\nbest = 1\n")
    assert driver.run(preset="paper") == 2, "nothing says which points are best"
    assert "measure the preset quick first" in capsys.readouterr().err
    assert driver.run(preset="quick") == 0
    assert driver.run(preset="paper") == 0
    points = {(r["variant"], r["params"], r["left_rows"], r["rights"]) for r in driver.rows() if r["preset"] == "paper"}
    assert len(points) == 3 * 2 * 2, "one point of each variant on each problem"


def test_energy_is_asked_for(driver):
    driver.run("--variants", "cpu_definition")
    assert not any("--energy-time" in call for call in driver.calls())
    driver.experiment("metered", EXPERIMENT.replace("[[problems]]", "energy_s = 0.5\n[[problems]]"))
    driver.run("--experiments", "metered", "--variants", "cpu_definition")
    call = driver.calls()[-1]
    assert call[call.index("--energy-time") + 1] == "0.5"


def elsewhere(rows: list[dict[str, str]], foreign: bool = False) -> best.Elsewhere:
    return best.Elsewhere([best.ranking(rows)], foreign)


def of_size(side: int, params: str, us: float, form: str = "one-to-one") -> dict[str, str]:
    return row(params, us, form=form, **stored.square(side))


def test_the_nearest_problem_of_a_published_set_names_the_best():
    rows = [of_size(64, GRID[0], 1), of_size(64, GRID[1], 2), of_size(16, GRID[3], 1), of_size(16, GRID[2], 2)]
    assert elsewhere(rows).some(UNIT, 1) == (GRID[3],), "16 is nearer to 8 than 64 is"
    assert elsewhere(rows).some(UNIT, 2) == (GRID[3], GRID[2])
    assert elsewhere(rows, foreign=True).some(UNIT, 1) == (GRID[3], GRID[0]), "and the ends of the grid"
    unbuilt = [of_size(16, "a=9;b=9", 1), of_size(64, GRID[1], 1)]
    assert elsewhere(unbuilt).some(UNIT, 1) == (GRID[1],)
    other = [of_size(8, GRID[2], 1, form="n-to-m"), of_size(64, GRID[0], 1)]
    assert elsewhere(other).some(UNIT, 1) == (GRID[0],), "another form only where its own has nothing"
    assert elsewhere(other[:1]).some(UNIT, 1) == (GRID[2],)


def test_a_new_variant_stands_for_itself():
    grid = tuple(f"a={i}" for i in range(100))
    new = dataclasses.replace(UNIT, variant=dataclasses.replace(VARIANT, id="new"), params=grid)
    few = elsewhere([of_size(8, GRID[0], 1)]).some(new, 1)
    assert len(few) == best.FEW and few[0] == "a=0" and few[-1] == "a=99"
    assert best.spread(GRID, 9) == GRID and best.spread(GRID, 2) == (GRID[0], GRID[-1])


def test_smoke_measures_what_it_knows_best_and_says_once_what_it_leaves_out(driver, capsys):
    driver.edit("presets.toml", "[quick]", "best = 1\nborrow = true\n[quick]")
    (driver.results / "published").mkdir(parents=True)
    assert driver.run("--dry-run") == 0
    assert "to measure: 18 points" in capsys.readouterr().out, "no rows: the grids are small"
    assert driver.run(preset="quick") == 0
    capsys.readouterr()
    assert driver.run() == 0
    assert len({store.key_of(r) for r in driver.rows() if r["preset"] == "smoke"}) == 3 * 2 * 2, "the best of quick"
    said = capsys.readouterr().err
    assert said.count("note: preset smoke takes 12 of the 18 points") == 1
    assert "scripts/reproduce.sh --preset quick measures them" in said
