"""python3 -m experiments.compare.equivalent: another machine code, another call, another output are seen; a name is not."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from stored import NEW, row, save

from experiments.compare import equivalent
from experiments.compare.equivalence import times
from experiments.compare.equivalence.builds import Tree
from experiments.compare.equivalence.calls import Compared, Recorder, compare_calls, compare_lines, of_points
from experiments.compare.equivalence.machine_code import Kernel, without_file
from experiments.compare.equivalent import DIFFERENT, EQUAL, SAME, TOKENS, judge_kernels
from experiments.driver import identity
from experiments.driver.points import Variant
from xcorr.errors import UserError
from xcorr.paths import ROOT
from xcorr.problem import Problem

NVCC = shutil.which("nvcc")


# What was recorded.

HEAD = "== v one-to-one/4x4/4x4/1:1/full fp32 a=1\nfirst call\n"
LAUNCH = "launch {name} grid {grid},1,1 block 32,1,1 shared 0 stream 1{more} (0100{padding} 00060000)\n"


def recording(name: str = "k", grid: int = 8, padding: str = "0000", more: str = "", tail: str = "") -> list[str]:
    text = HEAD + LAUNCH.format(name=name, grid=grid, padding=padding, more=more) + tail
    return text.splitlines(True)


def compared(before: list[str], after: list[str], again: tuple[list[str], list[str]] | None = None) -> Compared:
    first, second = again or (before, after)
    names = ({"old_k": "k"}, {"old_k": "k", "new_k": "k"})
    return compare_lines([before, first, after, second], names)


def test_equal_calls_of_kernels_in_other_namespaces() -> None:
    found = compared(recording("old_k"), recording("new_k"))
    assert found.difference == "" and (found.blocks, found.launches) == (1, 1)
    assert found.reached == ({"old_k"}, {"new_k"})


def test_points_that_only_the_newer_build_has_are_left_out() -> None:
    new = [line.replace("a=1", "a=2") for line in recording("k", grid=77)]
    left_out: set[str] = set()
    assert list(of_points([*new, *recording(), *new], {"a=1"}, left_out)) == recording()
    assert left_out == {"a=2"}


def test_cases_that_only_the_newer_build_refuses_are_left_out_and_counted() -> None:
    refused = [HEAD.splitlines(keepends=True)[0], "not supported\n"]
    found = compared([*recording(), *recording()], [*refused, *recording()])
    assert (found.difference, found.refused, found.blocks) == ("", 1, 1)
    assert compared(recording(), refused).refused == 1
    both = compared([*refused, *recording()], [*refused, *recording()])
    assert (both.difference, both.refused, both.blocks) == ("", 0, 2)
    # What only the newer build takes is a difference.
    assert compared(refused, recording()).difference != ""


@pytest.mark.parametrize(
    "after, says",
    [
        (recording("old_k", grid=9), "(01000000 00060000) -> launch k grid 9,"),
        (recording("another"), "launch k grid"),
        (recording("old_k", more=" cooperative:1"), "cooperative:1"),
        (recording("old_k", padding="0001"), "(01000001"),
        (recording("old_k", tail="set 64 bytes 700000000000 to 0 stream 1\n"), "nothing -> set 64 bytes"),
        (recording("old_k")[:-1], "-> nothing"),
    ],
)
def test_other_calls(after: list[str], says: str) -> None:
    found = compared(recording("old_k"), after)
    assert found.difference.startswith("v one-to-one/4x4") and says in found.difference


def test_padding_is_what_differs_within_a_build() -> None:
    """Bytes that follow the paint of memory count on neither side; all others do."""
    painted = (recording("old_k", padding="00ff"), recording("new_k", padding="0000"))
    assert compared(recording("old_k", padding="0000"), recording("new_k", padding="0077"), painted).difference == ""
    painted = (recording("old_k", padding="00ff"), recording("new_k", padding="01ff"))
    assert compared(recording("old_k"), recording("new_k", padding="0100"), painted).difference


def test_a_byte_that_is_padding_in_one_launch_is_so_in_all_of_its_kernel() -> None:
    """What is left on the stack may be the same in both recordings of a launch, and other in the other build."""

    def twice(padding: str, painted: str, name: str = "old_k") -> list[str]:
        return [*recording(name, padding=padding), *recording(name, padding=painted)]

    again = (twice("cd98", "ffff"), twice("0000", "ffff"))
    assert compared(twice("cd98", "0000"), twice("0000", "0000"), again).difference == ""
    other = (twice("cd98", "ffff", "another"), twice("0000", "ffff"))
    assert compared(twice("cd98", "0000", "another"), twice("0000", "0000"), other).difference
    assert compared(twice("cd98", "0000"), twice("0000", "0000")).difference, "no launch says that it is padding"


def test_only_parameters_have_padding() -> None:
    painted = (recording("old_k", grid=9), recording("new_k", grid=9))
    assert compared(recording("old_k", grid=8), recording("new_k", grid=8), painted).difference


def recorder(folder: Path, script: str) -> Recorder:
    """One whose program is a shell script."""
    folder.mkdir()
    (folder / "record_calls").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "record_calls").chmod(0o755)
    return Recorder(Tree(folder, folder), folder)


def test_a_difference_ends_recordings_that_go_on(tmp_path: Path) -> None:
    """What is recorded is longer than a pipe, and nobody reads it to its end."""
    endless = [recorder(tmp_path / word, f"yes {word}") for word in ("one", "two")]
    assert compare_calls(endless[0], endless[1], "v").difference == ": one -> two"


def test_marks_of_phases_differ_unless_asked_for(tmp_path: Path) -> None:
    says = "echo 'point a=1'; echo '== v p fp32 a=1'; echo launch; echo 'phase {}'; echo launch{}"
    first, second, third = (
        recorder(tmp_path / name, says.format(*words))
        for name, words in {"one": ("forward", ""), "two": ("inverse", ""), "three": ("inverse", " more")}.items()
    )
    assert "forward -> phase inverse" in (compare_calls(first, second, "v").difference or "")
    assert not compare_calls(first, second, "v", but_for_phases=True).difference
    assert compare_calls(first, third, "v", but_for_phases=True).difference


def test_a_recording_that_fails_is_a_mistake_and_no_difference(tmp_path: Path) -> None:
    good = recorder(tmp_path / "good", "echo line; echo line")
    bad = recorder(tmp_path / "bad", "echo line; echo 'error: cuda_stand_in: device attribute 7' >&2; exit 3")
    with pytest.raises(UserError, match="recording v: cuda_stand_in: device attribute 7"):
        compare_calls(good, bad, "v")


# What was compiled.


def kernel(name: str, digest: str = "d") -> Kernel:
    return Kernel(name, 32, 0, (8,), digest)


def calls(*reached: str, launches: int = 3) -> Compared:
    return Compared(blocks=1, launches=launches, reached=(frozenset(reached), frozenset(reached)))


def test_kernels() -> None:
    one, two = kernel("one"), kernel("two")
    assert judge_kernels([one, two], [one, two], calls("one"), "quick")[0] == EQUAL
    assert judge_kernels([one, two], [one], calls("one"), "quick")[0] == EQUAL, "a kernel that nothing calls has gone"
    assert judge_kernels([one, two], [one], calls("one", "two"), "quick")[0] == DIFFERENT
    found, why = judge_kernels([one, two], [one, replace(two, digest="e")], calls("one"), "quick")
    assert found == DIFFERENT and "two" in why
    assert judge_kernels([one], [one], calls(launches=0), "quick")[0] == DIFFERENT, "nothing was compared"


def test_names_without_files() -> None:
    name = "_ZN5xcorr51_GLOBAL__N__136c0a6f_12_split_row_cu_e7efb3e9_1916616split_row_kernelEv"
    assert without_file(name) == "_ZN5xcorr16split_row_kernelEv"


# Whole variants: trees with one small variant, compiled by hand.

VARIANT = "algorithms/tiny/tiny.cu"
TEXT = """// A kernel that doubles.
#include "algorithms/device/cuda.hpp"
#include "harness/variant.hpp"
namespace xcorr {
namespace {
struct Work {
  bool wide;
  long long count;
};
__global__ void tiny_kernel(Work work, const float* in, float* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < work.count) out[i] = 2 * in[i];
}
class Doubling : public Plan {
 public:
  explicit Doubling(const PlanRequest& request) { work_.wide = false, work_.count = request.problem.out_elements(); }
  void compute(const Call& call) override {
    const auto blocks = static_cast<unsigned>((work_.count + 127) / 128);
    launch(tiny_kernel, dim3(blocks), dim3(128), 0, call.stream, work_, call.lefts<float>(), call.outs<float>());
  }
 private:
  Work work_;
};
std::unique_ptr<Plan> plan(const PlanRequest& request) { return std::make_unique<Doubling>(request); }
XCORR_VARIANT({.summary = "Doubles", .parent = "", .source = "", .backend = Backend::cuda, .plan = plan});
}  // namespace
}  // namespace xcorr
"""
CHANGES = {
    "nothing": ("", "", SAME, ""),
    "a comment": ("doubles", "copies twice", SAME, ""),
    "a name of the host": ("Doubling", "Twice", EQUAL, "machine code of 1 kernels (1 called)"),
    "a namespace": ("namespace {\nstruct", "namespace inner { namespace {\nstruct", EQUAL, "1 called"),
    "an instruction": ("2 * in[i]", "3 * in[i]", DIFFERENT, "machine code of 1 of 1 kernels"),
    "registers": ("void tiny_kernel(", "void __launch_bounds__(64) tiny_kernel(", DIFFERENT, "machine code"),
    "the grid": ("+ 127) / 128", "+ 128) / 128", DIFFERENT, "calls: tiny one-to-many/"),
    "a parameter": ("out_elements(); }", "out_elements() - 1; }", DIFFERENT, "calls: tiny"),
    "the second call": ("launch(tiny", "work_.count -= 1;\n    launch(tiny", DIFFERENT, "calls: tiny"),
    "a clear": ("launch(tiny", "clear(call.out, 64, call.stream);\n    launch(tiny", DIFFERENT, "set 64 bytes"),
}
NVCC_FLAGS = ["-std=c++20", "--expt-relaxed-constexpr", "-gencode=arch=compute_90,code=sm_90", "-Xcompiler=-fPIC"]


# The same with a kernel that is compiled while the program runs.
RUN_TIME_KERNEL = "xcorr_tiny(RunTimeArguments a) { a.count; }"
RUN_TIME_TEXT = (
    TEXT.replace(
        "public:\n  explicit Doubling(const PlanRequest& request) {",
        """public:
  explicit Doubling(const PlanRequest& request) {
    const std::string source = R"(__global__ void SOURCE)";
    const auto code = template_matching::RunTimeCompiler::instance().compile(source, 90, nullptr);
    cudaLibrary_t library{};
    cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    cudaLibraryGetKernel(&kernel_, library, "xcorr_tiny");""".replace("SOURCE", RUN_TIME_KERNEL),
    )
    .replace(
        "    launch(tiny",
        """    template_matching::RunTimeArguments arguments{};
    arguments.count = 5;
    launch(reinterpret_cast<void (*)(template_matching::RunTimeArguments)>(kernel_), dim3(1), dim3(32), 0,
           call.stream, arguments);
    launch(tiny""",
    )
    .replace("  Work work_;", "  Work work_;\n  cudaKernel_t kernel_{};")
    .replace(
        '#include "harness',
        """#include "algorithms/template_matching/template_pearson_jit/run_time_compiler.hpp"
#include "algorithms/template_matching/template_pearson_jit/tile_sums.hpp"
#include "harness""",
        1,
    )
)
RUN_TIME_CHANGES = {
    "a name of the host": ("Doubling", "Twice", EQUAL, "1 kernels (1 called), sources of 1 compiled at run time"),
    "a source": ("{ a.count; }", "{ a.count + 1; }", DIFFERENT, "calls: tiny one-to-one/"),
    "a parameter": ("count = 5", "count = 6", DIFFERENT, "calls: tiny one-to-one/"),
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Tree]:
    """Tree of a text of the variant, compiled as far as the comparison needs it."""
    if NVCC is None:
        pytest.skip("needs nvcc")
    base = tmp_path_factory.mktemp("trees")
    cuda = Path(NVCC).resolve().parents[1]
    include = next((path for path in (cuda / "include", cuda / "targets/x86_64-linux/include") if path.is_dir()), cuda)
    made: dict[str, Tree] = {}

    def make(text: str) -> Tree:
        if text in made:
            return made[text]
        tree = Tree(base / str(len(made)), base / str(len(made)) / "build")
        tree.build.mkdir(parents=True)
        for name in ("harness", "scripts"):
            shutil.copytree(ROOT / name, tree.root / name)
        for name in ("algorithms/device", "tests/emulation"):
            shutil.copytree(ROOT / name, tree.root / name)
        headers = "algorithms/template_matching/template_pearson_jit"
        shutil.copytree(ROOT / headers, tree.root / headers, ignore=shutil.ignore_patterns("*.cu"))
        (tree.root / VARIANT).parent.mkdir()
        (tree.root / VARIANT).write_text(text)
        build = tree.build
        (build / "build_facts.hpp").write_text('#define XCORR_COMPILER "gcc 12"\n')
        call(tree.root / "scripts/build/stamp_sources.py", "stamp", tree.root, build, f"{VARIANT}:tiny.cu")
        call(NVCC, *NVCC_FLAGS, f"-I{tree.root}", "-c", build / "tiny.cu", "-o", build / "tiny.o")
        flags = ["-std=c++20", "-O1", "-fPIC", f"-I{tree.root}", f"-I{build}", f"-I{include}"]
        sources = [tree.root / "harness" / f"{name}.cpp" for name in ("registry", "problem", "fields")]
        call("c++", *flags, "-shared", *sources, build / "tiny.o", "-o", build / "libxcorr.so")
        command = " ".join(["c++", *flags, "-o", "a.o", "-c", "a.cpp"])
        commands = [{"file": "../harness/registry.cpp", "command": command}]
        (build / "compile_commands.json").write_text(json.dumps(commands))
        made[text] = tree
        return tree

    return make


