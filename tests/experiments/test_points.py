"""Problems, expansion of experiments, filters and shards."""

import random
from dataclasses import replace
from functools import partial
from pathlib import Path

import fake_bench
import pytest

from experiments.driver import source_tree
from experiments.driver.points import Filters, Unit, expand, parse_shard, select_points, take_shard
from experiments.driver.schema import grid, load_experiments
from xcorr.errors import UserError
from xcorr.fields import Fields
from xcorr.native.variants import Variant
from xcorr.problem import Problem, parse_counts, parse_size

VARIANTS = [Variant.from_list(entry) for entry in fake_bench.VARIANTS]
CUDA = Variant.from_list(fake_bench.variant("warp_shuffle", "cuda", points=("a=1", "a=2")))


ONE = 'title = "t"\nform = "one-to-one"\nfeeds = ["best_table"]\n'
BLOCK = '[[problems]]\nsizes = [4]\ncounts = ["1:1"]\n'


def with_params(folder: Path, params: str, *variants: Variant) -> list[Unit]:
    """The units of an experiment whose preset quick keeps these parameters."""
    (folder / "one.toml").write_text(f"{ONE}{BLOCK}[presets.quick]\nparams = {params}\n")
    return expand(load_experiments(folder), [CUDA, *variants], "quick", "cuda")


def units(**filters: object) -> list[Unit]:
    chosen = Filters(**filters)  # type: ignore[arg-type]
    return expand(load_experiments(), VARIANTS, "quick", "cpu", chosen)


def brute_force(problem: Problem) -> int:
    """Products that lie inside both matrices, counted one by one."""
    (lh, lw), (rh, rw) = problem.left, problem.right
    sy, sx = problem.shifts
    rows = sum(0 <= y + s < rh for s in sy for y in range(lh))
    cols = sum(0 <= x + s < rw for s in sx for x in range(lw))
    return rows * cols * problem.pairs


def test_the_key_of_a_reduced_result_has_the_hash_of_the_reduction():
    listed = Variant.from_list(
        {**fake_bench.VARIANTS[0], "results": ["surface", "sum", "above"], "reduction_hash": "01234567"}
    )
    own = listed.source_hash
    reduced = f"{own}+01234567"
    for result, expected in [
        *(("surface", own), ("sum", own), ("peaks:3", reduced)),
        *(("above:8mad:5", own), ("above:8mad:5:3", reduced)),
    ]:
        problem = Problem("one-to-one", (4, 4), (4, 4), 1, 1, "full", fields=Fields(result=result))
        unit = Unit("some", problem, listed, "fp32", "stream", "uniform", ("",))
        assert unit.key("", "quick")[-1] == expected


def test_work_of_a_problem():
    assert Problem("n-to-m", (16, 16), (16, 16), 2, 3, "full").fmas == 16**4 * 6
    chance = random.Random(1)
    for _ in range(300):
        left, right = ((chance.randint(1, 9), chance.randint(1, 9)) for _ in range(2))
        ends = [sorted(chance.randint(1 - a, b - 1) for _ in range(2)) for a, b in zip(left, right)]
        explicit = "sy:{}..{},sx:{}..{}".format(*ends[0], *ends[1])
        for window in ("full", explicit):
            problem = Problem("one-to-many", left, right, 1, 2, window)
            assert problem.fmas == brute_force(problem), problem.id
    valid = Problem("one-to-one", (3, 4), (10, 20), 1, 1, "valid")
    assert valid.output == (8, 17) and valid.fmas == 8 * 17 * 12 == brute_force(valid)
    assert valid.bytes(4) == 4 * (12 + 200 + 136)
    assert Problem("one-to-one", (10, 20), (3, 4), 1, 1, "valid").shifts == (range(-7, 1), range(-16, 1))


@pytest.mark.parametrize(
    "form, left, right, lefts, rights, window, says",
    [
        ("n-to-mn", (4, 4), (4, 4), 3, 8, "full", "the next is 9"),
        ("one-to-one", (4, 4), (4, 4), 1, 2, "full", "1:1"),
        ("one-to-many", (4, 4), (4, 4), 2, 2, "full", "one left"),
        ("one-to-one", (2, 8), (8, 2), 1, 1, "valid", "contain"),
        ("one-to-one", (2, 8), (8, 2), 1, 1, "sy:3..1,sx:0..0", "empty"),
        ("one-to-one", (2, 8), (8, 2), 1, 1, "sy=1", "not understood"),
        ("one-to-one", (2, 8), (8, 2), 1, 1, "sy:-2..7,sx:0..0", "leaves the full window"),
        ("one-to-one", (2, 8), (8, 2), 1, 1, "sy:0..0,sx:-7..2", "sx leaves the full window; stay within -7..1"),
        ("n-to-m", (2**31 - 1, 2**31 - 1), (1, 1), 9, 9, "full", "overflow"),
    ],
)
def test_illegal_problems(form, left, right, lefts, rights, window, says):  # type: ignore
    with pytest.raises(UserError, match=says) as caught:
        Problem(form, left, right, lefts, rights, window)
    assert "\n" not in str(caught.value) and "; " in str(caught.value)


