"""Runs the driver on the fake program, in this process or as one that can be killed."""

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from calls import call
from hangs import HANG_S

from experiments.driver import repository, run, schema, store
from experiments.driver.points import Unit
from experiments.driver.predict import Predictor
from experiments.published import publish
from xcorr.choice import speeds
from xcorr.paths import ROOT

FAKE = Path(__file__).with_name("fake_bench.py")
EXPERIMENT = """
title = "Test"
form = "one-to-many"
feeds = ["comparison"]
[[problems]]
sizes = [4, 8, 12]
counts = ["1:2", "1:3"]
"""
# Presets without a limit in time of their own.
OTHERS = """
[{name}]
repetitions = 3
min_time_s = 0.001
max_predicted_s = {{ cpu = 5, cuda = 1 }}
"""
PRESETS = """
[smoke]
repetitions = 2
min_time_s = 0.001
max_predicted_s = {{ cpu = {limit}, cuda = {limit} }}
min_timeout_s = {timeout}""" + "".join(
    OTHERS.replace("{name}", name)
    for name in ("quick", *(one for one in schema.PRESETS if one not in ("smoke", "quick")))
)
# Of the preset evaluation, for its second stage: blocks of about two problems.
STAGES = """repetitions = 2
processes = 3
block_s = {block_s}
"""
POINTS = 3 * 2 * 3  # sizes x counts x (one point of cpu_definition, two of cpu_fft)
CRASH = {"variant": "cpu_fft", "params": "threads=1", "left": "8x8"}


def _heed_interrupts() -> None:
    """What is started in the background of a script without job control inherits SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Driver:
    """A build folder with the fake, a folder of experiments and a results root."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.base = base
        self.folder = base / "experiments"
        self.results = base / "results"
        self.log = base / "calls.log"
        self._patch = monkeypatch
        self.build(base / "build")
        self.folder.mkdir()
        self.experiment("many", EXPERIMENT)
        self.presets()
        self.commit()
        monkeypatch.setenv("FAKE_LOG", str(self.log))
        # Runs of one test follow each other within a second; their order must still be known.
        order = itertools.count()
        monkeypatch.setattr(repository, "ROOT", base)
        monkeypatch.setattr(store, "new_run_id", lambda _: f"20300101T{next(order):06d}-abcdef")

    def build(self, path: Path) -> None:
        path.mkdir()
        program = path / "xcorr-bench"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{FAKE}" "$@"\n')
        program.chmod(0o755)
        self._patch.setenv("XCORR_BUILD", str(path))

    def experiment(self, name: str, text: str) -> None:
        (self.folder / f"{name}.toml").write_text(text)

    def presets(self, limit: float = 5) -> None:
        (self.folder / "presets.toml").write_text(PRESETS.format(limit=limit, timeout=HANG_S))

    def stages(self, block_s: float) -> None:
        """The preset evaluation gets its stages, with blocks of at most `block_s` predicted seconds."""
        self.edit("presets.toml", "[evaluation]\nrepetitions = 3\n", "[evaluation]\n" + STAGES.format(block_s=block_s))

    def edit(self, name: str, old: str, new: str) -> None:
        """The first such text in a file of the experiments becomes another."""
        text = (self.folder / name).read_text()
        assert old in text
        (self.folder / name).write_text(text.replace(old, new, 1))

    def faults(self, *faults: dict[str, Any]) -> None:
        self._patch.setenv("FAKE_FAULTS", json.dumps(faults))

    def one_hangs(self) -> None:
        """cpu_fft with threads=1 hangs on 4x4. Only it has the limit of the preset: a loaded machine may be slower."""
        limit = Predictor.timeout_s

        def patient(predictor: Predictor, unit: Unit, params: str) -> float:
            hangs = (unit.variant.id, params, unit.problem.left) == ("cpu_fft", "threads=1", (4, 4))
            return limit(predictor, unit, params) if hangs else HANG_S

        self._patch.setattr(Predictor, "timeout_s", patient)
        self.edit("presets.toml", f"min_timeout_s = {HANG_S}", "min_timeout_s = 2")
        (self.folder / "rates.toml").write_text(speeds.SPEEDS.read_text().replace("plan_s = 0.1", "plan_s = 0"))
        self.faults({"kind": "hang", "variant": "cpu_fft", "params": "threads=1", "left": "4x4"})

    def variants(self, variants: list[dict[str, Any]]) -> None:
        (self.base / "list.json").write_text(json.dumps(variants))
        self._patch.setenv("FAKE_LIST", str(self.base / "list.json"))

    def arguments(self, *more: str, preset: str = "smoke") -> list[str]:
        places = ["--folder", str(self.folder), "--results", str(self.results)]
        return ["--preset", preset, "--device", "cpu", *places, *more]

    def git(self, *words: str) -> str:
        """Git in the folder that stands for the clone; it reads no settings of the user."""
        who = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
        done = call("git", *who, *words, cwd=self.base, GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self) -> None:
        """Commits the experiments and the code as they are, so that later rows can be published."""
        for name in repository.MEASURED:
            (self.base / name).mkdir(exist_ok=True)
            (self.base / name / "code.cpp").touch()
        self.git("init", "-q")
        self.git("add", "experiments", *repository.MEASURED)
        self.git("commit", "-q", "--allow-empty", "-m", "Sources")

    def run(self, *more: str, preset: str = "smoke") -> int:
        return run.main(self.arguments(*more, preset=preset))

    def start(self, *more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "experiments.driver.run", *self.arguments(*more)]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=ROOT, env=dict(os.environ), stdout=pipe, stderr=pipe, text=True, preexec_fn=_heed_interrupts
        )

    def publish(self, *more: str) -> int:
        return publish.main(["--results", str(self.results), *more])

    @property
    def local(self) -> Path:
        return self.results / "local" / "fake-2-cores"

    @property
    def published(self) -> Path:
        return self.results / "published" / "fake-2-cores"

    def rows(self) -> list[store.Row]:
        return store.read_rows(self.local)

    def outcomes(self) -> dict[tuple[str, ...], str]:
        """(variant, params, left rows, rights) -> outcome."""
        names = ("variant", "params", "left_rows", "rights")
        return {tuple(row[name] for name in names): row["outcome"] for row in self.rows()}

    def calls(self) -> list[list[str]]:
        """Arguments of every measuring process so far, its process id first."""
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def files(self) -> list[str]:
        return sorted(str(path) for path in self.results.rglob("*") if path.is_file())


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    for name in ("FAKE_FAULTS", "FAKE_LIST", "FAKE_RECORD"):
        monkeypatch.delenv(name, raising=False)
    return Driver(tmp_path, monkeypatch)


def refusal(driver: Driver, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The error with which `publish` refuses; nothing is published."""
    capsys.readouterr()
    assert driver.publish(*arguments) == 2
    assert not (driver.results / "published").exists()
    (line,) = [one for one in capsys.readouterr().err.splitlines() if one.startswith("error: ")]
    return line


def keys(rows: list[store.Row]) -> list[tuple[str, ...]]:
    """(experiment, resume key, repetition) of rows, sorted, with repetitions of a key kept."""
    return sorted((row["experiment"], *store.key_of(row), row["repetition"]) for row in rows)
