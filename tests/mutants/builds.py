"""How a unit is compiled with edited files and linked with the rest of a build folder.

Commands are those of the build folder, as ninja has them; only the include path, one object and the output differ.
"""

import shlex
import shutil
import subprocess
from functools import cached_property
from pathlib import Path

from tests.mutants.mutants import Mistake

EMULATION = "tests/emulation/emulation-tests"
KERNELS = "tests/emulation/libemulation-kernels.a.p"
CONFORMANCE = "tests/conformance/conformance"
SUITES = "*Conformance*:*Detection*:Fields.*:*Templates*:*EndedCalls*:*LineKernel.*:TileKernel.*:SimpleTexture.*:Halves.*:*Peaks*:Ring.*:Windows.*:UnequalSides.*:LongSums.*"
# Units that are not emulated as a whole, since they call libraries or compile while they run: the test that has their
# kernels, and its suites.
KERNEL_TESTS = {
    "cufft": ("test_fft_layout", "FftLayout.*"),
    "cufft_normalised": ("test_normalised", "Normalised.*"),
    "template_pearson_jit": ("test_run_time_sums", "RunTimeSums*"),
    "template_pearson_jit_unrolled": ("test_unrolled_passes", "UnrolledPasses.*"),
}


class DoesNotCompile(Exception):
    """What the compiler or linker says; the mutant is wrong, not caught."""


def run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if "error" in line.lower()]
        raise DoesNotCompile(lines[0] if lines else f"{command[0]} ended with {done.returncode}")


def first_included(command: list[str], folder: Path) -> list[str]:
    """A compiler's command with one more folder, searched before all others."""
    at = next((i for i, word in enumerate(command) if word.startswith("-I")), len(command))
    return [*command[:at], f"-I{folder}", *command[at:]]


def without_depfile(command: list[str]) -> list[str]:
    kept = []
    words = iter(command)
    for word in words:
        if word in ("-MF", "-MQ", "-MT"):
            next(words)
        elif word not in ("-MD", "-MMD"):
            kept.append(word)
    return kept


def with_output(command: list[str], output: Path) -> list[str]:
    at = command.index("-o")
    return [*command[: at + 1], str(output), *command[at + 2 :]]


class Build:
    """A configured build folder in which everything has been built."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        if not (self.folder / "build.ninja").is_file():
            raise Mistake(f"{folder}: no build folder; run scripts/build.sh --tests, or name another with --build")

    def commands(self, target: str) -> list[list[str]]:
        done = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", target], capture_output=True, text=True)
        if done.returncode != 0:
            raise Mistake(f"{self.folder}: {target}: not a target of this build; configure it with -Dtests=true")
        return [shlex.split(line) for line in done.stdout.splitlines() if line and not line.startswith("ninja:")]

    @cached_property
    def _emulation(self) -> list[list[str]]:
        return self.commands(EMULATION)

    @cached_property
    def _library(self) -> list[list[str]]:
        return self.commands("libxcorr.so")

    def require(self, *names: str) -> None:
        for name in names:
            if not (self.folder / name).is_file():
                raise Mistake(f"{self.folder / name}: not built; run ninja -C {self.folder} {name}")

    def emulated(self, unit: str) -> bool:
        return unit in KERNEL_TESTS or any(
            f"{unit}_emulated.cpp" in word for command in self._emulation for word in command
        )

    @staticmethod
    def _making(commands: list[list[str]], output: str) -> list[str]:
        for command in commands:
            if "-o" in command and command[command.index("-o") + 1] == output:
                return command
        raise Mistake(f"{output}: the build has no command that makes it")

    def emulation_program(self, unit: str, overlay: Path, out: Path) -> list[str]:
        """Compiles the emulated unit, or the test that has its kernels, and links it with the tests that need no other;
        the program's command."""
        test, suites = KERNEL_TESTS.get(unit, ("", SUITES))
        output = f"{EMULATION}.p/{test}.cpp.o" if test else f"{KERNELS}/meson-generated_.._{unit}_emulated.cpp.o"
        made = out / f"{unit}.o"
        compile_ = self._making(self._emulation, output)
        run(with_output(without_depfile(first_included(compile_, overlay)), made), self.folder)
        link = []
        for word in self._making(self._emulation, EMULATION):
            if word.endswith(".o") and str(made) not in link:
                # First, so that of functions in headers that the tests have too, the edited ones are linked.
                link.append(str(made))
            if not word.startswith(f"{KERNELS}/") and word != output:  # the other kernels
                link.append(word.replace("$ORIGIN/../..", str(self.folder)))
        program = out / "emulation-tests"
        run(with_output(link, program), self.folder)
        return [str(program), f"--gtest_filter={suites}", "--gtest_break_on_failure", "--gtest_brief=1"]

    def _kernel_commands(self, unit: str) -> list[tuple[list[str], str]]:
        """nvcc's command of every part of a CUDA variant, without input and output, and the part's object."""
        found = []
        for command in self._library:
            at = next((i for i, word in enumerate(command) if word.endswith("compile_kernels.py")), None)
            if at is None or "--" not in command[at:]:
                continue
            source, made = command[at + 1 : at + 3]
            name = source.rsplit("/", 1)[-1]
            if name == f"{unit}.cu" or name.startswith(f"{unit}.part"):
                rest = command[command.index("--", at) + 1 :]
                found.append(([*rest, "-c", source], made))
        return found

    def has_kernels(self, unit: str) -> bool:
        return bool(self._kernel_commands(unit))

    def conformance_program(self, unit: str, overlay: Path, out: Path, device: str) -> list[str]:
        """A library in which only this unit is compiled anew, beside a copy of the conformance program."""
        replaced = {}
        if device == "cpu":
            output = f"libxcorr.so.p/meson-generated_.._{unit}.cpp.o"
            compiles = [(self._making(self._library, output), output)]
        else:
            compiles = [([*command, "-o", made], made) for command, made in self._kernel_commands(unit)]
        for command, object_ in compiles:
            made = out / Path(object_).name
            run(with_output(without_depfile(first_included(command, overlay)), made), self.folder)
            replaced[object_] = str(made)
        link = self._making(self._library, "libxcorr.so")
        for object_ in replaced:
            if object_ not in link:
                raise Mistake(f"{object_}: not among the objects of libxcorr.so")
        library = out / "libxcorr.so"
        # First, so that of functions in headers that other units have too, the edited ones are linked.
        at = next(i for i, word in enumerate(link) if word.endswith(".o"))
        others = [word for word in link[at:] if word not in replaced]
        run(with_output([*link[:at], *replaced.values(), *others], library), self.folder)
        # The program looks for the library beside itself, two folders up.
        program = out / CONFORMANCE
        program.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(self.folder / CONFORMANCE, program)
        return [str(program), "--device", device, "--variant", unit]