@pytest.mark.parametrize("size", ["0", "-3", "4x0", "99999999999", "4x", "x4", "", "4x4x4", "1e3"])
def test_bad_sizes(size):
    with pytest.raises(UserError, match="size"):
        parse_size(size)


def test_sizes_and_counts():
    assert parse_size(7) == ((7, 7), (7, 7)) and parse_size("3x5") == ((3, 5), (3, 5))
    assert parse_size("2:3x5") == ((2, 2), (3, 5)) and parse_counts("2:8") == (2, 8)
    for bad in ("0:1", "1", "1:-1", "1:99999999999"):
        with pytest.raises(UserError, match="counts"):
            parse_counts(bad)


def test_order_is_by_experiment_then_work():
    listed = units()
    assert listed == units()
    names = list(dict.fromkeys(unit.experiment for unit in listed))
    assert (
        names
        == (
            "auto-regret autocorrelation off-grid one-to-one one-to-many n-to-mn fields n-to-m "
            "template-matching time-series-detections"
        ).split()
    )
    for name in names:
        work = [unit.problem.fmas for unit in listed if unit.experiment == name]
        assert work == sorted(work)
    places = [(u.experiment, u.problem.id, u.variant.id, u.precision, u.mode) for u in listed]
    assert len(places) == len(set(places))


def test_filters():
    chosen = units(experiments=["n-to-m"], variants=["cpu_fft"], sizes=["64", "16x16"])
    assert {unit.experiment for unit in chosen} == {"n-to-m"}
    assert {unit.variant.id for unit in chosen} == {"cpu_fft"}
    assert {unit.problem.left for unit in chosen} == {(16, 16), (64, 64)}
    assert {unit.problem.form for unit in units(forms=["n-to-m"])} == {"n-to-m"}
    assert {unit.variant.id for unit in units(variants=["cpu"])} == {"cpu_definition", "cpu_fft"}


@pytest.mark.parametrize(
    "filters, says",
    [
        ({"variants": ["cpu_fftt"]}, "did you mean cpu_fft?"),
        ({"experiments": ["n-to-n"]}, "did you mean n-to-mn?|did you mean n-to-m?"),
        ({"forms": ["one-to-any"]}, "did you mean one-to-many?"),
        ({"sizes": ["19"]}, "choose from .*16x16"),
        ({"experiments": ["n-to-m"], "forms": ["one-to-one"]}, "nothing to measure"),
    ],
)
def test_unknown_filters(filters, says):
    with pytest.raises(UserError, match=says.replace("?", r"\?")):
        units(**filters)


def test_a_preset_keeps_points_by_their_parameters(tmp_path):
    points = ("", "a=1;b=2", "a=1;b=3", "a=2;b=2", "c=1")
    assert select_points(points, None) == points
    assert select_points(points, {"a": [1], "b": ["2", 4]}) == ("", "a=1;b=2", "c=1")

    expanded = partial(with_params, tmp_path)
    assert [unit.params for unit in expanded("{ a = [2] }")] == [("a=2",)]
    assert [unit.params for unit in expanded("{ threads = [1] }")] == [("a=1", "a=2")]
    with pytest.raises(UserError, match="a = 3: no variant has it; choose from 1, 2"):
        expanded("{ a = [3] }")
    with pytest.raises(UserError, match="parameter nobody: unknown"):
        expanded("{ nobody = [1] }")


def test_values_of_variants_that_are_not_built_may_be_named(tmp_path, monkeypatch):
    monkeypatch.setattr(source_tree, "ALGORITHMS", tmp_path / "algorithms")
    (tmp_path / "algorithms" / "family").mkdir(parents=True)
    (tmp_path / "algorithms" / "family" / "unbuilt.cu").write_text('.axes = {{"a", {"16", "1024"}}}')
    (tmp_path / "algorithms" / "family" / "other.cu").write_text('.axes = {{"b", {"7"}}}')

    def expanded(value, *ids):
        return with_params(tmp_path, f"{{ a = [1, {value}] }}", *(replace(CUDA, id=one) for one in ids))

    assert [unit.params for unit in expanded(1024)] == [("a=1",)]
    for value, *ids in ((7,), (24,), (1024, "unbuilt")):
        with pytest.raises(UserError, match=f"a = {value}: no variant has it; choose from 1, 2"):
            expanded(value, *ids)


