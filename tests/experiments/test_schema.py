"""The experiment files, and what a mistake in one says."""

import re
from pathlib import Path

import pytest
from built_library import built_library
from calls import one_line

from experiments import folders
from experiments.driver import schema
from experiments.driver.bench import Bench, program
from experiments.driver.points import expand
from plots import sources
from xcorr.choice import speeds
from xcorr.errors import UserError

GOOD = folders.experiments()["one-to-many"].read_text()


@pytest.mark.parametrize(
    "old, new, says",
    [
        ("feeds", "feds", "key feds: unknown; did you mean feeds?"),
        ("[[problems]]\nsizes", "[[problems]]\nsizs", "sizs: unknown; did you mean sizes?"),
        ("[presets.smoke]\nsizes", "[presets.smoke]\nsises", "sises: unknown; did you mean sizes?"),
        ("presets.smoke", "presets.smok", "key presets.smok: unknown; did you mean smoke?"),
        ('"stream"', '"streem"', "key modes.0: 'streem' is not allowed; give a list of stream"),
        ("[16, 32, 64, 128", "[0, 32, 64, 128", "size 0: 0 is out of range"),
        ("[16, 32, 64, 128", "[1.5, 32, 64, 128", "key problems.#0.sizes.0: 1.5 is not allowed"),
        ("[16, 32, 64, 128", "[true, 32, 64, 128", "key problems.#0.sizes.0: True is not allowed"),
        ('"1:8"', '"3:8"', "counts 3:8: one-to-many has one left"),
        ('title = "One-to-many correlation"', "", "key title: missing; give a string"),
        ('form = "one-to-many"', 'form = "one-to-mny"', "give one of one-to-one, one-to-many"),
        ('window = "full"', 'window = "ful"', "window 'ful': not understood; write full"),
        ('precisions = ["fp32"]', 'precisions = "fp32"', "key precisions: 'fp32' is not allowed"),
        (re.search("^feeds = (.*)$", GOOD, re.MULTILINE)[1], "[]", "key feeds: empty"),
        ('window = "full"', "window = []", 'key window: empty; give "full"'),
        ("[[problems]]", "[[problems]]\nwindow = []", "key problems.#0.window: empty"),
        ("[[problems]]", "[[problems]]\nresult = []", "key problems.#0.result: empty"),
        ("title", "title ==", "not TOML"),
        ("[presets.smoke]\nsizes = [16", "[presets.smoke]\nsizes = [17", "17 is in no problem"),
    ],
)
def test_mistakes_are_one_line(tmp_path, old, new, says):
    path = tmp_path / "x.toml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(UserError, match=one_line(says)) as caught:
        schema.load_experiment(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    "old, new, says",
    [
        ("cuda = 0.02", "cda = 0.02", "key smoke.max_predicted_s.cda: unknown; did you mean cuda?"),
        ("repetitions = 2", "repetitons = 2", "key smoke.repetitons: unknown; did you mean repet"),
        ("repetitions = 2", "repetitions = 2.5", "give a positive integer"),
        ("repetitions = 2", "repetitions = 0", "must be positive"),
        ("repetitions = 2", "repetitions = -1", "key smoke.repetitions: -1 is not allowed"),
        ("repetitions = 2", "repetitions = 99999999999999999999", "be at most 1e+06"),
        ("repetitions = 2", f"repetitions = {'9' * 400}", "that integer is not allowed"),
        ("min_time_s = 0.005", "min_time_s = nan", "key smoke.min_time_s: nan is not allowed"),
        ("min_time_s = 0.005", "min_time_s = inf", "key smoke.min_time_s: inf is not allowed"),
        ("min_time_s = 0.005", "min_time_s = -1", "must be positive"),
        ("min_time_s = 0.005", f"min_time_s = {'9' * 400}", "that integer is not allowed"),
        ("cpu = 0.1", "cpu = nan", "key smoke.max_predicted_s.cpu: nan is not allowed"),
        ("cpu = 0.1", "cpu = -1", "key smoke.max_predicted_s.cpu: -1 is not allowed"),
        ("cpu = 30", "cpu = nan", "key quick.max_point_s.cpu: nan is not allowed"),
        ("cpu = 0.1", "cpu = true", "key smoke.max_predicted_s.cpu: True is not allowed"),
        ("min_time_s = 0.005", "min_time_s = 0.005\nmin_timeout_s = inf", "min_timeout_s: inf is not allowed"),
        ("[smoke]", "[smok]", "key smok: unknown; did you mean smoke?"),
        ("cpu = 0.1", 'cpu = "x"', "key smoke.max_predicted_s.cpu: 'x' is not allowed"),
    ],
    ids=lambda text: text[:40],
)
def test_mistakes_in_presets(tmp_path, old, new, says):
    good = (schema.FOLDER / "presets.toml").read_text()
    assert old in good
    (tmp_path / "presets.toml").write_text(good.replace(old, new))
    with pytest.raises(UserError, match=one_line(says)):
        schema.load_presets(tmp_path)


