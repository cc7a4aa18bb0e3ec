"""No script ends without a word: whatever fails under it, one line says so."""

import re
import shutil
from pathlib import Path

import pytest
from stub_tree import ROOT, StubTree, one_error

# What each script is called with, so that all of it is reached.
CALLS = {
    ".ci/run": [["--fast"]],
    "scripts/archive.sh": [[], ["--check", "a.zip"], ["--local", "a", "--output", "b.zip"]],
    "scripts/build.sh": [["--grid", "paper"]],
    "scripts/build/gpu_arch.sh": [[]],
    "scripts/build/mathdx.sh": [[]],
    "scripts/format.sh": [["--check"], ["--tidy"], []],
    "scripts/publish.sh": [[]],
    "scripts/replot.sh": [[]],
    "scripts/reproduce.sh": [["--results", "results"]],
    "scripts/setup.sh": [["--no-apt"], ["--python-only", "--no-apt"]],
    "scripts/slurm_array.sh": [["--results", "results"], ["--step", "shard"], ["--step", "draw:41"]],
    "scripts/test.sh": [["--exhaustive"]],
    "scripts/test_debootstrap.sh": [["--base", "new.tar"], ["--only", "reproduce"]],
    "scripts/try": [["my_variant"]],
    "scripts/wheels.sh": [["--out", "dist", "cpu"]],
    "scripts/xcorr": [["--help"]],
}
TOOLS = (
    "apt-get basename c++ cat chroot cp debootstrap find git grep head id meson mkdir mktemp mount "
    "ninja nvcc nvidia-smi paste pkg-config python3 realpath rm sbatch sed sha256sum sort tail tar tr"
).split()
CASES = [
    pytest.param(script, words, tool, id=f"{script} {' '.join(words)}: {tool}")
    for script, several in CALLS.items()
    for words in several
    for tool in ["nothing", *TOOLS]
    if tool == "nothing"
    or re.search(
        rf"(?<![\w./-]){re.escape(tool)}(?![\w/-])", (ROOT / script).read_text() + (ROOT / "scripts/env.sh").read_text()
    )
]


def prepared(tree: StubTree, script: str) -> StubTree:
    if script not in ("scripts/setup.sh", "scripts/build.sh"):
        tree.without_first_steps()
    if script == "scripts/format.sh":
        for tool in ("bin/ruff", "bin/mypy", "clang_format/data/bin/clang-format", "clang_tidy/data/bin/clang-tidy"):
            path = tree.root / ".cache/formatters-" / tool
            path.parent.mkdir(parents=True, exist_ok=True)
            tree.stub(path.name, "", path.parent)
        tree.stub("git", "echo a.py; echo a.cpp")
        for name in ("a.py", "a.cpp"):
            (tree.root / name).touch()
    if script == "scripts/wheels.sh":
        tools = tree.root / ".cache/wheels-/bin"
        tools.mkdir(parents=True)
        tree.stub("python", "", tools)
        tree.stub("wheel", "", tools)
        tree.stub("auditwheel", 'while [ "$1" != --wheel-dir ]; do shift; done; mkdir -p "$2"; touch "$2/a.whl"', tools)
    state = tree.root / "results/slurm/41"
    state.mkdir(parents=True)
    for number in range(1, 5):
        (state / f"{number}.finished").write_text("0\n")
        (state / f"{number}.key").write_text("made-up-machine\n")
    return tree


def test_every_script_is_called_here():
    found = [
        path for folder in ("scripts", "scripts/build", ".ci") for path in (ROOT / folder).iterdir() if path.is_file()
    ]
    shell = {str(path.relative_to(ROOT)) for path in found if path.read_bytes().startswith(b"#!/usr/bin/env bash")}
    assert shell == set(CALLS)


@pytest.mark.parametrize(("script", "words", "tool"), CASES)
def test_a_tool_that_fails_silently_does_not_end_the_script_silently(tree, script, words, tool):
    prepared(tree, script)
    if tool != "nothing":
        tree.stub(tool, "exit 1")
    done = tree.call(script, *words)
    if tool == "nothing" and script != "scripts/setup.sh":
        assert done.returncode == 0, done.stderr
    if done.returncode == 0:
        return
    lines = done.stderr.splitlines()
    assert lines and lines[-1].startswith("error: "), f"exit {done.returncode}: {done.stderr!r}"
    # Other tools may speak before. Steps of the exhaustive tests have an error each, and all go on.
    more = [line for line in lines[:-1] if line.startswith("error: ")]
    assert not more or (script == "scripts/test.sh" and lines[-1].startswith("error: tests: "))


