"""The preset evaluation on the fake program: two stages, blocks, and what an interruption leaves."""

import json
from collections import Counter, defaultdict

import pytest

from experiments.driver import predict, schema, store
from experiments.driver.sweep import Sweep

FINAL, SELECT = "evaluation", "select"


def test_stage_select_and_all_processes_of_a_block_but_the_first_are_brief(driver, monkeypatch):
    monkeypatch.setenv("FAKE_RECORD", json.dumps({"plan_us": 5.0}))
    assert [name for name, one in schema.load_presets().items() if one.brief] == [SELECT]
    driver.edit("presets.toml", "[select]\n", "[select]\nbrief = true\n")
    driver.stages(1000)
    assert driver.run(preset=FINAL) == 0
    selecting, first, *later = list(zip(asked(driver), briefly(driver)))[-4:]
    assert all(set(points) == brief for points, brief in (selecting, *later))
    whole = Counter((variant, *problem) for variant, _, *problem in set(first[0]) - first[1])
    assert whole == Counter({(variant, *problem) for variant, _, *problem in first[0]}), "the fastest of each variant"
    assert {row["process"] for row in rows_of(driver, FINAL) if row["plan_us"]} == {"0"}, "one plan is no sample"


@pytest.fixture
def staged(driver, monkeypatch):
    driver.stages(1000)
    monkeypatch.setenv("FAKE_STEP", "0")  # else the rivals of a small problem are far from each other
    return driver


def evaluate(driver, *more):
    return driver.run(*more, preset=FINAL)


def rows_of(driver, preset):
    return [row for row in driver.rows() if row["preset"] == preset]


def blocks_by_problem(driver):
    found = defaultdict(set)
    for row in rows_of(driver, FINAL):
        found[store.rivals_of(row)[1:]].add(row["block"])
    return found


def small(driver):
    """Blocks of one problem each."""
    driver.edit("presets.toml", "block_s = 1000", "block_s = 0.001")


def asked(driver):
    """(variant, params, left, rights) of the points of each process that read them."""
    path = driver.log.with_name(driver.log.name + ".points")
    names = ("variant", "params", "left", "rights")
    return [
        [tuple(str(point[name]) for name in names) for point in json.loads(line)]
        for line in path.read_text().splitlines()
    ]


def briefly(driver):
    """Those of `asked` that are measured briefly."""
    path = driver.log.with_name(driver.log.name + ".points")
    points = [json.loads(line) for line in path.read_text().splitlines()]
    options = [words for words in driver.calls() if "--points" in words]
    return [
        {one for one, point in zip(names, own) if point.get("brief", "--brief" in words)}
        for names, own, words in zip(asked(driver), points, options)
    ]


def test_every_contender_is_measured_by_three_processes_of_one_block(staged):
    assert evaluate(staged) == 0
    points = defaultdict(list)
    for row in rows_of(staged, FINAL):
        points[store.key_of(row)].append(row)
    assert len(points) == 18, "all are within 1.5 times of the fastest"
    for own in points.values():
        assert sorted((int(row["repetition"]), row["process"]) for row in own) == [
            (0, "0"), (1, "0"), (2, "1"), (3, "1"), (4, "2"), (5, "2"),
        ]  # fmt: skip
    assert all(len(of) == 1 for of in blocks_by_problem(staged).values())
    (block,) = set.union(*blocks_by_problem(staged).values())
    assert {row["run"] for row in rows_of(staged, FINAL)} == {block.partition(".")[0]}


def test_each_process_has_an_order_of_its_own_and_keeps_problems_together(staged):
    assert evaluate(staged) == 0
    last = asked(staged)[-3:]
    assert len({tuple(one) for one in last}) == 3
    assert len({frozenset(one) for one in last}) == 1
    for one in last:
        problems = [point[2:] for point in one]
        changes = sum(a != b for a, b in zip(problems, problems[1:]))
        assert changes == len(set(problems)) - 1


def test_what_is_complete_is_not_measured_again(staged, capsys):
    assert evaluate(staged) == 0
    before = len(staged.calls()), staged.files()
    capsys.readouterr()
    assert evaluate(staged) == 0
    assert (len(staged.calls()), staged.files()) == before
    assert "about 0 s" in capsys.readouterr().out


