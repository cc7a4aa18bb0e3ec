"""Rules of shared memory, checked in PTX. A missing wait of these is a race that a GPU may never show.

Asynchronous copies (cp.async): a thread that comes to a barrier of its block has waited for all copies that it has
started. Others may read them from then on. Loads while copies are under way are allowed: panels alternate. Kernels
whose copies are under way at a barrier are named in ptx_rules.py; the emulation alone checks their waits.

Clusters: after a thread has read or written the shared memory of another block, it arrives at a barrier of the cluster
and waits there before it ends. Else that block may have ended.

Both walk along every branch. Of the copies, what a comparison gave is kept until a register in it is written, so that
`if (next < end) copy(); ... while (next < end)` does not leave the loop with copies under way.
"""

import re
from collections.abc import Callable, Iterable

from tests.mutants.ptx import BRANCH, OPERANDS, REGISTER, Kernel, parameter_of, plain, written

BLOCK_BARRIER = re.compile(r"^(bar|barrier)(\.cta)?\.(sync|arrive|red)\b")
CLUSTER_ARRIVE = re.compile(r"^barrier\.cluster\.arrive(?!\S*\.relaxed)")
RETURN = re.compile(r"^(ret|exit);")
NAMED = re.compile(r"^(ld|st|atom|red|cp)\.\S*shared::cluster")
GENERIC = re.compile(r"^(ld|st|atom|red)\.(?!\S*(global|shared|param|local|const))")
TURNED = {
    "lt": ("lt", False, True),
    "gt": ("lt", True, True),
    "ge": ("lt", False, False),
    "le": ("lt", True, False),
    "eq": ("eq", False, True),
    "ne": ("eq", False, False),
}
MOST_GROUPS = 8

Fact = tuple[str, frozenset[str]]  # a comparison, and the registers in it
Step = Callable[[int, str, object], object]


def expression(kernel: Kernel, operand: str, at: int, leaves: dict[str, int], depth: int = 0) -> str:
    """What line `at` reads as this operand: sums and parameters of its own block of instructions, else the register."""
    if not operand.startswith("%"):
        return operand
    first = max((place for place in kernel.labels.values() if place <= at), default=0)
    places = [place for place in kernel.definitions.get(operand, []) if first <= place < at]
    line = kernel.lines[places[-1]] if places else ""
    found = OPERANDS.match(line)
    if found and depth < 4:
        if found[1].startswith("ld.param") and found[2].startswith("%") and (name := parameter_of(kernel, line)):
            return f"{found[1]} {name}"
        parts = [part.strip() for part in found[2].split(",")]
        if found[1].startswith("add.s") and len(parts) == 3:
            terms = [expression(kernel, part, places[-1], leaves, depth + 1) for part in parts[1:]]
            return f"{found[1]}({', '.join(sorted(terms))})"
    leaves[operand] = min(at, leaves.get(operand, at))
    return operand


def comparison(kernel: Kernel, register: str, at: int) -> tuple[Fact, bool] | None:
    """The comparison behind a branch's predicate, in one form, and whether the predicate is that or its opposite."""
    first = max((place for place in kernel.labels.values() if place <= at), default=0)
    places = [place for place in kernel.definitions.get(register, []) if first <= place < at]
    found = OPERANDS.match(kernel.lines[places[-1]]) if places else None
    parts = found[1].split(".") if found else []
    if found is None or len(parts) != 3 or parts[0] != "setp" or parts[1] not in TURNED or parts[2].startswith("f"):
        return None
    leaves: dict[str, int] = {}
    sides = [expression(kernel, part.strip(), places[-1], leaves) for part in found[2].split(",")[1:]]
    for leaf, read in leaves.items():
        if any(read <= place < at for place in kernel.definitions.get(leaf, [])):
            return None
    name, swapped, same = TURNED[parts[1]]
    sides = sides[::-1] if swapped else sorted(sides) if name == "eq" else sides
    return (f"{name}.{parts[2]} {', '.join(sides)}", frozenset(leaves)), same


def repeated(kernel: Kernel) -> list[dict[int, tuple[Fact, bool]]]:
    """Comparisons that steer several branches: of each one, the lines of its branches."""
    found: dict[Fact, dict[int, tuple[Fact, bool]]] = {}
    for at, line in enumerate(kernel.lines):
        branch = BRANCH.match(line)
        if branch and branch[2] and (one := comparison(kernel, branch[2], at)):
            found.setdefault(one[0], {})[at] = one
    return [branches for branches in found.values() if len(branches) > 1]


def reaches(kernel: Kernel, marked: Callable[[str], bool]) -> list[bool]:
    """Of every line whether a marked one is there or lies ahead on some path."""
    found = [marked(plain(line)) for line in kernel.lines]
    changed = True
    while changed:
        changed = False
        for at in reversed(range(len(found) - 1)):
            branch = BRANCH.match(kernel.lines[at])
            ahead = branch is not None and found[kernel.labels[branch[3]]]
            if branch is None or branch[2]:
                ahead = ahead or (not RETURN.match(kernel.lines[at]) and found[at + 1])
            if ahead and not found[at]:
                found[at] = changed = True
    return found


