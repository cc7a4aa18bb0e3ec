"""scripts/try: verdicts, what is compiled, what limits a variant, and a run on a program that measures nothing."""

import json
import math
import os
from pathlib import Path
from types import SimpleNamespace as Named

import fake_bench
import pytest
from driving import Driver
from hypothesis import given
from hypothesis import strategies as st

from experiments.driver import trial
from experiments.driver.trial_build import Build, sources
from xcorr.choice.floor import fft_flops
from xcorr.errors import UserError
from xcorr.paths import ROOT
from xcorr.problem import Problem

PROBLEM = Problem("n-to-m", (64, 64), (64, 64), 8, 8, "full")
CEILINGS = {"copy_bytes_per_s": 1e12, "fill_bytes_per_s": 2e12, "cublas_fp32_flop_per_s": 6e13}
CEILINGS["empty_launch_stream_us"] = 2.5


def said_of(*rounds: tuple[float, ...]) -> str:
    """What is said of one rival, by the times in each round of the variant, the rival, and the variant again."""
    (one,) = trial.rivals_of(["it"], rounds)
    return str(one)


@pytest.mark.parametrize(
    ("rounds", "verdict"),
    [
        ([(1.0, 1.2, 1.0), (1.0, 1.1, 1.0), (1.0, 1.3, 1.0)] * 2, "FASTER"),
        ([(1.2, 1.0, 1.2), (1.1, 1.0, 1.1), (1.3, 1.0, 1.3)] * 2, "SLOWER"),
        ([(1.0, 1.2, 1.0)] * 5 + [(1.0, 0.9, 1.0)], "no difference seen"),
        ([(1.0, 1.004, 1.0)] * 6, "no difference seen"),  # nearer than what counts
        ([(1.0, 1.1, 1.0), (2.0, 2.2, 2.0), (4.0, 4.4, 4.0)] * 2, "FASTER"),  # a drift that both share
        ([(1.0, 2.4, 5.0), (1.0, 59.0, 1.0)] * 3, "no difference seen"),  # differs as much from itself
        ([(1.0, 2.4, 1.0), (1.0, 59.0, 1.0)] * 3, "no difference seen"),  # its width is more than its distance from 1
        ([(1.0, 1.3, 1.0)] * 8 + [(1.0, 0.5, 1.0)], "FASTER"),  # one of nine rounds was disturbed
        ([(1.0, 1.3, 1.0)] * 8 + [(1.0, 1.3, 9.0)], "FASTER"),
    ],
)
def test_a_difference_is_seen_where_the_whole_range_is_farther_from_1_than_the_noise(rounds, verdict):
    assert said_of(*rounds).startswith(f"{verdict}: ")


@given(st.lists(st.tuples(*[st.floats(0.1, 10)] * 3), min_size=6, max_size=40))
def test_no_range_that_spans_1_is_a_difference(rounds):
    (one,) = trial.rivals_of(["it"], rounds)
    low, high = trial.interval(one.ratios)
    assert (
        low <= high and (one.verdict == "FASTER") <= (low > 1.005) and (one.verdict == "SLOWER") <= (high < 1 / 1.005)
    )


def test_the_ratio_its_range_and_the_noise_are_told():
    said = said_of(*[(1.0, 2.2, 1.2), (1.0, 3.3, 1.2)] * 3)
    assert "2.500 times as fast as it (2.000 to 3.000 in 6 rounds, noise 1.225): 1.1 us against 2.75 us" in said


def test_the_range_holds_the_median_in_95_of_100_cases():
    assert trial.interval([3, 1, 2, 6, 5, 4]) == (1, 6)
    assert trial.interval(range(8)) == (0, 7) and trial.interval(range(9)) == (1, 7)
    assert trial.interval(range(20)) == (5, 14)


def test_the_floor_has_the_cheaper_of_products_and_transforms():
    floor = trial.floor_us(PROBLEM, CEILINGS)
    assert floor["an empty launch"] == 2.5
    assert floor["memory bandwidth"] == pytest.approx(PROBLEM.bytes(4) / 2e6)
    direct, fft = 2 * PROBLEM.fmas / 6e7, fft_flops(PROBLEM) / 6e7
    cheaper = "FP32 products" if direct <= fft else "FP32 transforms"
    assert floor[cheaper] == pytest.approx(min(direct, fft))
    assert trial.floor_us(PROBLEM, {}) == {}


