"""Every symbol of namespace xcorr is defined once.

Types: a link with -flto -Wodr compares them across translation units. Functions: that link does not compare inline
functions, and of two with one name it silently takes either. So the place of each definition is read from debug
information, and a name with two places is an error.
"""

import re
import shutil
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from calls import call

from xcorr.paths import ROOT

# Of DWARF 5 with fat objects the assembler of binutils 2.40 may take the first header for a file of the unit's folder.
FLAGS = "-std=c++20 -O0 -g1 -gdwarf-4 -flto -ffat-lto-objects -fPIC -fopenmp -w -DXCORR_GRID_QUICK".split()
# Types are compared where the units are merged; the code of the whole, which takes most of a link, is not made.
LINK = "-r -flinker-output=rel -flto -O0 -Werror=odr -Werror=lto-type-mismatch".split()
EMULATED = '-DXCORR_EMULATE="tests/emulation/vocabulary.hpp"'
# Global functions and variables of the namespace, and what lies in its functions.
SYMBOL = re.compile(r"^[0-9a-f]+ ([TWVDBRu]) (_ZZ?N[VKRO]*5xcorr\w+)\t(.+)$", re.MULTILINE)
NEEDS_CUDA = re.compile(r"#include <(cuda|cufft|nvml)|harness/cuda_check\.hpp")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(shutil.which, ("g++", "nm", "objcopy"))), reason="needs g++ and binutils"),
]


def compiled(folder: Path, source: Path, *flags: str, compiler: tuple[str, ...] = ("g++",)) -> Path:
    """An object file of a source, which may lie in the folder, with code for the link with -flto and code with debug
    information."""
    built = folder / f"{source.name}.o"
    command = (*compiler, *FLAGS, *flags, "-I", ".", "-I", ROOT, "-c", source, "-o", built)
    done = call(*command, cwd=folder, CCACHE_NOHASHDIR="1")
    assert done.returncode == 0, done.stderr
    return built


def all_compiled(folder: Path, sources: list[Path], *flags: str) -> list[Path]:
    """With a compiler cache, where there is one, since code of the tree seldom changes. The paths that it is told are
    the same in every run; what lies in the folder defines nothing."""
    compiler = ("ccache", "g++") if shutil.which("ccache") else ("g++",)
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda source: compiled(folder, source, *flags, compiler=compiler), sources))


def link_errors(folder: Path, objects: list[Path]) -> str:
    """What the link says of types that differ; "" for a clean link."""
    done = call("g++", *LINK, *objects, "-o", folder / "linked.o")
    return "" if done.returncode == 0 else done.stderr


def listed(one: Path) -> str:
    """The symbols of an object file with their places, as nm prints them."""
    plain = one.with_suffix(".plain.o")
    assert call("objcopy", "-R", ".gnu.lto_*", "-R", ".gnu.debuglto_*", one, plain).returncode == 0
    return call("nm", "--defined-only", "-l", plain).stdout


def defined_twice(objects: list[Path]) -> dict[str, set[str]]:
    """Symbols with more than one place of definition, and their places."""
    places: dict[str, set[str]] = defaultdict(set)
    with ThreadPoolExecutor(2) as pool:
        for text in pool.map(listed, objects):
            for _, symbol, place in SYMBOL.findall(text):
                places[symbol].add(str(Path(place)))
    assert places, "no object has a symbol of namespace xcorr"
    return {symbol: found for symbol, found in places.items() if len(found) > 1}


def check(folder: Path, objects: list[Path]) -> None:
    assert link_errors(folder, objects) == ""
    assert defined_twice(objects) == {}


def unit(folder: Path, variant: Path) -> Path:
    """The translation unit of a variant in the folder, as the build writes it."""
    source = Path(f"unit_{variant.stem}.cpp")
    names = {"ID": variant.stem, "FAMILY": "family", "SOURCE_FILE": variant, "SOURCE_HASH": "none"}
    macros = "".join(f'#define XCORR_{name} "{value}"\n' for name, value in names.items())
    (folder / source).write_text(f'{macros}#include "{variant.relative_to(ROOT)}"\n')
    return source


def variants(suffix: str) -> list[Path]:
    return [path for path in sorted((ROOT / "algorithms").rglob(f"*{suffix}")) if "XCORR_VARIANT(" in path.read_text()]


@pytest.mark.exhaustive
def test_host_code(tmp_path):
    generated = {
        "build_facts.hpp": ["VERSION", "COMPILER", "FLAGS", "BENCHMARK_VERSION", "GRID"],
        "reduction_hash.hpp": ["REDUCTION_HASH_CPU", "REDUCTION_HASH_CUDA"],
    }
    for header, names in generated.items():
        (tmp_path / header).write_text("".join(f'#define XCORR_{name} ""\n' for name in names))
    host = [path for path in sorted((ROOT / "harness").rglob("*.cpp")) if not NEEDS_CUDA.search(path.read_text())]
    sources = [path for path in host if path.parent.name != "fftw"]  # takes the place of FFTW, which the others include
    sources += [unit(tmp_path, path) for path in variants(".cpp")]
    assert len(sources) > 15
    check(tmp_path, all_compiled(tmp_path, sources))


@pytest.mark.exhaustive
def test_kernels_as_the_emulation_compiles_them(tmp_path):
    """Headers of one family, of device/ and of blocks/ meet those of the others here; nvcc compiles them apart."""
    emulated = [path for path in variants(".cu") if "emulated = false" not in path.read_text()]
    assert len(emulated) > 15
    check(tmp_path, all_compiled(tmp_path, [unit(tmp_path, path) for path in emulated], EMULATED))


def two_objects(folder: Path, first: str, second: str) -> list[Path]:
    found = []
    for name, text in (("first.cpp", first), ("second.cpp", second)):
        (folder / name).write_text(f"namespace xcorr {{\n{text}\n}}\n")
        found.append(compiled(folder, Path(name)))
    return found


def test_two_types_of_one_name_are_found(tmp_path):
    objects = two_objects(
        tmp_path,
        "struct Plan { virtual ~Plan() = default; int rows; };\nvoid first(Plan& plan) { plan.rows = 1; }",
        "struct Plan { virtual ~Plan() = default; double cols; };\nvoid second(Plan& plan) { plan.cols = 1; }",
    )
    assert "One Definition Rule" in link_errors(tmp_path, objects)


def test_two_inline_functions_of_one_name_are_found(tmp_path):
    objects = two_objects(
        tmp_path,
        "inline long length(long n) { return n; }\nlong first(long n) { return length(n); }",
        "\ninline long length(long n) { return 2 * n; }\nlong second(long n) { return length(n); }",
    )
    assert link_errors(tmp_path, objects) == "", "else the second check is not needed"
    found = defined_twice(objects)
    assert list(found) == ["_ZN5xcorr6lengthEl"] and len(found["_ZN5xcorr6lengthEl"]) == 2


def test_a_function_that_is_inline_in_one_file_only_is_found(tmp_path):
    objects = two_objects(
        tmp_path,
        "long length(long n) { return n; }",
        "\ninline long length(long n) { return 2 * n; }\nlong second(long n) { return length(n); }",
    )
    assert list(defined_twice(objects)) == ["_ZN5xcorr6lengthEl"]


def test_one_header_in_two_files_is_right(tmp_path):
    (tmp_path / "header.hpp").write_text("inline long length(long n) { return n; }\nstruct Plan { int rows; };\n")
    text = '#include "header.hpp"\nlong {}(Plan plan) {{ return length(plan.rows); }}'
    check(tmp_path, two_objects(tmp_path, text.format("first"), text.format("second")))