def call(*words: object) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, f"{words}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("old, new, found, says", CHANGES.values(), ids=CHANGES)
def test_a_change_of_a_variant(
    compiled: Callable[[str], Tree], monkeypatch: pytest.MonkeyPatch, old: str, new: str, found: str, says: str
) -> None:
    changed = TEXT.replace(old, new)
    if "inner" in new:
        changed = changed.replace("}  // namespace xcorr", "}}  // namespace xcorr")
    assert (changed != TEXT) == bool(old)
    judged(compiled(TEXT), compiled(changed), monkeypatch, found, says)


@pytest.mark.slow
@pytest.mark.parametrize("old, new, found, says", RUN_TIME_CHANGES.values(), ids=RUN_TIME_CHANGES)
def test_a_change_of_what_is_compiled_at_run_time(
    compiled: Callable[[str], Tree], monkeypatch: pytest.MonkeyPatch, old: str, new: str, found: str, says: str
) -> None:
    assert old in RUN_TIME_TEXT
    trees = compiled(RUN_TIME_TEXT), compiled(RUN_TIME_TEXT.replace(old, new))
    judged(*trees, monkeypatch, found, says)


def judged(before: Tree, after: Tree, monkeypatch: pytest.MonkeyPatch, found: str, says: str) -> None:
    monkeypatch.setattr(Tree, "compile", lambda *_: None)  # both are compiled
    (verdict,) = equivalent.compare(before, after, [], "paper", "90", 4)
    assert (verdict.variant, verdict.found) == ("tiny", found), verdict.why
    assert says in verdict.why


