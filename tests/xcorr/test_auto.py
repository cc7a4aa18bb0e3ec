"""auto: what it picks from made-up times, from which source, and what it says about it."""

import json
from dataclasses import replace

import pytest
from fixtures import sets
from scipy_library import ScipyLibrary

from experiments.driver import measured, store
from experiments.driver.schema import grid, load_experiment
from experiments.published import auto_table
from xcorr import auto as command
from xcorr.choice import auto, plans, table
from xcorr.errors import UserError
from xcorr.fields import Fields
from xcorr.paths import RESULTS
from xcorr.problem import Problem

DIRECT, FFT = ("cpu_definition", "threads=1"), ("cpu_fft", "threads=all")


def square(side, form="one-to-one", lefts=1, rights=1, window="full"):
    return Problem(form, (side, side), (side, side), lefts, rights, window)


def crossing(side):
    """Of two points one costs by FMAs, the other as good as nothing but a launch; they meet at 35.6."""
    return {DIRECT: 1e-5 * side**4, FFT: 16.0}


def source(*sides, times=crossing):
    return auto.Source("made up", {square(side): times(side) for side in sides})


def picked(problem, known, fits=lambda point: ""):
    choice = auto.pick(problem, known, fits)
    return choice and (choice.variant, choice.params)


def test_a_problem_that_was_measured_is_not_predicted():
    odd = source(16, 32, 64, times=lambda side: {DIRECT: 1.0 if side == 32 else 9.0, FFT: 5.0})
    assert picked(square(32), odd) == DIRECT
    choice = auto.pick(square(32), odd, lambda point: "")
    assert choice.us == 1.0 and "measured 1 us" in choice.why and "next cpu_fft at 5.00 x" in choice.why


@pytest.mark.parametrize("side, best", [(20, DIRECT), (28, DIRECT), (30, DIRECT), (42, FFT), (56, FFT), (200, FFT)])
def test_the_smallest_predicted_time_wins_not_the_nearest_problem(side, best):
    known = source(16, 24, 48, 64, 96, 128)
    assert picked(square(side), known) == best
    predicted = {one.point: one.us for one in auto.predict(square(side), known.times)}
    for point, us in crossing(side).items():
        assert predicted[point] == pytest.approx(us, rel=0.25), point


def test_distance_is_in_octaves_of_data():
    assert auto.distance(square(16), square(32)) == pytest.approx(2, abs=0.05)  # outputs are 31 and 63
    assert auto.distance(square(16, "n-to-m", 2, 2), square(16, "n-to-m", 2, 4)) == pytest.approx(1)
    wide = Problem("one-to-one", (8, 32), (8, 32), 1, 1, "full")
    assert auto.distance(square(16), wide) > 1, "the same area is not the same shape"
    assert auto.distance(square(64), square(64, window="sy:-4..4,sx:-4..4")) > 2


def test_only_problems_of_the_form_count():
    other = {square(32, "n-to-m", 2, 2): {DIRECT: 1.0}}
    assert auto.pick(square(32), auto.Source("", other), lambda point: "") is None
    both = auto.Source("", other | {square(64): {FFT: 1.0}})
    assert picked(square(32), both) == FFT


def test_what_does_not_fit_is_skipped():
    known = source(16, 32, 64)
    assert picked(square(20), known) == DIRECT
    assert picked(square(20), known, lambda point: "not supported" if point == DIRECT else "") == FFT
    assert auto.pick(square(20), known, lambda point: "no") is None


def test_a_problem_with_few_variants_is_no_neighbour():
    times = {square(side): {("a", ""): 1.0, ("b", ""): 2.0, ("c", ""): 3.0} for side in (16, 64)}
    times[square(31)] = {("c", ""): 0.5}
    assert picked(square(32), auto.Source("", times))[0] == "a"


def test_what_the_nearest_problem_lacks_is_a_candidate_where_two_near_ones_have_it():
    times = {square(side): {("a", ""): 9.0, ("b", ""): 8.0} for side in (16, 24, 31, 48, 64)}
    for side in (24, 48):
        times[square(side)]["new", ""] = 2.0
    times[square(64)]["once", ""] = 1.0
    assert picked(square(32), auto.Source("", times))[0] == "new"
    far = {square(side): {("a", ""): 9.0, ("b", ""): 8.0} for side in (16, 20, 200, 256)}
    for side in (200, 256):  # what large problems have tells nothing of small ones
        far[square(side)]["large", ""] = 0.1
    assert picked(square(18), auto.Source("", far))[0] == "b"


