"""Predictions from shipped rates and from rows."""

import dataclasses

import fake_bench
import pytest
from stored import row, square

from experiments.driver.points import Unit
from experiments.driver.predict import Predictor, work_of
from experiments.driver.schema import Limits, Preset, Rate, Rates, Verification, load_rates
from experiments.driver.store import Row
from xcorr.native.variants import Variant
from xcorr.problem import Problem

SCALAR, FFT = (Variant.from_list(entry) for entry in fake_bench.VARIANTS)
CUDA = Variant.from_list(fake_bench.variant("warp_shuffle", "cuda"))
PRESET = Preset(repetitions=3, min_time_s=0.1, max_predicted_s=Limits(cpu=5, cuda=0.5))
CHECK = Verification(
    fma_per_s=1e9,
    definition_limit_fma=1e8,
    fft_per_s=1e8,
    output_per_s=1e8,
    field_output_per_s=1e8,
    process_s=0.01,
    point_s=0.001,
)
RATES = Rates(
    classes={
        "cpu": {"definition": Rate(per_core=1e9, launch_us=1), "fft": Rate(per_core=1e8, launch_us=1)},
        "cuda": {"definition": Rate(per_s=1e12, launch_us=5), "fft": Rate(per_s=1e11, launch_us=9)},
    },
    variants={},
    verification={"cpu": CHECK, "cuda": CHECK},
)


def problem(size: int, rights: int = 1) -> Problem:
    return Problem("one-to-many", (size, size), (size, size), 1, rights, "full")


def unit(size: int, variant: Variant = SCALAR, rights: int = 1) -> Unit:
    return Unit("x", problem(size, rights), variant, "fp32", "stream", "uniform", variant.points)


def predictor(device: str = "cpu") -> Predictor:
    made = Predictor(RATES, {"cores": 4}, device, PRESET, "quick")
    made.learn([], [SCALAR, FFT, CUDA])
    return made


def measured(size: int, us: float, variant: Variant = SCALAR, rights: int = 1, **cells: object) -> Row:
    about = {"variant": variant.id, "form": "one-to-many", "rights": rights, "compute_us": us}
    return row(**{**square(size), **about, **cells})


def test_shipped_rates_and_threads():
    made = predictor()
    assert made.launch_s(unit(100), "") == pytest.approx(0.1, rel=1e-3)
    work = work_of(problem(64), "fft")
    assert made.launch_s(unit(64, FFT), "threads=1") == pytest.approx(1e-6 + work / 1e8)
    assert made.launch_s(unit(64, FFT), "threads=all") == pytest.approx(1e-6 + work / 4e8)


def test_a_brief_point_is_verified_once_and_launched_less():
    one = unit(100)
    full, brief = (
        Predictor(RATES, {"cores": 4}, "cpu", PRESET.model_copy(update={"brief": it}), "select") for it in (False, True)
    )
    launch, outputs = full.launch_s(one, ""), 199 * 199
    saved = full.point_s(one, "") - brief.point_s(one, "")
    assert saved == pytest.approx(5 * launch + 2 * outputs / 1e8 + 0.001 * 2 / 3)
    assert full.unit_s(one, [""]) - brief.unit_s(one, [""]) - saved == pytest.approx(2 * one.problem.fmas / 1e9)


def test_rows_scale_with_the_work_of_their_class():
    made = predictor()
    made.learn([measured(100, 1e6), measured(64, 1e5, FFT, params="threads=1")])
    assert made.launch_s(unit(200), "") == pytest.approx(16, rel=1e-3)
    ratio = work_of(problem(128), "fft") / work_of(problem(64), "fft")
    assert made.launch_s(unit(128, FFT), "threads=1") == pytest.approx(0.1 * ratio, rel=1e-3)
    assert made.launch_s(unit(100), "") == pytest.approx(1, rel=1e-3)


def test_nearest_smaller_problem_is_taken_and_refines():
    made = predictor()
    made.learn([measured(100, 2e5), measured(200, 9e9)])
    assert made.launch_s(unit(120), "") == pytest.approx(0.2 * 1.2**4, rel=1e-3)
    made.learn([measured(110, 1e5)])
    assert made.launch_s(unit(120), "") == pytest.approx(0.1 * (120 / 110) ** 4, rel=1e-3)


def test_what_does_not_grow_with_the_work_is_told_apart():
    """Half a second of overhead in both launches: only the rest is scaled."""
    made = predictor()
    made.learn([measured(50, 0.5e6 + 1e6 / 16), measured(100, 1.5e6)])
    assert made.launch_s(unit(200), "") == pytest.approx(0.5 + 16, rel=1e-3)
    made.learn([measured(120, 1e6)])
    assert made.launch_s(unit(240), "") > 2, "a tenth of a launch counts as work at least"


def test_a_launch_never_costs_less_than_its_overhead():
    made = predictor()
    made.learn([measured(16, 1.5)])
    assert made.launch_s(unit(4), "") >= 1e-6
    assert made.launch_s(unit(64), "") > 20 * made.launch_s(unit(16), "")


