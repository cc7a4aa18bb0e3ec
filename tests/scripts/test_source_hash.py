"""source_hash covers what a variant is, not how it is written; an edit of any kind is compiled again."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from calls import call, only_error

from xcorr.paths import ROOT

sys.path.insert(0, str(ROOT / "scripts" / "build"))
from stamp_sources import variant_files  # noqa: E402
from stamping import source_tokens  # noqa: E402
from stamping.source_tokens import read_source, source_hash  # noqa: E402

STAMP = ROOT / "scripts" / "build" / "stamp_sources.py"
VARIANT = "algorithms/family/example.cu"
LINE = f"{VARIANT}:example.cu"
FILES = {
    VARIANT: r"""// What it is.
#include "algorithms/device/tile.hpp"
#include "harness/variant.hpp"
#include <vector>

namespace xcorr {
namespace {
__device__ int lane() {
  int result;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(result));
  return result;
}
Support supports(const PlanRequest& q) {
  if (q.lefts > kLimit) return no("more than " + std::to_string(kLimit) + " lefts");
  check_cuda(cudaGetDevice(&device), "device");
  static_assert(kTile % 2 == 0, "tiles are even");
  if (device < 0) throw std::runtime_error("no device");
  return yes();
}
XCORR_VARIANT({
    .summary = "An example "
               "of two lines",
    .parent = "other",
    .source = "section 1",
    .axes = {{"left_rows", {"1", "2"}}},
    .supports = supports,
});
}  // namespace
}  // namespace xcorr
""",
    "algorithms/device/tile.hpp": r"""// Tiles.
