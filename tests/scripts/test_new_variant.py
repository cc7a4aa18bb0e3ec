"""Adding a variant touches one file; editing it measures only it again; nothing stale is measured.

One copy of the tree is built and changed step by step, so the tests of this module run in the order in which they
stand. Where there is a compiler cache, it holds most objects of the copy, since the usual build has the same options and
lies at the same place of its tree.
"""

import csv
import gzip
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import call, only_error
from copied_tree import copy_tree
from tree import ROOT, TREE

ID = "brand_new_variant"
KERNEL = "brand_new_kernel"
pytestmark = pytest.mark.slow


def listed(build: Path) -> dict[str, dict]:
    """id -> entry of `xcorr-bench --list=json`."""
    return {entry["id"]: entry for entry in json.loads(call(build / "xcorr-bench", "--list=json").stdout)["variants"]}


class Tree:
    """A copy of the tree with a build of its own."""

    def __init__(self, folder: Path):
        self.root = folder / "tree"
        self.build = self.root / "build"
        self.results = folder / "results"
        copy_tree(self.root)
        self.environment = {**os.environ, "XCORR_BUILD": str(self.build), "XCORR_PYTHON": sys.executable}
        self.environment["CCACHE_NOHASHDIR"] = "1"  # as scripts/env.sh, which what calls Ninja itself does not read
        if shutil.which("ccache") is None:
            self.environment["CXXFLAGS"] = "-O1"  # takes half as long as the usual optimisation

    def call(self, *command: object, fails: bool = False) -> str:
        """Runs a command in the copy; stdout and stderr together."""
        done = call(*command, cwd=self.root, env=self.environment)
        said = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, f"{command}: exit {done.returncode}\n{said}"
        return said

    def ninja(self, *targets: str, fails: bool = False) -> str:
        return self.call("ninja", "-C", self.build, *targets, fails=fails)

    def listed(self) -> dict[str, dict]:
        return listed(self.build)

    def measure(self) -> dict[str, set[str]]:
        """Runs the smallest sweep; variant -> outcomes of the rows that this run added."""
        before = set(self.results.rglob("*.csv.gz"))
        words = "-m experiments.driver.run --preset smoke --device cpu --experiments one-to-one --sizes 16".split()
        self.call(sys.executable, *words, "--results", self.results)
        outcomes: dict[str, set[str]] = {}
        for path in set(self.results.rglob("*.csv.gz")) - before:
            with gzip.open(path, "rt", newline="") as rows:
                for row in csv.DictReader(rows):
                    outcomes.setdefault(row["variant"], set()).add(row["outcome"])
        return outcomes


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    for tool in ("meson", "ninja", "c++"):
        if shutil.which(tool) is None and not os.environ.get("XCORR_REQUIRE_BUILD"):
            pytest.skip(f"{tool} is not here")
    tree = Tree(tmp_path_factory.mktemp("tree"))
    tree.call("scripts/setup.sh", "--no-apt")
    tree.call("scripts/build.sh", "--cuda", "disabled")
    yield tree
    shutil.rmtree(tree.root.parent, ignore_errors=True)


def source(tree: Tree) -> Path:
    return tree.root / "algorithms" / "cpu" / f"{ID}.cpp"


def test_a_tree_without_it_measures_the_others(tree):
    outcomes = tree.measure()
    assert outcomes and ID not in outcomes
    assert set().union(*outcomes.values()) == {"passed"}
    assert tree.measure() == {}


def test_the_skeleton_is_one_new_file(tree):
    before = set(tree.root.rglob("*"))
    parent = min(tree.listed())
    tree.call("scripts/new_variant.py", ID, "--family", "cpu", "--backend", "cpu", "--parent", parent)
    assert set(tree.root.rglob("*")) - before == {source(tree)}


def test_a_stale_list_of_sources_fails_naming_the_file(tree):
    said = tree.ninja(fails=True)
    assert f"algorithms/cpu/{ID}.cpp" in said
    assert "scripts/build.sh" in said


def test_the_build_finds_it(tree):
    tree.call("scripts/build.sh")
    assert tree.listed()[ID]["source_file"] == f"algorithms/cpu/{ID}.cpp"
    assert tree.listed()[ID]["family"] == "cpu"


def test_only_it_is_measured_and_it_is_correct(tree):
    assert tree.measure() == {ID: {"passed"}}


def test_it_is_drawn_and_tabulated(tree):
    tree.call(sys.executable, "-m", "plots.render", "--local", "--results", tree.results)
    (report,) = tree.results.rglob("report.html")
    assert ID in report.read_text(encoding="utf-8")
    (figure,) = tree.results.rglob("comparison_one-to-one.svg")
    assert figure.stat().st_size > 0


@pytest.mark.parametrize("preset", ["smoke", "quick"])
def test_every_preset_selects_it(tree, preset):
    words = f"-m experiments.driver.run --preset {preset} --dry-run --device cpu --variants {ID}".split()
    said = tree.call(sys.executable, *words, "--results", tree.root / "no-rows")
    places = {line.split()[0] for line in said.splitlines() if f" {ID} " in line}
    assert {"one-to-one", "one-to-many", "n-to-mn", "n-to-m", "off-grid"} <= places, said


