"""The rules of dependent launches and of shared memory find what they are for, in PTX that is written by hand."""

import pytest

from tests.mutants import ptx_rules, ptx_shared
from tests.mutants.mutants import ROOT, sources
from tests.mutants.ptx import kernels

HEAD = """
.visible .entry kernel(
	.param .align 8 .b8 kernel_param_0[64],
	.param .u64 kernel_param_1
)
{
	.reg .b64 	%rd<9>;
	mov.b64 	%rd1, kernel_param_0;
	ld.param.u64 	%rd2, [%rd1+24];
	ld.param.u64 	%rd3, [kernel_param_1];
	cvta.to.global.u64 	%rd4, %rd2;
	cvta.to.global.u64 	%rd5, %rd3;
	ld.param.u32 	%r1, [kernel_param_0+8];
	setp.eq.s32 	%p1, %r1, 0;
"""
WAIT = "\tgriddepcontrol.wait;\n"
STORE = "\tst.global.f32 \t[%rd5], %f1;\n"
LET_NEXT = "\tgriddepcontrol.launch_dependents;\n"
END = "\tret;\n\n}\n"


def found(body: str, known: dict[str, int] | None = None) -> list[str]:
    (kernel,) = kernels(HEAD + body + END)
    kernel.tables = frozenset({"0+24"})
    kernel.known = known or {}
    return ptx_rules.violations(kernel)


@pytest.mark.parametrize(
    "body",
    [
        WAIT + "\tgriddepcontrol.launch_dependents;\n\tld.global.f32 \t%f1, [%rd5];\n" + STORE,
        # The table of the plan, and shared memory.
        "\tld.global.v2.f32 \t{%f2, %f3}, [%rd4+8];\n\tst.shared.f32 \t[%r2], %f2;\n" + WAIT + STORE,
        # Either branch waits.
        "\t@%p1 bra \t$L__BB0_2;\n" + WAIT + "\tbra.uni \t$L__BB0_3;\n$L__BB0_2:\n" + WAIT + "$L__BB0_3:\n" + STORE,
        # Waits in the first turn of a loop, as a flag tells.
        "\tmov.u32 \t%r5, 1;\n$L__BB0_1:\n\tsetp.eq.s32 \t%p2, %r5, 0;\n\t@%p2 bra \t$L__BB0_2;\n"
        + WAIT
        + "$L__BB0_2:\n"
        + STORE
        + "\tmov.u32 \t%r5, 0;\n\t@%p1 bra \t$L__BB0_1;\n",
    ],
    ids=["waits first", "tables before", "both branches", "a flag"],
)
def test_a_right_kernel_breaks_no_rule(body: str) -> None:
    assert found(body) == []


def test_a_kernel_that_loads_early_still_waits_before_it_writes() -> None:
    early = "\tld.global.f32 \t%f1, [%rd5];\n"
    for body, says in (early + WAIT + STORE, []), (early + STORE + WAIT, ["writes before it waits"]):
        (kernel,) = kernels(HEAD + body + END)
        kernel.loads_early = True
        assert [what.split(":")[0] for what in ptx_rules.violations(kernel)] == says


@pytest.mark.parametrize(
    "body, says",
    [
        (STORE + WAIT, "writes before it waits"),
        (STORE, "writes before it waits"),
        ("\tred.global.add.u32 \t[%rd5], 1;\n" + WAIT, "writes before it waits"),
        ("\tatom.global.add.u32 \t%r3, [%rd5], 1;\n" + WAIT, "writes before it waits"),
        ("\t@%p1 st.global.f32 \t[%rd5], %f1;\n" + WAIT, "writes before it waits"),
        ("\tgriddepcontrol.launch_dependents;\n" + WAIT, "lets the next launch start before it waits"),
        ("\tld.global.f32 \t%f1, [%rd5];\n" + WAIT, "loads before it waits, from parameter 1+0"),
        ("\tcp.async.ca.shared.global \t[%r2], [%rd5], 4;\n" + WAIT, "loads before it waits, from parameter 1+0"),
        # An address from the table is no address of the table.
        ("\tld.global.u64 \t%rd6, [%rd4];\n\tld.global.f32 \t%f1, [%rd6];\n" + WAIT, "from parameter loaded"),
        # One branch only.
        ("\t@%p1 bra \t$L__BB0_2;\n" + WAIT + "$L__BB0_2:\n" + STORE, "writes before it waits"),
    ],
)
def test_each_rule_is_broken_by_its_fault(body: str, says: str) -> None:
    assert len(found(body)) == 1 and says in found(body)[0]


def test_what_is_known_of_a_parameter_chooses_the_branch() -> None:
    body = "\t@!%p1 bra \t$L__BB0_2;\n" + WAIT + "$L__BB0_2:\n" + STORE
    assert found(body, {"0+8": 0}) == []
    assert len(found(body, {"0+8": 1})) == 1


