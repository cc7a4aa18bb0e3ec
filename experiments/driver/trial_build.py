"""The build of scripts/try: a folder that holds only the variants which are compared, so that an edit costs the
compilation of one file; and the verification of a variant in it."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from xcorr.errors import UserError
from xcorr.files import resolved
from xcorr.paths import ROOT

SHARDS = 12  # of conformance, of which the first is run by default


class Wrong(Exception):
    """The variant, or what it is compared with, does not compute the problem rightly."""


@dataclass(frozen=True)
class Source:
    """A variant's file as it stands, built or not."""

    id: str
    path: Path
    parent: str

    @property
    def backend(self) -> str:
        return "cpu" if self.path.suffix == ".cpp" else "cuda"


def sources() -> dict[str, Source]:
    """Every variant of the tree by id."""
    found = {}
    for path in sorted((ROOT / "algorithms").rglob("*")):  # a large variant is a folder of its own
        if path.suffix in (".cpp", ".cu"):
            text = path.read_text(encoding="utf-8")
            if "XCORR_VARIANT(" in text:
                parent = text.partition('.parent = "')[2].partition('"')[0]
                found[path.stem] = Source(path.stem, path, parent)
    return found


def build_folder() -> Path:
    """Where the few variants are built."""
    return resolved(Path(os.environ.get("XCORR_TRY_BUILD") or ROOT / "build-try"))


class Build:
    """The folder of the build, which compiles the variants that it is asked for."""

    def __init__(self, folder: Path, backend: str, arch: str) -> None:
        self.folder = folder
        self.options = [
            "-Dtests=true",
            f"-Dcuda={'enabled' if backend == 'cuda' else 'disabled'}",
            "-Dgrid=quick",
            *([f"-Dgpu_arch={arch}"] if backend == "cuda" else []),
        ]

    def make(self, variants: Iterable[str], *programs: str) -> None:
        """Build these programs, by default xcorr-bench and conformance, with these variants."""
        meson, ninja = os.environ.get("XCORR_MESON", "meson"), os.environ.get("NINJA", "ninja")
        wanted = [*self.options, "-Dvariants=" + ",".join(sorted(set(variants)))]
        noted = self.folder / "try.json"
        # A source file that is new or gone is found when the build is configured.
        state = json.dumps([wanted, sorted(str(one.path.relative_to(ROOT)) for one in sources().values())])
        if not noted.is_file() or noted.read_text(encoding="utf-8") != state:
            again = ["--reconfigure"] if (self.folder / "build.ninja").is_file() else []
            self._call([meson, "setup", *again, *wanted, str(self.folder), str(ROOT)], "configuring")
            noted.write_text(state, encoding="utf-8")
        targets = [self.target(ninja, name) for name in programs or ("xcorr-bench", "conformance")]
        if "-Dcuda=enabled" in self.options and not programs:
            targets.append("resources.csv")
        self._call([ninja, "-C", str(self.folder), *targets], "building")

    def target(self, ninja: str, name: str) -> str:
        """The target that makes a program, wherever its folder lies."""
        listed = self._call([ninja, "-C", str(self.folder), "-t", "targets", "all"], "listing targets")
        names = [line.partition(": ")[0] for line in listed.splitlines()]
        found = [one for one in names if Path(one).name == name and "." not in one]
        if not found:
            raise UserError(f"{self.folder}: has no program {name}; remove the folder, it is built anew")
        return found[0]

    def program(self, name: str) -> Path:
        """Where a program lies once it is made."""
        return self.folder / self.target(os.environ.get("NINJA", "ninja"), name)

    def _call(self, command: Sequence[str], what: str) -> str:
        try:
            done = subprocess.run(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
        except OSError as error:
            raise UserError(f"{what}: {command[0]}: {error.strerror}; run scripts/setup.sh") from error
        if done.returncode != 0:
            print(done.stdout[-8000:], file=sys.stderr)
            raise UserError(f"{what}: failed, as said above; correct the first line that says error")
        return done.stdout


def resources(folder: Path, variant: str) -> list[dict[str, str]]:
    """The lines of resources.csv about a variant's kernels; none of a CPU variant."""
    path = folder / "resources.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["variant"] == variant]


def verify(build: Build, variant: str, device: str, thorough: bool) -> None:
    """Run conformance of the variant; Wrong with its first failure."""
    shards = range(1, SHARDS + 1) if thorough else [1]
    # Threads that spin at a barrier make a machine that is not idle tens of times slower.
    patient = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    for shard in shards:
        command = [
            str(build.program("conformance")),
            "--device",
            device,
            "--variant",
            variant,
            "--shard",
            str(shard),
            str(SHARDS),
        ]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=patient
        )
        if done.returncode != 0:
            print(done.stdout[-4000:], file=sys.stderr)
            raise Wrong(f"{variant}: conformance failed, as said above; the line 'repeat' runs that case alone")
    print(f"verified: part 1 of {SHARDS} of conformance passed" if not thorough else "verified: conformance passed")


def emulate(build: Build, variant: str) -> None:
    """Run a kernel's conformance under the emulation, with the sanitizers; Wrong with its first failure."""
    build.make([variant], "emulation-tests")
    command = [str(build.program("emulation-tests")), f"--gtest_filter=*Conformance*/{variant}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0 or "[  PASSED  ]" not in done.stdout or "Running 0 tests" in done.stdout:
        print(done.stdout[-4000:], file=sys.stderr)
        raise Wrong(f"{variant}: conformance under the emulation failed, as said above")
    print("verified under the emulation: conformance passed")
