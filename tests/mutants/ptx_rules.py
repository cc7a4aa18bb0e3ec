"""Rules that are checked in PTX: those of dependent launches (algorithms/device/launch.hpp), here, and those
of shared memory (ptx_shared.py).

A kernel that may start before the launch ahead of it has ended must wait for it (griddepcontrol.wait) before it
writes global memory, before it lets the next launch start, and before it loads what is not a table of the plan.
A kernel's instructions are walked from its entry along every branch up to the first wait on the way.

A kernel may load before it waits what was complete before the launch ahead of it: that launch waits before it lets the
next one start, which is checked of it here, so that all launches before it have ended. Such kernels are named below.

A kernel may look at counters in place of waiting: one thread of a block does, by acquire loads, and a barrier tells the
others. Then it must meet as many such barriers as is written below before it loads what another launch of the call
stored, and before it writes. Some block of it still waits before it lets the next launch start.
"""

import re
import shutil
import subprocess
from pathlib import Path

from tests.mutants import ptx_shared
from tests.mutants.mutants import ROOT, Mistake
from tests.mutants.ptx import BRANCH, END, OPERANDS, REGISTER, WRITE, Kernel, kernels, parameter_of, plain, written

ACQUIRE = re.compile(r"^ld\.acquire")
BARRIER = re.compile(r"^bar(rier)?(\.cta)?\.sync")
LOAD = re.compile(r"^ld\.(?!shared|param|local)|^cp\.async\.c[ag]")
COMPARE = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def origins(kernel: Kernel, registers: list[str]) -> set[str]:
    """64-bit parameters, pointers that is, from which these registers may be computed."""
    seen: set[str] = set()
    found: set[str] = set()
    todo = list(registers)
    while todo:
        register = todo.pop()
        if register in seen or not register.startswith("%rd"):
            continue
        seen.add(register)
        for at in kernel.definitions.get(register, []):
            line = plain(kernel.lines[at])
            if line.startswith("ld.param"):
                found.add(parameter_of(kernel, line) or "?")
            elif LOAD.match(line):
                found.add("loaded")
            else:
                todo += REGISTER.findall(line.split(",", 1)[-1])
    return found


def value(kernel: Kernel, operand: str, path: dict[str, int], depth: int = 0) -> int | None:
    """What an operand is on this path, where that is known: an immediate, or made of known parameters."""
    operand = operand.strip()
    if re.fullmatch(r"-?\d+", operand):
        return int(operand)
    if operand in path:
        return path[operand]
    definitions = kernel.definitions.get(operand, [])
    if len(definitions) != 1 or depth > 8:
        return None
    line = kernel.lines[definitions[0]]
    found = OPERANDS.match(line)
    if not found:
        return None
    return computed(kernel, found[1], [part.strip() for part in found[2].split(",")], line, path, depth)


def computed(kernel: Kernel, name: str, operands: list[str], line: str, path: dict[str, int], depth: int) -> int | None:
    if name.startswith("ld.param") and len(operands) == 2:
        return kernel.known.get(parameter_of(kernel, line) or "")
    values = [value(kernel, operand, path, depth + 1) for operand in operands[1:]]
    parts = name.split(".")
    if parts[0] == "mov":
        return values[0]
    if parts[0] == "setp" and len(parts) == 3 and parts[1] in COMPARE and None not in values:
        return int(COMPARE[parts[1]](*values))
    if name == "not.pred" and values[0] is not None:
        return 1 - values[0]
    if name == "or.pred" and 1 in values:
        return 1
    if name == "and.pred" and 0 in values:
        return 0
    if name in ("or.pred", "and.pred") and None not in values:
        return values[0] | values[1] if name == "or.pred" else values[0] & values[1]
    return None


def flags(kernel: Kernel) -> set[str]:
    """Registers with several definitions, one of them a constant, which steer branches: `first time` flags."""
    steering: set[str] = set()
    todo = [found[2] for line in kernel.lines if (found := BRANCH.match(line)) and found[2]]
    while todo:
        register = todo.pop()
        if register in steering:
            continue
        steering.add(register)
        for at in kernel.definitions.get(register, []):
            name = plain(kernel.lines[at]).split()[0]
            if name.startswith(("setp", "mov", "not.pred", "or.pred", "and.pred", "selp", "and.b16")):
                todo += REGISTER.findall(kernel.lines[at].split(",", 1)[-1])
    several = set()
    for register in steering:
        lines = [plain(kernel.lines[at]) for at in kernel.definitions.get(register, [])]
        is_moved = len(lines) > 1 and all(line.startswith("mov") for line in lines)
        if is_moved and any(re.search(r",\s*-?\d+;$", line) for line in lines):
            several.add(register)
    return several


