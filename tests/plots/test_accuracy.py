"""The table of errors: peaks that disagree, errors on data with an offset, and sets that have none of it."""

import csv
import io

import pytest
from fixtures import sets

from plots import tidy
from plots.tables import accuracy
from xcorr.errors import UserError

GOOD = dict(max_error=1.0, error_bound=10.0, rel_l2_error=2e-7, argmax_agrees="true")


def results(tmp_path, *lines, rows=None):
    rows = rows or [
        sets.row(variant="cpu_definition", **GOOD),
        sets.row(variant="cpu_definition", left_rows=8, **{**GOOD, "argmax_agrees": "false", "rel_l2_error": 5e-6}),
        sets.row(variant="cpu_definition", left_rows=8, repetition=1, **{**GOOD, "argmax_agrees": "false"}),
        sets.row(variant="cpu_fft", params="threads=1", **GOOD),
        sets.row(variant="cpu_fft", params="threads=1", left_rows=4, outcome="incorrect", argmax_agrees="false"),
    ]
    folder = sets.write_set(tmp_path, rows)
    if lines != ("absent",):
        sets.write_errors(folder, *lines)
    return tidy.load(folder, sets.KEY, "published")


def test_peaks_that_disagree_are_counted_per_variant(tmp_path):
    found = accuracy.table(results(tmp_path, "absent")).set_index("variant")
    assert found["rows_peak_elsewhere"].to_dict() == {"cpu_definition": 2, "cpu_fft": 0}, "only verified rows count"
    assert found.loc["cpu_definition", "points"] == 2 and found.loc["cpu_definition", "rows"] == 3
    assert found.loc["cpu_definition", "rel_l2_error"] == 5e-6 and found.loc["cpu_fft", "bound_share"] == 0.1
    text = sets.files(accuracy, results(tmp_path, "absent"))["accuracy.md"]
    assert "In 2 of 4 verified rows, of 1 variant," in text


def test_a_set_without_the_file_says_that_it_was_not_measured(tmp_path):
    text = sets.files(accuracy, results(tmp_path, "absent"))["accuracy.md"]
    assert "This set has no errors on data with an offset" in text and "Offset:" not in text
    assert "By kind of input" not in text


def test_the_error_on_an_offset_is_a_number_of_each_variant(tmp_path):
    loaded = results(tmp_path)
    found = accuracy.table(loaded).set_index("variant")
    worst = found.loc["cpu_definition"]
    assert (worst["offset_max_relative_error"], worst["offset_problem"]) == (5.9e-5, "n-to-m/100x100/100x100/5:11/full")
    assert worst["offset_argmax_agrees"] == "false", "one problem suffices"
    other = found.loc["cpu_fft"]
    assert (other["offset_max_relative_error"], other["offset_params"]) == (2.4e-7, "threads=1")
    files = sets.files(accuracy, loaded)
    assert "Not measured" not in files["accuracy.md"]
    assert "| 5.9e-05 | 4e-05 | elsewhere | n-to-m/100x100/100x100/5:11/full |" in files["accuracy.md"]
    assert "| Variant | uniform | offset |" in files["accuracy.md"]
    lines = {line["variant"]: line for line in csv.DictReader(io.StringIO(files["accuracy.csv"]))}
    assert lines["cpu_definition"]["offset_max_relative_error"] == "5.9e-05"
    chapter = sets.chapter(loaded, "accuracy")
    assert any("5.9e-05" in row for row in chapter["tables"][0]["grid"]["rows"])


def test_variants_that_one_of_both_lacks_have_a_line_too(tmp_path):
    other = "another,fp32,offset,one-to-one/16x16/16x16/1:1/full,,nan,nan,False"
    text = sets.files(accuracy, results(tmp_path, other))["accuracy.md"]
    first = text.partition("## By kind of input")[0]
    lines = {line.split(" | ")[0].strip("| "): line for line in first.splitlines() if line.startswith("| ")}
    assert "not finite" in lines["another"] and "elsewhere" in lines["another"]
    assert lines["definition"].count("not measured") == 3


def test_the_bound_of_the_l2_error_is_shown_where_rows_have_it(tmp_path):
    loaded = results(tmp_path, "absent")
    loaded.rows["rel_l2_bound"] = 1e-5
    assert "Share of the L2 bound" not in sets.files(accuracy, results(tmp_path, "absent"))["accuracy.md"]
    assert accuracy.table(loaded).set_index("variant").loc["cpu_definition", "l2_bound_share"] == pytest.approx(0.5)
    assert "Share of the L2 bound" in sets.files(accuracy, loaded)["accuracy.md"]


def test_without_a_verified_row_there_is_no_table(tmp_path):
    assert sets.files(accuracy, results(tmp_path, "absent", rows=[sets.row(outcome="published")])) == {}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [("variant,precision", "variant,class", "columns are not"), ("2.4e-07", "small", "'small' is no number")],
)
def test_a_damaged_file_ends_in_one_line(tmp_path, old, new, told):
    loaded = results(tmp_path)
    path = loaded.folder / accuracy.FILE
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError, match=told) as error:
        sets.files(accuracy, loaded)
    assert "\n" not in str(error.value) and "conformance --errors" in str(error.value)


def test_each_way_to_add_up_sums_has_a_line(tmp_path):
    problem = "one-to-one/16x16/16x16/1:1/full"
    plain = f"tiled_direct,fp32,offset,{problem},overlap_tile=4x8;warps_across=1,5.9e-05,4e-05,True"
    blocked = f"tiled_direct,fp32,offset,{problem},overlap_tile=4x8;sums=blocked;warps_across=1,2.1e-07,1e-07,True"
    found = accuracy.table(results(tmp_path, plain, blocked)).set_index(["variant", "sums"])
    largest = found["offset_max_relative_error"]
    assert largest["tiled_direct", ""] == 5.9e-5 and largest["tiled_direct", "blocked"] == 2.1e-7
    text = sets.files(accuracy, results(tmp_path, plain, blocked))["accuracy.md"]
    by_input = text.partition("## By kind of input")[2]
    assert ", sums blocked | 2.1e-07 |" in by_input and " | 5.9e-05 |" in by_input