def test_more_work_never_takes_less_time():
    """Of two sizes the larger was faster, with as many bytes: for a tenth of the pairs this says nothing."""

    def pairs(side, count):
        return square(side, "n-to-mn", count, count)

    known = {pairs(16, 65536): {FFT: 400.0}, pairs(32, 16384): {FFT: 100.0}}
    few, many = (auto.predict(pairs(32, count), known)[0].us for count in (1024, 16000))
    assert few < many / 2


def test_a_single_call_counts_its_plan():
    library = ScipyLibrary()
    for length in (100_000, 1_000_000):
        problem = Problem("one-to-one", (1, length), (1, length), 1, 1, "sy:0..0,sx:-250..250")
        single, kept = (auto.Auto(library, "cpu", calls=calls).choose(problem) for calls in (1, plans.KEPT))
        assert single.variant == "cpu_row_streaming" and single.why.endswith("for a single call, whose plan counts")
        assert kept.variant == "cpu_fft" and "single call" not in kept.why
    small = auto.pick(square(42), source(16, 64), lambda point: "", lambda point: 1e3 if point == FFT else 0.0)
    assert (small.variant, small.params) == DIRECT and small.us < 1e3, "its time is that of a call"


def test_the_line_says_what_it_rests_on():
    why = auto.pick(square(20), source(16, 24, 48), lambda point: "").why
    assert "from 3 measured problems, the nearest one-to-one/24x24/24x24/1:1/full" in why and "(near)" in why
    assert "made up" in why and "\n" not in why
    assert "(far, a guess)" in auto.pick(square(250), source(16, 24), lambda point: "").why


def test_own_rows_that_are_far_yield_to_nearer_ones_of_another_machine():
    own, other = source(16), source(16, 256)
    assert auto.ordered(square(32), [own, other])[0] is own
    assert auto.ordered(square(256), [own, other])[0] is other
    assert auto.ordered(square(256), [other, own])[0] is other
    assert auto.ordered(square(16, "n-to-m", 2, 2), [own, other])[0] is own, "nobody knows: as they come"


def rows(*sides, fast="cpu_row_streaming", us=5.0, **cells):
    return [
        sets.row(variant=variant, params="threads=all", compute_us=time, **sets.square(side), **cells)
        for side in sides
        for variant, time in ((fast, us), ("cpu_fft", 9.0))
    ]


@pytest.fixture
def results(tmp_path, monkeypatch):
    """An empty results folder and an empty build folder, so that no test reads another's rows."""
    monkeypatch.setenv("XCORR_BUILD", str(tmp_path / "build"))
    (tmp_path / "build").mkdir()
    return tmp_path / "results"


def write_set(results, rows, key, kind="published"):
    """A set with its table, as a run or publishing leaves it."""
    measured.write(sets.write_set(results, rows, key, kind))


def chosen(results, problem, precision="fp32", library=None):
    return auto.Auto(library or ScipyLibrary(), "cpu", results).choose(problem, precision)


def test_sources_local_then_published_then_shipped_then_rule(results, monkeypatch):
    key, problem = ScipyLibrary().machine("cpu")["machine_key"], square(32)
    shipped = chosen(results, problem)
    assert "times of another machine" in shipped.why and "the nearest shipped" in shipped.why
    write_set(results, rows(32, fast="cpu_definition"), key)
    assert chosen(results, problem).variant == "cpu_definition"
    write_set(results, rows(32, us=1.0), key, "local")
    local = chosen(results, problem)
    assert local.variant == "cpu_row_streaming" and f"local and published rows of this machine, {key}" in local.why
    monkeypatch.setattr(table, "SHIPPED", results / "empty.json")
    table.SHIPPED.write_text("[]")
    rule = chosen(results, square(32, "n-to-m", 2, 2))
    assert "by rule" in rule.why and "speeds.toml" in rule.why and rule.params == "threads=all"
    assert rule.variant in ("cpu_fft", "cpu_row_streaming")


