"""What the calls of two builds enqueue, recorded without a GPU and compared line by line.

`record_calls.cpp` plans and calls every point of a variant on a fixed list of problems; `cuda_stand_in.cpp` takes the
place of CUDA and prints what would be enqueued. Padding in parameters of kernels is nobody's: each build is recorded
twice, with memory painted in two ways, and bytes that differ between the two do not count. Points that only the newer
build has are left out: no row is of them. So are cases that only the newer build refuses: nothing is enqueued, and no
new row can be of them; they are counted, since rows that were measured before stay.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import IO

from experiments.compare.equivalence.builds import Tree
from experiments.compare.equivalence.machine_code import Kernel, kernels_of, plain_names
from xcorr.errors import UserError

FOLDER = Path(__file__).resolve().parent
RESERVED = 1024  # bytes that the system takes of a block's shared memory, from compute capability 8.0 on
PAINTS = ({"XCORR_PAINT": "0", "MALLOC_PERTURB_": "85"}, {"XCORR_PAINT": "255", "MALLOC_PERTURB_": "170"})
AT_RUN_TIME = ":"  # in the name of a kernel that was compiled while the program runs, before a hash of its source
RUN_TIME_TEXT = re.compile(r"^XCORR_RUN_TIME_TEXT\(", re.MULTILINE)  # what a header that is such a source begins with
POINT = "point "  # lists a point of the variant, before all blocks
PHASE = "phase "  # a mark, which enqueues nothing where only the whole call is timed
BLOCK = "== "  # begins what is recorded of a problem and a point
REFUSED = "not supported"  # is all that is recorded of a case that the variant refuses


@dataclass
class Recorder:
    """The recorder of one build, compiled against its headers and linked with its library."""

    tree: Tree
    folder: Path
    kernels: dict[str, Kernel] = field(default_factory=dict)  # by mangled name
    names: dict[str, str] = field(default_factory=dict)  # without namespaces, by mangled name

    @classmethod
    def compiled(cls, tree: Tree, architecture: str) -> Recorder:
        """Beside the build's other products."""
        made = cls(tree, tree.build / "recorder")
        made.folder.mkdir(exist_ok=True)
        flags = tree.flags("harness/registry.cpp")
        library = made.folder / "libstand_in.so"
        stand_ins = sorted(FOLDER.glob("*_stand_in.cpp"))
        _compile(tree, [*flags, "-shared", "-o", library, *stand_ins, "-ldl"])
        _compile(
            tree,
            [
                *flags,
                *_run_time_flags(tree),
                "-o",
                made.folder / "record_calls",
                FOLDER / "record_calls.cpp",
                FOLDER / "run_time_kernels.cpp",
                library,
                tree.build / "libxcorr.so",
                f"-Wl,-rpath,{made.folder}",
                f"-Wl,-rpath,{tree.build}",
                "-Wl,--allow-shlib-undefined",
            ],
        )
        for variant in tree.units():
            made.kernels |= {one.mangled: one for one in kernels_of(tree.objects(variant), architecture)}
        made.names = plain_names(made.kernels)
        lines = [
            " ".join(map(str, (one.mangled, one.registers, max(one.shared_bytes - RESERVED, 0), *one.parameters)))
            for one in made.kernels.values()
        ]
        (made.folder / "kernels.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return made

    @contextmanager
    def lines(self, variant: str, paint: Mapping[str, str]) -> Iterator[IO[str]]:
        """What is recorded of a variant; it may be left unread. UserError at the end where recording failed."""
        # What a variant compiles while it runs is here its source: nothing is kept beside machine code, or taken from it.
        environment = {
            **os.environ,
            "XCORR_KERNELS": str(self.folder / "kernels.txt"),
            "XCORR_CACHE_DIR": os.devnull,
            **paint,
        }
        with tempfile.TemporaryFile("w+") as errors:
            child = subprocess.Popen(
                [self.folder / "record_calls", variant],
                env=environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
            try:
                assert child.stdout is not None
                yield child.stdout
                # After a difference the rest is not wanted, and the child waits for someone to read it.
                if not child.stdout.read(1) and child.wait() != 0:
                    errors.seek(0)
                    said = errors.read().strip().splitlines() or [f"ended with {child.returncode}"]
                    raise UserError(f"{self.tree.root}: recording {variant}: {said[-1].removeprefix('error: ')}")
            finally:
                child.kill()
                child.wait()


def _run_time_flags(tree: Tree) -> list[str]:
    """The header of kernels that are compiled while a program runs, and its family; none where the tree has no such."""
    headers = sorted(
        path.relative_to(tree.root)
        for path in (tree.root / "algorithms").rglob("*.hpp")
        if RUN_TIME_TEXT.search(path.read_text(encoding="utf-8"))
    )
    if not headers:
        return []
    if len(headers) > 1:
        raise UserError(
            f"{headers[1]}: a second header of kernels compiled at run time; teach it (run_time_kernels.cpp)"
        )
    return [f'-DXCORR_RUN_TIME_HEADER="{headers[0]}"', f"-DXCORR_RUN_TIME_FAMILY={headers[0].parts[1]}"]


def _compile(tree: Tree, command: list[object]) -> None:
    done = subprocess.run([str(word) for word in command], cwd=tree.build, capture_output=True, text=True)
    if done.returncode != 0:
        cause = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[-200:])
        raise UserError(f"{tree.root}: the recorder does not compile: {cause}")


@dataclass
class Compared:
    """What became of comparing the calls of a variant."""

    difference: str = ""  # the first, with its problem and point; empty where there is none
    blocks: int = 0
    launches: int = 0
    new_points: int = 0  # left out
    refused: int = 0  # cases that only the newer build refuses, left out
    reached: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())  # mangled, before and after
    at_run_time: int = 0  # kernels of sources that were compiled while the program ran


