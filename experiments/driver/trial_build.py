"""The build of scripts/try, and the verification of a variant in it. The build is a copy of the usual build with only
the compared variants, so that an edit compiles one unit."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from xcorr.errors import UserError
from xcorr.files import resolved
from xcorr.paths import ROOT, build_directory

HELPERS = ROOT / "scripts/build"
PROGRAMS = ("xcorr-bench", "tests/conformance/conformance")
EMULATION = "tests/emulation/emulation-tests"
SHARDS = 12  # of conformance; the first one runs by default


class Wrong(Exception):
    """The variant or a rival gives a wrong result."""


@dataclass(frozen=True)
class Source:
    """The source file of a variant, built or not. `units`: the files to compile. `target`: its GPU target, or ""."""

    id: str
    path: Path
    parent: str
    units: tuple[str, ...]
    target: str

    @property
    def backend(self) -> str:
        return "cpu" if self.path.suffix == ".cpp" else "cuda"

    @property
    def objects(self) -> list[str]:
        """Targets of the build, one for each unit."""
        if self.backend == "cpu":
            return [f"libxcorr.so.p/meson-generated_.._{unit}.o" for unit in self.units]
        return [f"{unit.removesuffix('.cu')}.o" for unit in self.units]


def sources() -> dict[str, Source]:
    """The source file of every variant of the tree by id."""
    found = {}
    listed = _call([str(HELPERS / "stamp_sources.py"), "list", str(ROOT)], "listing variants")
    for line in listed.splitlines():
        name, _, path, units, target = line.split(":")
        parent = (ROOT / path).read_text(encoding="utf-8").partition('.parent = "')[2].partition('"')[0]
        found[name] = Source(name, ROOT / path, parent, tuple(units.split(",")), target)
    return found


class Build:
    """A build folder with some variants. It begins as a copy of the usual build, whose objects it keeps."""

    def __init__(self, known: Iterable[Source], backend: str, arch: str | None = None, suffix: str = "") -> None:
        folder = resolved(Path(os.environ.get("XCORR_TRY_BUILD") or ROOT / "build-try"))
        self.folder = folder.with_name(folder.name + suffix)
        self.variants: set[str] = set()  # configured
        self._units = sorted(f"{unit}:{one.target}" for one in known for unit in one.units)
        cuda = f"-Dcuda={'enabled' if backend == 'cuda' else 'disabled'}"
        self._options = ["-Dtests=true", "-Dgrid=quick", cuda, *([f"-Dgpu_arch={arch}"] if arch else [])]

    def make(self, variants: Iterable[str], targets: Sequence[str] = PROGRAMS) -> None:
        """Builds targets with these variants."""
        self._configure(set(variants))
        _call([os.environ.get("NINJA", "ninja"), "-C", str(self.folder), *targets], "building")

    def _configure(self, variants: set[str]) -> None:
        """Configures the build unless it has these variants and nothing else has changed."""
        noted = self.folder / "try-state.json"
        state = json.loads(noted.read_text(encoding="utf-8")) if noted.is_file() else {}
        wanted = {"options": self._options, "units": self._units}
        self.variants = set(state.pop("variants", ()))
        if state == wanted and variants <= self.variants:
            return
        if not self.folder.exists() and _is_of_this_tree(build_directory()):
            part = self.folder.with_name(self.folder.name + "-part")
            shutil.copytree(build_directory(), part, symlinks=True, dirs_exist_ok=True)
            part.rename(self.folder)
        again = ["--reconfigure"] if (self.folder / "build.ninja").is_file() else []
        chosen = "-Dvariants=" + ",".join(sorted(variants))
        command = [os.environ.get("XCORR_MESON", "meson"), "setup", *again, *self._options, chosen]
        _call([*command, str(self.folder), str(ROOT)], "configuring")
        noted.write_text(json.dumps({**wanted, "variants": sorted(variants)}), encoding="utf-8")
        self.variants = variants


def _is_of_this_tree(folder: Path) -> bool:
    """Whether a folder is a configured build of this tree."""
    about = folder / "meson-info/meson-info.json"
    return about.is_file() and json.loads(about.read_text(encoding="utf-8"))["directories"]["source"] == str(ROOT)


def _call(command: Sequence[str], what: str) -> str:
    """The output of a command. UserError where it fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError as error:
        raise UserError(f"{what}: {command[0]}: {error.strerror}; run scripts/setup.sh") from error
    if done.returncode != 0:
        print(done.stdout[-8000:], file=sys.stderr)
        raise UserError(f"{what}: failed, as said above; correct the first line that says error")
    return done.stdout


def resources(folder: Path, one: Source) -> list[dict[str, str]]:
    """Registers, shared memory and occupancy of each kernel of a compiled variant; none for a CPU variant."""
    if one.backend == "cpu":
        return []
    table, seconds = folder / "try-resources.csv", folder / "try-seconds.csv"
    reports = [str(folder / target.replace(".o", ".resources.json")) for target in one.objects]
    _call([str(HELPERS / "merge_resources.py"), str(table), str(seconds), *reports], "reading registers")
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def verify(build: Build, variant: str, device: str, thorough: bool) -> None:
    """Runs conformance of the variant. Wrong where it fails."""
    command = [str(build.folder / PROGRAMS[1]), "--device", device, "--variant", variant, "--shard"]
    wrong = f"{variant}: conformance failed, as said above; the line 'repeat' runs that case alone"
    for shard in range(1, SHARDS + 1) if thorough else [1]:
        _check([*command, str(shard), str(SHARDS)], wrong)
    print(f"verified: part 1 of {SHARDS} of conformance passed" if not thorough else "verified: conformance passed")


def emulate(build: Build, variant: str) -> None:
    """Runs a kernel's conformance under the emulation, with the sanitizers. Wrong where it fails."""
    build.make([variant], [EMULATION])
    command = [str(build.folder / EMULATION), f"--gtest_filter=*Conformance*/{variant}"]
    _check(command, f"{variant}: conformance under the emulation failed, as said above", r"\[  PASSED  \] [1-9]")
    print("verified under the emulation: conformance passed")


def _check(command: Sequence[str], wrong: str, sign: str = "") -> None:
    """Runs a test program. Wrong, after the end of its output, unless it succeeds and prints the pattern `sign`."""
    # On a busy machine, threads that spin at a barrier make the program tens of times slower.
    patient = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=patient)
    if done.returncode != 0 or not re.search(sign, done.stdout):
        print(done.stdout[-4000:], file=sys.stderr)
        raise Wrong(wrong)
