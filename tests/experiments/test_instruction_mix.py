"""The mix of the main loops, from machine code: loops, names of kernels, the claim, what differs."""

from experiments.compare import instruction_mix


def listing(mangled: str, inner: list[str]) -> list[str]:
    """Disassembly of a kernel with an outer loop around `inner`, as cuobjdump prints it."""
    names = ["MOV R1, R2", "FFMA R0, R0, R1, R2", *inner, "@!P0 BRA 0x20", "@P1 BRA 0x10", "EXIT"]
    lines = [f"\t\tFunction : {mangled}", '\t.headerflags\t@"EF_CUDA_SM90"']
    for number, name in enumerate(names):
        lines.append(f"        /*{16 * number:04x}*/                   {name} ;    /* 0x00000a00ff017b82 */")
        lines.append("                                                    /* 0x000ff00000000800 */")
    return lines


GROUPED = "_ZN5xcorr57_GLOBAL__N__8c56d0f6_18_grouped_overlap_cu_b820fca7_1022grouped_overlap_kernelILi2ELi2EEEvPf"
PLAIN = "_ZN5xcorr12_GLOBAL__N_119warp_shuffle_kernelIfEEvNS_13DeviceProblemEPKT_"


def test_a_loop_with_the_claimed_mix():
    steps = ["FFMA R4, R5, R6, R4"] * 8 + ["@P2 SHFL.IDX PT, R1, R1, R2, 0x1f"] * 14 + ["FSEL R1, R2, R3, P0"] * 4
    lines, wrong = instruction_mix.table([*listing(GROUPED, steps), *listing("_Zother", steps)])
    assert wrong == 0
    assert lines == [["grouped_overlap", "s=2 l=2", "fp32", "4:7", "8", "14", "5", "as claimed"]]


def test_one_shuffle_too_many_differs():
    lines, wrong = instruction_mix.table(listing(PLAIN, ["FFMA R4, R5, R6, R4"] + ["SHFL.UP PT, R1, R1, 0x1"] * 4))
    assert wrong == 1 and lines[0][:4] == ["warp_shuffle", "-", "fp32", "1:3"] and lines[0][-1] == "differs"


def test_a_shuffle_of_doubles_is_two_instructions():
    steps = ["DFMA R4, R6, R8, R4"] * 2 + ["SHFL.UP PT, R1, R1, 0x1"] * 12
    lines, wrong = instruction_mix.table(listing(PLAIN.replace("kernelIf", "kernelId"), steps))
    assert wrong == 0 and lines[0][2:6] == ["fp64", "1:3", "2", "6"]


def test_a_kernel_without_a_loop_differs():
    lines, wrong = instruction_mix.table(listing(PLAIN, ["FFMA R4, R5, R6, R4"]))
    assert wrong == 1 and lines[0][4:7] == ["-", "-", "-"]


def test_the_claims_of_the_papers():
    assert instruction_mix.claimed({}) == (1, 3)
    assert instruction_mix.claimed({"b": 8}) == (8, 10)
    assert instruction_mix.claimed({"s": 4, "l": 2}) == (8, 3 * 2 + 4 - 1)
    assert instruction_mix.claimed({"a": 4, "b": 2}) == (8, 2 * 4 + 2)
    assert instruction_mix.claimed(dict.fromkeys("absl", 4)) == (256, 60)


def test_mistakes_are_one_line(tmp_path, capsys, monkeypatch):
    tool = tmp_path / "cuobjdump"
    tool.write_text("#!/bin/sh\necho nothing\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert instruction_mix.main(["--library", str(tmp_path / "none.so")]) == 2
    assert "not there; build first" in capsys.readouterr().err
    (tmp_path / "some.so").write_text("x")
    assert instruction_mix.main(["--library", str(tmp_path / "some.so")]) == 2
    assert "no kernel of a claimed mix for sm_90" in capsys.readouterr().err