def violations(kernel: Kernel) -> list[str]:
    """What the kernel does on some path from its entry before it has waited."""
    if kernel.counted:
        return violations_of_counting(kernel)
    carried = flags(kernel)
    found: dict[int, str] = {}
    seen: set[tuple[int, tuple[tuple[str, int], ...]]] = set()
    todo: list[tuple[int, dict[str, int]]] = [(0, {})]
    while todo:
        at, path = todo.pop()
        state = (at, tuple(sorted(path.items())))
        if state in seen:
            continue
        seen.add(state)
        while at < len(kernel.lines):
            line = kernel.lines[at]
            bare = plain(line)
            if bare.startswith("griddepcontrol.wait"):
                break
            if END.match(line):
                break
            if branch := BRANCH.match(line):
                taken = value(kernel, branch[2], path) if branch[2] else 1
                if taken is not None and branch[1]:
                    taken = 1 - taken
                if taken != 0:
                    todo.append((kernel.labels[branch[3]], dict(path)))
                if taken == 1:
                    break
            elif bare.startswith("griddepcontrol.launch_dependents"):
                if not kernel.starts_next_early:
                    found[at] = "lets the next launch start before it waits"
            elif WRITE.match(bare):
                found[at] = f"writes before it waits: {line}"
            elif LOAD.match(bare):
                address = bare[bare.rindex("[") :] if bare.startswith("cp") else bare[bare.index("[") :]
                of = origins(kernel, REGISTER.findall(address)) - kernel.tables
                if of and not kernel.loads_early:
                    found[at] = f"loads before it waits, from parameter {', '.join(sorted(of))}: {line}"
            for register in written(line):
                if register in carried:
                    known = value(kernel, OPERANDS.match(bare)[2].split(",")[1], path) if bare == line else None
                    path.pop(register, None)
                    if known is not None:
                        path[register] = known
            at += 1
            if at in kernel.labels.values():
                todo.append((at, dict(path)))
                break
    return [found[at] for at in sorted(found)]


def violations_of_counting(kernel: Kernel) -> list[str]:
    """The same of a kernel that looks at counters: what it does on some path before enough barriers behind such looks."""
    behind_a_look: set[int] = set()
    looked = False
    for at, line in enumerate(kernel.lines):
        if ACQUIRE.match(plain(line)):
            looked = True
        elif BARRIER.match(plain(line)):
            if looked:
                behind_a_look.add(at)
            looked = False
    found: dict[int, str] = {}
    seen: set[tuple[int, int, bool]] = set()
    todo = [(0, 0, False)]
    waits_first = False
    while todo:
        state = todo.pop()
        at, looks, has_let = state
        if state in seen or at >= len(kernel.lines):
            continue
        seen.add(state)
        line = kernel.lines[at]
        bare = plain(line)
        if branch := BRANCH.match(line):
            todo.append((kernel.labels[branch[3]], looks, has_let))
            if not branch[2]:
                continue
        elif END.match(line):
            continue
        elif at in behind_a_look:
            looks = min(looks + 1, max(kernel.counted.values()))
        elif bare.startswith("griddepcontrol.wait"):
            waits_first |= not has_let
        elif bare.startswith("griddepcontrol.launch_dependents"):
            has_let = True
        elif WRITE.match(bare):
            if looks < kernel.counted["write"]:
                found[at] = f"writes after {looks} looks at counters: {line}"
        elif LOAD.match(bare) and not ACQUIRE.match(bare):
            of = origins(kernel, REGISTER.findall(bare[bare.index("[") :]))
            late = [parameter for parameter in sorted(of) if looks < kernel.counted.get(parameter, 0)]
            if late:
                found[at] = f"loads after {looks} looks at counters, from parameter {', '.join(late)}: {line}"
        todo.append((at + 1, looks, has_let))
    if not waits_first:
        found[len(kernel.lines)] = "no block waits before it lets the next launch start"
    return [found[at] for at in sorted(found)]


class NotCompiled(Exception):
    """What nvcc says."""