def test_variants_of_one_array_are_asked_for_no_other_problem():
    one_array = Variant.from_list({**fake_bench.variant("one_array"), "same_only": True})
    taken = [
        unit for unit in expand(load_experiments(), [*VARIANTS, one_array], "quick", "cpu") if unit.variant.same_only
    ]
    assert not any(unit.problem.fields.same == "no" for unit in taken)
    listed = units()
    assert any(unit.problem.fields.same == "no" for unit in listed) and any(
        unit.problem.fields.same == "yes" for unit in listed
    )


def test_variants_of_scores_are_asked_for_no_products():
    of_scores = Variant.from_list({**fake_bench.variant("of_scores"), "scores": ["zncc"]})
    every = expand(load_experiments(), [*VARIANTS, of_scores], "quick", "cpu")
    taken = [unit for unit in every if unit.variant.is_of_scores]
    assert not any(unit.problem.fields.score == "product" for unit in taken)
    assert any(unit.problem.fields.score == "product" for unit in every)


def test_windows_may_be_a_list(tmp_path):
    block = '[[problems]]\nsizes = [{size}]\ncounts = ["1:1"]\nwindow = {window}\n'
    both = ["full", "sy:0..1,sx:-1..1"]
    (tmp_path / "list.toml").write_text(ONE + block.format(size=4, window=both).replace("'", '"'))
    apart = (block.format(size=4, window=f'"{one}"') for one in both)
    (tmp_path / "apart.toml").write_text(ONE + "".join(apart))
    loaded = load_experiments(tmp_path)
    ids = {name: [problem.id for problem in grid(one, "")] for name, one in loaded.items()}
    assert ids["list"] == ids["apart"] and len(ids["list"]) == 2
    every = tmp_path / "every.toml"
    every.write_text(ONE + 'window = ["full", "valid"]\n' + BLOCK)
    assert len(grid(load_experiments(tmp_path)["every"], "")) == 2


def test_device_decides_the_backend():
    both = [*VARIANTS, CUDA]
    on_cpu = expand(load_experiments(), both, "quick", "cpu")
    assert {unit.variant.backend for unit in on_cpu} == {"cpu", "cuda"}
    on_gpu = expand(load_experiments(), both, "quick", "cuda:0")
    assert {unit.variant.backend for unit in on_gpu} == {"cuda"}
    with pytest.raises(UserError, match="nothing to measure"):
        expand(load_experiments(), VARIANTS, "quick", "cuda:0")


def test_experiments_name_variants_that_may_not_be_built(tmp_path):
    (tmp_path / "x.toml").write_text(f'{ONE}variants = ["cpu_fff"]\n{BLOCK}')
    with pytest.raises(UserError, match=r"experiment x: variant cpu_fff: .*did you mean cpu_fft\?"):
        expand(load_experiments(tmp_path), VARIANTS, "quick", "cpu")


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_shards_are_disjoint_complete_and_fair(n):
    everything = units()
    parts = [take_shard(everything, (k, n)) for k in range(1, n + 1)]
    assert sorted((u.experiment, u.name) for part in parts for u in part) == sorted(
        (u.experiment, u.name) for u in everything
    )
    assert max(map(len, parts)) <= 1.1 * min(map(len, parts))
    problems = [{(unit.experiment, unit.problem, unit.mode) for unit in part} for part in parts]
    assert sum(map(len, problems)) == len(set.union(*problems)), "rivals of a problem are in two parts"
    assert max(map(len, problems)) - min(map(len, problems)) <= 1
    for part in parts:
        assert {unit.variant.id for unit in part} == {"cpu_definition", "cpu_fft"}


def test_parse_shard():
    assert parse_shard("2/4") == (2, 4)
    for bad in ("0/2", "3/2", "1", "a/b", "1/0", "-1/2"):
        with pytest.raises(UserError, match="shard"):
            parse_shard(bad)


def test_a_variant_declares_fields():
    plain = Variant.from_list(fake_bench.variant("plain"))
    declaring = {
        "scores": ["product", "zncc"],
        "boundaries": ["zero", "circular"],
        "masks": True,
        "views": ["dense", "windows"],
    }
    much = Variant.from_list({**fake_bench.variant("much"), **declaring})
    one_array = Variant.from_list({**fake_bench.variant("one_array"), "same_only": True})
    for text in ("score=zncc:0.5", "boundary=circular", "masks=left", "views=windows"):
        fields = Fields.of(dict([text.split("=")]))
        assert much.declares(fields) and not plain.declares(fields), text
    assert not much.declares(Fields(score="ncc")) and not much.declares(Fields(views="channels"))
    assert plain.declares(Fields(result="peaks:5")), "the harness reduces surfaces"
    assert (
        one_array.declares(Fields(same="yes"))
        and not one_array.declares(Fields())
        and plain.declares(Fields(same="yes"))
    )
