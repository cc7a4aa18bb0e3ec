"""The rules of dependent launches find what they are for, in PTX that is written by hand."""

from __future__ import annotations

import pytest
from tests.mutants import ptx_rules
from tests.mutants.mutants import ROOT, sources

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
END = "\tret;\n\n}\n"


def found(body: str, known: dict[str, int] | None = None) -> list[str]:
    (kernel,) = ptx_rules.kernels(HEAD + body + END)
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
        "\tmov.u32 \t%r5, 1;\n$L__BB0_1:\n\tsetp.eq.s32 \t%p2, %r5, 0;\n\t@%p2 bra \t$L__BB0_2;\n" + WAIT
        + "$L__BB0_2:\n" + STORE + "\tmov.u32 \t%r5, 0;\n\t@%p1 bra \t$L__BB0_1;\n",
    ],
    ids=["waits first", "tables before", "both branches", "a flag"],
)  # fmt: skip
def test_a_right_kernel_breaks_no_rule(body: str) -> None:
    assert found(body) == []


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


def test_every_unit_that_waits_is_checked() -> None:
    """A header may bring the wait: what a unit includes counts too."""

    def text(path: str, seen: set[str]) -> str:
        seen.add(path)
        own = (ROOT / path).read_text(encoding="utf-8")
        for line in own.splitlines():
            name = line.removeprefix('#include "').removesuffix('"')
            if name != line and name.startswith("algorithms/") and name not in seen:
                own += text(name, seen)
        return own

    waits = {
        name for name, path in sources().items()
        if "wait_for_previous();" in text(str(path), {"algorithms/device/dependent_launch.hpp"})
    }  # fmt: skip
    assert waits == set(ptx_rules.UNITS)