#pragma once
#include "limits.hpp"
namespace xcorr {
#ifdef XCORR_EMULATE
inline void wait() { emulated(); }
#else
inline void wait() { __nanosleep(100); }
#endif
#if !defined(XCORR_EMULATE) && __CUDA_ARCH__ >= 900
inline constexpr int kTile = 4;
#endif
}  // namespace xcorr
""",
    "algorithms/device/limits.hpp": "#pragma once\ninline constexpr int kLimit = 1 << 30;\n",
    "harness/variant.hpp": "#pragma once\nnamespace xcorr {}\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def hash_of(tree: Path) -> str:
    return source_hash(tree, Path(VARIANT))


def edit(tree: Path, name: str, old: str, new: str) -> None:
    path = tree / name
    assert path.read_text().count(old) == 1, f"{old!r} is not there once"
    path.write_text(path.read_text().replace(old, new))


TILE, LIMITS = "algorithms/device/tile.hpp", "algorithms/device/limits.hpp"
EMULATED = "#ifdef XCORR_EMULATE\ninline void wait() { emulated(); }\n#else\n"
SLEEPS = "inline void wait() { __nanosleep(100); }"
SAME = {
    "a comment": (VARIANT, "// What it is.", '// What it was, /* and " more'),
    "a comment within": (VARIANT, "int result;", "int /* of 32 */ result;  // lane"),
    "layout": (VARIANT, "__device__ int lane() {", "__device__\nint  lane( )\n{"),
    "a continued line": (VARIANT, "int result;", "int \\\n  result;"),
    "summary": (VARIANT, "An example ", "Another example "),
    "summary in one literal": (VARIANT, '"An example "\n               "of two lines"', '"An example of two lines"'),
    "no parent": (VARIANT, '    .parent = "other",\n', ""),
    "source": (VARIANT, "section 1", "section 2"),
    "a refusal": (VARIANT, '"more than " + std::to_string(kLimit) + " lefts"', '"too many (lefts)"'),
    "what is said of a failed call": (VARIANT, '"device"', '"the device"'),
    "what is thrown": (VARIANT, '"no device"', 'std::string("no ") + "device"'),
    "what an assertion says": (VARIANT, ', "tiles are even"', ""),
    "asm in two literals": (VARIANT, '"mov.u32 %0, %%laneid;"', '"mov.u32 "\n       "%0, %%laneid;"'),
    "a system header": (VARIANT, "#include <vector>", "#include <vector>\n#include <array>"),
    "order of includes": (
        VARIANT,
        '#include "algorithms/device/tile.hpp"\n#include "harness/variant.hpp"',
        '#include "harness/variant.hpp"\n#include "algorithms/device/tile.hpp"',
    ),
    "the emulation": (TILE, "emulated();", "emulated(1);"),
    "no emulation": (TILE, f"{EMULATED}{SLEEPS}\n#endif", SLEEPS),
    "the other way round": (TILE, f"{EMULATED}{SLEEPS}\n#endif", f"#ifndef XCORR_EMULATE\n{SLEEPS}\n#endif"),
    "the harness": ("harness/variant.hpp", "namespace xcorr {}", "namespace xcorr { struct Call; }"),
    "a separator of digits": (TILE, "100", "1'00"),
}
OTHER = {
    "a constant": (LIMITS, "<< 30", "<< 29"),
    "an operator": (LIMITS, "<<", ">>"),
    "a comparison": (VARIANT, "q.lefts >", "q.lefts >="),
    "a namespace": (VARIANT, "namespace xcorr {", "namespace other {"),
    "asm": (VARIANT, "mov.u32", "mov.b32"),
    "asm's spaces": (VARIANT, "mov.u32 %0", "mov.u32  %0"),
    "a value of a parameter": (VARIANT, '{"1", "2"}', '{"1", "4"}'),
    "a name of a parameter": (VARIANT, '"left_rows"', '"left_mats"'),
    "values become one": (VARIANT, '{"1", "2"}', '{"1" "2"}'),
    "what is thrown is another": (VARIANT, "std::runtime_error", "OutOfMemory"),
    "a check is gone": (VARIANT, '  static_assert(kTile % 2 == 0, "tiles are even");\n', ""),
    "a condition on the device": (TILE, "__CUDA_ARCH__ >= 900", "__CUDA_ARCH__ >= 800"),
    "the branch that runs": (TILE, "__nanosleep(100)", "__nanosleep(101)"),
    "a directive's end": (
        TILE,
        "#if !defined(XCORR_EMULATE) && __CUDA_ARCH__ >= 900\ninline",
        "#if !defined(XCORR_EMULATE) && __CUDA_ARCH__ >= 900 inline\n",
    ),
    "a header is gone": (TILE, '#include "limits.hpp"\n', ""),
}


@pytest.mark.parametrize("name, old, new", SAME.values(), ids=SAME)
def test_how_it_is_written_does_not_count(tree, name, old, new):
    before = hash_of(tree)
    edit(tree, name, old, new)
    assert hash_of(tree) == before


@pytest.mark.parametrize("name, old, new", OTHER.values(), ids=OTHER)
def test_what_it_is_counts(tree, name, old, new):
    before = hash_of(tree)
    edit(tree, name, old, new)
    assert hash_of(tree) != before


def test_a_moved_and_renamed_header_does_not_count(tree):
    before = hash_of(tree)
    (tree / TILE).rename(tree / "algorithms/family/its_tile.hpp")
    (tree / LIMITS).rename(tree / "algorithms/family/limits.hpp")
    edit(tree, VARIANT, "algorithms/device/tile.hpp", "its_tile.hpp")
    assert hash_of(tree) == before


def test_the_contract_version_counts(tree, monkeypatch):
    before = hash_of(tree)
    monkeypatch.setattr(source_tokens, "CONTRACT_VERSION", source_tokens.CONTRACT_VERSION + 1)
    assert hash_of(tree) != before


@pytest.mark.parametrize(
    "one, other, same",
    [
        (r'"\x1" "2"', r'"\x12"', False),  # an escape ends where its literal ends
        ('R"x(a\n)")x"', r'"a\n)\""', True),
        ('u8"a"', '"a"', False),
        ("a+ +b", "a++b", False),
        ("'\"' /* \" */", "'\"'", True),
        ('"// no comment"', '""', False),
        ("x = 0x1p-3", "x=0x1p-3", True),
        ("x = 0x1p-3", "x = 0x1p - 3", False),
    ],
)
def test_tokens(one, other, same):
    assert (read_source(one) == read_source(other)) == same


def stamping(tree: Path) -> subprocess.CompletedProcess[str]:
    (tree / "units").mkdir(exist_ok=True)
    return call(sys.executable, "-S", STAMP, "stamp", tree, tree / "units", LINE)


def stamp(tree: Path) -> str:
    """The generated unit."""
    done = stamping(tree)
    assert done.returncode == 0, done.stderr
    return (tree / "units" / "example.cu").read_text()


@pytest.mark.parametrize("name", FILES)
def test_an_edit_of_any_kind_compiles_again(tree, name):
    """Meson 1.0 knows no headers of CUDA units: the unit itself must become another."""
    before = stamp(tree)
    with (tree / name).open("a") as file:
        file.write("// An edit.\n")
    after = stamp(tree)
    assert after != before
    stamped = [re.search(r'XCORR_SOURCE_HASH "(\w{16})"', unit)[1] for unit in (before, after)]
    assert stamped[0] == stamped[1] == hash_of(tree)


def test_what_is_not_understood_is_named(tree):
    edit(tree, TILE, "#if !defined(XCORR_EMULATE) &&", "#if __CUDACC__ || defined(XCORR_EMULATE) ||")
    done = stamping(tree)
    assert done.returncode == 1 and only_error(done.stderr).startswith(f"error: {TILE}: #if ")


def test_every_variant_has_a_hash_of_its_own():
    hashes = [source_hash(ROOT, path) for path in variant_files(ROOT)]
    assert len(hashes) > 30 and len(set(hashes)) == len(hashes)


def test_the_reduction_has_a_hash_for_each_backend(tmp_path):
    """Rows of reduced results carry it: tokens of the rules count for both backends, its own file for each."""
    harness = tmp_path / "harness"
    for name in {name for names in source_tokens.REDUCTION.values() for name in names}:
        (harness / name).parent.mkdir(parents=True, exist_ok=True)
        (harness / name).write_text((ROOT / "harness" / name).read_text())

    def hashes() -> tuple[str, str]:
        return source_tokens.reduction_hash(tmp_path, "cpu"), source_tokens.reduction_hash(tmp_path, "cuda")

    def add(name: str, text: str) -> None:
        with (harness / name).open("a") as file:
            file.write(text)

    first = hashes()
    assert first[0] != first[1] and all(re.fullmatch(r"\w{8}", one) for one in first)
    add("reduce/reduce_cpu.cpp", "// A comment.\n")
    assert hashes() == first
    add("reduce/reduce_cpu.cpp", "int more;\n")
    second = hashes()
    assert second[0] != first[0] and second[1] == first[1]
    add("reduce/reduce_rules.hpp", "int more;\n")
    assert all(new != old for new, old in zip(hashes(), second, strict=True))