# What is written.


def test_lines_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "equivalent.csv"
    monkeypatch.setattr(identity, "EQUIVALENT", path)
    monkeypatch.setattr(equivalent, "ROOT", tmp_path)
    monkeypatch.setattr(Tree, "units", lambda _: {"a": ("x/a.cu", []), "b": ("x/b.cpp", []), "c": ("x/c.cu", [])})
    monkeypatch.setattr(Tree, "compiler", lambda _: "nvcc 13.0 gcc 12")
    verdicts = [
        equivalent.Verdict("a", "1", "2", EQUAL, "machine code"),
        equivalent.Verdict("b", "1", "2", EQUAL, "outputs"),
        equivalent.Verdict("c", "1", "2", TOKENS),
        equivalent.Verdict("a", "3", "3", SAME),
        equivalent.Verdict("a", "4", "5", DIFFERENT, "calls"),
    ]
    tree = Tree(tmp_path, tmp_path)
    for _ in range(2):
        equivalent.write(verdicts, tree, tree, "90")
        lines = identity.read_lines(path)
        assert [(line.variant, line.before, line.after, line.architectures) for line in lines] == [
            ("a", "1", "2", "9.0"),
            ("b", "1", "2", "cpu"),
            ("c", "1", "2", "all"),
        ]


@pytest.mark.parametrize(
    "words, says",
    [
        ([], "--before is missing"),
        (["--before", "no-such-revision"], "neither a folder nor a revision"),
        (["--before", "tests"], "not a tree of this project"),
        (["--rows", "no-such-set"], "no set of rows"),
        (["--times"], "needs two builds"),
        (["--times", "--before-build", ".", "--after-build", "."], "not built"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert equivalent.main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and says in error and error.count("\n") == 1


def test_rows_of_the_tree_equivalent_ones_and_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "EQUIVALENT", tmp_path / "equivalent.csv")
    identity.add_lines(tmp_path / "equivalent.csv", [identity.Line("v", "b", "a", "cpu", "gcc", "tokens")])
    monkeypatch.setattr(Tree, "hashes", lambda _: ({"v": "a"}, {"cpu": "1"}))
    hashes = ["a", "a+1", "b", "b+1", "c", "a+2"]
    save(tmp_path / "s", NEW, [row(variant="v", left_rows=i, source_hash=one) for i, one in enumerate(hashes, 1)])
    table, good = equivalent.row_table([tmp_path / "s"])
    assert table.splitlines()[-1].split() == ["s", "v", "2", "2", "2"] and not good


# Times.


def point(before: list[float], after: list[float]) -> times.Point:
    return times.Point("v", tuple(before), tuple(after))


def test_a_point_differs_by_more_than_runs_of_a_build_do() -> None:
    assert not point([4.0, 4.1, 4.2, 4.1, 4.0], [4.2, 4.1, 4.2, 4.15, 4.2]).differs
    assert point([4.0, 4.1, 4.1, 4.1, 4.0], [4.3, 4.3, 4.25, 4.3, 4.3]).differs
    assert point([4.3, 4.3, 4.25, 4.3, 4.3], [4.0, 4.1, 4.1, 4.1, 4.0]).differs, "shorter is another time too"
    assert not point([4.0] * 5, [4.01] * 5).differs, "less than a clock shows"


def units() -> list[times.Unit]:
    def variant(name: str) -> Variant:
        return Variant(name, "f", "cuda", "definition", ("fp32",), (), ("a=1", "a=2", "a=3"), ("stream",), "h")

    problems = [
        Problem(form, (size, size), (size, size), 1, 1, "full")
        for form in ("one-to-one", "n-to-m")
        for size in (8, 16, 32)
    ]
    places = [(name, problem, f"a={i}") for name in "uvw" for problem in problems for i in (1, 2, 3, 4)]
    return times.choose(reversed(places), {name: variant(name) for name in "uvw"}, 14)


def test_points_are_spread_and_always_the_same() -> None:
    chosen = units()
    assert chosen == units() and sum(len(unit.params) for unit in chosen) == 14
    assert {(unit.variant.id, unit.problem.form) for unit in chosen} == {
        (name, form) for name in "uvw" for form in ("one-to-one", "n-to-m")
    }
    assert all("a=4" not in unit.params for unit in chosen), "a point that a build lacks"


def test_builds_are_measured_in_turn() -> None:
    order = []

    def measure(build: int, unit: times.Unit) -> dict[str, float]:
        order.append(build)
        return {params: 4.0 + build for params in unit.params}

    points = times.in_turn(units()[:1], measure)
    assert order == [0, 1, 1, 0, 0, 1, 1, 0, 0, 1]
    assert [one.differs for one in points] == [True, True]
    assert "2 points, 2 differ; after / before = 1.2500" in times.table(points)
