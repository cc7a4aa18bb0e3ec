"""The driver on a program that crashes, hangs, lies and is killed."""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import fake_bench
import pytest
from calls import error_of
from driving import CRASH, POINTS, Driver, keys
from hangs import HANG_S, wait_for

from experiments.driver import store


def test_measures_every_point_once(driver, capsys):
    assert driver.run() == 0
    assert f"{POINTS} passed" in capsys.readouterr().out
    rows = driver.rows()
    assert len(rows) == 2 * POINTS == len(set(keys(rows)))
    assert set(driver.outcomes().values()) == {"passed"}
    assert len(driver.calls()) == 12, "one process per (variant, problem)"
    (path,) = (driver.local / "many" / "runs").glob("*.json")
    record = json.loads(path.read_text())
    assert record["before"]["clock_mhz"] and record["after"]["clock_mhz"]
    assert record["run"] == rows[0]["run"] and record["points"] == POINTS
    assert str(driver.base) not in path.read_text(), "records are published: no absolute paths"


def test_second_run_measures_nothing(driver, capsys):
    driver.run()
    files, calls = driver.files(), driver.calls()
    assert driver.run() == 0
    assert "nothing to do" in capsys.readouterr().out
    assert (driver.files(), driver.calls()) == (files, calls)


def test_force_keeps_old_files_and_the_newest_wins(driver):
    driver.run()
    files, first = driver.files(), driver.rows()[0]["run"]
    assert driver.run("--force") == 0
    assert set(files) < set(driver.files())
    assert {row["run"] for row in driver.rows()} != {first}
    assert len(driver.rows()) == 2 * POINTS and first not in {row["run"] for row in driver.rows()}


def test_edited_variant_is_the_only_one_measured_again(driver):
    driver.run()
    before = len(driver.calls())
    edited = [dict(entry) for entry in fake_bench.VARIANTS]
    edited[0]["source_hash"] = "b" * 16
    driver.variants(edited)
    assert driver.run() == 0
    again = {call[call.index("--variant") + 1] for call in driver.calls()[before:]}
    assert again == {edited[0]["id"]}
    frame = store.read_set(driver.local)
    assert set(frame[frame.variant == edited[0]["id"]].source_hash) == {"b" * 16}
    assert set(frame[frame.variant == "cpu_fft"].source_hash) == {"a" * 16}
    assert len(driver.rows()) > len(frame)


@pytest.mark.parametrize("kind", ["crash", "crash-silently", "no-answer"])
def test_crash_loses_only_its_point(driver, kind, capsys):
    driver.faults({"kind": kind, **CRASH})
    assert driver.run() == 1
    bad = {place for place, outcome in driver.outcomes().items() if outcome != "passed"}
    assert bad == {("cpu_fft", "threads=1", "8", "2"), ("cpu_fft", "threads=1", "8", "3")}
    failed = [row for row in driver.rows() if row["outcome"] == "failed"]
    assert len(failed) == 2 and all("twice" in row["reason"] for row in failed)
    assert len(driver.rows()) == 2 * (POINTS - 2) + 2
    if kind == "crash":
        assert "SIGSEGV: assertion failed" in failed[0]["reason"]
    out = capsys.readouterr().out
    assert "failed: cpu_fft threads=1 fp32 one-to-many 8x8/8x8 1:2 full" in out
    alone = [c for c in driver.calls() if c.count("--params") == 1 and "threads=1" in c]
    assert len(alone) == 2, "run alone once before it is given up"
    assert driver.run() == 1, "a resumed sweep still tells"


def test_crash_that_does_not_repeat_costs_nothing(driver, tmp_path):
    driver.faults({"kind": "crash", "once": str(tmp_path / "crashed"), **CRASH})
    assert driver.run() == 0
    assert set(driver.outcomes().values()) == {"passed"} and len(driver.rows()) == 2 * POINTS


@pytest.mark.parametrize("params", ["threads=1", "threads=all"])
def test_a_lost_device_costs_only_the_point_that_lost_it(driver, params):
    """The first of two points, whose successor would fail with it, and the last."""
    driver.faults({"kind": "lost", **CRASH, "params": params})
    assert driver.run() == 1
    bad = {place for place, outcome in driver.outcomes().items() if outcome != "passed"}
    assert bad == {("cpu_fft", params, "8", "2"), ("cpu_fft", params, "8", "3")}
    reasons = {row["reason"] for row in driver.rows() if row["outcome"] == "failed"}
    assert reasons == {"an illegal memory access was encountered"}, "once is enough: it has told"
    assert len(driver.rows()) == 2 * (POINTS - 2) + 2
    asked = [call for call in driver.calls() if "cpu_fft" in call and "8x8" in call]
    assert len(asked) == (4 if params == "threads=1" else 2), "a new process for what is left"


