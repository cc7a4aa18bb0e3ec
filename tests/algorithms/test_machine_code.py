"""What nvcc makes of the sources: the vocabulary of cuda.hpp costs nothing, its machine code is that of the intrinsics
written out; no kernel that may start early does anything before it has waited; and none leaves asynchronous copies or
its cluster without a wait."""

import difflib
import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.mutants import ptx_rules
from tests.mutants.mutants import Edit, Mutant, sources, write_overlay
from xcorr.paths import ROOT

FIXTURES = ROOT / "tests/support/fixtures"
VOCABULARY, INTRINSICS = (FIXTURES / f"machine_code_{name}.cu" for name in ("vocabulary", "intrinsics"))
NVCC = shutil.which("nvcc")
STAMPS = [f'-DXCORR_{name}="x"' for name in ("ID", "FAMILY", "SOURCE_FILE", "SOURCE_HASH")]  # what the build adds
SHARED_NAME = re.compile(r"_Z\w*?(sums|xcorr_dynamic_shared)E?\b")  # mangled with its surroundings

ALL = "0xffffffffu"
LANE = '({ int lane_id; asm("mov.u32 %0, %%laneid;" : "=r"(lane_id)); lane_id; })'
WRITTEN_OUT = [
    (r"shuffle\(", f"__shfl_sync({ALL}, "),
    (r"shuffle_up\(", f"__shfl_up_sync({ALL}, "),
    (r"shuffle_down\(", f"__shfl_down_sync({ALL}, "),
    (r"shuffle_xor\(", f"__shfl_xor_sync({ALL}, "),
    (r"lane\(\)", LANE),
]

pytestmark = pytest.mark.skipif(NVCC is None, reason="needs nvcc")


def compiled(source: Path, kind: str, out: Path, *options: str) -> Path:
    """Path of the PTX or cubin of a source, for sm_90 with the options of the build."""
    out.mkdir(exist_ok=True)
    made = out / f"{source.stem}.{kind}"
    command = [NVCC, "-std=c++20", "--expt-relaxed-constexpr", "-O3", "-arch=sm_90", f"-{kind}", "-o", made, source]
    done = subprocess.run([*command, *options, f"-I{ROOT}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return made


def machine_code(cubin: Path) -> dict[str, bytes]:
    """Machine code by kernel: the sections .text.<kernel> of a 64-bit ELF file."""
    data = cubin.read_bytes()
    assert data[:5] == b"\x7fELF\x02", f"{cubin.name} is not a 64-bit ELF file"
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, table + size * i) for i in range(count)]
    found = {}
    for at, _, _, _, offset, length in headers:
        start = headers[names][4] + at
        name = data[start : data.index(b"\0", start)].decode()
        if name.startswith(".text."):
            found[without_file(name.removeprefix(".text."))] = data[offset : offset + length]
    assert found, f"{cubin.name} has no kernel"
    return found


def without_file(mangled: str) -> str:
    """A mangled name without its anonymous namespace, which is named after file and process."""
    space = re.search(r"(\d+)(?=_GLOBAL__N_)", mangled)
    return mangled if space is None else mangled[: space.start()] + mangled[space.end() + int(space[1]) :]


def instructions(ptx: Path) -> list[str]:
    """Lines of PTX without comments and what names them apart: registers' numbers, files, scopes."""
    lines = (re.sub(r"//.*", "", line).strip() for line in ptx.read_text().splitlines())
    plain = (re.sub(r"(%[a-z]+)\d+", r"\1", without_file(line)) for line in lines if line)
    return [SHARED_NAME.sub(r"\1", line) for line in plain if not line.startswith(".reg")]


def difference(named: Path, written: Path, out: Path, *options: str) -> str:
    """Where the machine code of two sources differs, with their PTX; empty where it does not.

    `options` are of the second one alone.
    """
    one = machine_code(compiled(named, "cubin", out / "named", *STAMPS))
    other = machine_code(compiled(written, "cubin", out / "written", *STAMPS, *options))
    assert one.keys() == other.keys()
    changed = [kernel for kernel in one if one[kernel] != other[kernel]]
    if not changed:
        return ""
    ptx = (
        instructions(compiled(written, "ptx", out / "written", *STAMPS, *options)),
        instructions(compiled(named, "ptx", out / "named", *STAMPS)),
    )
    sizes = ", ".join(f"{kernel} ({len(other[kernel])} bytes, now {len(one[kernel])})" for kernel in changed)
    lines = [*difflib.unified_diff(*ptx, "intrinsics", "vocabulary", lineterm="", n=0)]
    return "\n".join([f"machine code differs: {sizes}; PTX:", *lines[:40]])


def test_the_vocabulary_compiles_to_the_intrinsics(tmp_path: Path) -> None:
    found = difference(VOCABULARY, INTRINSICS, tmp_path)
    assert not found, found


@pytest.mark.parametrize(
    "changed, says", [("-DTOP_UP=__shfl_down_sync", "-shfl.sync.down"), ("-DONE_MORE=*1.5f", "0f3FC00000")]
)
def test_another_kernel_differs(tmp_path: Path, changed: str, says: str) -> None:
    """Another instruction of the same length, and one more: neither may go unseen."""
    found = difference(VOCABULARY, INTRINSICS, tmp_path, changed)
    assert found.startswith("machine code differs: kernel (") and says in found


