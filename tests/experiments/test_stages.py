"""The rules of the two stages, alone and on the recorded rows of whole grids, which stand for a device."""

import dataclasses
import statistics
from collections import defaultdict

import pytest

from experiments.driver import schema, stages, store
from experiments.driver.evaluation import Evaluation
from experiments.driver.points import Unit
from experiments.driver.predict import Predictor
from experiments.driver.schema import EVALUATION, SELECT
from experiments.driver.shown import groups_of, shown
from experiments.driver.sweep import Progress
from xcorr.native.variants import Variant
from xcorr.paths import ROOT
from xcorr.problem import Problem

RECORDED = ROOT / "results/published/nvidia-h200-132-sm-140-gib"
PROBLEMS = 20
FACTS = {"cores": 16, "machine_key": "gpu", "compute_capability": "9.0"}


@pytest.mark.parametrize(
    "times, kept",
    [
        ({"a": 1.0, "b": 1.2, "c": 1.3, "d": 1.4}, "ab"),  # the slower half goes
        ({"a": 1.0, "b": 1.02, "c": 1.05, "d": 1.09}, "abcd"),  # but not what is close
        ({"a": 1.0, "b": 1.6, "c": 1.7, "d": 9.0}, ""),  # far: a is decided
        ({"a": 1.5e4, "b": 1.509e4, "c": 1.53e4, "d": 1.54e4}, "ab"),  # long: one sample is an average
        ({"a": 1.0}, ""),
        ({}, ""),
    ],
)
def test_the_slower_half_is_dropped_unless_it_is_close(times, kept):
    assert stages.survivors([tuple("abcd")], {one: [time] for one, time in times.items()}) == set(kept)


def test_a_point_goes_on_while_one_group_keeps_it():
    samples = {one: [float(i)] for i, one in enumerate("abcd", start=10)}
    assert stages.survivors([("a", "b", "c", "d")], samples) == {"a", "b"}
    assert stages.survivors([("a", "b", "c", "d"), ("c", "d")], samples) == {"a", "b", "c", "d"}


def test_a_lucky_first_sample_of_a_dropped_point_wins_nothing():
    assert stages.fastest(("a", "b"), {"a": [0.9], "b": [1.0, 1.0, 1.0]}) == "b"


def test_what_rows_have_far_behind_is_not_measured_and_what_they_lack_is():
    known = {"a": 1.0, "b": 1.2, "c": 1.4, "d": None}
    assert stages.candidates([tuple("abcd"), ("c",)], known) == {"a", "b", "d"}
    assert stages.candidates([tuple("abcd"), ("c", "d")], known) == set("abcd"), "c is the fastest known of its group"


def promising(groups, predicted, guessed=(), carried=None, known=None):
    return stages.promising(groups, predicted, guessed, carried or {}, known or {})


def test_long_launches_are_measured_where_a_group_of_theirs_has_none_much_shorter():
    predicted = {"a": 0.015, "b": 0.059, "c": 0.061, "d": 0.07, "e": 0.0019}
    assert promising([tuple("abcd")], predicted) == set("abe"), "a short one is always measured"
    assert promising([tuple("abcd"), ("c", "d")], predicted) == set("abcde"), "c and d are the best of theirs"
    assert promising([tuple("abcde")], predicted) == {"e"}
    assert promising([tuple("abcde")], predicted, {"d"}) == {"d", "e"}, "nobody knows that d is slow"
    assert promising([("x",)], {}) == set()


def test_of_long_launches_a_few_are_measured_and_then_what_may_be_faster():
    many = {f"{one:02}": 0.03 + 0.001 * one for one in range(20)}
    ranked = sorted(many)
    assert promising([tuple(many)], many) == set(ranked[: stages.FIRST])
    assert promising([tuple(many)], many, known={"00": 0.0301}) == set(ranked[:4]), "up to 0.0331"
    assert promising([tuple(many)], many, known={"00": 0.9, "01": 0.5}) == set(ranked[: stages.FEW])
    assert promising([tuple(many)], {**many, "00": 0.019}) == set(many), "one is shorter"


def test_launches_that_fill_the_card_have_their_order_from_fewer_matrices():
    predicted = {"a": 0.015, "b": 0.015, "c": 0.016, "d": 0.015}
    carried = {"a": 0.010, "b": 0.0111, "c": 0.0109}
    assert promising([tuple("abcd")], predicted, carried=carried) == set("acd"), "d was not measured there"
    assert promising([("b",), tuple("abcd")], predicted, carried=carried) == set("abcd"), (
        "b is the only one of its group"
    )