LOOK = "$L__BB0_%d:\n\tld.acquire.gpu.global.u32 \t%%r4, [%%rd5];\n\t@%%p1 bra \t$L__BB0_%d;\n\tbar.sync \t0;\n"
LAST_BLOCK = "\t@%p1 bra \t$L__BB0_9;\n\tgriddepcontrol.launch_dependents;\n$L__BB0_9:\n"
WAITS = "\t@!%p1 bra \t$L__BB0_8;\n" + WAIT + "\tgriddepcontrol.launch_dependents;\n$L__BB0_8:\n"


@pytest.mark.parametrize(
    "body, says",
    [
        (LAST_BLOCK + LOOK % (1, 1) + "\tld.global.f32 \t%f1, [%rd5];\n" + LOOK % (2, 2) + WAITS + STORE, ""),
        (LAST_BLOCK + LOOK % (1, 1) + LOOK % (2, 2) + WAITS + STORE, ""),
        (LAST_BLOCK + "\tbar.sync \t0;\n\tld.global.f32 \t%f1, [%rd5];\n" + WAITS, "loads after 0 looks at counters"),
        (LAST_BLOCK + LOOK % (1, 1) + STORE + LOOK % (2, 2) + WAITS, "writes after 1 looks at counters"),
        # Some threads go around the barrier.
        (
            LAST_BLOCK
            + "\t@%p1 bra \t$L__BB0_3;\n"
            + LOOK % (1, 1)
            + "$L__BB0_3:\n\tld.global.f32 \t%f1, [%rd5];\n"
            + WAITS,
            "loads after 0 looks at counters",
        ),
        (LOOK % (1, 1) + LOOK % (2, 2) + LET_NEXT + WAITS + STORE, "no block waits before"),
        (LAST_BLOCK + LOOK % (1, 1) + LOOK % (2, 2) + STORE, "no block waits before"),
    ],
)
def test_a_kernel_that_counts_looks_before_it_loads_and_writes(body: str, says: str) -> None:
    (kernel,) = kernels(HEAD + body + END)
    kernel.tables, kernel.counted = frozenset({"0+24"}), {"1+0": 1, "write": 2}
    what = ptx_rules.violations(kernel)
    assert (len(what) == 1 and says in what[0]) if says else what == []


def broken(body: str) -> list[str]:
    """What of the rules of shared memory a kernel breaks."""
    (kernel,) = kernels(HEAD + body + END)
    return ptx_shared.violations(kernel)


COPY = "\tcp.async.cg.shared.global [%r2], [%rd5], 16, 16;\n"
COMMIT = "\tcp.async.commit_group;\n"
WAIT_ALL = "\tcp.async.wait_group 0;\n"
BARRIER = "\tbar.sync \t0;\n"
USE = "\tld.shared.f32 \t%f1, [%r2];\n"
JUMP = "\t@%p1 bra \t$L__BB0_2;\n"


def panels(wait: str, copied: str = "%r7", loops: str = "%r8") -> str:
    """A loop in which the next panel is copied while this one is used, as in tiled_direct_async."""
    return (
        "\tmov.u32 \t%r5, 0;\n"
        + COPY
        + COMMIT
        + "$L__BB0_1:\n\tmov.u32 \t%r6, %r5;\n"
        + wait
        + BARRIER
        + f"\tadd.s32 \t%r7, %r6, 16;\n\tsetp.ge.s32 \t%p2, {copied}, %r1;\n\t@%p2 bra \t$L__BB0_2;\n"
        + COPY
        + COMMIT
        + "$L__BB0_2:\n"
        + USE
        + "\tadd.s32 \t%r8, %r6, 16;\n\tmov.u32 \t%r5, %r8;\n"
        + f"\tsetp.lt.s32 \t%p3, {loops}, %r1;\n\t@%p3 bra \t$L__BB0_1;\n"
        + BARRIER
    )


@pytest.mark.parametrize(
    "body",
    [
        COPY + COMMIT + WAIT_ALL + BARRIER + USE,
        COPY + "\tcp.async.wait_all;\n" + BARRIER + USE,
        BARRIER + COPY + COMMIT + USE + WAIT_ALL + BARRIER + USE,
        # Copied on one branch, waited for on both.
        "\t@%p1 bra \t$L__BB0_2;\n" + COPY + COMMIT + "$L__BB0_2:\n" + WAIT_ALL + BARRIER + USE,
        panels(WAIT_ALL),
    ],
    ids=["waits", "wait_all", "loads meanwhile", "one branch copies", "panels"],
)
def test_copies_that_are_waited_for_break_no_rule(body: str) -> None:
    assert broken(body) == []


UNDER_WAY = {
    "no wait": COPY + COMMIT + BARRIER + USE,
    "wait after the barrier": COPY + COMMIT + BARRIER + WAIT_ALL + USE,
    "no group": COPY + WAIT_ALL + BARRIER + USE,
    "one group left": COPY + COMMIT + "\tcp.async.wait_group 1;\n" + BARRIER + USE,
    "one branch waits": COPY + COMMIT + JUMP + WAIT_ALL + "$L__BB0_2:\n" + BARRIER + USE,
    "a guarded wait": COPY + COMMIT + "\t@%p1 cp.async.wait_group 0;\n" + BARRIER + USE,
    "a guarded copy": "\t@%p1 cp.async.cg.shared.global [%r2], [%rd5], 16, 16;\n" + COMMIT + BARRIER + USE,
    "panels, no wait": panels(""),
    "panels, one group left": panels("\tcp.async.wait_group 1;\n"),
    # Leaves the loop on another condition than that of the copies.
    "panels, leaves early": panels(WAIT_ALL, loops="%r5"),
    "panels, one too many": panels(WAIT_ALL, copied="%r6"),
}


