"""Sweeps beside each other: one a folder, or the shards of one selection."""

import errno
import fcntl
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from driving import Driver, keys
from hangs import wait_for

from experiments.driver import lock, store
from xcorr.errors import UserError

HANG = {"kind": "hang", "variant": "cpu_fft", "params": "threads=1", "left": "8x8"}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "PATIENCE_S", 0.0)


@pytest.fixture
def started(driver: Driver) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a sweep that hangs in the midst, and ends it at last."""
    processes = []

    def start(*more: str) -> subprocess.Popen[str]:
        driver.faults(HANG)
        processes.append(driver.start(*more))
        hanging = lambda: any("8x8" in call and "cpu_fft" in call for call in driver.calls())  # noqa: E731
        wait_for(lambda: hanging() or processes[-1].poll() is not None, "the point that hangs")
        assert processes[-1].poll() is None
        driver.faults()
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_a_second_sweep_in_the_folder_is_refused_and_named(driver, started, impatient, capsys):
    process = started()
    calls = len(driver.calls())
    assert driver.run() == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {driver.local}: another sweep measures into it")
    assert f"process {process.pid} on {os.uname().nodename}" in line and "--results" in line
    assert driver.run("--shard", "1/2") == 2, "a part of everything is measured by the other too"
    assert driver.run("--force", "--sizes", "12") == 2
    assert len(driver.calls()) == calls, "nothing was measured twice"
    assert driver.run("--dry-run") == 0, "which writes nothing, needs no lock"


def test_shards_run_beside_each_other_but_no_shard_twice(driver, started, impatient, capsys):
    first = next(k for k in (1, 2) if _has_the_hanging_point(driver, k))
    started("--shard", f"{first}/2")
    assert driver.run("--shard", f"{3 - first}/2") == 0
    capsys.readouterr()
    assert driver.run("--shard", f"{first}/2") == 2
    assert f"shard {first}/2 is being measured by another sweep" in capsys.readouterr().err
    assert 2 in {driver.run("--shard", f"{k}/3") for k in (1, 2, 3)}, "thirds overlap halves"
    assert driver.run() == 2
    assert driver.run("--shard", f"{3 - first}/2", "--force", "--sizes", "4") == 2
    assert "another sweep with other options" in capsys.readouterr().err


def _has_the_hanging_point(driver: Driver, k: int) -> bool:
    other = Driver.__new__(Driver)
    other.__dict__.update(driver.__dict__, results=driver.base / f"shard-{k}")
    assert other.run("--shard", f"{k}/2") == 0
    found = any((row["variant"], row["left_rows"]) == ("cpu_fft", "8") for row in other.rows())
    driver.log.unlink()
    return found


def test_a_killed_sweep_leaves_no_lock(driver, started):
    process = started()
    assert list(driver.local.glob(".sweep-*.lock"))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert driver.run() == 0 and len(set(keys(driver.rows()))) == len(driver.rows())
    assert not list(driver.local.glob(".sweep-*.lock"))


def test_a_file_system_without_locks_is_said_and_measured_on(driver, monkeypatch, capsys):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert driver.run() == 0
    warned = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert len(warned) == 1 and "no locks" in warned[0] and "start no other sweep" in warned[0]


def test_a_lock_file_without_words_still_holds(tmp_path, impatient):
    for text in ("", "null", "{"):
        path = tmp_path / lock.OWN.format(run="x")
        path.write_text(text)
        with open(path, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            refused = pytest.raises(lock.UserError, match="process [?] on [?]")
            with refused, lock.held(tmp_path, lock.holder("y", (1, 2), [])):
                pass
        with lock.held(tmp_path, lock.holder("y", (1, 2), [])):
            assert not path.exists(), "nobody holds it any more"


def test_two_sweeps_after_each_other_measure_once(driver, monkeypatch):
    """What the other measured between the first look and the lock is not measured again."""
    read, seen = store.read_rows, []

    def late(folder: Path, *arguments: object, **options: object) -> list[store.Row]:
        rows = read(folder, *arguments, **options)
        if folder == driver.local:
            seen.append(len(rows))
            if len(seen) == 1:
                assert driver.run() == 0
        return rows

    monkeypatch.setattr(store, "read_rows", late)
    assert driver.run() == 0
    assert len(driver.calls()) == 12


def test_a_sweep_of_another_user_is_seen(tmp_path, impatient, monkeypatch):
    """Its file may be read and not written."""
    mine = lock.holder("b", (1, 1), ())
    other = tmp_path / lock.OWN.format(run="a")
    other.write_text('{"pid": 7, "host": "elsewhere", "shard": [1, 1], "selection": []}\n')
    writable = open

    def read_only(path: object, mode: str = "r", **more: object) -> object:
        if path == other and "+" in mode:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return writable(path, mode, **more)  # type: ignore[call-overload]

    monkeypatch.setattr("builtins.open", read_only)
    with writable(other, encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="process 7 on elsewhere"), lock.held(tmp_path, mine):
            pass
    with lock.held(tmp_path, mine):
        assert not other.exists(), "nobody holds it any more"
