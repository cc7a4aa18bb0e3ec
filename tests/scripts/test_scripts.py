"""Every script says what it is for, refuses a mistake in one line, and set-up chooses well."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from calls import call, only_error
from tree import ROOT, TREE

SOURCED = {"env.sh"}
COMMANDS = [
    path
    for path in TREE
    if path.parts[:-1] in (("scripts",), ("scripts", "build"), (".ci",))
    and path.suffix in (".sh", ".py", "")
    and path.name not in SOURCED
]
SHELL = [path for path in TREE if path.suffix == ".sh" or path == Path(".ci/run")]


@pytest.mark.parametrize("script", COMMANDS, ids=str)
def test_help_with_an_example(script):
    done = call(ROOT / script, "--help")
    assert done.returncode == 0, done.stderr
    assert re.search("example", done.stdout, re.IGNORECASE), "no example"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("script", [path for path in SHELL if path.name not in SOURCED], ids=str)
def test_an_unknown_option_is_one_line(script):
    done = call(ROOT / script, "--no-such-option")
    assert done.returncode == 2 and only_error(done.stderr).startswith("error: --no-such-option") and not done.stdout


@pytest.mark.parametrize("script", SHELL, ids=str)
def test_shell_scripts_are_strict_and_clean(script):
    if script.name not in SOURCED:
        assert "\nset -euo pipefail\n" in (ROOT / script).read_text()
        assert os.access(ROOT / script, os.X_OK), f"{script} is not executable"
    if shutil.which("shellcheck"):
        done = call("shellcheck", "-x", script)
        assert done.returncode == 0, done.stdout


@pytest.fixture
def bare(tmp_path) -> Path:
    """The scripts in a tree of their own, so that set-up writes no choice into this one."""
    shutil.copytree(ROOT / "scripts", tmp_path / "tree" / "scripts")
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "tree")
    return tmp_path / "tree"


def lacking(folder: Path, modules: str) -> Path:
    """A python3 on PATH that has neither the packages nor, if named, `modules`."""
    folder.mkdir(exist_ok=True)
    program = folder / "python3"
    program.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *"{modules}"*) exit 1 ;; *missing*) echo "pandas>=1.5"; exit 1 ;; esac\n'
        f'exec {sys.executable} "$@"\n'
    )
    program.chmod(0o755)
    return program


def set_up_python(bare: Path, folder: Path, program: object) -> subprocess.CompletedProcess[str]:
    """Set-up of Python alone, with a folder first on PATH and a program in place of the system's Python."""
    script = bare / "scripts/setup.sh"
    script.write_text(script.read_text().replace("/usr/bin/python3", str(program)))
    path = f"{folder}:{os.environ['PATH']}"
    return call(script, "--python-only", "--no-apt", XCORR_PYTHON="", PATH=path)


def test_set_up_is_quick_when_nothing_is_missing(bare, tmp_path):
    """Quick is counted, not timed: interpreters are started for three questions, nothing is installed."""
    calls = tmp_path / "calls"
    for name in ("python", "apt-get"):
        program = f'exec {sys.executable} "$@"' if name == "python" else "exit 1"
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" >>{calls}\n{program}\n')
        (tmp_path / name).chmod(0o755)
    where = {"XCORR_PYTHON": str(tmp_path / "python"), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    first = call(bare / "scripts/setup.sh", **where)
    assert first.returncode == 0, first.stderr
    chosen = (bare / ".xcorr-env").read_text()
    calls.unlink()
    again = call(bare / "scripts/setup.sh", **where)
    assert again.returncode == 0, again.stderr
    asked = calls.read_text().splitlines()
    assert len(asked) == 3 and all(line.startswith(("python -c", "python scripts/")) for line in asked), asked
    assert (bare / ".xcorr-env").read_text() == chosen and "XCORR_PYTHON=" in chosen
    assert not (bare / ".venv").exists()


def test_a_python_on_path_without_the_packages_does_no_harm(bare, tmp_path):
    lacking(tmp_path / "bin", "nothing in particular")
    done = set_up_python(bare, tmp_path / "bin", sys.executable)
    assert done.returncode == 0, done.stderr
    assert f"XCORR_PYTHON='{sys.executable}'" in (bare / ".xcorr-env").read_text()


def test_what_is_missing_is_named_with_its_package(bare):
    lacks = {"CXX": "no-such-compiler", "PKG_CONFIG_LIBDIR": "/nonexistent", "PKG_CONFIG_PATH": ""}
    done = call(bare / "scripts/setup.sh", "--no-apt", XCORR_PYTHON=sys.executable, **lacks)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    for package in ("g++", "libbenchmark-dev", "libfftw3-dev", "nlohmann-json3-dev", "libgtest-dev"):
        assert any(line.startswith("missing: ") and line.endswith(f"package: {package})") for line in lines), package
    assert lines[-1].startswith("error: set-up is not complete; as root: apt-get install")
    assert not (bare / ".xcorr-env").exists()


def test_a_python_that_can_make_no_environment_is_said_in_one_line(bare, tmp_path):
    """No interpreter has the packages, none has ensurepip."""
    program = lacking(tmp_path / "bin", "ensurepip")
    done = set_up_python(bare, tmp_path / "bin", program)
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("missing: ")]
    assert len(said) == 1 and "ensurepip" in said[0] and "python3-venv" in said[0]