@pytest.mark.parametrize(
    "old, new, says",
    [
        (
            "per_core = 5e8",
            "per_core = 0",
            "key classes.cpu.definition.per_core: 0 is not allowed; it must be positive",
        ),
        ("per_s = 3e11", "per_s = nan", "key classes.cuda.definition.per_s: nan is not allowed"),
        ("launch_us = 0.2", "launch_us = inf", "key variants.cpu_definition.launch_us: inf is not allowed"),
        ("plan_s = 0.1", "plan_s = -3", "plan_s: -3 is not allowed; it must not be negative"),
        ("fma_per_s = 1e9", "fma_per_s = 0", "key verification.cpu.fma_per_s: 0 is not allowed"),
        ("fft_per_s = 1e9", "fft_per_s = nan", "key verification.cpu.fft_per_s: nan is not allowed"),
        ("[classes.cuda]", "[classes.opencl]", "key classes.cuda.definition: missing"),
        ("[verification.cuda]", "[verification.opencl]", "key verification.cuda: missing"),
    ],
)
def test_rates_that_would_divide_by_nothing_are_refused(tmp_path, old, new, says):
    good = speeds.SPEEDS.read_text() + (schema.FOLDER / "rates.toml").read_text()
    assert old in good
    (tmp_path / "rates.toml").write_text(good.replace(old, new, 1))
    with pytest.raises(UserError, match=one_line(says)):
        schema.load_rates(tmp_path)


def test_folders_without_experiments(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(UserError, match="folder|holds no"):
            schema.load_experiments(folder)


def test_shipped_files():
    """The paper's sizes and counts (section 5), its saturated cases and its application."""
    experiments = schema.load_experiments()
    schema.load_rates()
    assert set(schema.load_presets()) == {"smoke", "quick", "select", "evaluation", "extended", "paper", "paper-full"}
    paper = {name: schema.grid(one, "paper") for name, one in experiments.items()}
    assert [p.left[0] for p in paper["one-to-one"]] == [16, 24, 32, 48, 64, 96, 128, 192, 256, 384]
    for name, counts in {
        "one-to-many": {(1, 2), (1, 8), (1, 32), (1, 4000)},
        "n-to-mn": {(2, 8), (4, 16), (8, 32), (10, 2560), (100, 4000)},
        "n-to-m": {(2, 2), (8, 8), (32, 32), (128, 128)},
    }.items():
        found = {(p.left[0], p.lefts, p.rights) for p in paper[name]}
        assert {(s, *c) for s in (16, 32, 64, 128, 192, 256, 384) for c in counts} <= found
    assert (96, 86, 4300) in {(p.left[0], p.lefts, p.rights) for p in paper["n-to-mn"]}
    assert any(p.window == "valid" and p.left != p.right for p in paper["off-grid"])
    for name, experiment in experiments.items():
        assert len(schema.grid(experiment, "smoke")) <= len(paper[name])


def test_side_experiments_say_so():
    experiments = schema.load_experiments()
    side = {"modes", "energy", "auto-regret", "fields", "in-kernel-transforms", "results", "values"}
    assert side <= schema.studies() <= set(experiments)
    for name, one in experiments.items():
        quick = one.presets.get("quick", schema.Restriction())
        odd = one.modes != ["stream"] or one.input != "uniform" or one.energy_s or quick.best is not None
        assert one.study or not odd, f"{name}: what measures points of other experiments again is a side experiment"


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_point_of_two_experiments_belongs_to_one_and_is_a_side_row_of_the_others(device):
    """Else it would depend on the order of files which of two rows a table shows."""
    built_library()  # skips where nothing is built
    variants = Bench(program(), "cpu").variants()
    main = {name: one for name, one in schema.load_experiments().items() if not one.study}
    owner: dict[object, str] = {}
    for unit in expand(main, variants, "evaluation", device):
        for params in unit.params:
            point = (unit.variant.id, unit.precision, unit.problem, unit.mode, unit.input, params)
            other = owner.setdefault(point, unit.experiment)
            assert other == unit.experiment, (
                f"{unit.name} {params}: study = true is missing in {other} or {unit.experiment}"
            )


def test_every_experiment_feeds_something_that_exists():
    drawn = {one.__name__.rpartition(".")[2] for kind in ("figures", "tables") for one in sources.modules(kind)}
    for name, experiment in schema.load_experiments().items():
        for feed in experiment.feeds:
            assert feed in drawn | {"claims"}, f"{name} feeds {feed}, which does not exist"


def with_fields(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "f.toml"
    head = 'title = "t"\nform = "one-to-one"\nfeeds = ["fields"]\n'
    path.write_text(f'{head}{text}\n[[problems]]\nsizes = [8]\ncounts = ["1:1"]\n')
    return path


def test_fields_of_an_experiment_and_of_its_problems(tmp_path):
    path = with_fields(tmp_path, 'score = ["product", "zncc"]\nresult = "peak"')
    path.write_text(path.read_text() + '\n[[problems]]\nsizes = [4]\ncounts = ["1:1"]\nscore = "covariance"\n')
    assert [one.id for one in schema.grid(schema.load_experiment(path), "")] == [
        "one-to-one/4x4/4x4/1:1/full/score=covariance/result=peak",
        "one-to-one/8x8/8x8/1:1/full/result=peak",
        "one-to-one/8x8/8x8/1:1/full/score=zncc:0.3/result=peak",
    ]


@pytest.mark.parametrize(
    "text, says",
    [
        ('score = "phase"', "needs boundary circular"),
        ('boundary = ["zero", "circular"]\nscore = "ncc"', "no meaning with boundary circular"),
        ('masks = "left"', "only ncc and zncc use masks"),
        ('result = "above:3"', "a capacity is missing"),
        ("score = 3", "key score: 3 is not allowed; give a value of the field or a list"),
        ('scores = "zncc"', "did you mean score"),
    ],
)
def test_nonsense_of_fields_is_refused_in_one_line(tmp_path, text, says):
    with pytest.raises(UserError, match=one_line(says)) as caught:
        schema.load_experiment(with_fields(tmp_path, text))
    assert "f.toml" in str(caught.value)
