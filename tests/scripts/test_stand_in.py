"""The main command as on a machine with a GPU: `scripts/reproduce.sh` with the stand-in of tests/stand_in, which has all CUDA
variants of the build and their `supports`. Only set-up and build are left out."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from calls import call

from experiments.driver import store
from xcorr.paths import ROOT, build_directory

BUILT = build_directory() / "tests/stand_in"
HAS_CUDA = (build_directory() / "resources.csv").exists()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not HAS_CUDA, reason="the stand-in takes the CUDA variants of a build that has some"),
]
LEFT_ALONE = ("scripts", "results", "experiments", "build", ".git")


@dataclass
class Machine:
    """A tree whose build folder has the stand-in."""

    root: Path
    env: dict[str, str]

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def rows(self) -> Path:
        return self.results / "local/stand-in"

    def call(self, *command: object, **env: str) -> subprocess.CompletedProcess[str]:
        return call(*command, cwd=self.root, env=self.env, **env)

    def reproduce(self, **env: str) -> subprocess.CompletedProcess[str]:
        return self.call("scripts/reproduce.sh", **env)

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text()
        assert text.count(old) == 1, path
        (self.root / path).write_text(text.replace(old, new))


@pytest.fixture(scope="module")
def machine(tmp_path_factory) -> Machine:
    assert (BUILT / "libstand_in.so").exists(), "scripts/build.sh --tests makes the stand-in"
    folder = tmp_path_factory.mktemp("machine")
    root, programs, built = folder / "tree", folder / "bin", folder / "built"
    for one in (root, programs, built):
        one.mkdir()
    (built / "xcorr-bench").symlink_to(BUILT / "xcorr-bench")
    (built / "libxcorr.so").symlink_to(BUILT / "libstand_in.so")
    for entry in ROOT.iterdir():
        if entry.name not in LEFT_ALONE and not entry.name.startswith("build"):
            (root / entry.name).symlink_to(entry)
    for name in ("scripts", "experiments"):
        shutil.copytree(ROOT / name, root / name)
    for stub in (root / "scripts/setup.sh", root / "scripts/build.sh", programs / "nvidia-smi"):
        stub.write_text("#!/bin/sh\n")
        stub.chmod(0o755)
    if not (root / ".xcorr-env").exists():
        (root / ".xcorr-env").write_text(f"XCORR_PYTHON='{sys.executable}'\n")
    env = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "XCORR_BUILD": str(built),
        "XDG_CACHE_HOME": str(folder),
        "PIP_NO_INDEX": "1",  # no data from afar: the experiments on real input then make their own
    }
    return Machine(root, env)


@pytest.fixture(scope="module")
def reproduced(machine) -> subprocess.CompletedProcess[str]:
    return machine.reproduce()


def outcomes(machine: Machine) -> dict[str, set[str]]:
    """What the rows say of each variant."""
    found: dict[str, set[str]] = {}
    for path in machine.rows.glob("*/*.csv.gz"):
        if store.CHUNK_NAME.fullmatch(path.name):
            for row in store.decode(path):
                found.setdefault(row["variant"], set()).add(row["outcome"])
    return found


def test_ends_well_and_again(machine, reproduced):
    assert reproduced.returncode == 0, reproduced.stdout[-3000:] + reproduced.stderr
    assert "measure on stand-in, preset smoke" in reproduced.stdout
    assert (machine.rows / "report.html").exists() and (machine.rows / "tables/best_algorithm.md").exists()
    again = machine.reproduce()
    assert again.returncode == 0, again.stdout[-3000:] + again.stderr
    assert "Error" not in reproduced.stderr + again.stderr


def test_every_cuda_variant_is_asked(machine, reproduced):
    listed = json.loads(machine.call(BUILT / "xcorr-bench", "--list=json").stdout)["variants"]
    cuda = {one["id"] for one in listed if one["backend"] == "cuda"}
    files = {path.stem for path in (ROOT / "algorithms").rglob("*.cu")}
    # What needs a library that is not here is left out of every build.
    assert cuda == files - {"fused_fft_cufftdx"} or cuda == files
    cuda -= {"timeseries_tf32_moveouts"}  # no experiment has its views
    seen = outcomes(machine)
    assert cuda <= set(seen), f"without a row: {sorted(cuda - set(seen))}"
    assert not {name for name, said in seen.items() if said & {"failed", "incorrect"}}
    assert not {name for name in cuda if "passed" not in seen[name]}


def test_its_rows_are_not_published(machine, reproduced):
    done = machine.call(
        sys.executable, "-m", "experiments.published.publish", "stand-in", "--partial", "--results", machine.results
    )
    assert done.returncode == 2
    assert done.stderr == (
        "error: machine key stand-in: no GPU made these rows, but the tests' stand-in; publish another set\n"
    )


ALONE = ("fused_fft_lanes", "fused_fft_warp", "fused_fft_cluster", "tiled_direct", "cufft", "timeseries_tf32_detect")
INPUTS = ("ebsd", "photo", "seismic", "amplitudes", "velocimetry", "tracking")


@pytest.mark.parametrize("variant", ALONE)
def test_input_that_no_variant_takes_is_left_out_with_a_line(machine, variant, tmp_path):
    """As if the build had one CUDA variant."""
    for name in INPUTS:
        done = machine.call(
            *(sys.executable, "-m", f"experiments.inputs.{name}", "--preset", "smoke", "--device", "cuda:0"),
            *("--results", tmp_path),
            XCORR_STAND_IN_VARIANTS=variant,
        )
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"


def test_a_request_that_supports_was_not_asked_about_fails(machine, reproduced):
    """The photograph has three shapes, and fused_fft_lanes takes the first one alone."""
    requests = '[Problem("one-to-one", *shapes) for shapes in SHAPES]'
    shutil.rmtree(machine.rows / "real-photo")
    machine.edit("experiments/inputs/photo.py", requests, '[Problem("one-to-one", *SHAPES[0])]')
    machine.edit("scripts/reproduce.sh", "run_python -m plots.render", "true")  # draws nothing: the slow part
    done = machine.reproduce(XCORR_STAND_IN_VARIANTS="fused_fft_lanes")
    assert done.returncode == 1
    assert "error: failed: experiments.inputs.photo, see its error above" in done.stderr