@pytest.mark.parametrize("body", UNDER_WAY.values(), ids=UNDER_WAY)
def test_copies_under_way_at_a_barrier_break_the_rule(body: str) -> None:
    assert broken(body) and all("before it has waited for its copies" in what for what in broken(body))


MAPA = "\tcvta.shared.u64 \t%rd6, %rd1;\n\tmapa.u64 \t%rd7, %rd6, %r1;\n\tadd.s64 \t%rd8, %rd7, 8;\n"
REMOTE_LOAD = "\tld.v2.u32 \t{%r3, %r4}, [%rd8];\n"
REMOTE_STORE = "\tst.v2.u32 \t[%rd8], {%r3, %r4};\n"
ARRIVE, CLUSTER_WAIT = "\tbarrier.cluster.arrive;\n", "\tbarrier.cluster.wait;\n"


@pytest.mark.parametrize(
    "body",
    [
        MAPA + REMOTE_LOAD + ARRIVE + CLUSTER_WAIT,
        MAPA + REMOTE_STORE + ARRIVE + USE + CLUSTER_WAIT,
        # Used on one branch, and what is no memory of another block.
        MAPA + "\t@%p1 bra \t$L__BB0_2;\n" + REMOTE_LOAD + ARRIVE + CLUSTER_WAIT + "$L__BB0_2:\n" + USE,
        MAPA + "\tld.u32 \t%r3, [%rd6];\n" + USE + "\tst.global.f32 \t[%rd5], %f1;\n",
        MAPA + "$L__BB0_1:\n" + REMOTE_LOAD + ARRIVE + CLUSTER_WAIT + "\t@%p1 bra \t$L__BB0_1;\n",
    ],
    ids=["load", "store", "one branch", "its own", "a loop"],
)
def test_blocks_that_wait_for_their_cluster_break_no_rule(body: str) -> None:
    assert broken(body) == []


ENDS_EARLY = {
    "no barrier": MAPA + REMOTE_LOAD,
    "barrier before": ARRIVE + CLUSTER_WAIT + MAPA + REMOTE_STORE,
    "no wait": MAPA + REMOTE_LOAD + ARRIVE,
    "arrives first": MAPA + ARRIVE + REMOTE_LOAD + CLUSTER_WAIT,
    "relaxed": MAPA + REMOTE_LOAD + "\tbarrier.cluster.arrive.relaxed;\n" + CLUSTER_WAIT,
    "one branch": MAPA + REMOTE_LOAD + JUMP + ARRIVE + CLUSTER_WAIT + "$L__BB0_2:\n" + USE,
    "a guarded end": MAPA + REMOTE_LOAD + "\t@%p1 ret;\n" + ARRIVE + CLUSTER_WAIT,
    "st": "\tst.shared::cluster.u32 \t[%r2], %r1;\n",
    "atom": "\tatom.shared::cluster.add.u32 \t%r3, [%r2], 1;\n",
}


@pytest.mark.parametrize("body", ENDS_EARLY.values(), ids=ENDS_EARLY)
def test_a_block_that_ends_too_early_breaks_the_rule(body: str) -> None:
    assert len(broken(body)) == 1 and "ends without a barrier of the cluster" in broken(body)[0]


def with_headers(path: str, seen: set[str]) -> str:
    """A source and what it includes of the algorithms, but for what has been seen."""
    seen.add(path)
    own = (ROOT / path).read_text(encoding="utf-8")
    for line in own.splitlines():
        name = line.removeprefix('#include "').removesuffix('"')
        if name != line and name.startswith("algorithms/") and name not in seen:
            own += with_headers(name, seen)
    return own


def test_every_unit_that_waits_is_checked() -> None:
    """A header may bring the wait: what a unit includes counts too."""
    waits = {
        name
        for name, path in sources().items()
        if "wait_for_previous();" in with_headers(str(path), {"algorithms/device/launch.hpp"})
    }
    assert waits == set(ptx_rules.UNITS)


def test_every_unit_with_copies_or_clusters_is_checked() -> None:
    marks = ("async_copy::", "cluster::peer(", "__pipeline_memcpy_async", "cp.async", "memcpy_async(", "mapa.")
    vocabulary = "algorithms/device/memory.hpp"  # has the names; who includes it need not use them
    uses = set()
    for name, path in sources().items():
        code = [line.partition("//")[0] for line in with_headers(str(path), {vocabulary}).splitlines()]
        if any(mark in line for line in code for mark in marks):
            uses.add(name)
    assert uses == set(ptx_rules.SHARED)