def test_where_launches_are_long_the_first_sample_decides():
    long = 1e6 * stages.LONG_S
    assert stages.survivors([("a", "b")], {"a": [0.9 * long], "b": [0.905 * long]}) == {"a", "b"}
    assert not stages.survivors([("a", "b")], {"a": [1.1 * long], "b": [1.101 * long]})


def test_blocks_hold_whole_problems_and_end_in_time():
    variant = Variant("v", "f", "cpu", "fft", ("fp32",), ("one-to-one",), ("",), ("stream",), "")
    units = [Unit("e", Problem("one-to-one", (n, n), (n, n), 1, 1), variant, "fp32", mode, "uniform", ("",)) for n in range(2, 9) for mode in ("stream", "graph")]  # fmt: skip
    problems = stages.problems_of(units)

    def cost_s(some):
        return sum(one.problem.left[0] for one in some)

    blocks = stages.packed(problems, cost_s, 20)
    assert sorted(unit.name + unit.mode for block in blocks for unit in block) == sorted(u.name + u.mode for u in units)
    assert all(cost_s(block) <= 20 for block in blocks) and len(blocks) == 4
    for block in blocks:
        assert sorted(one.mode for one in block) == ["graph", "stream"] * 0 + sorted(one.mode for one in block)
        assert len({one.problem for one in block}) * 2 == len(block)
    assert [len(block) for block in stages.packed(problems, cost_s, 1)] == [2] * 7, "a long problem is a block"


class Device:
    """Answers with the recorded samples of a point in turn."""

    def __init__(self, rows):
        self.samples = defaultdict(list)
        self.taken = defaultdict(int)
        self.rows = []
        for row in rows:
            self.samples[Problem.of_row(row), row["variant"], row["precision"], row["params"]].append(row)

    def of(self, unit, params):
        return self.samples[unit.problem, unit.variant.id, unit.precision, params]

    def measure(self, unit, params, repetitions):
        own = self.of(unit, params)
        for _ in range(repetitions):
            row = own[self.taken[id(own)] % len(own)]
            self.taken[id(own)] += 1
            self.rows.append({**row, **unit.cells(params, SELECT)})

    def us(self, unit, params):
        return statistics.median(float(row["compute_us"]) for row in self.of(unit, params))


class Series:
    """In place of a Sweep: a series of processes on the device."""

    def __init__(self, device, repetitions):
        self.device, self.repetitions = device, repetitions

    def go_groups(self, groups, expected):
        for unit in (unit for group in groups for unit in group):
            for params in unit.params:
                self.device.measure(unit, params, self.repetitions)
        return 0

    def finish(self, facts):
        pass


class Replayed(Evaluation):
    def rows(self, preset, set_aside=True):
        return self.bench.rows if preset == SELECT else []

    def _sweep(self, name, update, progress):
        return Series(self.bench, update["repetitions"])


@pytest.fixture(scope="module")
def replayed():
    """Stage select on the 20 problems with the most points, without rows that say anything before."""
    rows = [row for row in store.read_rows(RECORDED) if row["outcome"] == "passed" and row["mode"] == "stream"]
    rows = [row for row in rows if row["preset"] == "quick" and row["input"] == "uniform"]
    by_problem, units = defaultdict(list), []
    for row in rows:
        by_problem[Problem.of_row(row), row["experiment"]].append(row)
    some = sorted(by_problem.items(), key=lambda item: (-len(item[1]), item[0][0].id))[:PROBLEMS]
    for (problem, _), own in some:
        points = defaultdict(dict)
        for row in own:
            points[row["variant"], row["precision"]].setdefault(row["params"], row)
        for (name, precision), by_params in points.items():
            row = next(iter(by_params.values()))
            kind = "fft" if "fft" in row["family"] else "definition"
            places = (
                (precision,),
                (problem.form,),
                tuple(by_params),
                ("stream",),
                row["source_hash"].partition("+")[0],
            )
            variant = Variant(name, row["family"], row["backend"], kind, *places)
            units.append(Unit(row["experiment"], problem, variant, precision, "stream", "uniform", tuple(by_params)))
    presets, rates, experiments = schema.load_presets(), schema.load_rates(), schema.load_experiments()
    endless = {"max_predicted_s": schema.Limits(cpu=1e6, cuda=1e6)}
    presets = {name: preset.model_copy(update=endless) for name, preset in presets.items()}
    predictors = {name: Predictor(rates, FACTS, "cuda:0", presets[name], name) for name in (SELECT, EVALUATION)}
    device = Device([row for _, own in some for row in own])
    words = (device, RECORDED, FACTS, presets, EVALUATION, experiments, units, shown(), predictors, None)
    evaluation = Replayed(*words)
    for number, (_, samples) in enumerate(stages.ROUNDS):
        chosen = evaluation.to_select(evaluation.rows(SELECT), number)
        evaluation._sweep(SELECT, {"repetitions": samples}, Progress()).go_groups([chosen], {})
    return evaluation, device, units