def test_a_device_that_is_lost_before_it_answers_is_a_crash(driver):
    """Without a record nobody knows whose fault it was; the sweep must end all the same."""
    driver.faults({"kind": "lost-silently", **CRASH})
    assert driver.run() == 1
    failed = [row for row in driver.rows() if row["outcome"] == "failed"]
    assert {row["params"] for row in failed} == {"threads=1"}
    assert {row["reason"] for row in failed} == {"exit code 3, twice"}


def test_hanging_point_times_out(driver):
    driver.one_hangs()
    driver.run("--sizes", "4")
    timeouts = [row for row in driver.rows() if row["outcome"] == "timeout"]
    assert {(row["params"], row["iterations"]) for row in timeouts} == {("threads=1", "0")}
    assert driver.outcomes()[("cpu_fft", "threads=all", "4", "2")] == "passed"
    for call in driver.calls():
        assert not _alive(call[0]), "a hanging process is killed"


def test_refused_request_is_a_failed_point(driver):
    driver.faults({"kind": "exit2", "variant": "cpu_definition", "left": "12x12"})
    assert driver.run() == 1
    failed = [row for row in driver.rows() if row["outcome"] == "failed"]
    assert {row["reason"] for row in failed} == {"exit code 2: error: window: not legal"}
    assert len(failed) == 2


def test_incorrect_point_is_named_and_fails(driver, capsys):
    driver.faults({"kind": "incorrect", "variant": "cpu_definition", "left": "12x12"})
    assert driver.run() == 1
    out = capsys.readouterr().out
    assert "2 incorrect" in out and "incorrect: cpu_definition" in out and "is NaN" in out


def test_cuda_variants_answer_themselves_on_the_cpu(driver):
    driver.variants([*fake_bench.VARIANTS, fake_bench.variant("warp_shuffle", backend="cuda")])
    assert driver.run() == 0
    by_variant = {place[0]: outcome for place, outcome in driver.outcomes().items()}
    assert by_variant["warp_shuffle"] == "not_supported" and by_variant["cpu_fft"] == "passed"
    rows = [row for row in driver.rows() if row["variant"] == "warp_shuffle"]
    assert rows and all(row["iterations"] == "0" for row in rows)


def test_gpu_rows_lie_under_the_gpu(driver, monkeypatch):
    monkeypatch.setenv("FAKE_GPU", "1")
    driver.variants([*fake_bench.VARIANTS, fake_bench.variant("warp_shuffle", backend="cuda")])
    assert driver.run("--device", "cuda") == 0
    rows = store.read_rows(driver.results / "local" / "fake-gpu")
    assert {row["variant"] for row in rows} == {"warp_shuffle"}
    assert {row["machine_key"] for row in rows} == {"fake-gpu"} and not driver.local.exists()


def test_shards_are_disjoint_and_merge(driver):
    points: list[set[tuple[str, ...]]] = []
    for k in (1, 2, 3):
        before = set(keys(driver.rows()))
        assert driver.run("--shard", f"{k}/3") == 0
        points.append(set(keys(driver.rows())) - before)
    assert sum(map(len, points)) == len(set().union(*points)) == 2 * POINTS
    files = driver.files()
    assert driver.run() == 0 and driver.files() == files


def test_not_selected_before_anything_is_computed(driver):
    driver.presets(limit=1e-7)
    assert driver.run() == 0
    assert set(driver.outcomes().values()) == {"not_selected"} and driver.calls() == []
    row = driver.rows()[0]
    assert row["reason"].startswith("predicted ") and "smoke" in row["reason"]
    assert row["iterations"] == "0" and int(row["fmas"]) > 0 and len(driver.rows()) == POINTS


def test_damaged_files_are_set_aside_and_measured_again(driver, capsys):
    driver.run()
    expected = keys(driver.rows())
    first, second = sorted((driver.local / "many").glob("*.csv.gz"))[:2]
    first.write_bytes(first.read_bytes()[:-20])
    second.write_bytes(b"not gzip")
    capsys.readouterr()
    assert driver.run() == 0
    warned = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(warned) == 2 and str(first) in warned[0] and str(second) in warned[1]
    assert Path(f"{first}.damaged").exists() and not second.exists()
    assert keys(driver.rows()) == expected