def test_the_rule_knows_the_work(results, monkeypatch):
    monkeypatch.setattr(table, "SHIPPED", results.parent / "empty.json")
    table.SHIPPED.write_text("[]")
    small, large = chosen(results, square(4)), chosen(results, square(512))
    assert small.variant != "cpu_fft" and large.variant == "cpu_fft"


def test_precision_without_rows_goes_by_fp32(results):
    write_set(results, rows(32, fast="cpu_definition"), ScipyLibrary().machine("cpu")["machine_key"])
    found = chosen(results, square(32), "fp64")
    assert found.variant == "cpu_definition" and found.why.count("in fp32") == 1


def test_what_the_build_lacks_or_refuses_is_skipped(results):
    key = ScipyLibrary().machine("cpu")["machine_key"]
    write_set(results, rows(32, fast="a_variant_of_another_tree"), key)
    assert chosen(results, square(32)).variant == "cpu_fft"
    write_set(results, rows(32), key)
    library = ScipyLibrary()
    library.refuses = {"cpu_row_streaming": "needs sm_90"}
    assert chosen(results, square(32), library=library).variant == "cpu_fft"
    library.refuses = dict.fromkeys(("cpu_definition", "cpu_row_streaming", "cpu_fft"), "no")
    with pytest.raises(UserError, match="no variant of this build computes one-to-one/32x32") as caught:
        chosen(results, square(32), library=library)
    assert "\n" not in str(caught.value)


def test_a_second_question_asks_nobody(results):
    library = ScipyLibrary()
    asked = auto.Auto(library, "cpu", results)
    first = asked.choose(square(32))
    library.supports = library.machine = None  # not callable
    assert asked.choose(square(32)) is first


def test_rows_that_a_table_lacks_are_told_with_the_command_that_adds_them(results, capsys):
    key = ScipyLibrary().machine("cpu")["machine_key"]
    write_set(results, rows(16, 32), key, "local")
    assert "have changed" not in chosen(results, square(20)).why
    sets.write_set(results, rows(16, 32, 64, fast="cpu_definition"), key, "local")
    copied = chosen(results, square(20))
    command = f"python3 -m experiments.published.auto_table --local {key}"
    assert copied.variant == "cpu_row_streaming" and copied.why.endswith(f"run {command}")
    assert auto_table.main([*command.split()[3:], "--results", str(results)]) == 0
    found = chosen(results, square(20))
    assert found.variant == "cpu_definition" and "have changed" not in found.why
    assert str(results / "local" / key / table.NAME) in capsys.readouterr().out


def test_rows_without_a_table_are_told(results):
    key = ScipyLibrary().machine("cpu")["machine_key"]
    sets.write_set(results, rows(32), key)
    assert chosen(results, square(32)).why.endswith("run python3 -m experiments.published.auto_table")


def test_a_damaged_table_is_one_line_with_the_command_that_makes_it(results):
    key = ScipyLibrary().machine("cpu")["machine_key"]
    write_set(results, rows(32), key, "local")
    path = results / "local" / key / table.NAME
    for text in ("", "{", "[1]", '[{"times": 1}]', '[{"times": {"fp32": {"n-to-m": {}}}}]'):
        path.write_text(text)
        with pytest.raises(UserError, match=f"auto_table --local {key}") as caught:
            chosen(results, square(32))
        assert "\n" not in str(caught.value), text


def test_only_passed_rows_of_mode_stream_are_times():
    good = [{name: store.text_of(value) for name, value in one.items()} for one in rows(32)]
    incorrect, graph = {"params": "a=1", "outcome": "incorrect"}, {"params": "a=2", "mode": "graph"}
    times = measured.times_of([*good, good[0] | incorrect, good[0] | graph])
    assert times == {"fp32": {square(32): {("cpu_row_streaming", "threads=all"): 5.0, ("cpu_fft", "threads=all"): 9.0}}}
    assert table.undigest(json.loads(json.dumps(table.digest(times)))) == times


def test_the_shipped_table_keeps_points_that_lead():
    times = {
        square(16): {("a", "1"): 1.0, ("a", "2"): 2.0, ("b", ""): 3.0, ("c", ""): 4.0, ("d", ""): 5.0},
        square(32): {("a", "1"): 2.0, ("a", "2"): 1.0, ("b", ""): 3.0, ("c", ""): 4.0, ("d", ""): 5.0},
    }
    assert {point[0] for found in auto_table.leaders(times).values() for point in found} == {"a", "b", "c"}
    assert ("a", "2") in auto_table.leaders(times)[square(16)], "leads on the other problem"