def test_the_halving_finds_the_winners_of_the_exhaustive_grid(replayed):
    evaluation, device, units = replayed
    times = stages.times_of(device.rows)
    worse = {}
    for unit in units:
        samples = times[stages.cell_of(unit)]
        for group in [one for one in groups_of(unit, shown()) if len(one) > 1]:
            best, found = min(device.us(unit, one) for one in group), stages.fastest(group, samples)
            if device.us(unit, found) > 1.01 * best:
                worse[unit.name, group] = device.us(unit, found) / best
    assert not worse


def test_the_halving_takes_fewer_samples_than_the_grid(replayed):
    _, device, units = replayed
    points = sum(len(unit.params) for unit in units)
    assert points <= len(device.rows) < points * (1 + stages.ROUNDS[-1].samples) * 0.75


def test_the_fastest_of_each_problem_and_all_that_are_close_contend(replayed):
    evaluation, device, units = replayed
    chosen = evaluation.contenders(evaluation.rows(SELECT))
    contending = {(unit.name, unit.precision, one) for unit in chosen for one in unit.params if one not in unit.drawn}
    best = defaultdict(lambda: float("inf"))
    for unit in units:
        place = unit.problem, unit.precision
        best[place] = min(best[place], *(device.us(unit, one) for one in unit.params))
    best_us = {(unit.name, one): best[unit.problem, unit.precision] for unit in units for one in unit.params}
    missed = {
        (unit.name, one): device.us(unit, one) / best[unit.problem, unit.precision]
        for unit in units
        for one in unit.params
        if (unit.name, unit.precision, one) not in contending
    }
    # One sample is not a median. Recorded times below 4 us were paced by the host.
    assert not [place for place, ratio in missed.items() if ratio <= (1.4 if best_us[place] > 4 else 1.2)]


def test_a_problem_is_complete_where_all_its_points_are_of_one_block():
    variant = Variant("v", "f", "cpu", "fft", ("fp32",), ("one-to-one",), ("a", "b"), ("stream",), "")
    unit = Unit("e", Problem("one-to-one", (4, 4), (4, 4), 1, 1), variant, "fp32", "stream", "uniform", ("a", "b"))

    def rows(params, block, processes=3, **more):
        known = {"outcome": "passed", "reason": "", "block": block, **more}
        return {("e", unit.key(params, "p")): [{**known, "process": str(one)} for one in range(processes)]}

    def complete(**of):
        return stages.is_complete([unit], "p", 3, of["a"] | of.get("b", {}))

    assert complete(a=rows("a", "x"), b=rows("b", "x"))
    assert not complete(a=rows("a", "x"), b=rows("b", "y")), "two blocks"
    assert not complete(a=rows("a", "x"), b=rows("b", "x", 2)), "interrupted before the third process"
    assert not complete(a=rows("a", "x")), "a point without rows"
    assert not complete(a=rows("a", ""), b=rows("b", "")), "rows of no block"
    assert complete(a=rows("a", "x"), b=rows("b", "x", 1, outcome="failed", reason="crashed"))
    assert complete(a=rows("a", "x"), b=rows("b", "x", 1, reason="timed once"))
    assert not stages.is_complete(
        [dataclasses.replace(unit, params=("a", "b", "c"))], "p", 3, rows("a", "x") | rows("b", "x")
    )


def test_points_whose_references_take_long_are_measured_briefly_and_by_stage_final_alone():
    def detecting(samples):
        shapes = ((1, 256), (1, samples + 255), 64, 1)
        problem = Problem("n-to-m", *shapes, window="valid", score="zncc", result="above:8mad:100")
        points = ("a=1", "a=2")
        made = Variant("v", "f", "cuda", "definition", ("fp32",), ("n-to-m",), points, ("stream",), "")
        return Unit("e", problem, made, "fp32", "stream", "uniform", points)

    few, many = detecting(1000), detecting(5_000_000)
    assert stages.to_choose_from([few, many]) == [few]
    predictor = Predictor(schema.load_rates(), FACTS, "cuda:0", schema.load_presets()[EVALUATION], EVALUATION)
    times = {stages.cell_of(few): {"a=1": [1.0], "a=2": [1.1]}}
    assert [one.params for one in stages.contenders([few, many], (), times, predictor)] == [few.params]
    chosen = stages.contenders([few, many], (), times, predictor, lambda unit, _: unit.problem == many.problem)
    assert [one.params for one in chosen] == [few.params, many.params], "stage select did not choose"
    assert [one.brief for one in chosen] == [("a=2",), many.params]