def test_other_outcomes_say_nothing_about_time():
    made = predictor()
    before = made.launch_s(unit(64), "")
    made.learn([measured(32, 5, outcome="timeout"), row(variant="unknown", compute_us=3)])
    assert made.launch_s(unit(64), "") == before


def test_selection_follows_the_limit_of_the_device():
    assert predictor().why_not(unit(250), "") == ""
    reason = predictor().why_not(unit(300), "")
    assert reason == "predicted 8.1 s per launch, preset quick selects up to 5 s on cpu"
    assert predictor("cuda:0").why_not(unit(300, CUDA), "") == ""
    assert "0.5 s on cuda" in predictor("cuda:0").why_not(unit(1000, CUDA), "")
    assert predictor().why_not(unit(1000, CUDA), "") == "", "not_supported is the program's word"


def test_cost_counts_repetitions_references_and_checks():
    made = predictor()
    small, large = made.unit_s(unit(8), [""]), made.unit_s(unit(200), [""])
    assert small == pytest.approx(3 * 0.1875, rel=0.1)
    assert 3 * 1.6 < large < 12 * 1.6
    assert made.unit_s(unit(8), []) == 0
    assert made.timeout_s(unit(8), "") == 60 and made.timeout_s(unit(200), "") > 10 * large
    more = dataclasses.replace(unit(64, FFT))
    assert made.unit_s(more, FFT.points) < 2 * made.unit_s(more, FFT.points[:1])


def test_counting_energy_takes_its_time_on_a_gpu():
    for device, variant, seconds in (("cuda:0", CUDA, 1.0), ("cpu", SCALAR, 0.0)):
        plain = unit(16, variant)
        counted = dataclasses.replace(plain, energy_s=1.0)
        made = predictor(device)
        assert made.point_s(counted, "") - made.point_s(plain, "") == pytest.approx(seconds)


def test_shipped_rates_know_every_class():
    rates = load_rates()
    for backend in ("cpu", "cuda"):
        assert set(rates.classes[backend]) == {"definition", "fft"}
        assert backend in rates.verification


def test_a_point_with_a_long_verification_is_not_selected():
    preset = Preset(
        repetitions=3, min_time_s=0.001, max_predicted_s=Limits(cpu=5, cuda=5), max_point_s=Limits(cpu=2, cuda=2)
    )
    made = Predictor(RATES, {"cores": 4}, "cpu", preset, "quick")
    made.learn([], [SCALAR, FFT, CUDA])
    assert made.why_not(unit(32), "") == ""
    assert made.launch_s(unit(180), "") < 5
    assert "with its verification" in made.why_not(unit(180), "")


def test_launches_that_fill_the_card_are_carried_from_fewer_matrices():
    fast, slow = "warps_per_block=2", "warps_per_block=4"
    made = predictor("cuda")
    rows = [measured(64, us, CUDA, rights, params=one) for rights, one, us in (
        (2, fast, 2e3), (2, slow, 3e3),  # too short to fill the card
        (8, fast, 2e4), (8, slow, 3e4),
        (512, fast, 1e6),  # nothing to compare it with
    )]  # fmt: skip
    made.learn([*rows, measured(48, 1e4, CUDA, 8, params=fast), measured(48, 1.1e4, CUDA, 8, params=slow)])
    many = unit(64, CUDA, 4000)
    assert made.carried(many, [fast, slow]) == {fast: 0.02, slow: 0.03}
    assert made.carried(many, [fast]) == {}
    assert made.carried(unit(64, CUDA, 8), [fast, slow]) == {}, "no problem with fewer matrices fills the card"
    assert made.carried(unit(32, CUDA, 4000), [fast, slow]) == {}, "other shapes"
    assert made.known_s(unit(64, CUDA, 8), fast) == 0.02


def test_on_a_gpu_other_points_of_the_variant_tell_of_one_without_rows():
    made = predictor("cuda:0")
    shipped = made.launch_s(unit(64, CUDA), "new")
    rows = [measured(64, us, CUDA, params=f"p={us}", backend="cuda") for us in (30.0, 10.0, 20.0)]
    made.learn(rows)
    assert shipped != pytest.approx(20e-6) == made.launch_s(unit(64, CUDA), "new")
    assert made.launch_s(unit(128, CUDA), "new") > 100e-6
    assert not made.knows(unit(64, CUDA), "new")
    assert made.launch_s(unit(64, CUDA), "p=10.0") == pytest.approx(10e-6)


def test_what_no_known_point_supports_takes_no_time():
    made, refused = predictor("cuda:0"), {"outcome": "not_supported", "backend": "cuda"}
    made.learn([measured(64, 1.0, CUDA, params="a", **refused)])
    assert made.launch_s(unit(64, CUDA), "b") == 0
    assert made.launch_s(unit(32, CUDA), "b") > 0
    made.learn([measured(64, 50.0, CUDA, params="c", backend="cuda")])
    assert made.launch_s(unit(64, CUDA), "b") == pytest.approx(50e-6)
