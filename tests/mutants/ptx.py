"""Kernels of PTX as lines, and what a line is."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

ENTRY = re.compile(r"^(?:\.visible )?\.entry (\S+)\(", re.MULTILINE)
LABEL = re.compile(r"^(\$\w+):")
BRANCH = re.compile(r"^(?:@(!?)(%p\d+)\s+)?bra(?:\.uni)?\s+(\$\w+);")
GUARDED = re.compile(r"^@(!?)(%p\d+)\s+")
END = re.compile(r"^(ret|exit|trap);")
PARAMETER = re.compile(r"_param_(\d+)(?:\+(\d+))?$")
WRITE = re.compile(r"^(st|red|atom)\.(?!shared)|^cp\.(async\.bulk|reduce)")
OPERANDS = re.compile(r"^([\w.:]+)\s+(.*);$")
REGISTER = re.compile(r"%[a-z]+\d+")


@dataclass
class Kernel:
    name: str  # mangled
    lines: list[str]
    labels: dict[str, int]
    definitions: dict[str, list[int]] = field(default_factory=dict)  # of a register: the lines that write it
    tables: frozenset[str] = frozenset()  # pointers that the plan stored, as parameter+offset
    loads_early: bool = False  # what it loads was complete before the launch ahead of it
    starts_next_early: bool = False  # the next launch does not rely on its having waited
    counted: dict[str, int] = field(
        default_factory=dict
    )  # looks at counters before a load, as parameter+offset, or a write
    known: dict[str, int] = field(default_factory=dict)  # value of a parameter, where only one is launched dependent

    def define(self) -> None:
        for at, line in enumerate(self.lines):
            for register in written(line):
                self.definitions.setdefault(register, []).append(at)


def plain(line: str) -> str:
    """An instruction without its guard."""
    return GUARDED.sub("", line)


def written(line: str) -> list[str]:
    found = OPERANDS.match(plain(line))
    if not found or WRITE.match(found[1]) and found[1].startswith(("st", "red")) or found[1].startswith("bra"):
        return []
    first = found[2].split("}")[0] if found[2].startswith("{") else found[2].split(",")[0]
    return [] if first.startswith("[") else REGISTER.findall(first.replace("|", ","))


def kernels(ptx: str) -> Iterator[Kernel]:
    starts = list(ENTRY.finditer(ptx))
    for found, after in zip(starts, [*starts[1:], None]):
        body = ptx[ptx.index("\n{", found.end()) + 2 : after.start() if after else len(ptx)]
        lines: list[str] = []
        labels: dict[str, int] = {}
        for raw in body.splitlines():
            line = re.sub(r"//.*", "", raw).strip()
            if label := LABEL.match(line):
                labels[label[1]] = len(lines)
            elif line and not line.startswith((".reg", ".local", ".shared", ".loc", ".pragma")):
                lines.append(line)
        kernel = Kernel(found[1], lines, labels)
        kernel.define()
        yield kernel


def parameter_of(kernel: Kernel, line: str) -> str | None:
    """parameter+offset of what `ld.param` loads: 0+24."""
    base, _, offset = line[line.index("[") + 1 : line.index("]")].partition("+")
    place = int(offset or 0)
    while base.startswith("%"):
        definitions = kernel.definitions.get(base, [])
        if len(definitions) != 1:
            return None
        operands = [part.strip() for part in OPERANDS.match(kernel.lines[definitions[0]])[2].split(",")]
        if len(operands) == 3 and re.fullmatch(r"-?\d+", operands[2]):
            place += int(operands[2])
        elif len(operands) != 2:
            return None
        base = operands[1]
    found = PARAMETER.search(base)
    return f"{found[1]}+{place + int(found[2] or 0)}" if found else None