@pytest.fixture(scope="module")
def written_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the algorithms in which the intrinsics stand in place of the vocabulary."""
    root, users = tmp_path_factory.mktemp("written_out"), ""
    shutil.copytree(ROOT / "algorithms", root / "algorithms")
    for path in (root / "algorithms").rglob("*"):
        if path.suffix not in (".cu", ".hpp"):
            continue
        # Of the vocabulary itself only what is built on the intrinsics, in its own namespace.
        head, mark, text = path.read_text().rpartition("#endif  // XCORR_EMULATE")
        for name, intrinsic in WRITTEN_OUT:
            text = re.sub((r"(?<![\w:])" if mark else r"\bwarp::") + name, lambda _, to=intrinsic: to, text)
        text = text.replace("block::barrier()", "__syncthreads()")
        text = re.sub(r"\batomic_add\(", "atomicAdd(", text)
        text = re.sub(r"XCORR_SHARED\(([\w:<>]+), (\w+), ([^;]+)\);", r"__shared__ \1 \2[\3];", text)
        path.write_text(head + mark + text)
        users += "" if mark else text
    left = re.search(r"warp::(shuffle|lane\()|block::barrier\(\)|\batomic_add\(|XCORR_SHARED", users)
    assert left is None, f"{left[0]} is still there"
    assert all(name in users for name in ("__shfl_sync(", "__shfl_up_sync(", "laneid", "atomicAdd(", "__syncthreads("))
    return root


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant", ["warp_shuffle/warp_shuffle", "warp_shuffle/split_row", "warp_per_overlap/block_per_overlap"]
)
def test_a_variant_compiles_to_the_intrinsics(written_out: Path, tmp_path: Path, variant: str) -> None:
    source = f"algorithms/{variant}.cu"
    found = difference(ROOT / source, written_out / source, tmp_path, f"-I{written_out}")
    assert not found, found


@pytest.fixture(scope="module")
def ptx_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The PTX of a unit, which is compiled once for all rules."""
    return cache(lambda unit: ptx_rules.compiled(ROOT / sources()[unit], tmp_path_factory.mktemp(unit)))


@pytest.mark.slow
@pytest.mark.parametrize("unit", ptx_rules.UNITS)
def test_a_dependent_launch_does_nothing_before_it_has_waited(ptx_of: Callable[[str], str], unit: str) -> None:
    """No store, no atomic, no trigger of the next launch, and no load but of tables that the plan stored."""
    ptx = ptx_of(unit)
    assert "griddepcontrol.wait" in ptx
    assert ptx_rules.broken_rules(unit, ptx) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "replace, says",
    [
        ("", "loads before it waits"),
        ("  let_next_start();\n  wait_for_previous();\n", "lets the next launch start before it waits"),
        ("  if (a.quads) wait_for_previous();\n", "writes before it waits"),
    ],
    ids=["no wait", "trigger first", "one branch waits"],
)
def test_a_kernel_that_does_not_wait_breaks_a_rule(tmp_path: Path, replace: str, says: str) -> None:
    edit = Edit("algorithms/fused_fft/fused_fft_warp/kernel.hpp", "  wait_for_previous();\n", replace)
    write_overlay(Mutant("planted", ("fused_fft_warp",), (edit,), ("ptx",)), tmp_path / "overlay")
    ptx = ptx_rules.compiled(ROOT / sources()["fused_fft_warp"], tmp_path, tmp_path / "overlay")
    assert any(says in what for what in ptx_rules.broken_rules("fused_fft_warp", ptx))


@pytest.mark.slow
@pytest.mark.parametrize("unit", ptx_rules.SHARED)
def test_copies_and_clusters_are_waited_for(ptx_of: Callable[[str], str], unit: str) -> None:
    ptx = ptx_of(unit)
    assert ("mapa" if "cluster" in unit else "cp.async.cg") in ptx
    assert ptx_rules.broken_rules(unit, ptx) == []


ASYNC, COPIES = "tiled/tiled_direct_async.cu", "before it has waited for its copies"


@pytest.mark.slow
@pytest.mark.parametrize(
    "source, find, replace, says",
    [
        (ASYNC, "      async_copy::wait();\n", "", COPIES),
        (ASYNC, "      async_copy::wait();\n", "      if (x0 > at.first_x) async_copy::wait();\n", COPIES),
        (ASYNC, "      async_copy::commit();\n", "", COPIES),
        ("tiled/tiled_direct_split.cu", "  async_copy::wait();\n", "", COPIES),
        (
            "fused_fft/fused_fft_cluster/kernel.hpp",
            "before all blocks have read it.\n      cluster::barrier();\n",
            "before all blocks have read it.\n      if (r + 1 < end) cluster::barrier();\n",
            "ends without a barrier of the cluster",
        ),
    ],
    ids=["no wait", "not the first panel", "no group", "split, no wait", "but not the last barrier"],
)
def test_a_race_of_shared_memory_breaks_a_rule(tmp_path: Path, source: str, find: str, replace: str, says: str) -> None:
    edited = Path("algorithms") / source
    unit = edited.stem if edited.suffix == ".cu" else edited.parent.name  # a header in the variant's folder
    write_overlay(Mutant("planted", (unit,), (Edit(str(edited), find, replace),), ("ptx",)), tmp_path / "overlay")
    compiled = tmp_path / "overlay" / edited if edited.suffix == ".cu" else ROOT / sources()[unit]
    ptx = ptx_rules.compiled(compiled, tmp_path, tmp_path / "overlay")
    assert any(says in what for what in ptx_rules.broken_rules(unit, ptx))
