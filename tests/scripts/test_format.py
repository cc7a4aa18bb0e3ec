"""scripts/format.sh with mypy and clang-tidy, and the choice of what clang-tidy reads."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from calls import call
from stub_tree import ROOT, one_error


def test_what_mypy_finds_fails_the_check(tree):
    tree.stub("git", "echo a.py")
    (tree.root / "a.py").touch()
    assert tree.call("scripts/format.sh", "--check").returncode == 0
    tree.stub("python", 'case "$*" in "-m mypy"*) echo "a.py:1: error: of a hint"; exit 1 ;; esac')
    for words in (["--check"], []):
        done = tree.call("scripts/format.sh", *words)
        assert done.returncode == 1 and "a.py:1: error: of a hint" in done.stdout


def test_mypy_reads_no_hints_for_files_of_other_languages(tree):
    tree.stub("git", "echo a.cpp")
    (tree.root / "a.cpp").touch()
    tree.stub("python", 'case "$*" in "-m mypy"*) exit 1 ;; esac')
    assert tree.call("scripts/format.sh", "--check").returncode == 0


def test_checkers_that_cannot_be_installed_are_told_apart_from_mistakes(tree):
    tree.stub("python", 'case "$*" in *pip*) echo "ERROR: no network"; exit 1 ;; esac')
    for words in (["--check"], ["--tidy"]):
        done = tree.call("scripts/format.sh", *words, XCORR_FORMATTERS="")
        assert done.returncode == 77 and "ERROR: no network" in one_error(done)


def test_what_clang_tidy_finds_is_the_exit_code(tree):
    assert tree.call("scripts/format.sh", "--tidy").returncode == 0
    tree.stub("python", 'case "$*" in *clang_tidy.py*) exit 1 ;; esac')
    assert tree.call("scripts/format.sh", "--tidy").returncode == 1


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A tree with a build of a unit of harness/, which tests compile again, and of a stamped variant."""
    root = tmp_path / "root"
    for folder in ("scripts/build", "harness", "build", "tests"):
        (root / folder).mkdir(parents=True)
    shutil.copy(ROOT / "scripts/build/clang_tidy.py", root / "scripts/build")
    (root / "harness/views.cpp").touch()
    (root / "tests/test_views.cpp").touch()
    (root / "build/cpu_fft.cpp").write_text('#define XCORR_ID "cpu_fft"\n#include "algorithms/cpu/cpu_fft.cpp"\n')
    files = ["../harness/views.cpp", "../harness/views.cpp", "cpu_fft.cpp", "../tests/test_views.cpp"]
    entries = [{"directory": str(root / "build"), "file": file, "command": f"c++ {n}"} for n, file in enumerate(files)]
    (root / "build/compile_commands.json").write_text(json.dumps(entries))
    program = root / "clang-tidy"
    program.write_text('#!/bin/sh\necho "$@" >>"$LOG"; cp "$2/compile_commands.json" "$LOG.json"; exit "$CODE"\n')
    program.chmod(0o755)
    return root


def tidy(root: Path, *files: str, code: int = 0) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """How it ended, and the files that clang-tidy was asked for."""
    log = root / "log"
    log.unlink(missing_ok=True)
    env = {"PATH": "/usr/bin:/bin", "LOG": str(log), "CODE": str(code)}
    words = ("scripts/build/clang_tidy.py", root / "clang-tidy", "build", *files)
    done = call(sys.executable, *words, cwd=root, env=env)
    return done, sorted(line.split()[-1] for line in log.read_text().splitlines()) if log.exists() else []


def test_clang_tidy_reads_each_unit_of_the_harness_and_the_variants_once(built):
    done, asked = tidy(built)
    assert done.returncode == 0, done.stderr
    assert asked == [str(built / "build/cpu_fft.cpp"), str(built / "harness/views.cpp")]
    commands = [entry["command"] for entry in json.loads((built / "log.json").read_text())]
    assert sorted(commands) == ["c++ 0", "c++ 2"]
    done, _ = tidy(built, code=1)
    assert done.returncode == 1 and done.stderr.startswith("error: clang-tidy: ")


def test_clang_tidy_reads_the_files_that_are_named(built):
    done, asked = tidy(built, "algorithms/cpu/cpu_fft.cpp")
    assert done.returncode == 0 and asked == [str(built / "build/cpu_fft.cpp")]
    done, asked = tidy(built, "tests/test_views.cpp")
    assert done.returncode == 1 and "tests/test_views.cpp: no unit" in done.stderr and not asked
    (built / "build/compile_commands.json").unlink()
    assert "names no commands" in tidy(built)[0].stderr