def test_dry_run_measures_nothing(driver, capsys):
    assert driver.run("--dry-run") == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-1].split()[:4] == ["total", str(POINTS), "0", "0"]
    assert told[0].startswith(f"to measure: {POINTS} points in 12 processes, about "), "2 variants on 6 problems"
    assert driver.calls() == [] and not driver.results.exists()
    driver.run("--sizes", "4")
    capsys.readouterr()
    driver.run("--dry-run")
    assert capsys.readouterr().out.splitlines()[-1].split()[:3] == ["total", str(POINTS), "6"]


def test_results_that_cannot_be_written(driver, tmp_path, capsys):
    driver.results = tmp_path / "file"
    driver.results.write_text("")
    assert driver.run() == 2
    assert "--results" in error_of(capsys) and driver.calls() == []


def test_read_only_results(driver, monkeypatch, capsys):
    driver.results.mkdir()
    driver.results.chmod(0o555)
    if os.geteuid() == 0:  # root writes everywhere

        def refuse(path: Path, _: bytes) -> None:
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(Path, "write_bytes", refuse)
    assert driver.run() == 2
    assert "no permission" in error_of(capsys) and driver.calls() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_sweep_resumes(driver, number):
    driver.faults({"kind": "hang", "variant": "cpu_fft", "params": "threads=all", "left": "8x8"})
    process = driver.start()
    wait_for(lambda: _last_option(driver, "--left") == "8x8" and "cpu_fft" in driver.calls()[-1], "the hanging point")
    process.send_signal(number)
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == (130 if number == signal.SIGINT else 143)
    assert "interrupted" in err and "the same command resumes" in err and "Traceback" not in err
    assert not _alive(driver.calls()[-1][0])
    assert 0 < len(driver.rows()) < 2 * POINTS
    driver.faults()
    assert driver.run() == 0 and len(set(keys(driver.rows()))) == 2 * POINTS


def _last_option(driver: Driver, name: str) -> str:
    calls = driver.calls()
    return calls[-1][calls[-1].index(name) + 1] if calls else ""


def test_twenty_kills_lose_and_double_nothing(driver, tmp_path):
    """SIGKILL at random moments; each attempt goes on where the last one left."""
    text = (driver.folder / "many.toml").read_text()
    driver.experiment("more", text.replace("12]", "12, 16, 20]"))
    reference = Driver.__new__(Driver)
    reference.__dict__.update(driver.__dict__, results=tmp_path / "reference")
    assert reference.run() == 0
    chance = random.Random(20)
    # A sweep of n files is killed when k more of them exist: that is spread over its whole length
    # on any machine, and a random moment later it is in the midst of the next point.
    for _ in range(20):
        process = driver.start()
        enough = len(driver.files()) + chance.choice((0, 1, 1, 2))

        def is_time(process: subprocess.Popen[str] = process, enough: int = enough) -> bool:
            return process.poll() is not None or len(driver.files()) >= enough

        wait_for(is_time, f"{enough} files")
        time.sleep(chance.random() * 0.1)
        process.kill()
        process.communicate()
    for call in driver.calls():
        wait_for(lambda pid=call[0]: not _alive(pid), "the end of a killed driver's child")
    assert driver.run() == 0
    everything = [row for path in driver.local.glob("*/*.csv.gz") for row in store.decode(path)]
    assert len(everything) == len(driver.rows()), "no point was measured twice"
    assert keys(driver.rows()) == keys(reference.rows())
    assert not list(driver.local.glob("*/*.damaged"))


def _alive(pid: object) -> bool:
    """Whether the stand-in runs as this process; one that waits to be reaped has no command line, another program
    may have its number."""
    try:
        return Path(fake_bench.__file__).name in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def test_child_dies_with_a_killed_driver(driver):
    driver.faults({"kind": "hang", "variant": "cpu_definition", "left": "4x4"})
    process = driver.start()
    wait_for(lambda: bool(driver.calls()), "the first process")
    process.kill()
    process.communicate()
    wait_for(lambda: not _alive(driver.calls()[0][0]), "the end of the child")


def test_full_disk_in_the_midst_loses_nothing(driver, monkeypatch, capsys):
    """The disk fills up after ten files: one line, and the sweep goes on from there."""
    sync, written = os.fsync, []

    def fill(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) > 10:
            raise OSError(28, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fill)
    assert driver.run() == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert len(errors) == 1 and "no space left" in errors[0]
    assert 0 < len(driver.rows()) < 2 * POINTS
    monkeypatch.setattr(os, "fsync", sync)
    assert driver.run() == 0 and len(driver.rows()) == 2 * POINTS