def walk(kernel: Kernel, begin: Iterable[tuple[int, object]], step: Step, known: dict[int, tuple[Fact, bool]]) -> None:
    """Along every path from each place. `step` makes the next state of a state, or ends the path: None.

    A branch on a comparison whose outcome is known on the path goes one way.
    """
    targets = set(kernel.labels.values())
    in_facts = {register for fact, _ in known.values() for register in fact[1]}
    seen = set()
    todo = [(at, state, frozenset()) for at, state in begin]
    while todo:
        at, state, facts = todo.pop()
        if (at, state, facts) in seen:
            continue
        seen.add((at, state, facts))
        while at < len(kernel.lines):
            line = kernel.lines[at]
            if branch := BRANCH.match(line):
                ways = {True, False} if branch[2] else {True}
                fact, same = known.get(at, (None, True))
                same = same != bool(branch[1])
                for told, holds in facts:
                    if told == fact:
                        ways = {holds == same}
                there, on = (facts | {(fact, taken == same)} if fact else facts for taken in (True, False))
                if True in ways:
                    todo.append((kernel.labels[branch[3]], state, there))
                if False not in ways:
                    break
                facts = on
            else:
                after = step(at, plain(line), state)
                if line.startswith("trap;") or (after is None and plain(line) == line):
                    break
                if after is not None and after != state:
                    if plain(line) != line:  # where its guard is false
                        todo.append((at + 1, state, facts))
                    state = after
                for register in in_facts.intersection(written(line)):
                    facts = frozenset(one for one in facts if register not in one[0][1])
            at += 1
            if at in targets:
                todo.append((at, state, facts))
                break


def copies_under_way(kernel: Kernel) -> list[str]:
    copies = reaches(kernel, lambda line: line.startswith(("cp.async.ca", "cp.async.cg")))
    found: set[int] = set()

    def step(at: int, line: str, state: object) -> object:
        loose, groups = state  # whether copies are in no group yet; groups that are under way
        if line.startswith(("cp.async.ca", "cp.async.cg")):
            return True, groups
        if line.startswith("cp.async.commit_group"):
            return False, min(groups + loose, MOST_GROUPS)
        if line.startswith("cp.async.wait_all"):
            return False, 0
        if line.startswith("cp.async.wait_group"):
            return loose, min(groups, int(line.removesuffix(";").split()[1]))
        if BLOCK_BARRIER.match(line) and (loose or groups):
            found.add(at)
            return None
        return None if RETURN.match(line) or (state == (False, 0) and not copies[at]) else state

    def walked(known: dict[int, tuple[Fact, bool]]) -> set[int]:
        found.clear()
        walk(kernel, [(0, (False, 0))], step, known)
        return set(found)

    # All paths first. What then remains is on no path that can be taken if one comparison rules it out; to keep all of
    # them at once would be a walk for every combination.
    left = walked({}) if any(copies) else set()
    for branches in repeated(kernel) if left else []:
        left &= walked(branches)
    return [f"comes to a barrier before it has waited for its copies: {kernel.lines[at]}" for at in sorted(left)]


def of_another_block(kernel: Kernel, registers: list[str]) -> bool:
    """Whether an address may come from mapa."""
    seen: set[str] = set()
    todo = list(registers)
    while todo:
        register = todo.pop()
        if register in seen or register.startswith("%p"):
            continue
        seen.add(register)
        for at in kernel.definitions.get(register, []):
            line = plain(kernel.lines[at])
            if line.startswith("mapa"):
                return True
            if not line.startswith("ld."):
                todo += REGISTER.findall(line.split(",", 1)[-1])
    return False


def remote(kernel: Kernel, line: str) -> bool:
    if NAMED.match(line):
        return True
    if not GENERIC.match(line):
        return False
    return of_another_block(kernel, REGISTER.findall(line[line.index("[") :].split("]")[0]))


def leaves_cluster(kernel: Kernel) -> list[str]:
    accesses = {at for at, line in enumerate(kernel.lines) if remote(kernel, plain(line))}
    found: dict[int, str] = {}

    def step(at: int, line: str, state: object) -> object:
        if at in accesses:
            return "used"
        if state == "used" and CLUSTER_ARRIVE.match(line):
            return "arrived"
        if state == "arrived" and line.startswith("barrier.cluster.wait"):
            return None  # the next access begins its own walk
        if RETURN.match(line):
            found[at] = "ends without a barrier of the cluster after it used the shared memory of another block"
            return None
        return state

    walk(kernel, [(at, "used") for at in sorted(accesses)], step, {})
    return [found[at] for at in sorted(found)]


def violations(kernel: Kernel, over_barriers: bool = False) -> list[str]:
    """Broken rules of one kernel; `over_barriers`: its copies may be under way at a barrier."""
    return ([] if over_barriers else copies_under_way(kernel)) + leaves_cluster(kernel)