def test_transforms_exchange_their_values():
    problem = Problem.of_id("n-to-m/256x256/256x256/32:32/full")
    assert trial.floor_us(problem, CEILINGS)["exchange between threads"] == 0, "not measured"
    floor = trial.floor_us(problem, {**CEILINGS, "shuffle_bytes_per_s": 2e12})
    assert floor["exchange between threads"] == pytest.approx(1088 * 512**2 * 8 / 2e6) == max(floor.values())
    assert "FP32 products" in trial.floor_us(problem, {**CEILINGS, "shuffle_bytes_per_s": 1e9}), "they exchange nothing"


def test_every_variant_of_the_tree_is_known_in_a_folder_of_its_own_too():
    files = [*(ROOT / "algorithms").rglob("*.cu"), *(ROOT / "algorithms").rglob("*.cpp")]
    ids = {path.stem for path in files if "XCORR_VARIANT(" in path.read_text()}
    assert set(sources()) == ids
    assert any(path.parent.name == path.stem for path in files)


def kernel(**cells: str) -> dict[str, str]:
    bytes_of = dict.fromkeys(("shared_bytes", "stack_bytes", "spill_store_bytes"), "0")
    return {"kernel": "k", "registers": "64", **bytes_of, "occupancy": "0.5", **cells}


def test_what_limits_is_named():
    floor = {"memory bandwidth": 7.0, "FP32 products": 1.0}
    assert trial.limit(10, floor, [kernel()]) == "memory bandwidth (70% of the time)"
    assert "local memory: k" in trial.limit(100, floor, [kernel(spill_store_bytes="8")])
    assert "low occupancy (12%" in trial.limit(100, floor, [kernel(occupancy="0.125")])
    assert trial.limit(100, floor, [kernel()]).startswith("none of its ceilings (memory bandwidth 7%")
    assert trial.limit(100, {}, []).startswith("not known")


def test_rivals_are_the_parent_the_best_and_those_that_were_named():
    known = trial.sources()
    one = known["cpu_row_streaming"]
    assert one.parent == "cpu_definition" and one.backend == "cpu"
    found = trial.rivals(one, known, ("cpu_fft", "threads=all"), "cpu_fft,cpu_definition")
    assert [(name, params) for _, name, params in found] == [("cpu_definition", None), ("cpu_fft", "threads=all")]
    assert trial.rivals(one, known, ("cpu_row_streaming", ""), "") == found[:1], "not with itself"
    with pytest.raises(UserError, match="against tiled_direct: no variant for the same device"):
        trial.rivals(one, known, None, "tiled_direct")


def test_the_best_is_looked_up_in_the_shipped_table():
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
        (["cpu_fft", "--rounds", "5"], "must be 6 or more"),
        (["cpu_fft", "--emulate"], "leave --emulate out"),
        (["cpu_fft", "--against", "tiled_direct"], "for the same device"),
    ],
)
def test_mistakes_are_one_line(argv, says, capsys):
    assert trial.main(argv) == 2
    said = capsys.readouterr()
    assert says in said.err and said.err.count("\n") == 1 and said.err.startswith("error: ") and not said.out


