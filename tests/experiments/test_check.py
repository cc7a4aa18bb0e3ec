"""Whether a machine is fit to measure, told on a made-up GPU and without one."""

import json
import sys
from pathlib import Path

import fake_bench
import pytest
from driving import Driver

from experiments.driver import check

REAL_BUSY_CORES = check.busy_cores
SMI = {
    "name": "Fake GPU",
    "utilization.gpu": "0",
    "memory.free": "79000",
    "memory.total": "80000",
    "ecc.mode.current": "Enabled",
    "ecc.errors.uncorrected.volatile.total": "0",
    "mig.mode.current": "Disabled",
}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor that nothing else uses, watched without waiting."""
    monkeypatch.setattr(check, "SAMPLE_S", 0)
    monkeypatch.setattr(check, "busy_cores", lambda *_: 0.0)


class Gpu:
    """A GPU as nvidia-smi and the program tell of it."""

    def __init__(self, driver: Driver, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.base, self.driver = base, driver
        monkeypatch.setenv("FAKE_GPU", "1")
        monkeypatch.setenv("PATH", str(base), prepend=":")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        driver.variants([fake_bench.variant("warp_shuffle", "cuda")])
        self.facts({})
        self.tells()

    def facts(self, more: dict[str, object]) -> None:
        """What `--machine` says; the fake prints the content of FAKE_MACHINE over its own."""
        known = {"device_name": "Fake GPU", "clock_mhz": 1900, "max_clock_mhz": 2000, "throttle_reasons": ""}
        self.driver._patch.setenv("FAKE_MACHINE", json.dumps(known | more))

    def tells(self, processes: str = "", **more: str) -> None:
        answer = ", ".join({**SMI, **more}.values())
        path = self.base / "nvidia-smi"
        path.write_text(
            f"#!{sys.executable}\nimport sys\nprint({processes!r} if 'compute-apps' in sys.argv[2] else {answer!r})\n"
        )
        path.chmod(0o755)

    def said(self, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, dict[str, str]]:
        code = check.main(["--device", "cuda", "--results", str(self.driver.results), *more])
        lines = capsys.readouterr().out.splitlines()
        return code, {line.partition(":")[0]: line.partition(":")[2].strip() for line in lines}


@pytest.fixture
def gpu(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gpu:
    (tmp_path / "bin").mkdir()
    return Gpu(driver, tmp_path / "bin", monkeypatch)


def test_a_fit_gpu_has_a_line_for_each_thing(gpu, capsys):
    code, said = gpu.said(capsys)
    assert code == 0 and "fit to measure" in said
    names = {"CPU load", "disk", "GPU processes", "GPU load", "GPU memory", "ECC", "MIG"}
    names |= {"launch pace", "throttling", "clocks"}
    assert names <= set(said) and all(said[name].endswith("; ok") for name in names), said
    assert said["launch pace"].startswith("3.0 us"), "as the record of a first point has it"
    code, said = gpu.said(capsys, "--brief")
    assert code == 0 and said == {}


@pytest.mark.parametrize(
    ("processes", "smi", "what", "advice"),
    [
        ("77, /usr/bin/python3, 4000", {}, "GPU processes", "end them"),
        ("", {"utilization.gpu": "55"}, "GPU load", "something else uses the GPU"),
        ("", {"memory.free": "20000"}, "GPU memory", "out_of_memory"),
        ("", {"ecc.errors.uncorrected.volatile.total": "3"}, "ECC", "3 uncorrected errors"),
        ("", {"mig.mode.current": "Enabled"}, "MIG", "switch MIG off"),
    ],
)
def test_what_is_unfit_is_named_with_a_way_out(gpu, capsys, processes, smi, what, advice):
    gpu.tells(processes, **smi)
    code, said = gpu.said(capsys, "--brief")
    assert code == 1 and advice in said.pop(what)
    assert list(said) == ["1 of these would spoil times"]


def test_throttling_and_a_slow_host_are_named(gpu, capsys):
    gpu.facts({"throttle_reasons": "hardware thermal", "clock_mhz": 900})
    code, said = gpu.said(capsys, "--brief")
    assert code == 1 and "let the GPU cool" in said["throttling"] and "held down" in said["clocks"]
    gpu.facts({})
    gpu.driver.faults({"kind": "busier", "variant": "warp_shuffle"})
    code, said = gpu.said(capsys, "--brief")
    assert code == 1 and said["launch pace"].startswith("9.0 us") and "end other programs" in said["launch pace"]


def test_the_pace_is_that_of_the_published_set(tmp_path):
    assert check.expected_launch_us("card", tmp_path) == check.USUAL_LAUNCH_US
    (tmp_path / "card").mkdir()
    (tmp_path / "card" / "ceilings.json").write_text('{"empty_launch_stream_us": 2.0}')
    assert check.expected_launch_us("card", tmp_path) == pytest.approx(2.4)
    own = '{"empty_launch_stream_us": 1.0, "empty_launch_host_us": 3.0}'
    (tmp_path / "card" / "ceilings.json").write_text(own)
    assert check.expected_launch_us("card", tmp_path) == pytest.approx(3.6), "behind a gate a launch is no pace"


def test_a_gpu_whose_first_point_fails_is_unfit(gpu, capsys):
    gpu.driver.faults({"kind": "incorrect", "variant": "warp_shuffle"})
    code, said = gpu.said(capsys, "--brief")
    assert code == 1 and said["first point"].startswith("warp_shuffle: element 3 is NaN; nothing can be measured")


def test_a_variant_that_takes_other_problems_only_is_passed_over(gpu, capsys):
    """The first variant of the list takes autocorrelations only: the check said that nothing can be measured."""
    names = ("autocorr_cuda_line", "warp_shuffle")
    gpu.driver.variants([fake_bench.variant(name, "cuda") for name in names])
    gpu.driver.faults({"kind": "not_supported", "variant": names[0]})
    code, said = gpu.said(capsys)
    assert code == 0 and "launch pace" in said and "first point" not in said
    gpu.driver.faults(*({"kind": "not_supported", "variant": name} for name in names))
    code, said = gpu.said(capsys)
    assert code == 1 and said["first point"].startswith("warp_shuffle: same no: the variant computes only yes; nothing")


def test_without_nvidia_smi_the_rest_is_told(gpu, capsys):
    (gpu.base / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    code, said = gpu.said(capsys)
    assert code == 0 and "left out" in said["nvidia-smi"] and "launch pace" in said and "MIG" not in said
    gpu.tells(name="Another GPU")
    assert "names another GPU" in gpu.said(capsys)[1]["nvidia-smi"]


def test_without_a_gpu_what_is_left_out_is_said(driver, capsys):
    assert check.main(["--results", str(driver.results)]) == 0
    said = capsys.readouterr().out
    assert "clocks are left out" in said and said.endswith("fit to measure\n")
    assert check.main(["--device", "cuda"]) == 2
    assert capsys.readouterr().err.startswith("error: device cuda:0: no GPU")


def test_a_processor_in_use_is_unfit():
    assert check.cpu_line(0.1, 2, on_gpu=False).advice == ""
    assert "every core" in check.cpu_line(1.0, 2, on_gpu=False).advice
    assert check.cpu_line(6.0, 16, on_gpu=True).advice == "" and check.cpu_line(15.5, 16, on_gpu=True).advice
    low = check.disk_line(Path("/proc/sys/no-such-folder"))
    assert low.advice.startswith("free some"), "a file system without free space"


def test_busy_cores_are_read_from_the_ticks_of_the_kernel():
    before, after = [100, 0, 50, 1000, 10, 0, 0, 0], [150, 0, 100, 1250, 60, 0, 0, 0]
    assert REAL_BUSY_CORES(before, after, 4) == pytest.approx(1.0), "100 of 400 ticks of 4 cores"
    assert REAL_BUSY_CORES(before, before, 4) == 0.0
