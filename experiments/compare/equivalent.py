"""Compares two versions of the sources: which variants are the same measured code, so that their rows still count.

Of every variant whose source_hash differs (a) the machine code of its kernels and (b) what its calls enqueue on a
fixed list of problems are compared, for one architecture, without a GPU; of a CPU variant its outputs, to the bit,
and the times of a few points.
Where all is equal, --write adds a line to results/equivalent.csv. Where the tokens are equal and only the way of
hashing differs, nothing has to be compiled.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate
from tqdm import tqdm

from experiments.compare.equivalence import times
from experiments.compare.equivalence.builds import Tree, open_tree
from experiments.compare.equivalence.calls import Compared, Recorder, compare_calls
from experiments.compare.equivalence.machine_code import Kernel, kernels_of, plain_names
from experiments.driver import identity, store
from experiments.driver.identity import EVERY, Line, add_lines, architecture, identities
from experiments.driver.run_records import read_runs
from xcorr.errors import Parser, UserError, command, nearest
from xcorr.paths import ROOT

EPILOG = """examples:
  python3 -m experiments.compare.equivalent --before HEAD~1                what a commit changed
  python3 -m experiments.compare.equivalent --before v1 --write            and keep the rows of what it did not
  python3 -m experiments.compare.equivalent --rows                         which published rows still count
  python3 -m experiments.compare.equivalent --times --before-build A --after-build B      on a GPU: both builds' times

