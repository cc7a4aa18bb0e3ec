"""The scripts in a tree of their own, with stand-ins for all that they call: nothing is built, installed or measured."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from calls import call, only_error

from xcorr.paths import ROOT

FACTS = '{"machine_key": "made-up-machine", "device": "cpu"}'
# A program of this tree says its error itself, in one line; other programs that fail here say nothing at all.
STUBS = {
    "python": f"""case "$*" in
  *machine-facts*) echo '{FACTS}' ;;
  -c*) exec "{sys.executable}" "$@" ;;
esac""",
    "meson": 'case "$*" in *--version*) echo 1.0.1 ;; *--list*) echo emulation ;; esac',
    "ninja": 'case "$*" in *--version*) echo 1.11 ;; esac',
    "nvcc": 'case "$*" in *--list-gpu-arch*) printf "compute_%s\\n" 75 80 86 89 90 120 ;; esac',
    "nvidia-smi": "echo 9.0",
    "sbatch": "echo 41",
    "id": "echo 0",
    "apt-get": "",
    "mount": "",
    "umount": "",
    "debootstrap": 'mkdir -p "$3/etc/apt" "$3/proc" "$3/sys"',
    "git": 'case "$1" in clone) for last; do :; done; mkdir -p "$last" ;; esac',
    "chroot": 'mkdir -p "$1/xcorr-bench/results/local/a"; echo rows >"$1/xcorr-bench/results/local/a/b.csv.gz"',
}


class StubTree:
    """`root` is the tree, `bin` the first folder of PATH."""

    def __init__(self, folder: Path) -> None:
        self.root, self.bin, self.build = folder / "tree", folder / "bin", folder / "built"
        for name in ("scripts", ".ci"):
            shutil.copytree(ROOT / name, self.root / name)
        for name in ("algorithms", "harness", "tests", "results/local/made-up-machine", "results/published/one"):
            (self.root / name).mkdir(parents=True)
        shutil.copy(ROOT / "pyproject.toml", self.root)
        for name in ("experiments", "xcorr/commands"):
            (self.root / name).mkdir(parents=True)
        (self.root / "xcorr/commands/correlate.py").write_text("def main():\n    return 0\n")
        (self.root / "results/published/one/runs.json").write_text("{}")
        self.bin.mkdir()
        for name, body in STUBS.items():
            self.stub(name, body)
        for name in ("xcorr-bench", "tests/conformance/conformance"):
            (self.build / name).parent.mkdir(parents=True, exist_ok=True)
            self.stub(name, "", self.build)
        formatters = folder / "formatters"
        for name in ("clang_format/data/bin/clang-format", "clang_tidy/data/bin/clang-tidy", "bin/ruff", "bin/mypy"):
            (formatters / name).parent.mkdir(parents=True, exist_ok=True)
            self.stub(name, "", formatters)
        (self.root / ".xcorr-env").write_text(
            f"XCORR_PYTHON='{self.bin / 'python'}'\nXCORR_MESON='{self.bin / 'meson'}'\n"
            f"export NINJA='{self.bin / 'ninja'}'\n"
        )
        self.env = {
            **os.environ,
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "XCORR_BUILD": str(self.build),
            "XCORR_FORMATTERS": str(formatters),
            "TMPDIR": str(folder),
            "SLURM_ARRAY_TASK_ID": "1",
            "SLURM_ARRAY_JOB_ID": "41",
        }
        for name in ("XCORR_PYTHON", "XCORR_MESON", "NINJA", "MATHDX_ROOT"):
            self.env.pop(name, None)

    def stub(self, name: str, body: str, folder: Path | None = None) -> None:
        path = (folder or self.bin) / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def without_first_steps(self) -> None:
        """Set-up and build say nothing and work, for the scripts that call them."""
        for name in ("setup.sh", "build.sh"):
            self.stub(name, "", self.root / "scripts")

    def edit(self, script: str, old: str, new: str) -> None:
        path = self.root / script
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def call(self, script: str, *words: object, **env: str) -> subprocess.CompletedProcess[str]:
        return call(self.root / script, *words, cwd=self.root, env=self.env, **env)


@pytest.fixture
def tree(tmp_path: Path) -> StubTree:
    return StubTree(tmp_path)


def one_error(done: subprocess.CompletedProcess[str]) -> str:
    """The only line on stderr, which must be an error of ours."""
    assert done.returncode != 0, done.stdout
    return only_error(done.stderr)
