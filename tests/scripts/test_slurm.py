"""scripts/slurm_array.sh: what it submits (a stand-in for sbatch), and a whole array on a real cluster of one node."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import slurm_cluster
from calls import call, only_error
from copied_tree import copy_tree

from experiments.driver import store
from xcorr.paths import ROOT

SCRIPT = ROOT / "scripts/slurm_array.sh"
FAKE_BENCH = ROOT / "tests/support/fake_bench.py"
SELECTION = ("--experiments", "one-to-one,one-to-many", "--sizes", "16,32")
FAKE_SBATCH = """\
#!/usr/bin/env python3
import json, os, sys
log = os.environ["FAKE_SBATCH_LOG"]
lines = open(log).readlines() if os.path.exists(log) else []
open(log, "a").write(json.dumps(sys.argv[1:]) + "\\n")
if len(lines) == int(os.environ.get("FAKE_SBATCH_REFUSES", -1)):
    sys.exit("sbatch: error: invalid partition specified")
print(f"{41 + len(lines)};other")
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A PATH with a stand-in for sbatch first."""
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin/sbatch"
    fake.write_text(FAKE_SBATCH)
    fake.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{fake.parent}:{os.environ['PATH']}",
        "FAKE_SBATCH_LOG": str(tmp_path / "log"),
        "XCORR_PYTHON": sys.executable,
    }


def submit(*words: object, env: dict[str, str], script: Path = SCRIPT) -> subprocess.CompletedProcess[str]:
    return call(script, *words, cwd="/", env=env)


def submitted(env: dict[str, str]) -> list[list[str]]:
    path = Path(env["FAKE_SBATCH_LOG"])
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def test_an_array_and_a_job_that_waits_for_it(environment, tmp_path):
    words = "--no-build --preset quick --shards 3 --partition gpu --device cuda --sizes 16,32".split()
    words += "--sbatch --account=me --sbatch-shards --gpus=1".split()
    done = submit(*words, "--results", tmp_path / "my rows", env=environment)
    assert done.returncode == 0, done.stderr
    array, drawing = submitted(environment)
    assert after(array, "--array") == "1-3" and "--requeue" in array
    for words in (array, drawing):
        assert after(words, "--partition") == "gpu" and "--account=me" in words
        assert after(words, "--output").startswith(str(tmp_path / "my rows/slurm/"))
    assert "--gpus=1" in array and "--gpus=1" not in drawing
    assert after(drawing, "--dependency") == "afterany:41" and "--array" not in drawing
    command = shlex.split(after(array, "--wrap"))
    assert command[:2] == ["exec", str(SCRIPT)]
    assert after(command, "--results") == str(tmp_path / "my rows") and after(command, "--sizes") == "16,32"
    assert after(command, "--device") == "cuda" and after(command, "--step") == "shard"
    assert after(shlex.split(after(drawing, "--wrap")), "--step") == "draw:41"
    assert "job array 41 (3 shards), then 42 draws" in done.stdout


def test_a_dry_run_submits_nothing(environment):
    done = submit("--dry-run", "--preset", "quick", env=environment)
    assert done.returncode == 0 and done.stdout.count("sbatch ") == 2 and not submitted(environment)


@pytest.mark.parametrize("refused, says", [(0, "refused the job array"), (1, "job array 41 is queued")])
def test_a_refusal_is_said(environment, tmp_path, refused, says):
    environment["FAKE_SBATCH_REFUSES"] = str(refused)
    done = submit("--no-build", "--results", tmp_path, env=environment)
    assert done.returncode == 1 and says in done.stderr and "submitted:" not in done.stdout


@pytest.mark.parametrize(
    "words, says",
    [
        (["--shards", "0"], "--shards 0: not a number of jobs"),
        (["--shards", "many"], "--shards many: not a number of jobs"),
        (["--preset"], "--preset: a value is missing"),
        (["--step", "other"], "--step other: unknown"),
    ],
)
def test_mistakes_end_in_one_line(environment, words, says):
    done = submit(*words, env=environment)
    assert done.returncode == 2 and only_error(done.stderr).startswith("error: " + says)
    assert not submitted(environment)


def test_without_slurm_it_says_where_to_call_it(environment, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("bash", "dirname", "realpath", "sed", "printf"):
        if shutil.which(name):
            (bare / name).symlink_to(shutil.which(name))
    done = submit("--no-build", env={**environment, "PATH": str(bare)})
    assert done.returncode == 2 and done.stderr.startswith("error: sbatch: not found")


def bench(folder: Path, gate: Path | None = None) -> Path:
    """A build folder with the built program if there is one, else its stand-in.

    With a gate, a shard measures three times; then it waits until the gate exists."""
    built = Path(os.environ.get("XCORR_BUILD", ROOT / "build")) / "xcorr-bench"
    real = shlex.quote(str(built)) if built.exists() else f"{shlex.quote(sys.executable)} {FAKE_BENCH}"
    folder.mkdir()
    program = folder / "xcorr-bench"
    calls = f'"{folder}/calls.$SLURM_ARRAY_TASK_ID"'
    wait = f"""case "$*" in *--variant*)
  echo one >>{calls}
  while [ "$(wc -l <{calls})" -gt 3 ] && [ ! -e {gate} ]; do sleep 0.1; done ;;