def objects(folder: Path) -> dict[str, int]:
    """When each object of a build was made."""
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*.o")}


def test_try_compiles_it_alone_verifies_it_and_says_whether_it_is_faster(tree):
    tree.call("scripts/try", ID, "--build-only")
    before = objects(tree.root / "build-try")
    assert before == objects(tree.build), "the usual build is taken as it is"
    with source(tree).open("a", encoding="utf-8") as file:
        file.write("// An edit.\n")
    said = tree.call("scripts/try", ID, "--problem", "n-to-m/12x12/12x12/2:2/full")
    after = objects(tree.root / "build-try")
    assert [name for name, made in before.items() if after[name] != made] == [
        f"libxcorr.so.p/meson-generated_.._{ID}.cpp.o"
    ]
    assert "verified: part 1 of 12 of conformance passed" in said
    assert re.search(r"^(FASTER|SLOWER|no difference seen): .* times as fast as ", said, re.MULTILINE), said
    assert "limited by: " in said
    built = set(listed(tree.root / "build-try"))
    assert ID in built and all(name in said for name in built), f"only what is compared is built, not {built}"


def test_a_comment_is_compiled_and_measures_nothing(tree):
    compiled = (tree.build / f"{ID}.cpp").stat().st_mtime_ns
    with source(tree).open("a", encoding="utf-8") as file:
        file.write("// An edit.\n")
    tree.ninja()
    assert (tree.build / f"{ID}.cpp").stat().st_mtime_ns > compiled
    assert tree.measure() == {}


def test_an_edit_measures_only_it_again(tree):
    others = {name: entry["source_hash"] for name, entry in tree.listed().items() if name != ID}
    with source(tree).open("a", encoding="utf-8") as file:
        file.write("namespace xcorr {}\n")
    tree.ninja()
    assert {name: tree.listed()[name]["source_hash"] for name in others} == others
    assert tree.measure() == {ID: {"passed"}}


def test_a_removed_variant_fails_naming_it_and_leaves_with_the_next_build(tree):
    source(tree).unlink()
    assert f"algorithms/cpu/{ID}.cpp" in tree.ninja(fails=True)
    tree.call("scripts/build.sh")
    assert ID not in tree.listed()


def test_an_edited_header_rebuilds_what_includes_it(tree):
    """Only the variants are built here: the rest of the tree would take most of a minute."""
    targets = tree.call("ninja", "-C", tree.build, "-t", "targets", "all").splitlines()
    names = sorted(tree.listed())
    objects = [
        line.split(": ")[0] for line in targets if any(line.split(": ")[0].endswith(f"_{name}.cpp.o") for name in names)
    ]
    assert len(objects) == len(names)
    header = tree.root / "harness" / "variant.hpp"
    before = header.read_text()
    header.write_text(f"{before}// An edit.\n")
    said = tree.ninja(*objects)
    for compiled in objects:
        assert f"Compiling C++ object {compiled}" in said
    assert "Compiling" not in tree.ninja(*objects)
    header.write_text(before)  # for the compiler cache


def test_a_kernel_is_one_new_file_and_right_under_the_emulation(tree):
    """No nvcc and no card: the skeleton meets the odd problems of every form, under the sanitizers.

    The other kernels leave the copy first: each would be compiled again, for minutes, and none of them is asked."""
    others = [path for path in (tree.root / "algorithms").rglob("*.cu") if "XCORR_VARIANT(" in path.read_text()]
    assert len(others) > 20
    for other in others:
        other.unlink()
    before = set(tree.root.rglob("*"))
    said = tree.call(
        "scripts/new_variant.py", KERNEL, "--family", "brand_new", "--backend", "cuda", "--parent", min(tree.listed())
    )
    assert "brand_new is a new family" in said
    path = tree.root / "algorithms" / "brand_new" / f"{KERNEL}.cu"
    assert set(tree.root.rglob("*")) - before == {path.parent, path}
    tree.call("meson", "setup", "--reconfigure", tree.build, "-Dtests=true")
    compiled = tree.ninja("tests/emulation/emulation-tests")
    assert f"{KERNEL}_emulated.cpp" in compiled and compiled.count("_emulated.cpp") == 1
    said = tree.call(tree.build / "tests" / "emulation" / "emulation-tests", f"--gtest_filter=*Conformance*/{KERNEL}")
    assert "[  PASSED  ] 4 tests" in said


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["Bad-Name", "--family", "cpu", "--parent", "P"], "not a name"),
        (["P", "--family", "cpu", "--parent", "P"], "taken by"),
        (["fresh", "--family", "device", "--parent", "P"], "building blocks"),
        (["fresh", "--family", "cpu", "--parent", "no_such"], "nearest:"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(arguments, reason):
    known = next(path.stem for path in TREE if path.parts[:2] == ("algorithms", "cpu") and path.suffix == ".cpp")
    arguments = [known if word == "P" else word for word in arguments]
    done = call(sys.executable, ROOT / "scripts/new_variant.py", "--backend", "cpu", *arguments)
    assert done.returncode == 2 and reason in only_error(done.stderr)
    assert not list((ROOT / "algorithms").rglob("fresh.*"))
