"""Ours beside every kernel row of a published artifact: names, counterparts, notes, exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from card import line, row

from experiments.compare import reference

HEAD = "form,size,lefts,rights,artifact_algorithm,params,phase,median_us\n"
SPLIT = (
    "one_to_one,16,1,1,nai_shuffle_work_distribution_one_to_one,"
    "warps_per_thread_block=4;rows_per_thread=1;distribution_type=triangle,kernel,10.0\n"
)
SHARED = (
    "one_to_one,16,1,1,nai_warp_per_shift_shared_mem_one_to_one,"
    "shifts_per_thread_block=16;strided_load=True,kernel,4.0\n"
)
BOTH = "n_to_m,16,2,2,nai_shuffle_multimat_both_work_distribution_n_to_m,left_matrices_per_thread=2,kernel,5.0\n"
PARAMS = "distribution=triangle;rows_per_thread=1;warps_per_block=4"  # of SPLIT
PLAN = "one_to_one,16,1,1,fft_orig_one_to_one,,plan,600.0\n"


@pytest.fixture
def reference_file(tmp_path: Path):
    """A function that writes a reference file of these lines and returns its path."""

    def write(*lines: str) -> Path:
        path = tmp_path / "artifact.csv"
        path.write_text("# facts of another program\n" + HEAD + "".join(lines))
        return path

    return write


def call(root: Path, file: Path, *options: str) -> int:
    return reference.main(["--results", str(root), "--reference", str(file), "--markdown", *options])


def test_a_row_meets_the_fastest_point_with_its_parameters(results, reference_file, capsys) -> None:
    shared = "warp_per_overlap_shared_memory"
    root = results(
        row("split_row", params=PARAMS, compute_us=9.0),
        row("split_row", params="distribution=triangle;rows_per_thread=2;warps_per_block=4", compute_us=1.0),
        row(shared, params="overlaps_per_block=16;shmem_row=32;strided_load=1", compute_us=3.0),
        row(shared, params="overlaps_per_block=16;shmem_row=128;strided_load=1", compute_us=2.0),
        row(shared, params="overlaps_per_block=16;shmem_row=32;strided_load=0", compute_us=1.0),
    )
    assert call(root, reference_file(SPLIT, SHARED, PLAN)) == 0
    text = capsys.readouterr().out
    assert line(text, "one-to-one", "16", "1:1", "split_row")[6:] == ["10.0", "9.0", "0.90"]
    assert line(text, "one-to-one", "16", "1:1", shared)[6:] == ["4.0", "2.0", "0.50"]
    assert text.endswith("\n2 rows, median ratio 0.70, worst 0.90, 0 above 1.1, 0 without a counterpart\n")


@pytest.fixture
def three(results, reference_file) -> tuple[Path, Path]:
    """Ratios of 1.05 and 0.91 of one variant in one-to-one, 1.2 of another in n-to-m."""
    root = results(
        row("split_row", params=PARAMS, compute_us=10.5),
        row("split_row", params=PARAMS, left_rows=24, compute_us=9.1),
        row("multi_matrix_both_split_row", form="n-to-m", lefts=2, rights=2, params="left_mats=2", compute_us=6.0),
    )
    return root, reference_file(SPLIT, SPLIT.replace(",16,", ",24,"), BOTH)


def test_the_summary_is_of_each_variant_and_form(three, capsys) -> None:
    assert call(*three, "--summary") == 1
    text = capsys.readouterr().out
    assert line(text, "split_row")[1:] == ["one-to-one", "-", "2", "0.98", "1.05", "0"]
    assert line(text, "multi_matrix_both_split_row")[1:] == ["n-to-m", "clear", "1", "1.20", "1.20", "1"]
    assert line(text, "all")[3:] == ["3", "1.05", "1.20", "1"]
    assert "| 1:1 " not in text and text.count("| variant") == 1
    last = text.splitlines()[-1]
    assert last == "3 rows, median ratio 1.05, worst 1.20, 1 above 1.1, 0 without a counterpart"


@pytest.mark.parametrize("ratio, sizes", [("1.1", ["2:2"]), ("1", ["1:1", "2:2"]), ("1.2", [])])
def test_rows_above_a_ratio_are_listed_and_counted(three, capsys, ratio: str, sizes: list[str]) -> None:
    call(*three, "--above", ratio)
    text = capsys.readouterr().out
    rows = [
        cells[2]
        for cells in ([c.strip() for c in found.strip("|").split("|")] for found in text.splitlines())
        if len(cells) == 9 and ":" in cells[2]
    ]
    assert rows == sizes and f" {len(sizes)} above {ratio}, " in text.splitlines()[-1]


def test_where_the_artifact_leaves_the_clear_out_so_does_the_ratio(results, reference_file, capsys) -> None:
    problem = {"form": "n-to-m", "lefts": 2, "rights": 2}
    root = results(row("multi_matrix_both_split_row", params="left_mats=2", compute_us=6.0, clear_us=2.0, **problem))
    assert call(root, reference_file(BOTH)) == 0
    assert line(capsys.readouterr().out, "n-to-m", "16", "2:2")[5:] == ["clear", "5.0", "4.0", "0.80"]


def test_a_missing_counterpart_and_a_slow_median_exit_1(results, reference_file, capsys) -> None:
    root = results(row("split_row", params=PARAMS, compute_us=9.0))
    assert call(root, reference_file(SPLIT, SHARED)) == 1
    assert ", 1 without a counterpart\n" in capsys.readouterr().out
    root = results(row("split_row", params=PARAMS, compute_us=11.0))
    assert call(root, reference_file(SPLIT)) == 1


@pytest.mark.parametrize(
    "lines, options, says",
    [
        ([PLAN], [], "no row with phase kernel"),
        ([SPLIT.replace("nai_shuffle_work", "unheard_of")], [], "has no name in reference_names.toml"),
        ([SPLIT.replace("rows_per_thread", "rows")], [], "parameter rows has no name"),
        ([SPLIT], ["--variants", "split"], "variant split: has no row"),
        ([SPLIT], ["--summary", "--above", "1"], "see --help"),
        ([SPLIT], ["--above", "much"], "see --help"),
    ],
)
def test_mistakes_are_one_line(results, reference_file, capsys, lines, options, says) -> None:
    root = results(row("split_row", compute_us=1.0))
    assert call(root, reference_file(*lines), *options) == 2
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1