def test_an_interrupted_block_is_measured_again_whole(staged, monkeypatch):
    small(staged)
    real, processes = Sweep._process_all, []

    def interrupted(sweep, chunks, group, todo):
        if sweep._block:
            processes.append(sweep._block)
            if len(processes) == 5:  # the second process of the second block
                raise KeyboardInterrupt
        return real(sweep, chunks, group, todo)

    with monkeypatch.context() as patch:
        patch.setattr(Sweep, "_process_all", interrupted)
        assert evaluate(staged) == 130
    complete, broken = (one["block"] for one in (processes[0], processes[-1]))
    assert {row["block"] for row in rows_of(staged, FINAL)} == {complete, broken}
    assert evaluate(staged) == 0
    mixed = {problem: of for problem, of in blocks_by_problem(staged).items() if len(of) != 1}
    assert not mixed
    left = {row["block"] for row in rows_of(staged, FINAL)}
    assert complete in left and broken not in left


def test_a_changed_variant_is_measured_again_with_all_its_rivals(staged):
    from fake_bench import VARIANTS

    assert evaluate(staged) == 0
    (old,) = {row["block"] for row in rows_of(staged, FINAL)}
    staged.variants([{**one, "source_hash": "b" * 16} if one["id"] == "cpu_fft" else one for one in VARIANTS])
    assert evaluate(staged) == 0
    new = {row["block"] for row in rows_of(staged, FINAL)} - {old}
    rows = [row for row in rows_of(staged, FINAL) if row["block"] in new]
    assert {row["variant"] for row in rows} == {"cpu_definition", "cpu_fft"}
    again = {row["variant"] for row in rows_of(staged, SELECT) if row["source_hash"] == "b" * 16}
    assert again == {"cpu_fft"}, "its fastest point may be another one"


def test_a_point_that_fails_in_a_later_process_has_no_times(staged, tmp_path):
    fault = {"kind": "incorrect", "variant": "cpu_definition", "left": "8x8"}
    real = Sweep._process_all

    def faulty(sweep, chunks, group, todo):
        staged.faults(*([fault] if sweep._block.get("process") == 1 else []))
        return real(sweep, chunks, group, todo)

    staged._patch.setattr(Sweep, "_process_all", faulty)
    assert evaluate(staged) == 1
    own = [row for row in rows_of(staged, FINAL) if row["variant"] == "cpu_definition" and row["left_rows"] == "8"]
    assert {row["outcome"] for row in own} == {"incorrect"} and len(own) == 2


def test_a_time_limit_stops_between_blocks_and_the_same_command_goes_on(staged, capsys):
    small(staged)
    stops = 0
    while (code := evaluate(staged, "--for-minutes", "0.0001")) == 3:
        assert "stopped after" in capsys.readouterr().out
        stops += 1
    assert code == 0 and "stopped after" not in capsys.readouterr().out
    assert stops >= 4
    assert all(len(of) == 1 for of in blocks_by_problem(staged).values())
    before = len(staged.calls())
    assert evaluate(staged) == 0 and len(staged.calls()) == before


def test_the_estimate_names_both_stages_before_anything_is_measured(staged, capsys):
    assert evaluate(staged, "--dry-run") == 0
    out = capsys.readouterr().out
    assert "checks included" in out and "select" in out and "final" in out
    assert not staged.calls() and not staged.files()


def test_experiments_of_the_extended_preset_are_left_out(staged):
    text = (staged.folder / "many.toml").read_text()
    staged.experiment("side", text.replace('feeds = ["comparison"]', 'feeds = ["comparison"]\nextended = true'))
    assert evaluate(staged) == 0
    assert {row["experiment"] for row in staged.rows()} == {"many"}


def test_a_point_that_a_figure_needs_is_timed_once_where_its_launch_is_long(staged):
    limit = (
        "[evaluation]\nrepetitions = 2\nprocesses = 3\nblock_s = 1000\nmin_time_s = 0.001\nmax_predicted_s = { cpu = 5,"
    )
    staged.edit(
        "presets.toml",
        limit,
        limit.replace("5,", "1e-12,").replace("[evaluation]", "[evaluation]\nwhole_figures = true"),
    )
    staged.edit("many.toml", "[[problems]]", '[drawn]\ncpu_definition = [""]\n[[problems]]')
    assert evaluate(staged) == 0
    rows = rows_of(staged, FINAL)
    assert {row["variant"] for row in rows} == {"cpu_definition"}
    assert len(rows) == 6 and all(row["reason"].startswith("timed once") for row in rows)
    assert briefly(staged)[-1] == set(asked(staged)[-1]), "its one launch is what is verified"


