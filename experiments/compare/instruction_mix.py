"""Counts FMAs and shuffles in the main loops of the machine code and compares them with the paper's counts."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from experiments import folders
from experiments.compare.markdown import printed
from xcorr.errors import Parser, UserError, command
from xcorr.paths import ROOT

EPILOG = """example:
  python3 -m experiments.compare.instruction_mix --library build/libxcorr.so --arch sm_90

Needs cuobjdump of the CUDA toolkit. The main loop of a kernel is the innermost loop with the most FMAs. Exit code: 0; 1
when a loop does not have the claimed mix; 2 for a mistake in the request."""

FUNCTION = re.compile(r"^\s*Function : (\S+)")
INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\d\s+)?([A-Z0-9_.]+)\s*([^;]*);")
KERNEL = re.compile(r"\d+?((?:[a-z]+_)+?)kernel(?:I[fd]?((?:Li\d+E)*)E)?")
ARGUMENT = re.compile(r"Li(\d+)E")


@dataclass(frozen=True)
class Instruction:
    """A machine instruction. `name` has its suffixes."""

    address: int
    name: str
    operands: str


@dataclass(frozen=True)
class Mix:
    """Numbers of instructions of a loop by kind."""

    fmas: int
    shuffles: int
    others: int


def functions(sass: Iterable[str]) -> dict[str, list[Instruction]]:
    """Instructions by mangled function, from the text of `cuobjdump -sass`."""
    found: dict[str, list[Instruction]] = {}
    code: list[Instruction] = []
    for line in sass:
        if function := FUNCTION.match(line):
            code = found.setdefault(function[1], [])
        elif instruction := INSTRUCTION.match(line):
            code.append(Instruction(int(instruction[1], 16), instruction[2], instruction[3]))
    return found


def innermost_loops(code: Sequence[Instruction]) -> list[list[Instruction]]:
    """The loops that contain no other loop. A loop reaches from the target of a backward branch to the branch."""
    spans = []
    for one in code:
        target = re.search(r"0x([0-9a-f]+)", one.operands) if one.name == "BRA" else None
        if target and int(target[1], 16) < one.address:
            spans.append((int(target[1], 16), one.address))
    return [
        [one for one in code if first <= one.address <= last]
        for first, last in spans
        if not any((a, b) != (first, last) and first <= a and b <= last for a, b in spans)
    ]


def mix_of(loop: Iterable[Instruction]) -> Mix:
    """The mix of a loop. A shuffle of doubles is two instructions and counts once."""
    names = [one.name.split(".")[0] for one in loop]
    single, double, halves = names.count("FFMA"), names.count("DFMA"), names.count("SHFL")
    shuffles = halves // 2 if double > single else halves
    return Mix(single + double, shuffles, len(names) - single - double - halves)


def main_loop(code: Sequence[Instruction]) -> Mix | None:
    """The mix of the innermost loop with the most FMAs among those with shuffles; None without one."""
    mixes = [mix for mix in map(mix_of, innermost_loops(code)) if mix.fmas and mix.shuffles]
    return max(mixes, key=lambda mix: mix.fmas, default=None)


def claimed(arguments: dict[str, int]) -> tuple[int, int]:
    """FMAs and shuffles of a step by the paper's counts (experiments/jpdc/baselines.toml)."""
    a, b, s, l = (arguments.get(name, 1) for name in "absl")  # noqa: E741
    return a * b * s * l, 2 * a * l + b * (s + l - 1)


def as_claimed(mix: Mix, fmas: int, shuffles: int) -> bool:
    """Whether a loop has the mix of a step. The first of 32 unrolled steps may lack the shuffles of the buffers."""
    seen, wanted = mix.shuffles * fmas, shuffles * mix.fmas
    return wanted * 31 <= seen * 32 and seen <= wanted


def kernel_of(function: str, kernels: dict[str, list[str]]) -> tuple[str, dict[str, int]] | None:
    """Variant and template arguments by name; None where the function is none of the kernels."""
    for found in KERNEL.finditer(function):
        variant = found[1].rstrip("_")
        values = [int(value) for value in ARGUMENT.findall(found[2] or "")]
        if variant in kernels and len(values) == len(kernels[variant]):
            return variant, dict(zip(kernels[variant], values))
    return None


def disassemble(library: Path, arch: str) -> list[str]:
    """Lines of cuobjdump's disassembly. UserError where the tool, the library or the architecture is missing."""
    tool = shutil.which("cuobjdump")
    if tool is None and (nvcc := shutil.which("nvcc")):
        tool = shutil.which("cuobjdump", path=str(Path(nvcc).resolve().parent))
    if tool is None:
        raise UserError("cuobjdump: not found; install the CUDA toolkit's binary utilities or put it on PATH")
    if not library.is_file():
        raise UserError(f"library {library}: not there; build first or give --library")
    done = subprocess.run([tool, "-sass", "-arch", arch, library], capture_output=True, text=True)
    if done.returncode != 0:
        raise UserError(f"cuobjdump {library}: {done.stderr.strip().splitlines()[-1:]}; is {arch} built?")
    return done.stdout.splitlines()


def table(sass: Iterable[str]) -> tuple[list[list[str]], int]:
    """Rows of the table, one per kernel and sorted, and how many differ from the claim."""
    kernels = folders.part("jpdc", "baselines")["instruction_mix"]
    lines, wrong = [], 0
    for function, code in functions(sass).items():
        kernel = kernel_of(function, kernels)
        if kernel is None:
            continue
        variant, arguments = kernel
        mix, (fmas, shuffles) = main_loop(code), claimed(arguments)
        good = mix is not None and as_claimed(mix, fmas, shuffles)
        wrong += not good
        precision = "fp64" if mix and any(one.name.startswith("DFMA") for one in code) else "fp32"
        named = " ".join(f"{name}={value}" for name, value in arguments.items()) or "-"
        counts = [str(mix.fmas), str(mix.shuffles), str(mix.others)] if mix else ["-"] * 3
        verdict = "as claimed" if good else "differs"
        lines.append([variant, named, precision, f"{fmas}:{shuffles}", *counts, verdict])
    return sorted(lines), wrong


def run(argv: Sequence[str]) -> int:
    made = Parser(prog="python3 -m experiments.compare.instruction_mix", description=__doc__, epilog=EPILOG)
    add = made.add_argument
    library = ROOT / "build" / "libxcorr.so"
    add("--library", type=Path, default=library, metavar="FILE", help="library to read (default: build/libxcorr.so)")
    add("--arch", default="sm_90", help="architecture whose machine code is read (default: sm_90)")
    add("--markdown", action="store_true", help="print a Markdown table")
    asked = made.parse_args(argv)
    lines, wrong = table(disassemble(asked.library, asked.arch))
    if not lines:
        cause = f"no kernel of a claimed mix for {asked.arch}"
        raise UserError(f"library {asked.library}: {cause}; build that architecture")
    headers = ["kernel", "arguments", "precision", "claimed FMA:shuffle", "FMA", "shuffle", "other", "mix"]
    print(printed(lines, headers, asked.markdown))
    print(f"\n{len(lines)} main loops, {wrong} not as claimed")
    return int(wrong > 0)


main = partial(command, run)

if __name__ == "__main__":
    sys.exit(main())
