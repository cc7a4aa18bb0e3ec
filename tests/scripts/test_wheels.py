"""The CPU wheel of scripts/wheels.sh: what it holds, and that every Python found here computes with it outside of the tree.

env XCORR_WHEEL=FILE: that wheel is tested, and none is built.
"""

import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from calls import call
from hangs import HANG_S

from xcorr.files import load_toml
from xcorr.paths import ROOT

pytestmark = pytest.mark.exhaustive
NOT_INSTALLED = 77  # of wheels.sh: the package index is not reached
# What glibc has. libgomp lies in the wheel, under the GCC Runtime Library Exception.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
MINORS = (10, 11, 12, 13)


def works(program: Path | str, minor: int) -> bool:
    asked = "import sys, venv, ensurepip; sys.exit(sys.version_info[1] != " + str(minor) + ")"
    try:
        return subprocess.run([program, "-c", asked], capture_output=True, timeout=HANG_S).returncode == 0
    except OSError:
        return False


def interpreter(minor: int) -> str | None:
    """A Python 3.<minor> that can make environments: of PATH, else of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser() / "versions"
    there = [shutil.which(f"python3.{minor}"), shutil.which("python3"), *pyenv.glob(f"3.{minor}.*/bin/python")]
    return next((str(one) for one in there if one and works(one, minor)), None)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    given = os.environ.get("XCORR_WHEEL")
    if given:
        return Path(given).resolve()
    out = tmp_path_factory.mktemp("wheels")
    done = call(ROOT / "scripts/wheels.sh", "--out", out, "cpu")
    if done.returncode == NOT_INSTALLED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    (made,) = out.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def needed(library: Path) -> set[str]:
    done = call("readelf", "-dW", library)
    assert done.returncode == 0, done.stderr
    return set(re.findall(r"NEEDED.*\[(.+)\]", done.stdout))


def without_hash(name: str) -> str:
    """libgomp-1a2b3c.so.1.0.0, as auditwheel names it, is libgomp."""
    return re.split(r"[-.]", name)[0]


def test_one_wheel_serves_every_python(wheel):
    assert re.fullmatch(r"xcorr_bench-[0-9.]+-py3-none-manylinux_2_\d+_\w+\.whl", wheel.name), wheel.name
    # glibc of Debian 12 is 2.36; a wheel that is made on it asks for no later one.
    assert all(int(minor) <= 36 for minor in re.findall(r"manylinux_2_(\d+)", wheel.name)), wheel.name


def test_the_wheel_holds_what_a_user_needs(unpacked):
    package = unpacked / "xcorr"
    there = ["lib/libxcorr.so", "include/xcorr.h", "lib/pkgconfig/xcorr.pc", "licences/README.md", "choice/speeds.toml"]
    missing = [name for name in [*there, "licences/LICENSE.pocketfft"] if not (package / name).is_file()]
    assert not missing
    for table in ROOT.glob("results/**/auto_table.json"):
        if "local" not in table.parts:
            copy = package / table.relative_to(ROOT)
            assert copy.read_bytes() == table.read_bytes(), copy
    modules = {path.relative_to(ROOT) for path in ROOT.glob("xcorr/**/*.py")}
    assert modules == {path.relative_to(unpacked) for path in package.glob("**/*.py")}
    assert not [path for path in unpacked.rglob("*") if path.suffix in (".pyc", ".gz", ".csv")]


def test_the_wheel_holds_no_library_under_the_gpl(unpacked):
    libraries = {path for path in unpacked.rglob("*") if ".so" in path.name}
    assert {without_hash(path.name) for path in libraries} <= {"libxcorr", "libgomp"}
    for library in libraries:
        beside = {path.name for path in libraries}
        assert needed(library) <= SYSTEM | beside, f"{library.name} needs {needed(library) - SYSTEM - beside}"
    # Text of FFTW itself; the names of its functions are in ours, which loads them.
    inside = (unpacked / "xcorr/lib/libxcorr.so").read_bytes()
    for text in (b"fftw-3.", b"Massachusetts Institute", b"GNU General Public"):
        assert text not in inside, text


def test_the_library_exports_what_the_header_declares(unpacked):
    listed = call("nm", "-D", "--defined-only", unpacked / "xcorr/lib/libxcorr.so").stdout
    exported = dict(re.findall(r" [TtDBVWRi] (\w+)@@(\w+)", listed))
    header = re.sub(r"/\*.*?\*/", "", (unpacked / "xcorr/include/xcorr.h").read_text(), flags=re.DOTALL)
    declared = set(re.findall(r"\b(xcorr_\w+)\(", header))
    assert set(exported) == declared and set(exported.values()) == {"XCORR_1"}
    others = [line for line in listed.splitlines() if "@@XCORR_1" not in line and " A XCORR_1" not in line]
    assert not others, others


@pytest.fixture(scope="module", params=MINORS, ids=lambda minor: f"python3.{minor}")
def installed(request, wheel, tmp_path_factory) -> Path:
    """A Python of an environment in which nothing but the wheel and its requirements is."""
    found = interpreter(request.param)
    if found is None:
        pytest.skip(f"Python 3.{request.param} is not on this machine")
    folder = tmp_path_factory.mktemp(f"environment-{request.param}")
    made = call(found, "-m", "venv", folder)
    assert made.returncode == 0, made.stderr
    done = call(folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    assert done.returncode == 0, done.stderr
    return folder / "bin" / "python"


def outside(folder: Path, python: Path, *arguments: object, **environment: str) -> str:
    """Standard output of that Python in a folder outside of the tree."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("XCORR_", "PYTHON"))}
    command = [str(one) for one in (python, *arguments)]
    done = subprocess.run(command, cwd=folder, env=kept | environment, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


CORRELATE = """
import ctypes, json, sys
import numpy as np
import xcorr.paths
from xcorr.choice.auto import Auto
from xcorr.native.library import Library
from xcorr.problem import Problem

def definition(left, right):
    (lh, lw), (rh, rw) = left.shape, right.shape
    padded = np.zeros((rh + 2 * lh - 2, rw + 2 * lw - 2))
    padded[lh - 1 : lh - 1 + rh, lw - 1 : lw - 1 + rw] = right
    return np.array([[np.sum(left * padded[y : y + lh, x : x + lw]) for x in range(lw + rw - 1)] for y in range(lh + rh - 1)])

library = Library()
problem = Problem("n-to-mn", (9, 14), (21, 10), 2, 4)
random = np.random.default_rng(7)
left, right = random.normal(size=(2, 9, 14)), random.normal(size=(4, 21, 10))
expected = np.array([definition(left[pair // 2], right[pair]) for pair in range(4)])
choice = Auto(library, "cpu").choose(problem)
worst = {}
for variant, precision in [(choice.variant, "fp32"), ("cpu_fft", "fp32"), ("cpu_fft", "fp64")]:
    out = library.correlate(problem, left, right, variant=variant, precision=precision)
    worst[f"{variant} {precision}"] = float(np.abs(out - expected).max() / np.abs(expected).max())
kept = library.session(problem, variant="cpu_fft")
worst["session"] = float(np.abs(kept.correlate(left, right) - expected).max() / np.abs(expected).max())
text = ctypes.create_string_buffer(400)
loaded = ctypes.CDLL(str(xcorr.paths.build_directory() / "libxcorr.so"))
assert loaded.xcorr_cpu_transforms(text, 400, None, 0) == 0
print(json.dumps({
    "file": xcorr.__file__, "why": choice.why, "worst": worst,
    "transforms": json.loads(text.value), "abi": loaded.xcorr_abi_version(),
    "user": str(xcorr.paths.set_folder(xcorr.paths.RESULTS, "local", "some-machine")),
}))
"""


@pytest.mark.parametrize("fftw", ["", "none"], ids=["fftw_where_installed", "pocketfft"])
def test_arrays_are_correlated_outside_of_the_tree(installed, tmp_path, fftw):
    said = json.loads(outside(tmp_path, installed, "-c", CORRELATE, XCORR_FFTW=fftw, HOME=str(tmp_path)))
    assert not Path(said["file"]).is_relative_to(ROOT)
    assert said["abi"] == 1
    assert "times of another machine" in said["why"] or "rows of this machine" in said["why"]
    for name, error in said["worst"].items():
        assert error < (1e-13 if "fp64" in name else 2e-6), (name, error)
    for version in said["transforms"].values():
        assert version == "pocketfft" or (not fftw and version.startswith("fftw-3")), said["transforms"]
    assert said["user"] == f"{tmp_path}/.local/share/xcorr-bench/results/local/some-machine"


def test_the_first_lines_of_the_readme_run(installed, tmp_path):
    lines = (ROOT / "README.md").read_text().partition("```python\n")[2].partition("```")[0]
    assert lines.startswith("import numpy, xcorr\n")
    assert outside(tmp_path, installed, "-c", lines, HOME=str(tmp_path)) == "(100, 200)\n"


def test_what_is_kept_lies_in_the_cache_folder_of_platformdirs(installed, tmp_path):
    asked = "import platformdirs; print(platformdirs.user_cache_dir('xcorr-bench'))"
    folder = Path(outside(tmp_path, installed, "-c", asked, HOME=str(tmp_path)).strip())
    outside(tmp_path, installed, "-c", CORRELATE, HOME=str(tmp_path))
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept == [path for path in kept if path.is_relative_to(folder)], kept


def test_the_command_is_installed(installed, tmp_path):
    version = load_toml(ROOT / "pyproject.toml")["project"]["version"]
    asked = "from importlib.metadata import version; print(version('xcorr-bench'))"
    assert outside(tmp_path, installed, "-c", asked).strip() == version
    make = "import numpy as np; np.save('left.npy', np.eye(8)); np.save('right.npy', np.eye(8))"
    outside(tmp_path, installed, "-c", make)
    said = outside(tmp_path, installed.parent / "xcorr", "left.npy", "right.npy", "--peaks", "-")
    assert said.splitlines()[1].startswith("0,0,0,0,0,8,"), said  # pair, left, right, sy, sx, value


def test_the_c_example_links_with_the_installed_library(installed, tmp_path):
    if shutil.which("pkg-config") is None or shutil.which("cc") is None:
        pytest.skip("needs cc and pkg-config")
    place = outside(tmp_path, installed, "-c", "import xcorr.paths; print(xcorr.paths.PKG_CONFIG)").strip()
    flags = call("pkg-config", "--cflags", "--libs", "xcorr", PKG_CONFIG_PATH=place)
    assert flags.returncode == 0, flags.stderr
    example = ROOT / "harness/library/example.c"
    program = tmp_path / "example"
    done = call("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", example, *flags.stdout.split(), "-o", program)
    assert done.returncode == 0, done.stderr
    for fftw in ("", "none"):
        assert call(program, XCORR_FFTW=fftw).stdout == "30.0\n"