@pytest.mark.parametrize(
    "device, facts, expected",
    [
        ("cuda:0", {"compute_capability": "8.4"}, "old"),
        ("cuda", {"compute_capability": "9.0"}, "new"),
        ("cpu", {"cores": 6}, "few"),
        ("cpu", {"cores": 64}, "many"),
    ],
)
def test_the_nearest_architecture_is_of_the_same_kind(results, monkeypatch, device, facts, expected):
    times = table.digest({"fp32": {square(32): {FFT: 1.0}}})
    machines = [
        {"machine_key": "old", "backend": "cuda", "compute_capability": "8.0", "times": times},
        {"machine_key": "new", "backend": "cuda", "compute_capability": "9.0", "times": times},
        {"machine_key": "few", "backend": "cpu", "cores": 4, "times": times},
        {"machine_key": "many", "backend": "cpu", "cores": 32, "times": times},
    ]
    monkeypatch.setattr(table, "SHIPPED", results.parent / "table.json")
    table.SHIPPED.write_text(json.dumps(machines))
    [found] = table.sources({"machine_key": "x", **facts}, device, "fp32", results)
    assert expected in found.where


def test_table_and_experiment_are_up_to_date(capsys):
    assert auto_table.main(["--check"]) == 0, capsys.readouterr().out


def test_the_experiment_measures_what_auto_would_choose():
    """On every machine whose rows are published: or its regret could not be told."""
    experiment = load_experiment(auto_table.REGRET)
    judged, named = grid(experiment, "quick"), experiment.presets["quick"].points
    found = [measured.read(path) for path in (RESULTS / "published").iterdir() if path.is_dir()]
    found = [one for one in found if one]  # an imported set has no verified time
    assert found and {problem.form for problem in judged} == {"one-to-one", "one-to-many", "n-to-mn", "n-to-m"}
    for one in found:
        known = {problem: own for problem, own in one["times"]["fp32"].items() if problem not in judged}
        for problem in judged:
            ranked = auto.predict(problem, known)
            if not ranked:  # the set has no such form, as that of a GPU's host
                continue
            best = ranked[0].point
            assert best[1] in named[best[0]], f"{problem.id}: {best}"


class Series(ScipyLibrary):
    """Beside the general variants three for templates along one signal, which refuse all else."""

    OWN = {
        "timeseries_tf32": ("tf32", "definition"),
        "timeseries_cublas": ("tf32", "definition"),
        "timeseries_fft": ("fp32", "fft"),
    }

    def variants(self):
        general = [{**one, "backend": "cuda", "precisions": ["fp32", "tf32"]} for one in super().variants()]
        common = {**general[0], "family": "time_series", "forms": ["n-to-m"], "points": ["a=1", "a=2"]}
        own = [
            {**common, "id": name, "precisions": [precision], "algorithm_class": algorithm_class}
            for name, (precision, algorithm_class) in self.OWN.items()
        ]
        return sorted([*general, *own], key=lambda one: one["id"])

    def supports(self, problem, *, variant, **_):
        fits = problem.rights == 1 and problem.left[0] == problem.right[0] and problem.window == "valid"
        if variant in self.OWN and not (fits and problem.form == "n-to-m"):
            return "templates along one signal only"
        if variant in self.OWN and problem.fields.score != "product" and variant != "timeseries_tf32":
            return "products only"
        return super().supports(problem, variant=variant)


LONG = Problem("n-to-m", (1, 256), (1, 1_000_255), 16, 1, "valid")


def series_choice(results, problem, precision="fp32", **fields):
    problem = replace(problem, fields=Fields(**fields))
    return auto.Auto(Series(), "cuda", results).choose(problem, precision)


