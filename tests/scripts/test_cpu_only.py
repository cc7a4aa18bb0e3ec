"""Builds for a CPU alone: no CUDA variant is compiled before one can be measured, and none stays left out afterwards."""

import shutil

import pytest
from stub_tree import StubTree

LOG = 'echo "$(basename "$0") $*" >>"$TMPDIR/log"'


@pytest.fixture
def builder(tree: StubTree) -> StubTree:
    """Meson notes its options and leaves what a configured folder has."""
    shutil.rmtree(tree.build)
    tree.stub("meson", f'{LOG}; for one; do case "$one" in */built) touch "$one/build.ninja" ;; esac; done')
    return tree


def configured(tree: StubTree, *words: str) -> list[str]:
    """How each call of Meson that `scripts/build.sh` makes sets the option cuda; "" where it leaves it."""
    log = tree.root.parent / "log"
    log.unlink(missing_ok=True)
    done = tree.call("scripts/build.sh", *words)
    assert done.returncode == 0, done.stderr
    lines = log.read_text().splitlines() if log.exists() else []
    options = [[word for word in line.split() if word.startswith("-Dcuda=")] for line in lines]
    assert all(len(one) <= 1 for one in options)
    return ["".join(one) for one in options]


def test_cuda_variants_come_with_the_next_usual_build(builder):
    assert configured(builder, "--cpu-only") == ["-Dcuda=disabled"]
    assert configured(builder, "--cpu-only") == []
    assert configured(builder) == ["-Dcuda=auto"]
    assert configured(builder) == []
    assert configured(builder, "--cpu-only") == [], "what is built stays"


def test_a_new_folder_has_cuda_variants(builder):
    assert configured(builder) == [""]
    assert configured(builder, "--cpu-only") == []


def test_an_option_that_was_given_stays(builder):
    assert configured(builder, "--cuda", "disabled") == ["-Dcuda=disabled"]
    assert configured(builder, "--cpu-only") == []
    assert configured(builder) == []


def test_disabled_by_both_stays_disabled(builder):
    assert configured(builder, "--cpu-only") == ["-Dcuda=disabled"]
    assert configured(builder, "--cuda", "disabled") == []
    assert configured(builder) == []


def test_a_build_that_failed_to_configure_is_no_cpu_build(builder):
    builder.stub("meson", "exit 1")
    assert builder.call("scripts/build.sh", "--cpu-only").returncode != 0
    builder.stub("meson", f'{LOG}; touch "{builder.build}/build.ninja"')
    assert configured(builder) == [""]


@pytest.mark.parametrize(
    ("words", "gpu", "left_out"),
    [
        ([], False, True),
        ([], True, False),
        (["--device", "cpu"], True, True),
        (["--device", "auto"], False, False),
        (["--device", "cuda:0"], False, False),
    ],
)
def test_reproduce_compiles_what_it_can_measure(tree, words, gpu, left_out):
    tree.without_first_steps()
    tree.stub("build.sh", LOG, tree.root / "scripts")
    tree.stub("nvidia-smi", "exit 0" if gpu else "exit 9")
    # A machine that runs this test may have a GPU.
    for file in ("nvidia", "dxg", "nvmap"):
        tree.edit("scripts/reproduce.sh", f"/dev/{file}", f"/nowhere/{file}")
    done = tree.call("scripts/reproduce.sh", *words)
    assert done.returncode == 0, done.stderr
    assert ("--cpu-only" in (tree.root.parent / "log").read_text()) == left_out