def compare_calls(before: Recorder, after: Recorder, variant: str, but_for_phases: bool = False) -> Compared:
    """Records a variant in both builds, twice each, and compares; `but_for_phases` without the marks of phases."""
    left_out: set[str] = set()
    with ExitStack() as stack:
        streams = [stack.enter_context(one.lines(variant, paint)) for one in (before, after) for paint in PAINTS]
        listed = [_points_and_rest(one) for one in streams]
        known = listed[0][0]
        rests = [without_phases(rest) if but_for_phases else rest for _, rest in listed]
        recorded = [rest if place < 2 else of_points(rest, known, left_out) for place, rest in enumerate(rests)]
        found = compare_lines(recorded, (before.names, after.names))
    found.new_points = len(left_out)
    return found


def _points_and_rest(lines: Iterable[str]) -> tuple[set[str], Iterator[str]]:
    """The points that a recording lists first, and what follows."""
    points, rest = set(), iter(lines)
    for line in rest:
        if not line.startswith(POINT):
            return points, chain([line], rest)
        points.add(line.removeprefix(POINT).strip())
    return points, rest


def without_phases(lines: Iterable[str]) -> Iterator[str]:
    return (line for line in lines if not line.startswith(PHASE))


def of_points(lines: Iterable[str], known: Collection[str], left_out: set[str]) -> Iterator[str]:
    """The lines without the blocks of other points than the known ones, which are added to `left_out`."""
    wanted = True
    for line in lines:
        if line.startswith(BLOCK):
            point = _point_of(line)
            wanted = point in known
            if not wanted:
                left_out.add(point)
        if wanted:
            yield line


def _point_of(header: str) -> str:
    """The parameters of a block: what follows its variant, problem and precision class."""
    return " ".join(header.removeprefix(BLOCK).split()[3:])