class Tried:
    """A build that is there already: the fake program, and a conformance program that says what it is told."""

    def __init__(self, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        self.driver, self.folder = driver, driver.base / "build"
        self.made: list[list[str]] = []
        monkeypatch.setenv("XCORR_TRY_BUILD", str(self.folder))
        monkeypatch.setattr(trial.Build, "make", lambda _, names, *targets: self.made.append(sorted(names)))
        monkeypatch.setattr(trial, "best_known", lambda *_: ("cpu_fft", "threads=all"))
        monkeypatch.setattr(trial, "MORE_S", 0)
        driver.variants(
            [
                fake_bench.variant("cpu_definition"),
                fake_bench.variant("cpu_fft", kind="fft", points=("threads=1", "threads=all")),
                fake_bench.variant("cpu_row_streaming", points=("threads=1", "threads=all")),
            ]
        )
        self.conforms(True)

    def conforms(self, passes: bool) -> None:
        path = self.folder / "tests/conformance/conformance"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho it was asked: $*\nexit {0 if passes else 1}\n")
        path.chmod(0o755)


@pytest.fixture
def tried(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Tried:
    return Tried(driver, monkeypatch)


def test_it_is_built_with_its_rivals_verified_and_timed_in_turn(tried, capsys):
    assert trial.main(["cpu_row_streaming", "--rounds", "7"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert tried.made == [["cpu_definition", "cpu_row_streaming"], ["cpu_definition", "cpu_fft", "cpu_row_streaming"]]
    assert said[0] == "verified: part 1 of 12 of conformance passed"
    assert said[1].startswith("cpu_row_streaming threads=1 on n-to-m/32x32/32x32/4:4/full")
    same = "no difference seen: 1.000 times as fast as"
    assert said[2].startswith(f"{same} its parent cpu_definition (1.000 to 1.000 in 7 rounds, noise 1.005)")
    assert said[3].startswith(f"{same} the fastest known, cpu_fft threads=all (")
    rounds = [json.loads(line) for line in Path(f"{tried.driver.log}.points").read_text().splitlines()]
    turns = ["ABCA", "ACBA"] * 4
    short = {"cpu_row_streaming": "A", "cpu_definition": "B", "cpu_fft": "C"}
    assert ["".join(short[point["variant"]] for point in one) for one in rounds[-7:]] == turns[:7]
    assert said[-1].startswith("limited by: ")


def test_rounds_are_added_until_a_difference_is_seen(tried, monkeypatch):
    monkeypatch.setattr(trial, "MORE_S", math.inf)
    times = iter([[1.0, 0.9, 1.0]] * 2 + [[1.0, 1.2, 1.0]] * 30)
    monkeypatch.setattr(trial, "times_of", lambda *_: dict(enumerate(next(times))))
    points = [(Named(name="mine"), ""), (Named(name="it"), "")]
    rounds = trial.in_turn(None, points, ["it"], 6)  # type: ignore[arg-type]
    assert len(rounds) == 12 and str(trial.rivals_of(["it"], rounds)[0]).startswith("FASTER")


def test_a_wrong_variant_is_never_timed(tried, capsys):
    tried.conforms(False)
    assert trial.main(["cpu_row_streaming"]) == 1
    said = capsys.readouterr()
    assert "conformance failed" in said.err and "--variant cpu_row_streaming" in said.err
    assert not said.out and tried.driver.calls() == []


def test_a_rival_that_does_not_compute_the_problem_is_left_out(tried, capsys):
    """Its parent has a single point, and the fastest known is named with one: nothing is chosen among those."""
    names = {"cpu_definition": "its parent cpu_definition", "cpu_fft": "the fastest known, cpu_fft"}
    for rival, what in names.items():
        tried.driver.faults({"kind": "not_supported", "variant": rival})
        assert trial.main(["cpu_row_streaming", "--rounds", "6"]) == 0, capsys.readouterr().err
        said = capsys.readouterr().out.splitlines()
        (left_out,) = [line for line in said if line.startswith("left out: ")]
        assert left_out.startswith(f"left out: {what}: {rival} ") and "the first is not_supported: " in left_out
        verdicts = [line for line in said if line.startswith("no difference seen")]
        assert len(verdicts) == 1 and f" as {what}" not in verdicts[0]
    tried.driver.faults(*({"kind": "not_supported", "variant": rival} for rival in names))
    assert trial.main(["cpu_row_streaming", "--rounds", "6"]) == 0
    assert "us; nothing to compare with\n" in capsys.readouterr().out


def test_a_variant_that_fails_on_the_problem_has_no_verdict(tried, capsys):
    tried.driver.faults({"kind": "incorrect", "variant": "cpu_row_streaming"})
    assert trial.main(["cpu_row_streaming", "--params", "threads=1"]) == 1
    said = capsys.readouterr()
    assert "incorrect: element 3 is NaN" in said.err and "FASTER" not in said.out and "no difference" not in said.out


class Compiled:
    """A tree's usual build, and stand-ins for Meson and Ninja that log what they are asked for."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log, self.usual, self.folder = folder / "log", folder / "build", folder / "build-try"
        (self.usual / "meson-info").mkdir(parents=True)
        (self.usual / "build.ninja").touch()
        (self.usual / "kept.o").touch()
        self.configured_for(ROOT)
        for variable, name in {"XCORR_MESON": "meson", "NINJA": "ninja"}.items():
            path = folder / name
            path.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self.log}"\n')
            path.chmod(0o755)
            monkeypatch.setenv(variable, str(path))
        monkeypatch.setenv("XCORR_BUILD", str(self.usual))
        monkeypatch.setenv("XCORR_TRY_BUILD", str(self.folder))

    def configured_for(self, tree: Path) -> None:
        (self.usual / "meson-info/meson-info.json").write_text(json.dumps({"directories": {"source": str(tree)}}))

    def commands(self) -> list[str]:
        """What was called since this was asked last."""
        said = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return said

    def build(self, *more: str) -> Build:
        return Build(sources().values(), *(more or ["cpu"]))


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiled:
    return Compiled(tmp_path, monkeypatch)


def test_the_usual_build_is_copied_and_only_what_is_compared_is_configured(compiled):
    compiled.build().make({"cpu_row_streaming", "cpu_definition"})
    setup, made = compiled.commands()
    assert setup.startswith("meson setup --reconfigure -Dtests=true -Dgrid=quick -Dcuda=disabled ")
    assert setup.endswith(f" -Dvariants=cpu_definition,cpu_row_streaming {compiled.folder} {ROOT}")
    assert made == f"ninja -C {compiled.folder} xcorr-bench tests/conformance/conformance"
    kept = [folder / "kept.o" for folder in (compiled.usual, compiled.folder)]
    assert kept[0].stat().st_mtime_ns == kept[1].stat().st_mtime_ns, "Ninja would compile what is newer again"
    compiled.build().make({"cpu_row_streaming"})
    assert compiled.commands() == [made], "what is configured serves"
    compiled.build().make({"cpu_row_streaming", "cpu_fft"})
    assert "-Dvariants=cpu_fft,cpu_row_streaming " in compiled.commands()[0]


def test_a_build_of_another_tree_is_not_copied(compiled, tmp_path):
    compiled.configured_for(tmp_path)
    with pytest.raises(FileNotFoundError):  # this Meson makes no folder
        compiled.build("cuda", "90").make({"tiled_direct"})
    (setup,) = compiled.commands()
    assert setup.startswith(
        "meson setup -Dtests=true -Dgrid=quick -Dcuda=enabled -Dgpu_arch=90 -Dvariants=tiled_direct "
    )


@pytest.mark.parametrize(("backend", "several"), [("cpu", False), ("cuda", False), ("cuda", True)])
def test_build_only_compiles_the_units_of_the_variant(backend, several, compiled, monkeypatch):
    one = next(one for one in sources().values() if one.backend == backend and (len(one.units) > 1) == several)
    monkeypatch.setattr(trial.shutil, "which", lambda _: "nvcc")
    monkeypatch.setattr(trial, "resources", lambda *_: [])
    assert trial.main([one.id, "--build-only"]) == 0
    parts = [one.id, *(f"{one.id}.part{i}" for i in range(1, len(one.units)))]
    targets = (
        [f"libxcorr.so.p/meson-generated_.._{one.id}.cpp.o"] if backend == "cpu" else [f"{part}.o" for part in parts]
    )
    assert compiled.commands()[1:] == [f"ninja -C {compiled.folder} {' '.join(targets)}"]


def test_a_build_that_fails_is_said_in_one_line(compiled, capsys):
    Path(os.environ["NINJA"]).write_text("#!/bin/sh\necho error: no semicolon\nexit 1\n")
    assert trial.main(["cpu_fft", "--build-only"]) == 2
    said = list(filter(None, capsys.readouterr().err.splitlines()))
    assert said == [
        "error: no semicolon",
        "error: building: failed, as said above; correct the first line that says error",
    ]


def test_registers_are_read_from_the_reports_of_the_compiler(tmp_path, capsys):
    one = trial.sources()["tiled_direct"]
    nothing = dict.fromkeys(("stack_bytes", "spill_store_bytes", "spill_load_bytes"), 0)
    entry = {"arch": "90", "kernel": "k", "arguments": "float", "registers": 64, "shared_bytes": 1024, **nothing}
    report = {"unit": one.units[0], "variant": one.id, "seconds": 1, "kernels": [entry]}
    (tmp_path / "tiled_direct.resources.json").write_text(json.dumps(report))
    trial.tell_kernels(trial.resources(tmp_path, one))
    said = capsys.readouterr().out
    assert said == (
        "kernel: k<float>: 64 registers, 1024 bytes of static shared memory, 50% occupancy with blocks of 256 threads\n"
    )
    assert trial.resources(tmp_path / "none", trial.sources()["cpu_fft"]) == []
