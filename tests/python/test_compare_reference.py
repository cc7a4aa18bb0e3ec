"""Ours beside every kernel row of a published artifact: names, counterparts, notes, exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from experiments import compare_reference
from test_compare_artifact import line, results, row

__all__ = ["results"]  # the fixture

HEAD = "form,size,lefts,rights,artifact_algorithm,params,phase,median_us\n"
SPLIT = "one_to_one,16,1,1,nai_shuffle_work_distribution_one_to_one,warps_per_thread_block=4;rows_per_thread=1;distribution_type=triangle,kernel,10.0\n"
SHARED = "one_to_one,16,1,1,nai_warp_per_shift_shared_mem_one_to_one,shifts_per_thread_block=16;strided_load=True,kernel,4.0\n"
BOTH = "n_to_m,16,2,2,nai_shuffle_multimat_both_work_distribution_n_to_m,left_matrices_per_thread=2,kernel,5.0\n"
PLAN = "one_to_one,16,1,1,fft_orig_one_to_one,,plan,600.0\n"


@pytest.fixture
def reference(tmp_path: Path):
    """A function that writes a reference file of these lines and returns its path."""

    def write(*lines: str) -> Path:
        path = tmp_path / "artifact.csv"
        path.write_text("# facts of another program\n" + HEAD + "".join(lines))
        return path

    return write


def call(root: Path, reference: Path, *options: str) -> int:
    return compare_reference.main(["--results", str(root), "--reference", str(reference), "--markdown", *options])


def test_a_row_meets_the_fastest_point_with_its_parameters(results, reference, capsys) -> None:
    root = results(
        row("split_row", params="distribution=triangle;rows_per_thread=1;warps_per_block=4", compute_us=9.0),
        row("split_row", params="distribution=triangle;rows_per_thread=2;warps_per_block=4", compute_us=1.0),
        row("warp_per_overlap_shared_memory", params="overlaps_per_block=16;shmem_row=32;strided_load=1", compute_us=3.0),
        row("warp_per_overlap_shared_memory", params="overlaps_per_block=16;shmem_row=128;strided_load=1", compute_us=2.0),
        row("warp_per_overlap_shared_memory", params="overlaps_per_block=16;shmem_row=32;strided_load=0", compute_us=1.0),
    )
    assert call(root, reference(SPLIT, SHARED, PLAN)) == 0
    text = capsys.readouterr().out
    assert line(text, "one-to-one", "16", "1:1", "split_row")[6:] == ["10.0", "9.0", "0.90"]
    assert line(text, "one-to-one", "16", "1:1", "warp_per_overlap_shared_memory")[6:] == ["4.0", "2.0", "0.50"]
    assert line(text, "all")[1:] == ["2", "0.70", "0.90", "0"]


def test_where_the_artifact_leaves_the_clear_out_so_does_the_ratio(results, reference, capsys) -> None:
    problem = {"form": "n-to-m", "lefts": 2, "rights": 2}
    root = results(row("multi_matrix_both_split_row", params="left_mats=2", compute_us=6.0, clear_us=2.0, **problem))
    assert call(root, reference(BOTH)) == 0
    assert line(capsys.readouterr().out, "n-to-m", "16", "2:2")[5:] == ["clear", "5.0", "4.0", "0.80"]


def test_a_missing_counterpart_and_a_slow_median_exit_1(results, reference, capsys) -> None:
    root = results(row("split_row", params="distribution=triangle;rows_per_thread=1;warps_per_block=4", compute_us=9.0))
    assert call(root, reference(SPLIT, SHARED)) == 1
    assert "rows without a counterpart: 1" in capsys.readouterr().out
    root = results(row("split_row", params="distribution=triangle;rows_per_thread=1;warps_per_block=4", compute_us=11.0))
    assert call(root, reference(SPLIT)) == 1


@pytest.mark.parametrize(
    "lines, options, says",
    [
        ([PLAN], [], "no row with phase kernel"),
        ([SPLIT.replace("nai_shuffle_work", "unheard_of")], [], "has no name in reference_names.toml"),
        ([SPLIT.replace("rows_per_thread", "rows")], [], "parameter rows has no name"),
        ([SPLIT], ["--variants", "split"], "variant split: has no row"),
    ],
)
def test_mistakes_are_one_line(results, reference, capsys, lines, options, says) -> None:
    root = results(row("split_row", compute_us=1.0))
    assert call(root, reference(*lines), *options) == 2
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1
