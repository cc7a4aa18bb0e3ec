"""The compiler's resource report: read, merged, judged; and what it says of the kernels that are built."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from built_library import built_library
from calls import call, error_of
from tree import ROOT

from experiments.compare import resources
from xcorr.paths import build_directory

BUILD = ROOT / "scripts/build"
sys.path.insert(0, str(BUILD))
try:
    import compile_kernels
    import merge_resources
finally:
    sys.path.pop(0)

ANONYMOUS = "_ZN5xcorr54_GLOBAL__N__8c56d0f6_18_grouped_overlap_cu_b820fca7_1022grouped_overlap_kernelILi2ELi4EEEvPf"
TYPED = "_ZN5xcorr10pad_kernelIfLi1EEEvNS_12PadArgumentsIT_EE"


def report(name: str, arch: str, used: str, frame: tuple[int, int, int] = (0, 0, 0)) -> list[str]:
    """What ptxas prints of a kernel."""
    return [
        f"ptxas info    : Compiling entry function '{name}' for 'sm_{arch}'",
        f"ptxas info    : Function properties for {name}",
        "    {} bytes stack frame, {} bytes spill stores, {} bytes spill loads".format(*frame),
        f"ptxas info    : Used {used}",
        "ptxas info    : Compile time = 12.924 ms",
    ]


def test_kernels_of_several_architectures():
    lines = [
        "ptxas info    : 0 bytes gmem",
        *report(ANONYMOUS, "80", "40 registers, 400 bytes cmem[0]"),
        *report(TYPED, "80", "255 registers, 4352 bytes smem, 8 bytes cumulative stack size", (8, 4, 12)),
        "ptxas info    : 16 bytes gmem, 8 bytes cmem[4]",
        *report(ANONYMOUS, "90a", "48 registers, used 0 barriers"),
    ]
    kernels, rest = compile_kernels.parse(lines)
    assert kernels == [
        compile_kernels.Kernel("80", ANONYMOUS, 40),
        compile_kernels.Kernel("80", TYPED, 255, 4352, 8, 4, 12),
        compile_kernels.Kernel("90a", ANONYMOUS, 48),
    ]
    assert rest == []


def test_the_stack_of_a_called_function_is_its_kernels():
    lines = report(TYPED, "90", "32 registers, 96 bytes cumulative stack size")
    lines[1:1] = [
        "ptxas info    : Function properties for called",
        "    96 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads",
    ]
    (kernel,), rest = compile_kernels.parse(lines)
    assert (kernel.stack_bytes, kernel.spill_store_bytes, rest) == (96, 0, [])


def test_what_is_not_the_report_is_kept():
    said = [
        "x.cu(3): warning #177-D: variable was declared but never referenced",
        "ptxas warning : Stack size for entry function 'k' cannot be statically determined",
        "ptxas info    : (C7510) Potential Performance Loss",
    ]
    _, rest = compile_kernels.parse([said[0], *report(TYPED, "90", "32 registers"), *said[1:]])
    assert rest == said


@pytest.mark.parametrize(
    ("signature", "named"),
    [
        ("void xcorr::(anonymous namespace)::grouped_overlap_kernel<2, 4>(float*)", ("grouped_overlap_kernel", "2, 4")),
        ("xcorr::(anonymous namespace)::split_row_kernel(xcorr::Rows, float const*)", ("split_row_kernel", "")),
        ("void xcorr::pad_kernel<float, (xcorr::Kind)1>(xcorr::Pad<float>)", ("pad_kernel", "float, (xcorr::Kind)1")),
        ("void a::b<c<1>, d::e>::kernel<c<2> >(c<2>)", ("kernel", "c<2> ")),
        ("plain_c_kernel", ("plain_c_kernel", "")),
    ],
)
def test_short_names(signature, named):
    assert compile_kernels.short_name(signature) == named


def test_names_in_anonymous_namespaces_are_read():
    signatures = compile_kernels.demangled([ANONYMOUS, TYPED])
    assert [compile_kernels.short_name(one) for one in signatures] == [
        ("grouped_overlap_kernel", "2, 4"),
        ("pad_kernel", "float, 1"),
    ]


@pytest.fixture
def compile_unit(tmp_path: Path):
    """Calls compile_kernels.py with a compiler that prints a text and exits with a code."""

    def compiled(
        text: str, code: int = 0, unit: str = '#define XCORR_ID "some_variant"\n'
    ) -> subprocess.CompletedProcess:
        compiler = tmp_path / "nvcc"
        compiler.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{text}\nEND\nexit {code}\n")
        compiler.chmod(0o755)
        (tmp_path / "unit.part1.cu").write_text(unit)
        words = "unit.part1.cu unit.o unit.json unit.d -- ./nvcc".split()
        return call(BUILD / "compile_kernels.py", *words, cwd=tmp_path)

    return compiled


def test_a_unit_is_reported_and_only_its_warnings_are_shown(compile_unit, tmp_path):
    done = compile_unit("\n".join(["x.cu(3): warning: odd", *report(ANONYMOUS, "90", "48 registers")]))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "x.cu(3): warning: odd\n")
    written = json.loads((tmp_path / "unit.json").read_text())
    assert (written["unit"], written["variant"]) == ("unit.part1.cu", "some_variant")
    (kernel,) = written["kernels"]
    assert (kernel["kernel"], kernel["arguments"], kernel["registers"]) == ("grouped_overlap_kernel", "2, 4", 48)


def test_a_unit_that_does_not_compile_ends_as_the_compiler_does(compile_unit, tmp_path):
    done = compile_unit("x.cu(3): error: expected a ;", code=3)
    assert (done.returncode, done.stderr) == (3, "x.cu(3): error: expected a ;\n")
    assert not (tmp_path / "unit.json").exists()


def test_a_compiler_that_is_gone_is_one_line(tmp_path):
    done = call(BUILD / "compile_kernels.py", *"a.cu a.o a.json a.d -- ./no-such-nvcc".split(), cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "error: ./no-such-nvcc: No such file or directory; configure the build again\n"


@pytest.mark.parametrize(
    ("arch", "registers", "shared", "warps", "share"),
    [
        ("90", 16, 0, 64, 1),
        ("90", 32, 0, 64, 1),
        ("90", 33, 0, 48, 0.75),
        ("90", 40, 0, 48, 0.75),
        ("90", 48, 0, 40, 0.625),
        ("90", 64, 0, 32, 0.5),
        ("90", 72, 0, 24, 0.375),
        ("90", 128, 0, 16, 0.25),
        ("90", 255, 0, 8, 0.125),
        ("90a", 64, 0, 32, 0.5),
        ("86", 32, 0, 48, 1),
        ("75", 64, 0, 32, 1),
        # 228 KiB hold four blocks of 48 KiB and the system's 1 KiB each; 100 KiB hold two; 64 KiB without it, one.
        ("90", 32, 48 * 1024, 32, 0.5),
        ("89", 32, 48 * 1024, 16, 1 / 3),
        ("75", 32, 48 * 1024, 8, 0.25),
        # 228 KiB hold 7 blocks of 31.5 + 1 KiB, 8 of 27.5 + 1, and no 8 when each has a byte more.
        ("90", 32, 32256, 56, 0.875),
        ("90", 32, 28160, 64, 1),
        ("90", 32, 28161, 56, 0.875),
    ],
)
def test_occupancy(arch, registers, shared, warps, share):
    assert merge_resources.occupancy(arch, registers, shared) == (warps, share)


def test_an_unknown_capability_has_no_occupancy():
    assert merge_resources.occupancy("999", 32, 0) is None


def kernel(**cells: object) -> dict[str, object]:
    bytes_of = dict.fromkeys(("shared_bytes", "stack_bytes", "spill_store_bytes", "spill_load_bytes"), 0)
    return {"arch": "90", "kernel": "k", "arguments": "1", "registers": 32, **bytes_of, **cells}


@pytest.fixture
def build(tmp_path: Path):
    """Merges reports, given as (variant, unit, seconds, kernels), into the tables of a build folder."""

    def merge(*reports: tuple[str, str, float, list[dict]]) -> str:
        paths = []
        for variant, unit, seconds, kernels in reports:
            paths.append(tmp_path / f"{unit}.json")
            text = json.dumps({"variant": variant, "unit": unit, "seconds": seconds, "kernels": kernels})
            if not paths[-1].exists() or paths[-1].read_text() != text:
                paths[-1].write_text(text)
        tables = (tmp_path / "resources.csv", tmp_path / "compile_seconds.csv")
        return call(BUILD / "merge_resources.py", *tables, *paths).stdout

    return merge


def test_units_of_a_variant_are_merged(build, tmp_path):
    shared = kernel(kernel="of_a_header", registers=16)
    said = build(
        ("one", "one.cu", 1.5, [kernel(), shared]),
        ("one", "one.part1.cu", 2.25, [kernel(arguments="2", registers=64), shared]),
        ("other", "other.cu", 4, [kernel(arch="999", stack_bytes=8)]),
    )
    with (tmp_path / "resources.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = ("variant", "kernel", "arguments", "warps_per_sm", "occupancy")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        ("one", "k", "1", "64", "1.0"),
        ("one", "k", "2", "32", "0.5"),
        ("one", "of_a_header", "1", "64", "1.0"),
        ("other", "k", "1", "", ""),
    ]
    assert [line.split() for line in said.splitlines()[1:]] == [
        ["one", "3", "3.8", "16-64", "0"],
        ["other", "1", "4.0", "32", "8"],
    ]


def test_only_what_was_compiled_again_is_printed(build, tmp_path):
    one, other = ("one", "one.cu", 1.5, [kernel()]), ("other", "other.cu", 4, [kernel()])
    build(one, other)
    for path in tmp_path.glob("*.cu.json"):
        os.utime(path, (1, 1))
    said = build(one, ("other", "other.cu", 5, [kernel()]))
    assert [line.split()[0] for line in said.splitlines()] == ["variant", "other"]
    for path in tmp_path.glob("*.cu.json"):
        os.utime(path, (1, 1))
    assert build(one, ("other", "other.cu", 5, [kernel()])) == ""


def test_local_memory_is_a_fault_but_in_an_ablation(build, tmp_path, capsys):
    ablation = resources.allowed()[0]
    build((ablation, "a.cu", 1, [kernel(stack_bytes=64)]), ("", "harness.cu", 1, [kernel(stack_bytes=8)]))
    assert resources.main(["--build", str(tmp_path)]) == 0
    assert "error" not in capsys.readouterr().err
    for cells in ({"stack_bytes": 8}, {"spill_store_bytes": 4}, {"spill_load_bytes": 4}):
        build((ablation, "a.cu", 1, [kernel(stack_bytes=64)]), ("fast", "b.cu", 1, [kernel(**cells)]))
        assert resources.main(["--build", str(tmp_path)]) == 1
        assert error_of(capsys).startswith("error: fast: k<1> on sm_90 uses local memory")


def test_capped_registers_may_spill_a_little(build, tmp_path, capsys):
    variant, limit = next(iter(resources.capped().items()))
    for spilled, code in ((limit, 0), (limit + 4, 1)):
        build((variant, "a.cu", 1, [kernel(spill_store_bytes=4, spill_load_bytes=spilled)]))
        assert resources.main(["--build", str(tmp_path)]) == code
    assert f"{limit + 4} of spill loads" in capsys.readouterr().err


def test_the_tables(build, tmp_path, capsys):
    build(
        ("fast", "b.cu", 1.5, [kernel(), kernel(arguments="2", registers=64), kernel(arch="80")]),
        ("fast", "b.part1.cu", 2, [kernel(arguments="3")]),
    )
    assert resources.main(["--build", str(tmp_path), "--markdown"]) == 0
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert lines[2:] == [
        ["fast", "sm_80", "1", "3.5", "32", "0", "0", "0", "0", "100%"],
        ["fast", "sm_90", "3", "", "32..64", "0", "0", "0", "0", "50%..100%"],
    ]
    assert resources.main(["--build", str(tmp_path), "--by-point"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()][4][:4] == ["fast", "sm_90", "k<2>", "64"]


@pytest.mark.parametrize(
    ("arguments", "said"), [(["--build", "/nonexistent"], "not there; build with CUDA"), (["--bild"], "see --help")]
)
def test_mistakes_are_one_line(arguments, said, capsys):
    assert resources.main(arguments) == 2
    assert said in error_of(capsys)


@pytest.fixture
def built() -> list[resources.Row]:
    """The report of the real build."""
    if not any(variant["backend"] == "cuda" for variant in built_library().variants()):
        pytest.skip("built without CUDA")
    return resources.read(build_directory() / resources.KERNELS)


def test_every_cuda_variant_is_in_the_report(built):
    listed = {variant["id"] for variant in built_library().variants() if variant["backend"] == "cuda"}
    assert listed == {row["variant"] for row in built} - {""}
    assert all(row["registers"] for row in built)
    timed = resources.read(build_directory() / resources.SECONDS)
    # 0.0 seconds where a compiler cache had the object
    assert listed <= {row["variant"] for row in timed if float(row["seconds"]) >= 0}


def test_no_built_kernel_uses_local_memory_but_the_ablations(built):
    assert resources.faults(built) == []


@pytest.mark.parametrize("ablation", resources.allowed())
def test_an_ablation_does_use_local_memory(ablation, built):
    kernels = [row for row in built if row["variant"] == ablation]
    assert kernels and all(int(row["stack_bytes"]) for row in kernels)
