#!/usr/bin/env python3
"""Compile one CUDA unit and keep what ptxas reports of its kernels.

nvcc prints that report, thousands of lines a build, among its warnings. It goes into a file beside the object
instead, so that it is an output of the build and only what a person has to read reaches the terminal.

  compile_kernels.py UNIT OBJECT REPORT DEPFILE -- NVCC FLAG...
Example: scripts/build/compile_kernels.py split_row.cu split_row.o split_row.json split_row.d -- nvcc -O3 -std=c++20 -I.
"""

import argparse
import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

INFO = r"ptxas info\s*: "
ENTRY = re.compile(INFO + r"Compiling entry function '(\S+)' for 'sm_(\w+)'")
PROPERTIES = re.compile(INFO + r"Function properties for (\S+)")
FRAME = re.compile(r"\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(INFO + r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
# What the functions that a kernel calls need is in this number and in no other of the kernel's.
CUMULATIVE = re.compile(r"(\d+) bytes cumulative stack size")
NO_USE = re.compile(INFO + r"(\d+ bytes gmem|Compile time)")
# Written by stamp_sources.py; the harness's own units have none.
IDENTITY = re.compile(r'^#define XCORR_ID "(\w+)"$', re.MULTILINE)


@dataclass
class Kernel:
    """What ptxas says of one kernel on one architecture."""

    arch: str
    mangled: str
    registers: int | None = None
    shared_bytes: int = 0
    stack_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0


def parse(lines: Iterable[str]) -> tuple[list[Kernel], list[str]]:
    """The kernels that ptxas reports, and the lines that are not of its report."""
    kernels: list[Kernel] = []
    rest = []
    owner = ""
    for line in lines:
        if found := ENTRY.match(line):
            kernels.append(Kernel(arch=found[2], mangled=found[1]))
        elif found := PROPERTIES.match(line):
            owner = found[1]
        elif found := FRAME.match(line):
            if kernels and owner == kernels[-1].mangled:
                kernel = kernels[-1]
                kernel.stack_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes = map(int, found.groups())
        elif (found := USED.match(line)) and kernels:
            kernel = kernels[-1]
            kernel.registers = int(found[1])
            if shared := SHARED.search(line):
                kernel.shared_bytes = int(shared[1])
            if stack := CUMULATIVE.search(line):
                kernel.stack_bytes = max(kernel.stack_bytes, int(stack[1]))
        elif not NO_USE.match(line):
            rest.append(line)
    return kernels, rest


def short_name(signature: str) -> tuple[str, str]:
    """Name and template arguments of a demangled kernel: without return type, namespaces and parameters."""
    head = signature = signature.replace("(anonymous namespace)::", "")
    depth, opened = 0, len(signature)
    for place, letter in enumerate(signature):
        if letter == "<" and depth == 0:
            opened = place
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0:
            head = signature[:place]
            break
    name, arguments = (head[:opened], head[opened + 1 : -1]) if head.endswith(">") else (head, "")
    return re.split(r"::|\s", name)[-1], arguments


def demangled(names: Sequence[str]) -> list[str]:
    """Signatures by c++filt, which comes with every linker."""
    return run(["c++filt"], "install binutils", input="\n".join(names), stdout=subprocess.PIPE).stdout.splitlines()


def run(command: Sequence[str | Path], way_out: str, **options: Any) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, encoding="utf-8", errors="replace", **options)
    except OSError as error:
        sys.exit(f"error: {command[0]}: {error.strerror}; {way_out}")


def compile_unit(unit: Path, target: Path, depfile: Path, command: Sequence[str]) -> tuple[list[Kernel], float]:
    """Compiles; the kernels and the seconds of processor time. Ends as nvcc does when that fails."""
    done = run(
        [*command, "-Xptxas", "-v", "-MD", "-MF", depfile, "-MT", target, "-c", unit, "-o", target],
        "configure the build again",
        stderr=subprocess.PIPE,
    )
    # Not the time that passes: that is longer when other units compile beside this one.
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    kernels, rest = parse(done.stderr.splitlines())
    if rest:
        print("\n".join(rest), file=sys.stderr)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return kernels, used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("unit", "object", "report", "depfile"):
        parser.add_argument(name, type=Path)
    parser.add_argument("command", nargs="+", help="the compiler and its flags, after --")
    args = parser.parse_args()
    kernels, seconds = compile_unit(args.unit, args.object, args.depfile, args.command)
    identity = IDENTITY.search(args.unit.read_text(encoding="utf-8"))
    entries = []
    for kernel, signature in zip(kernels, demangled([kernel.mangled for kernel in kernels])):
        name, arguments = short_name(signature)
        entries.append({"kernel": name, "arguments": arguments, "signature": signature, **asdict(kernel)})
    report = {"unit": args.unit.name, "variant": identity[1] if identity else "", "seconds": round(seconds, 1)}
    report["kernels"] = entries
    args.report.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