@pytest.mark.parametrize("name", ["Python", "Meson", "Ninja"])
@pytest.mark.parametrize("state", ["gone", "never chosen"])
def test_a_program_that_was_chosen_is_named_when_it_is_gone(tree, name, state):
    variable = {"Python": "XCORR_PYTHON", "Meson": "XCORR_MESON", "Ninja": "NINJA"}[name]
    chosen = tree.root / ".xcorr-env"
    text = re.sub(rf".*{variable}=.*\n", "", chosen.read_text())
    chosen.write_text(text + (f"export {variable}='/no/such/program'\n" if state == "gone" else ""))
    script = "scripts/build.sh"
    if name == "Python":
        script = "scripts/replot.sh" if state == "never chosen" else "scripts/xcorr"
        tree.without_first_steps()
    said = one_error(tree.call(script))
    assert said.startswith(f"error: {name}: ") and "scripts/setup.sh" in said


def debootstrap_with(tree: StubTree, sources: dict[str, str]) -> tuple[StubTree, Path]:
    """The script with another /etc, which is Debian's and has only these files in apt/."""
    etc = tree.root.parent / "etc"
    (etc / "apt/apt.conf.d").mkdir(parents=True)
    (etc / "os-release").write_text("ID=debian\n")
    for name, text in sources.items():
        (etc / "apt" / name).parent.mkdir(exist_ok=True)
        (etc / "apt" / name).write_text(text)
    path = tree.root / "scripts/test_debootstrap.sh"
    path.write_text(re.sub(r'(?<![\w"])/etc/(?=apt|os-release)', f"{etc}/", path.read_text()))
    tree.stub("debootstrap", 'echo "$*" >"$TMPDIR/asked"; mkdir -p "$3/etc/apt" "$3/proc" "$3/sys"')
    return tree, tree.root.parent / "asked"


@pytest.mark.parametrize(
    ("sources", "mirror"),
    [
        ({}, ""),
        ({"sources.list": "deb https://mirror.test/debian bookworm main\n"}, "https://mirror.test/debian"),
        (
            {"sources.list.d/debian.sources": "Types: deb\nURIs: https://other.test/debian\n"},
            "https://other.test/debian",
        ),
        ({"sources.list.d/own.list": "# nothing\n"}, ""),
    ],
    ids=["none", "list", "deb822", "comment"],
)
def test_package_sources_of_every_kind_of_debian(tree, sources, mirror):
    tree, asked = debootstrap_with(tree, sources)
    done = tree.call("scripts/test_debootstrap.sh")
    assert done.returncode == 0, done.stderr
    assert asked.read_text().split()[3:] == ([mirror] if mirror else [])


def test_a_run_that_measured_nothing_is_said(tree):
    tree.stub("chroot", "exit 1")
    said = one_error(tree.call("scripts/test_debootstrap.sh", "--only", "reproduce"))
    assert "nothing was measured" in said


def test_a_driver_that_does_not_know_its_gpu_counts_as_none(tree):
    tree.stub("nvidia-smi", "echo '[N/A]'")
    done = tree.call("scripts/build/gpu_arch.sh")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


LAST_WORDS = """#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
in_a_function() {
  %s
}
in_a_function
echo not reached
"""


@pytest.mark.parametrize(
    "command",
    ["false", "found=$(false)", "false | cat", "( exit 3 )", "cat </dev/null | grep x", "read -r x < <(false)"],
)
def test_the_last_words_name_script_line_and_command(tree, command):
    path = tree.root / "scripts/odd.sh"
    path.write_text(LAST_WORDS % command)
    path.chmod(0o755)
    done = tree.call("scripts/odd.sh")
    said = one_error(done)
    assert "odd.sh, line 5: " in said and "exit code" in said and not done.stdout
    part = {"false | cat": "cat", "cat </dev/null | grep x": "grep x", "read -r x < <(false)": "read -r x"}
    assert f'"{part.get(command, command)}' in said


@pytest.mark.parametrize("layout", ['{"directories": {"source": "%s", "x": 1}}', '{\n  "source": "%s",\n  "x": 1\n}\n'])
def test_a_build_folder_of_another_tree_is_refused(tree, layout):
    """Ninja would build the sources of the other one."""
    (tree.build / "meson-info").mkdir(parents=True, exist_ok=True)
    (tree.build / "build.ninja").touch()
    facts = tree.build / "meson-info" / "meson-info.json"
    facts.write_text(layout % "/elsewhere")
    said = one_error(tree.call("scripts/build.sh"))
    assert "is a build folder of /elsewhere" in said and "XCORR_BUILD" in said
    facts.write_text(layout % tree.root)
    assert "build folder of" not in tree.call("scripts/build.sh").stderr


def test_a_tree_that_cannot_be_written_is_said(tree):
    """Not by permissions, which root does not heed: a folder lies where the file should."""
    shutil.rmtree(tree.build)
    tree.build.write_text("a file")
    assert "cannot be made" in one_error(tree.call("scripts/build.sh"))
    (tree.root / ".xcorr-env").unlink()
    (tree.root / ".xcorr-env").mkdir()
    tree.stub("python", "exit 0")
    tree.edit("scripts/setup.sh", "look\nif ! complete", "look\npackages=() python=x meson=x ninja=x\nif ! complete")
    assert "cannot be written" in one_error(tree.call("scripts/setup.sh", "--no-apt"))