esac"""
    program.write_text(f'#!/bin/sh\n{wait if gate else ""}\nexec {real} "$@"\n')
    program.chmod(0o755)
    return folder


def shard(environment: dict[str, str], tmp_path: Path, number: int) -> subprocess.CompletedProcess[str]:
    slurm = {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_JOB_ID": "41", "XCORR_BUILD": str(tmp_path / "build")}
    selection = ("--experiments", "one-to-one", "--sizes", "16", "--variants", "cpu_definition,cpu_fft")
    step = (*"--step shard --shards 2 --device cpu".split(), "--results", tmp_path / "results")
    return submit(*step, *selection, env={**environment, **slurm})


def test_the_steps_without_a_cluster(environment, tmp_path):
    """Two shards measure different points into one folder; the drawing step needs both."""
    bench(tmp_path / "build")
    drawing = ("--step", "draw:41", "--shards", 2, "--results", tmp_path / "results")
    nothing = submit(*drawing, env=environment)
    assert nothing.returncode == 1 and "no shard has started" in nothing.stderr
    assert shard(environment, tmp_path, 1).returncode == 0
    half = submit(*drawing, env=environment)
    assert half.returncode == 1 and "1 of 2 shards" in half.stdout and "submit the same command again" in half.stderr
    assert shard(environment, tmp_path, 2).returncode == 0
    whole = submit(*drawing, env=environment)
    assert whole.returncode == 0, whole.stderr
    (folder,) = (tmp_path / "results/local").iterdir()
    assert {row["variant"] for row in store.read_rows(folder)} == {"cpu_definition", "cpu_fft"}
    assert (folder / "report.html").exists()


@pytest.mark.slow
@pytest.mark.skipif(bool(slurm_cluster.why_not()), reason=slurm_cluster.why_not() or "runs")
def test_an_array_on_a_real_cluster_survives_a_killed_shard(tmp_path):
    results, gate = tmp_path / "results", tmp_path / "gate"
    tree = copy_tree(tmp_path / "tree")
    with slurm_cluster.Cluster(tmp_path / "cluster") as cluster:
        env = {**cluster.env, "XCORR_PYTHON": sys.executable, "XCORR_BUILD": str(bench(tmp_path / "build", gate))}
        words = "--no-build --preset smoke --shards 2 --partition test --device cpu".split()
        script = tree / "scripts/slurm_array.sh"
        done = submit(*words, *SELECTION, "--results", results, env=env, script=script)
        assert done.returncode == 0, done.stderr
        array, drawing = _jobs(done.stdout)

        def chunks() -> dict[str, list[Path]]:
            found = defaultdict(list)
            for path in results.glob("local/*/*/*.csv.gz"):
                found[path.name.rpartition("-")[0]].append(path)
            return found

        both = [f"{array}_1", f"{array}_2"]
        cluster.wait(lambda: all(cluster.state(one) == "RUNNING" for one in both), "two shards at once")
        cluster.wait(lambda: len(chunks()) == 2 and min(map(len, chunks().values())) >= 2, "rows of both shards")
        assert cluster.state(drawing) == "PENDING"
        cluster.call("scontrol", "requeue", both[1])

        def restarted() -> bool:
            cluster.call("scontrol", "update", f"JobId={both[1]}", "StartTime=now")
            return "start 1" in _text(results / f"slurm/{array}_2.log")

        cluster.wait(restarted, "the killed shard to start again")
        gate.touch()
        cluster.wait(lambda: cluster.state(drawing) == "COMPLETED", "the drawing job")
        assert [cluster.state(one) for one in both] == ["COMPLETED", "COMPLETED"]
    assert "2 of 2 shards have finished" in _text(results / f"slurm/{drawing}_draw.log")
    (folder,) = (results / "local").iterdir()
    assert (folder / "report.html").exists() and list(folder.glob("figures/*.svg"))
    measured = defaultdict(set)
    for paths in chunks().values():
        for path in paths:
            for row in store.decode(path):
                measured[row["experiment"], store.key_of(row)].add(row["run"])
    assert len(chunks()) == 3, "runs: a shard, the killed one, and its second start"
    assert all(len(runs) == 1 for runs in measured.values()), "a point was measured twice"
    planned = _points(env, results, tree)
    assert planned == len(measured), "points of the selection that have rows"


def _jobs(told: str) -> tuple[str, str]:
    """Array and drawing job of `submitted: job array A (n shards), then D draws`."""
    words = told.splitlines()[0].split()
    return words[3], words[-2]


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _points(env: dict[str, str], results: Path, tree: Path) -> int:
    """Points of the test's selection, of which none may be left to measure."""
    words = "-m experiments.driver.run --preset smoke --device cpu --dry-run".split()
    done = call(sys.executable, *words, *SELECTION, "--results", results, env=env, cwd=tree)
    assert done.returncode == 0, done.stderr
    total = done.stdout.strip().splitlines()[-1].split()
    assert int(total[1]) == int(total[2]) + int(total[3]), "points, already measured, not selected"
    return int(total[1])
