"""Two trees to compare: where they lie, what their variants are called and hashed, and their compiled objects."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from xcorr.errors import UserError
from xcorr.files import resolved
from xcorr.paths import ROOT

HASH = re.compile(r'^#define XCORR_SOURCE_HASH "(\w+)"$', re.MULTILINE)
REDUCTION_HASH = re.compile(r'^#define XCORR_REDUCTION_HASH_(\w+) "(\w+)"$', re.MULTILINE)
BUILD = "build-equivalent"


@dataclass(frozen=True)
class Tree:
    """A tree of the project and its build folder, which may not exist yet."""

    root: Path
    build: Path

    def units(self) -> dict[str, tuple[str, list[str]]]:
        """Path and names of the generated units by variant, as the tree's own script lists them."""
        found = {}
        for line in _run(self._script(), "list", self.root).splitlines():
            name, _, path, units = line.split(":")
            found[name] = (path, units.split(","))
        return found

    def hashes(self) -> tuple[dict[str, str], dict[str, str]]:
        """source_hash by variant, and the hash of the reduction of surfaces by backend (none in a tree without one), as
        the tree's own script stamps them: what its rows have."""
        units = self.units()
        with tempfile.TemporaryDirectory() as folder:
            lines = [f"{path}:{','.join(names)}" for path, names in units.values()]
            _run(self._script(), "stamp", self.root, folder, *lines)
            variants = {
                variant: HASH.findall((Path(folder) / names[0]).read_text(encoding="utf-8"))[0]
                for variant, (_, names) in units.items()
            }
            header = Path(folder) / "reduction_hash.hpp"
            text = header.read_text(encoding="utf-8") if header.is_file() else ""
        return variants, {backend.lower(): one for backend, one in REDUCTION_HASH.findall(text)}

    def tokens(self) -> dict[str, str]:
        """The hash of the tokens by variant, as this repository's script sees them."""
        said = _run(stamp_script(ROOT), "hash", self.root)
        return dict(line.split(":") for line in said.splitlines())

    def objects(self, variant: str) -> list[Path]:
        """The compiled units of a CUDA variant; empty where it was left out."""
        _, names = self.units()[variant]
        return [path for path in (self.build / f"{Path(name).stem}.o" for name in names) if path.exists()]

    def compile(self, grid: str, architecture: str) -> None:
        """Builds libxcorr and the program; quick where nothing has changed."""
        print(f"{self.root}: building {self.build}", file=sys.stderr, flush=True)
        done = subprocess.run(
            [self.root / "scripts" / "build.sh", "--grid", grid, "--gpu-arch", architecture],
            cwd=self.root,
            env={**os.environ, "XCORR_BUILD": str(self.build)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode != 0:
            cause = [line for line in done.stdout.splitlines() if "error" in line.lower()]
            raise UserError(f"{self.root}: does not build: {' '.join(cause[:1])}; run scripts/build.sh there")

    def compiler(self) -> str:
        """Of the kernels and of the rest, such as `nvcc 13.0 gcc 12.2.0`."""
        facts = (self.build / "build_facts.hpp").read_text(encoding="utf-8")
        host = re.search(r'XCORR_COMPILER "(.*)"', facts)
        nvcc = re.search(r"release (\S+),", _run(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc", "--version"))
        return f"nvcc {nvcc[1] if nvcc else 'unknown'} {host[1] if host else ''}".strip()

    def flags(self, file: str) -> list[str]:
        """The compiler of a file of the harness with its flags, for the build folder as the current one."""
        entries = json.loads((self.build / "compile_commands.json").read_text(encoding="utf-8"))
        for entry in entries:
            if entry["file"].endswith(file):
                words = shlex.split(entry["command"])
                compiler = next(i for i, word in enumerate(words) if not word.endswith("ccache"))
                return [words[compiler], *(word for word in words if re.match(r"-(I|D|std|isystem|O|f)", word))]
        raise UserError(f"{self.build}: does not compile {file}; build again")

    def _script(self) -> Path:
        return stamp_script(self.root)


def stamp_script(root: Path) -> Path:
    """The script that finds and stamps the variants of a tree; older trees have it beside the commands."""
    paths = [root / "scripts" / name for name in ("build/stamp_sources.py", "stamp_sources.py")]
    return next((path for path in paths if path.is_file()), paths[0])


def open_tree(name: str, build: Path | None) -> Tree:
    """A folder, or a revision, which is unpacked below .cache/."""
    folder = resolved(Path(name))
    if not folder.is_dir():
        folder = _unpacked(name)
    if not stamp_script(folder).is_file():
        raise UserError(f"{name}: not a tree of this project; give a folder or a revision of it")
    chosen = ROOT / ".xcorr-env"  # the interpreter and Meson that setup.sh chose
    if chosen.exists() and not (folder / chosen.name).exists():
        shutil.copy(chosen, folder)
    return Tree(folder, resolved(build or folder / BUILD))


def _unpacked(revision: str) -> Path:
    asked = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"],
        capture_output=True,
        text=True,
    )
    commit = asked.stdout.strip()
    if asked.returncode != 0:
        raise UserError(f"{revision}: neither a folder nor a revision; see git log")
    folder = ROOT / ".cache" / "equivalent" / commit[:12]
    if not folder.is_dir():
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        archive = subprocess.run(["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", str(partial)], input=archive.stdout, check=True)
        partial.rename(folder)
    return folder


def _run(*command: object) -> str:
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    except OSError as error:
        raise UserError(f"{words[0]}: {error.strerror}; install it") from error
    if done.returncode != 0:
        cause: Sequence[str] = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise UserError(f"{words[0]}: {cause[-1].removeprefix('error: ')}")
    return done.stdout