Trees are built in their folder build-equivalent unless a build is given; a revision is unpacked below .cache/.
Exit code: 0 when all variants are equal (all rows count, no time differs), 1 when not, 2 for a mistake."""
PROGRAM = "xcorr-bench"
POINTS_OF_CPU = 4
SAME, TOKENS, EQUAL, DIFFERENT = "same hash", "same tokens", "equal", "different"


@dataclass
class Verdict:
    """What was found of a variant; `why` says what differs, or what was compared."""

    variant: str
    before: str
    after: str
    found: str
    why: str = ""

    def line(self, compiler: str, where: str) -> Line | None:
        """For results/equivalent.csv; None where the hashes are equal already, or the code is not."""
        if self.found == TOKENS:
            return Line(self.variant, self.before, self.after, EVERY, "none", "tokens")
        if self.found == EQUAL:
            return Line(self.variant, self.before, self.after, where, compiler, self.why)
        return None


def parser() -> Parser:
    """The command line."""
    made = Parser(prog="python3 -m experiments.compare.equivalent", description=__doc__, epilog=EPILOG)
    add = made.add_argument
    add("--before", metavar="TREE", help="older version of the tree: a folder or a git revision")
    add("--after", metavar="TREE", default=str(ROOT), help="newer version of the tree (default: this one)")
    add(
        "--before-build",
        type=Path,
        metavar="DIR",
        help="build folder of the older version (default: TREE/build-equivalent)",
    )
    add(
        "--after-build",
        type=Path,
        metavar="DIR",
        help="build folder of the newer version (default: TREE/build-equivalent)",
    )
    add("--arch", default="90", help="GPU architecture whose code is compared (default: 90)")
    add(
        "--grid",
        choices=("quick", "paper"),
        default="paper",
        help="which compile-time points are built (default: paper)",
    )
    add("--variants", metavar="A,B", help="compare only these variants (default: all)")
    add(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="how many variants are recorded at a time (default: one a core)",
    )
    add(
        "--but-for-phases",
        action="store_true",
        help="calls are equal that mark other phases: times of whole calls still count, those of phases are of the older marks",
    )
    add("--write", action="store_true", help="add a line to results/equivalent.csv for each variant that is equal")
    add(
        "--rows",
        nargs="*",
        type=Path,
        metavar="SET",
        help="only say which rows of these sets count for the sources here (default: all published ones)",
    )
    add(
        "--times",
        action="store_true",
        help="only measure short points with both builds in turn, on the GPU or with --device cpu",
    )
    add("--device", default="cuda:0", help="device that --times measures on (default: cuda:0)")
    add("--points", type=int, default=60, metavar="N", help="how many points --times measures (default: 60)")
    return made


def compare(
    before: Tree, after: Tree, variants: Sequence[str], grid: str, arch: str, jobs: int, but_for_phases: bool = False
) -> list[Verdict]:
    """A verdict for every variant that both trees have."""
    old, new = before.hashes()[0], after.hashes()[0]
    names = list(variants) or sorted(old.keys() & new.keys())
    for name in names:
        if name not in old or name not in new:
            raise UserError(f"variant {name}: not in both trees; {nearest(name, sorted(old.keys() & new.keys()))}")
    tokens = (before.tokens(), after.tokens())
    verdicts = []
    for name in names:
        found = SAME if old[name] == new[name] else TOKENS if tokens[0][name] == tokens[1][name] else ""
        verdicts.append(Verdict(name, old[name], new[name], found))
    unknown = [one for one in verdicts if not one.found]
    if unknown:
        _compile_and_compare(before, after, unknown, grid, arch, jobs, but_for_phases)
    return verdicts


def _compile_and_compare(
    before: Tree, after: Tree, unknown: list[Verdict], grid: str, arch: str, jobs: int, but_for_phases: bool
) -> None:
    recorders = []
    for tree in (before, after):
        tree.compile(grid, arch)
        recorders.append(Recorder.compiled(tree, arch))
    units = after.units()

    def judge(one: Verdict) -> None:
        if units[one.variant][0].endswith(".cu") and not all(tree.objects(one.variant) for tree in (before, after)):
            one.found, one.why = DIFFERENT, "not compiled here: its library is missing"
            return
        calls = compare_calls(recorders[0], recorders[1], one.variant, but_for_phases)
        if calls.difference:
            one.found, one.why = DIFFERENT, f"calls: {calls.difference}"
        elif units[one.variant][0].endswith(".cu"):
            one.found, one.why = judge_kernels(
                kernels_of(before.objects(one.variant), arch), kernels_of(after.objects(one.variant), arch), calls, grid
            )
        else:
            one.found, one.why = EQUAL, f"outputs of {calls.blocks} cases, grid {grid}"
        if one.found == EQUAL and but_for_phases:
            one.why += ", marks of phases not compared"

    with ThreadPoolExecutor(max(1, jobs // 4)) as pool:  # each records four times at once
        list(tqdm(pool.map(judge, unknown), total=len(unknown), desc="variants"))
    for one in unknown:  # one after the other, on a machine that is quiet again
        if one.found == EQUAL and not units[one.variant][0].endswith(".cu"):
            one.found, one.why = judge_times(one, [before.build / PROGRAM, after.build / PROGRAM])


def judge_times(one: Verdict, programs: list[Path]) -> tuple[str, str]:
    """Of a CPU variant whose outputs are equal: whether its times are too."""
    points = times.compare(programs, "cpu", POINTS_OF_CPU, published_sets(), one.variant)
    far = [point for point in points if point.differs]
    if far:
        return DIFFERENT, f"times: {far[0].name}: {far[0].difference:+.1f} us, runs are within {far[0].spread:.1f} us"
    return EQUAL, f"{one.why}, times of {len(points)} points"


def judge_kernels(before: list[Kernel], after: list[Kernel], calls: Compared, grid: str) -> tuple[str, str]:
    """Whether the machine code is equal too: of every kernel that both have, and of all that calls reach."""
    names = plain_names(one.mangled for one in [*before, *after])
    by_name: tuple[dict[str, list[str]], dict[str, list[str]]] = ({}, {})
    for side, kernels in zip(by_name, (before, after)):
        for one in kernels:
            side.setdefault(names[one.mangled], []).append(one.digest)
    reached = {names.get(one, one) for side in calls.reached for one in side}
    lacking = sorted(name for name in reached if any(name not in side for side in by_name))
    if lacking:
        return DIFFERENT, f"machine code: {lacking[0]} is called and not in both objects"
    common = by_name[0].keys() & by_name[1].keys()
    changed = sorted(name for name in common if sorted(by_name[0][name]) != sorted(by_name[1][name]))
    if changed:
        called = "called" if changed[0] in reached else "never called here"
        return DIFFERENT, f"machine code of {len(changed)} of {len(common)} kernels, such as {changed[0]} ({called})"
    if not calls.launches:
        return DIFFERENT, "calls: none launches a kernel, so nothing was compared"
    at_run_time = f"sources of {calls.at_run_time} compiled at run time, " if calls.at_run_time else ""
    left_out = f", {calls.new_points} new points left out" if calls.new_points else ""
    left_out += f", {calls.refused} cases refused now left out" if calls.refused else ""
    return EQUAL, (
        f"machine code of {len(common)} kernels ({len(reached)} called), {at_run_time}{calls.launches} launches of "
        f"{calls.blocks} cases, grid {grid}{left_out}"
    )


def row_table(folders: Iterable[Path]) -> tuple[str, bool]:
    """Rows by variant whose source is the one here, an equivalent one or another; whether none is another."""
    (variants, reductions), known = Tree(ROOT, ROOT).hashes(), identities()
    body, good = [], True
    for folder in folders:
        runs = read_runs(folder)
        counts: dict[str, Counter[str]] = {}
        for row in store.read_rows(folder):
            where = architecture(row["backend"], runs.get(row["run"], {}).get("before") or {})
            mine = variants.get(row["variant"], "")
            if "+" in row["source_hash"]:
                mine += "+" + reductions.get(row["backend"], "")
            kind = "current" if row["source_hash"] == mine else "stale"
            if kind == "stale" and store.source_of(row) == known.of(row["variant"], mine, where):
                kind = "equivalent"
            counts.setdefault(row["variant"], Counter())[kind] += 1
        good &= not any(count["stale"] for count in counts.values())
        for variant in sorted(counts):
            cells = (counts[variant][kind] for kind in ("current", "equivalent", "stale"))
            body.append([folder.name, variant, *cells])
    return tabulate(body, ["set", "variant", "current", "equivalent", "stale"]), good


def published_sets() -> list[Path]:
    """Those that were measured with this project."""
    return sorted(path for path in (ROOT / "results" / "published").iterdir() if not path.name.startswith("published-"))


def run(argv: Sequence[str]) -> int:
    """The command; raises UserError."""
    options = parser().parse_args(argv)
    if options.rows is not None:
        for folder in options.rows:
            if not folder.is_dir():
                raise UserError(f"{folder}: no set of rows; give a folder such as results/published/KEY")
        table, good = row_table(options.rows or published_sets())
        print(table)
        return 0 if good else 1
    if options.times:
        if not options.before_build or not options.after_build:
            raise UserError("--times: needs two builds; give --before-build and --after-build")
        programs = [folder / PROGRAM for folder in (options.before_build, options.after_build)]
        return times.run(programs, options.device, options.points, published_sets())
    if not options.before:
        raise UserError("command line: --before is missing; see --help")
    before = open_tree(options.before, options.before_build)
    after = open_tree(options.after, options.after_build)
    wanted = [word for word in (options.variants or "").replace(",", " ").split()]
    verdicts = compare(before, after, wanted, options.grid, options.arch, options.jobs, options.but_for_phases)
    print(
        tabulate(
            [[one.variant, one.before, one.after, one.found, one.why] for one in verdicts],
            ["variant", "before", "after", "found", "what"],
        )
    )
    if options.write:
        write(verdicts, before, after, options.arch)
    return 1 if any(one.found == DIFFERENT for one in verdicts) else 0


def write(verdicts: Sequence[Verdict], before: Tree, after: Tree, arch: str) -> None:
    """Adds the lines of what is equal. UserError where two compilers made the machine code."""
    compilers = set()
    if any(one.found == EQUAL for one in verdicts):
        compilers = {before.compiler(), after.compiler()}
        if len(compilers) > 1:
            raise UserError(f"compilers: {' and '.join(sorted(compilers))} differ; build both trees with one")
    capability = f"{arch[:-1]}.{arch[-1]}"
    cuda = {name for name, (path, _) in after.units().items() if path.endswith(".cu")}
    lines = [one.line(*(compilers or {"none"}), capability if one.variant in cuda else "cpu") for one in verdicts]
    written = add_lines(identity.EQUIVALENT, [line for line in lines if line])
    print(f"{identity.EQUIVALENT.relative_to(ROOT)}: {written} lines added")


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; every mistake of the user is one line."""
    return command(run, argv)


if __name__ == "__main__":
    sys.exit(main())