# Units with dependent launches, and of their kernels what a rule needs to know. `tables`: parameters that point to
# what the plan stored (FusedProblem::roots, GridArguments::roots, FftArguments::powers). `known`: fused_fft_grid
# launches phases apart only as ordinary launches (GridPlan::compute, DependentLaunches::overlaps), so Phases::all is what counts.
# `early`: kernels that load before they wait, inputs of the call and what a launch before the one ahead stored. In
# template_fft the kernel of tiles that meet one template loads spectra and facts of frames; factors are stored between.
# `starts_next_early`: kernels that let the next launch start before they wait, since it counts.
# `counted`: kernels that look at counters; for each parameter, as parameter+offset, and for writes, after how many looks.
# frame_factors_kernel loads sums of strips and pivots after the first, facts after the second.
ROOTS = frozenset({"0+24"})
UNITS: dict[str, dict] = {
    "autocorr_fft": {},
    "fused_fft_block": {"tables": ROOTS},
    "fused_fft_block_peak": {"tables": ROOTS},
    "fused_fft_grid": {"tables": ROOTS, "known": {"1+0": 0}},
    "fused_fft_halves": {"tables": ROOTS},
    "fused_fft_lanes": {"tables": ROOTS},
    "fused_fft_warp": {"tables": ROOTS},
    "fused_fft_warp_peak": {},
    "fused_fft_windows": {},
    "template_direct": {},
    "template_fft": {
        "tables": ROOTS,
        "early": ("TemplateFftArguments",),
        "starts_next_early": ("template_spectra_kernel",),
        "counted": {"frame_factors_kernel": {"2+24": 1, "2+32": 1, "1+16": 2, "write": 2}},
    },
    "template_pearson_jit": {},
    "template_pearson_jit_unrolled": {},
    "template_pearson_tiled": {},
    "template_pearson_tiled_centred": {},
    "tiled_direct_split": {},
    "tiled_direct_unstaged": {},
    "timeseries_3xtf32_detect": {},
    "timeseries_fft": {"tables": ROOTS},
    "timeseries_tf32_detect": {},
    "timeseries_tf32_moveouts": {},
    "timeseries_tf32_wgmma_detect": {},
}
# Units whose kernels copy to shared memory asynchronously, or use that of other blocks (ptx_shared.py).
SHARED = (
    "autocorr_cuda_tile",
    "fused_fft_cluster",
    "tiled_direct_async",
    "tiled_direct_split",
    "timeseries_tf32_wgmma_detect",
)
CHECKED = tuple(sorted({*UNITS, *SHARED}))
# Units whose copies are under way at barriers: the thread that started them waits, reads them itself, and then comes to
# the barrier that gives them to others. Which barrier that is depends on comparisons that PTX does not say. The
# emulation makes such copies late (tests/emulation/emulation.hpp). In autocorr_cuda_tile the barriers are those of the
# sums of a block, in the buffer that no copy writes.
OVER_BARRIERS = ("autocorr_cuda_tile", "timeseries_tf32_wgmma_detect")
# Launched while planning, never as dependent launches.
OF_PLANS = ("store_roots", "store_powers", "make_all_missing")


def find_nvcc() -> str:
    """Path of nvcc; a Mistake if there is none."""
    found = shutil.which("nvcc") or next(
        (str(path) for path in (Path("/usr/local/cuda/bin/nvcc"),) if path.exists()), ""
    )
    if not found:
        raise Mistake("nvcc: not found, so nothing can be compiled to PTX; put it on the PATH")
    return found


def compiled(source: Path, out: Path, overlay: Path | None = None) -> str:
    """PTX of a unit for sm_90; files of `overlay` stand in place of those of the repository."""
    made = out / f"{source.stem}.ptx"
    folders = [f"-I{folder}" for folder in (overlay, ROOT) if folder]
    stamps = [f'-DXCORR_{name}="x"' for name in ("ID", "FAMILY", "SOURCE_FILE", "SOURCE_HASH")]
    command = [
        find_nvcc(),
        "-std=c++20",
        "--expt-relaxed-constexpr",
        "-O3",
        "-arch=sm_90",
        "-DXCORR_GRID_QUICK",
        "-ptx",
        "-o",
        str(made),
        str(source),
    ]
    done = subprocess.run([*command, *stamps, *folders], capture_output=True, text=True)
    if done.returncode != 0:
        raise NotCompiled(next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:300]))
    return made.read_text(encoding="utf-8")


def broken_rules(unit: str, ptx: str) -> list[str]:
    """Every violation in a unit's kernels: `kernel: what it does`."""
    found, count = [], 0
    for kernel in kernels(ptx):
        if any(name in kernel.name for name in OF_PLANS):
            continue
        count += 1
        broken = ptx_shared.violations(kernel, over_barriers=unit in OVER_BARRIERS)
        if unit in UNITS:
            kernel.tables = UNITS[unit].get("tables", frozenset())
            kernel.known = UNITS[unit].get("known", {})
            kernel.loads_early = any(name in kernel.name for name in UNITS[unit].get("early", ()))
            kernel.starts_next_early = any(name in kernel.name for name in UNITS[unit].get("starts_next_early", ()))
            for name, counted in UNITS[unit].get("counted", {}).items():
                if name in kernel.name:
                    kernel.counted = counted
            broken += violations(kernel)
        found += [f"{kernel.name}: {what}" for what in broken]
    if count == 0:
        found.append(f"{unit}: has no kernel")
    return found