def test_a_family_for_such_problems_is_taken_where_nothing_near_was_measured(results):
    image = Problem("n-to-m", (56, 56), (56, 56), 4, 9, "full")
    assert series_choice(results, LONG).variant == "timeseries_fft"
    tensor = series_choice(results, LONG, "tf32")
    assert tensor.variant == "timeseries_tf32" and "by rule" in tensor.why, "its own speed, not the first by id"
    assert not series_choice(results, image).variant.startswith("timeseries")
    # Times of images, on this very machine, say nothing of it.
    key = ScipyLibrary().machine("cpu")["machine_key"]
    plain = rows(32, 64, form="n-to-m", lefts=4, rights=9, backend="cuda")
    write_set(results, plain, key)
    assert series_choice(results, LONG).variant == "timeseries_fft"
    assert "measured" in series_choice(results, Problem("n-to-m", (32, 32), (32, 32), 4, 9, "full")).why


def test_measured_time_series_decide_against_the_rule(results):
    shape = {"left_rows": 1, "left_cols": 256, "right_rows": 1, "form": "n-to-m", "rights": 1, "window": "valid"}
    key = ScipyLibrary().machine("cpu")["machine_key"]
    times = {("timeseries_fft", "a=2"): 50.0, ("timeseries_fft", "a=1"): 90.0, ("cpu_fft", "threads=all"): 40.0}
    found = [
        sets.row(variant=v, params=p, compute_us=us, right_cols=width, lefts=16, backend="cuda", **shape)
        for width in (900_255, 1_100_255)
        for (v, p), us in times.items()
    ]
    write_set(results, found, key)
    choice = series_choice(results, LONG)
    assert choice.variant == "cpu_fft" and "predicted" in choice.why
    slow = [{**one, "compute_us": 900.0} if one["variant"] == "cpu_fft" else one for one in found]
    write_set(results, slow, key)
    choice = series_choice(results, LONG)
    assert (choice.variant, choice.params) == ("timeseries_fft", "a=2")


def test_a_matched_filter_goes_to_its_family_first(results):
    fields = {"score": "zncc", "result": "above:8mad:100"}
    assert series_choice(results, LONG, "tf32", **fields).variant == "timeseries_tf32"
    assert series_choice(results, LONG, **fields).variant == "cpu_fft", "none of the family has fp32 for it"


def test_the_family_of_the_speeds_exists():
    families = auto.speeds.shipped()["families"]
    assert list(families) == ["time_series"] and set(families["time_series"]) == {"cpu", "cuda"}


def test_command_says_the_choice_in_one_line(results, monkeypatch, capsys):
    monkeypatch.setattr(command, "Library", ScipyLibrary)
    words = f"--form n-to-m --left 56 --lefts 4 --rights 9 --results {results}"
    assert command.run(words.split()) == 0
    out = capsys.readouterr().out
    assert out.startswith("n-to-m/56x56/56x56/4:9/full: cpu_") and out.count("\n") == 1


@pytest.mark.parametrize(
    "argv, words",
    [
        (["--left", "56x0"], "out of range"),
        (["--left", "5", "--form", "n-to-n"], "did you mean n-to-m"),
        (["--left", "5", "--precision", "fp99"], "fp"),
        (["--left", "5", "--lefts", "2"], "one-to-one means 1:1"),
        ([], "--left"),
        (["--left", "5", "--precision", "fp16"], "no variant of this build"),
    ],
)
def test_mistakes_are_one_line(results, monkeypatch, argv, words):
    monkeypatch.setattr(command, "Library", ScipyLibrary)
    with pytest.raises(UserError, match=words) as caught:
        command.run([*argv, "--results", str(results)])
    assert "\n" not in str(caught.value)


def test_table_command_mistakes(tmp_path, capsys):
    assert auto_table.main(["--results", str(tmp_path)]) == 2
    assert auto_table.main(["--local", "nothing", "--results", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_points_of_the_experiment_are_data_of_the_results(tmp_path, monkeypatch):
    made = {"machine_key": "m", "backend": "cpu", "times": {"fp32": source(16, 32, 64).times}}
    points = auto_table.regret_points([made])
    assert points == {"cpu_definition": ["threads=1"], "cpu_fft": ["threads=all"]}
    assert json.loads(auto_table.POINTS.read_text()) == load_experiment(auto_table.REGRET).presets["quick"].points
    path = tmp_path / "auto-regret.toml"
    path.write_text(auto_table.REGRET.read_text().replace("auto_regret_points", "nothing"))
    with pytest.raises(UserError, match="presets.quick.points: results/nothing.json cannot be read"):
        load_experiment(path)