def compare_lines(streams: Sequence[Iterable[str]], names: tuple[Mapping[str, str], Mapping[str, str]]) -> Compared:
    """Four recordings, two of each build, side by side up to the first difference."""
    found = Compared()
    reached: tuple[set[str], set[str]] = (set(), set())
    block = ""
    padding: set[Place] = set()
    open_differences: dict[Place, str] = {}
    for lines in _side_by_side(streams, found):
        if lines[0].startswith(BLOCK):
            block = lines[0].removeprefix(BLOCK).strip()
            found.blocks += 1
        texts = [line.rstrip("\n") for line in lines]
        found.launches += lines[0].startswith("launch ")
        for i, text in enumerate(texts):
            if text.startswith("launch "):
                mangled, _, rest = text.removeprefix("launch ").partition(" ")
                reached[i // 2].add(mangled)
                texts[i] = f"launch {names[i // 2].get(mangled, mangled)} {rest}"
        if texts.count(texts[0]) == 4:
            continue
        places = _places(texts)
        if places is None:
            found.difference = _difference(block, texts)
            break
        padding |= places[0]
        for place in places[1] - open_differences.keys():
            open_differences[place] = _difference(block, texts)
    # A byte that is padding in one launch is padding in all launches of its kernel.
    unexplained = [text for place, text in open_differences.items() if place not in padding]
    if unexplained and not found.difference:
        found.difference = unexplained[0]
    made = [{name for name in side if AT_RUN_TIME in name} for side in reached]
    found.at_run_time = len(made[0] | made[1])
    found.reached = (frozenset(reached[0] - made[0]), frozenset(reached[1] - made[1]))
    return found


def _side_by_side(streams: Sequence[Iterable[str]], found: Compared) -> Iterator[tuple[str, ...]]:
    """The lines of all recordings but of cases that only the newer build refuses."""
    for blocks in zip_longest(*map(_blocks, streams), fillvalue=iter(())):
        heads = [list(islice(block, 3)) for block in blocks]
        if heads[0][:1] == heads[2][:1] and _is_refused(heads[2]) and not _is_refused(heads[0]):
            found.refused += 1
        else:
            yield from zip_longest(*map(chain, heads, blocks), fillvalue="")


def _blocks(lines: Iterable[str]) -> Iterator[Iterator[str]]:
    """The lines of each block, to be read before the next block is asked for; what is left of them is skipped."""
    rest = iter(lines)
    head = next(rest, None)

    def block(line: str | None) -> Iterator[str]:
        nonlocal head
        while line is not None:
            yield line
            line = next(rest, None)
            if line is not None and line.startswith(BLOCK):
                break
        head = line

    while head is not None:
        one = block(head)
        yield one
        for _ in one:
            pass


def _is_refused(head: list[str]) -> bool:
    """Of the first three lines of a block."""
    return [line.strip() for line in head[1:]] == [REFUSED]


Place = tuple[str, int, int]  # kernel, parameter, byte


def _places(texts: list[str]) -> tuple[set[Place], set[Place]] | None:
    """Of four recordings of a launch the bytes of parameters that are padding, since the two recordings of a build differ
    there, and those in which the builds differ otherwise. None where more than parameters differs."""
    if len({len(text) for text in texts}) != 1 or not texts[0].startswith("launch "):
        return None
    head = texts[0].find("(", texts[0].rfind(" stream "))
    if len({text[:head] for text in texts}) != 1:
        return None
    kernel = texts[0][: texts[0].find(" grid ")]
    padding, different = set(), set()
    for index, values in enumerate(zip(*(text[head + 1 : -1].split(" ") for text in texts))):
        for byte in range(len(values[0]) // 2):
            a, b, c, d = (value[2 * byte : 2 * byte + 2] for value in values)
            if a != b or c != d:
                padding.add((kernel, index, byte))
            elif a != c:
                different.add((kernel, index, byte))
    return padding, different


def _difference(block: str, texts: Sequence[str]) -> str:
    """In one line what the first build recorded, and the second."""
    was, now = _around_difference(texts[0], texts[2])
    return f"{block}: {was or 'nothing'} -> {now or 'nothing'}"


def _around_difference(was: str, now: str) -> tuple[str, str]:
    """The lines, shortened where they begin alike and are long."""
    limit = 160
    if not was or not now or max(len(was), len(now)) <= limit:
        return was, now
    start = next((i for i, (a, b) in enumerate(zip(was, now)) if a != b), min(len(was), len(now)))
    start = max(0, min(start - 40, len(was) - limit))
    return (was[:60] + " ... " + was[start : start + limit], now[:60] + " ... " + now[start : start + limit])