def test_the_list_of_packages_is_the_one_of_pyproject():
    listed = call(sys.executable, ROOT / "scripts/build/python_packages.py", "list").stdout.split()
    text = (ROOT / "pyproject.toml").read_text()
    assert len(listed) >= 10
    assert all(f'"{requirement}' in text for requirement in listed)
    lean = call(sys.executable, ROOT / "scripts/build/python_packages.py", "list", "--no-tests").stdout
    assert not re.search("pytest|hypothesis", lean) and "pandas" in lean


def test_a_package_whose_version_is_no_number_is_missing(tmp_path):
    (tmp_path / "numpy-unknown.dist-info").mkdir()
    (tmp_path / "numpy-unknown.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: unknown\n")
    done = call(sys.executable, ROOT / "scripts/build/python_packages.py", "missing", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1 and re.search("^numpy>=", done.stdout, re.MULTILINE), done.stderr


@pytest.fixture
def parts(tmp_path) -> Path:
    """A tree of one kernel that is compiled in three parts, and a folder for its units."""
    source = tmp_path / "algorithms" / "family" / "tiled.cu"
    source.parent.mkdir(parents=True)
    source.write_text("// A kernel.\nXCORR_COMPILE_IN_PARTS(3);\n")
    (tmp_path / "units").mkdir()
    return tmp_path


STAMP = ROOT / "scripts/build/stamp_sources.py"
THREE = "algorithms/family/tiled.cu:tiled.cu,tiled.part1.cu,tiled.part2.cu"


def test_a_variant_in_parts_is_several_units(parts):
    assert call(STAMP, "list", parts).stdout == f"tiled:cu:{THREE}:\n"
    done = call(STAMP, "stamp", parts, parts / "units", THREE)
    assert done.returncode == 0, done.stderr
    units = {path.name: path.read_text() for path in (parts / "units").glob("*.cu")}
    assert sorted(units) == ["tiled.cu", "tiled.part1.cu", "tiled.part2.cu"]
    for part, name in enumerate(sorted(units)):
        assert f"#define XCORR_PART {part}\n#define XCORR_PARTS 3\n" in units[name]
        assert '#define XCORR_ID "tiled"\n' in units[name]
    assert len({re.search("SOURCE_HASH.*", text)[0] for text in units.values()}) == 1


def test_a_variant_that_needs_a_target_is_listed_with_it(parts):
    source = parts / "algorithms" / "family" / "tiled.cu"
    source.write_text("// A kernel.\nXCORR_NEEDS_TARGET(sm_90a);\n")
    assert call(STAMP, "list", parts).stdout == "tiled:cu:algorithms/family/tiled.cu:tiled.cu:sm_90a\n"


@pytest.mark.parametrize(("number", "state"), [(2, "is gone"), (4, "is new")])
def test_another_number_of_parts_asks_to_configure_again(parts, number, state):
    source = parts / "algorithms" / "family" / "tiled.cu"
    source.write_text(f"// A kernel.\nXCORR_COMPILE_IN_PARTS({number});\n")
    done = call(STAMP, "stamp", parts, parts / "units", THREE)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: algorithms/family/tiled.cu: {state} since the build was configured; run ")
    assert "--reconfigure" in done.stderr and done.stderr.count("\n") == 1
    assert not list((parts / "units").iterdir())


def test_the_page_of_variants_is_what_the_program_lists():
    program = Path(os.environ.get("XCORR_BUILD", ROOT / "build")) / "xcorr-bench"
    if not program.exists() and not os.environ.get("XCORR_REQUIRE_BUILD"):
        pytest.skip("xcorr-bench is not built")
    words = "-m plots.report.pages --check --page docs/variants.md".split()
    done = call(sys.executable, *words, XCORR_BUILD=str(program.parent))
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nrun python3 -m plots.report.pages"
