"""scripts/try: verdicts, what limits a variant, and a run on a program that measures nothing."""

from __future__ import annotations

import json
from pathlib import Path

import fake_bench
import pytest
from driving import Driver, driver

from experiments.driver import trial
from experiments.driver.trial_build import sources
from xcorr.choice.floor import fft_flops
from xcorr.errors import UserError
from xcorr.paths import ROOT
from xcorr.problem import Problem

__all__ = ["driver"]
PROBLEM = Problem("n-to-m", (64, 64), (64, 64), 8, 8, "full")
CEILINGS = {
    "copy_bytes_per_s": 1e12,
    "fill_bytes_per_s": 2e12,
    "cublas_fp32_flop_per_s": 6e13,
    "empty_launch_stream_us": 2.5,
}


def rival(own: tuple[float, ...], other: tuple[float, ...]) -> trial.Rival:
    return trial.Rival("it", own, other)


@pytest.mark.parametrize(
    ("own", "other", "verdict"),
    [
        ((1.0, 1.0, 1.0), (1.2, 1.1, 1.3), "FASTER"),
        ((1.2, 1.1, 1.3), (1.0, 1.0, 1.0), "SLOWER"),
        ((1.0, 1.0, 1.0), (1.2, 0.9, 1.2), "EQUAL"),
        ((1.0, 1.0), (1.004, 1.003), "EQUAL"),
        ((1.0, 2.0, 4.0), (1.1, 2.2, 4.4), "FASTER"),
    ],
)
def test_every_round_must_agree(own: tuple[float, ...], other: tuple[float, ...], verdict: str) -> None:
    """A drift that both share, as in the last, is none of a difference."""
    one = rival(own, other)
    assert one.verdict == verdict and str(one).startswith(verdict)
    assert ("within the noise" in str(one)) == (verdict == "EQUAL")


def test_the_ratio_and_its_range_are_told() -> None:
    said = str(rival((1.0, 1.0, 1.0), (1.5, 2.0, 3.0)))
    assert "2.000 times as fast as it (1.500 to 3.000 in 3 rounds): 1 us against 2 us" in said


def test_the_floor_has_the_cheaper_of_products_and_transforms() -> None:
    floor = trial.floor_us(PROBLEM, CEILINGS)
    assert floor["an empty launch"] == 2.5
    assert floor["memory bandwidth"] == pytest.approx(PROBLEM.bytes(4) / 2e6)
    direct, fft = 2 * PROBLEM.fmas / 6e7, fft_flops(PROBLEM) / 6e7
    cheaper = "FP32 products" if direct <= fft else "FP32 transforms"
    assert floor[cheaper] == pytest.approx(min(direct, fft))
    assert trial.floor_us(PROBLEM, {}) == {}


def test_every_variant_of_the_tree_is_known_in_a_folder_of_its_own_too() -> None:
    files = [*(ROOT / "algorithms").rglob("*.cu"), *(ROOT / "algorithms").rglob("*.cpp")]
    ids = {path.stem for path in files if "XCORR_VARIANT(" in path.read_text()}
    assert set(sources()) == ids
    assert any(path.parent.name == path.stem for path in files)


def kernel(**cells: str) -> dict[str, str]:
    return {
        "kernel": "k",
        "registers": "64",
        "shared_bytes": "0",
        "stack_bytes": "0",
        "spill_store_bytes": "0",
        "occupancy": "0.5",
        **cells,
    }


def test_what_limits_is_named() -> None:
    floor = {"memory bandwidth": 7.0, "FP32 products": 1.0}
    assert trial.limit(10, floor, [kernel()]) == "memory bandwidth (70% of the time)"
    assert "local memory: k" in trial.limit(100, floor, [kernel(spill_store_bytes="8")])
    assert "low occupancy (12%" in trial.limit(100, floor, [kernel(occupancy="0.125")])
    assert trial.limit(100, floor, [kernel()]).startswith("none of its ceilings (memory bandwidth 7%")
    assert trial.limit(100, {}, []).startswith("not known")


def test_rivals_are_the_parent_the_best_and_those_that_were_named() -> None:
    known = trial.sources()
    one = known["cpu_row_streaming"]
    assert one.parent == "cpu_definition" and one.backend == "cpu"
    found = trial.rivals(one, known, ("cpu_fft", "threads=all"), "cpu_fft,cpu_definition")
    assert [(name, params) for _, name, params in found] == [("cpu_definition", None), ("cpu_fft", "threads=all")]
    assert trial.rivals(one, known, ("cpu_row_streaming", ""), "") == found[:1], "not with itself"
    with pytest.raises(UserError, match="against tiled_direct: no variant for the same device"):
        trial.rivals(one, known, None, "tiled_direct")