def test_of_a_slow_point_each_process_takes_one_sample(staged, monkeypatch):
    monkeypatch.setattr(predict, "SLOW_S", 0.0)
    assert evaluate(staged) == 0
    samples = defaultdict(list)
    for row in rows_of(staged, FINAL):
        assert row["reason"].startswith("one sample a process")
        samples[store.key_of(row)].append(row["process"])
    assert len(samples) == 18 and all(own == ["0", "1", "2"] for own in samples.values())
    first = {one for one in set(asked(staged)[-3]) - briefly(staged)[-3]}
    assert {variant for variant, *_ in first} == {"cpu_fft"}, "its phases are measured"


def test_stage_final_knows_the_launches_that_stage_select_has_timed(staged):
    """They are shorter than what the shipped rates say, by which none would be selected."""
    staged.edit(
        "presets.toml",
        "[evaluation]\nrepetitions = 2\nprocesses = 3\nblock_s = 1000\nmin_time_s = 0.001\nmax_predicted_s = { cpu = 5,",
        "[evaluation]\nrepetitions = 2\nprocesses = 3\nblock_s = 1000\nmin_time_s = 0.001\nmax_predicted_s = { cpu = 0.0000001,",
    )
    assert evaluate(staged) == 0
    assert len({store.key_of(row) for row in rows_of(staged, FINAL)}) == 18


def test_what_cannot_win_is_measured_by_one_process(driver):
    driver.stages(1000)  # the fake's later repetitions are longer, so that variants with more samples are slower
    assert evaluate(driver) == 0
    slow = [row for row in rows_of(driver, FINAL) if row["reason"].startswith("timed by one process")]
    assert {row["process"] for row in slow} == {"0"}
    assert {row["variant"] for row in slow} == {"cpu_fft"}


def test_what_cannot_win_and_has_no_phases_is_measured_briefly(driver):
    from fake_bench import VARIANTS

    slow = {**VARIANTS[1], "algorithm_class": "definition"}
    driver.variants([VARIANTS[0], slow])
    driver.stages(1000)
    assert evaluate(driver) == 0
    drawn = {row["params"] for row in rows_of(driver, FINAL) if row["reason"].startswith("timed by one process")}
    assert drawn
    first = briefly(driver)[-3]
    assert {params for variant, params, *_ in first if variant == "cpu_fft"} == drawn


def test_slowed_is_refused(staged, capsys):
    assert evaluate(staged, "--slowed") == 2
    assert "takes no --slowed" in capsys.readouterr().err


def test_shards_have_problems_of_their_own_and_measure_everything(staged, capsys):
    of_part, series_of_part = [], []
    for part in ("1/2", "2/2"):
        before = {store.rivals_of(row) for row in rows_of(staged, FINAL)}
        assert evaluate(staged, "--shard", part) == 0
        rows = [row for row in rows_of(staged, FINAL) if store.rivals_of(row) not in before]
        of_part.append({store.rivals_of(row)[1:] for row in rows})
        series_of_part.append({tuple(row[name] for name in ("form", "left_rows", "left_cols")) for row in rows})
    assert all(of_part) and not of_part[0] & of_part[1]
    assert not series_of_part[0] & series_of_part[1], "problems with other numbers of matrices are in one part"
    before = len(staged.calls())
    assert evaluate(staged) == 0
    assert len(staged.calls()) == before


def test_what_a_variant_does_not_declare_is_not_measured(staged):
    staged.edit("many.toml", 'form = "one-to-many"', 'form = "one-to-many"\nscore = "zncc:0.3"')
    from fake_bench import VARIANTS

    declaring = {**VARIANTS[1], "scores": ["product", "zncc"]}
    staged.variants([VARIANTS[0], declaring])
    assert evaluate(staged) == 0
    assert {row["variant"] for row in staged.rows()} == {declaring["id"]}