def test_the_best_is_looked_up_in_the_shipped_table() -> None:
    known = trial.sources()
    on_gpu = trial.best_known(PROBLEM, {"machine_key": "none", "compute_capability": "9.0"}, "cuda:0", known)
    assert on_gpu and known[on_gpu[0]].backend == "cuda"
    on_cpu = trial.best_known(PROBLEM, {"machine_key": "none", "cores": 2}, "cpu", known)
    assert on_cpu and known[on_cpu[0]].backend == "cpu"


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["cpu_row_streming"], "did you mean cpu_row_streaming?"),
        (["cpu_fft", "--device", "cuda:0"], "runs on cpu"),
        (["cpu_fft", "--problem", "64"], "not an id"),
        (["cpu_fft", "--rounds", "0"], "must be 1 or more"),
        (["cpu_fft", "--emulate"], "leave --emulate out"),
        (["cpu_fft", "--against", "tiled_direct"], "for the same device"),
    ],
)
def test_mistakes_are_one_line(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert trial.main(argv) == 2
    said = capsys.readouterr()
    assert says in said.err and said.err.count("\n") == 1 and said.err.startswith("error: ") and not said.out


class Tried:
    """A build that is there already: the fake program, and a conformance program that says what it is told."""

    def __init__(self, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        self.driver, self.folder = driver, driver.base / "build"
        self.made: list[list[str]] = []
        monkeypatch.setenv("XCORR_TRY_BUILD", str(self.folder))
        monkeypatch.setattr(trial.Build, "make", lambda _, names, *programs: self.made.append(sorted(set(names))))
        monkeypatch.setattr(trial.Build, "program", lambda _, name: self.folder / name)
        monkeypatch.setattr(trial, "best_known", lambda *_: ("cpu_fft", "threads=all"))
        driver.variants(
            [
                fake_bench.variant("cpu_definition"),
                fake_bench.variant("cpu_fft", kind="fft", points=("threads=1", "threads=all")),
                fake_bench.variant("cpu_row_streaming", points=("threads=1", "threads=all")),
            ]
        )
        self.conforms(True)

    def conforms(self, passes: bool) -> None:
        path = self.folder / "conformance"
        path.write_text(f"#!/bin/sh\necho it was asked: $*\nexit {0 if passes else 1}\n")
        path.chmod(0o755)


@pytest.fixture
def tried(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Tried:
    return Tried(driver, monkeypatch)


def test_it_is_built_with_its_rivals_verified_and_timed_in_turn(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trial.main(["cpu_row_streaming", "--rounds", "3"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert tried.made == [["cpu_definition", "cpu_row_streaming"], ["cpu_definition", "cpu_fft", "cpu_row_streaming"]]
    assert said[0] == "verified: part 1 of 12 of conformance passed"
    assert said[1].startswith("cpu_row_streaming threads=1 on n-to-m/32x32/32x32/4:4/full")
    assert said[2].startswith("EQUAL   1.000 times as fast as its parent cpu_definition")
    assert said[3].startswith("EQUAL   1.000 times as fast as the fastest known, cpu_fft threads=all")
    rounds = [json.loads(line) for line in Path(f"{tried.driver.log}.points").read_text().splitlines()]
    turns = [[point["variant"] for point in one] for one in rounds if len({point["variant"] for point in one}) == 3]
    assert turns == [turns[0], turns[0][::-1], turns[0]], "A B C, C B A, A B C"
    assert said[-1].startswith("limited by: ")


def test_a_wrong_variant_is_never_timed(tried: Tried, capsys: pytest.CaptureFixture[str]) -> None:
    tried.conforms(False)
    assert trial.main(["cpu_row_streaming"]) == 1
    said = capsys.readouterr()
    assert "conformance failed" in said.err and "--variant cpu_row_streaming" in said.err
    assert not said.out and tried.driver.calls() == []


def test_a_variant_that_fails_on_the_problem_has_no_verdict(tried: Tried, capsys: pytest.CaptureFixture[str]) -> None:
    tried.driver.faults({"kind": "incorrect", "variant": "cpu_row_streaming"})
    assert trial.main(["cpu_row_streaming", "--params", "threads=1"]) == 1
    said = capsys.readouterr()
    assert "incorrect: element 3 is NaN" in said.err and "FASTER" not in said.out and "EQUAL" not in said.out


def test_registers_are_read_from_the_table_of_the_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = "arch,variant,kernel,arguments,registers,shared_bytes,stack_bytes,spill_store_bytes,spill_load_bytes,warps_per_sm,occupancy"
    (tmp_path / "resources.csv").write_text(
        f"{head}\n90,mine,k,float,64,1024,0,0,0,32,0.5\n90,other,k,float,8,0,0,0,0,64,1\n"
    )
    trial.tell_kernels(trial.resources(tmp_path, "mine"))
    said = capsys.readouterr().out
    assert said == (
        "kernel: k<float>: 64 registers, 1024 bytes of static shared memory, 50% occupancy with blocks of 256 threads\n"
    )
    assert trial.resources(tmp_path / "none", "mine") == []
