"""The table of steps: pairs as data, fastest points of one block, means and ranges, and what a set has no rows of."""

import math
from pathlib import Path

import pandas as pd
import pytest
from fixtures import sets

from plots import tidy
from plots.tables import steps
from xcorr.errors import UserError
from xcorr.native.variants import assignments
from xcorr.paths import ROOT

FAITHFUL, OURS = "grouped_overlap_phases", "grouped_overlap"
BLOCK = f"{sets.RUN}.1"


def point(variant, size, us, params="k=1", block=BLOCK, **cells):
    given = {**sets.square(size), "variant": variant, "params": params, "block": block, **cells}
    return [sets.row(repetition=i, compute_us=float(us), **given) for i in range(3)]


def measured():
    """Ratios 2 and 8 in one-to-one, 3 in one-to-many; slower points and another mode beside them."""
    many = {"form": "one-to-many", "rights": 4}
    rows = point(FAITHFUL, 16, 4) + point(FAITHFUL, 16, 9, "k=2") + point(OURS, 16, 2) + point(OURS, 16, 5, "k=2")
    rows += point(FAITHFUL, 64, 80) + point(OURS, 64, 30) + point(OURS, 64, 10, "k=2")
    rows += point(FAITHFUL, 16, 6, **many) + point(OURS, 16, 2, **many)
    return rows + point(OURS, 16, 0.1, mode="graph")


def lines_of(rows):
    return steps.compared(sets.result_set(rows))[0]


def test_ratios_are_of_the_fastest_points_of_both_variants():
    lines = lines_of(measured())
    assert dict(zip(zip(lines["form"], lines["size"]), lines["ratio"])) == {
        ("one-to-one", "16x16"): 2.0,
        ("one-to-one", "64x64"): 8.0,
        ("one-to-many", "16x16"): 3.0,
    }
    assert lines.set_index(["form", "size"]).loc[("one-to-one", "64x64"), "ours_params"] == "k=2"
    assert set(lines["block"]) == {BLOCK} and set(lines["faithful"]) == {FAITHFUL}


def test_means_are_geometric_over_the_problems_of_a_form():
    found = steps.summary(lines_of(measured()))
    assert found["form"].tolist() == ["one-to-one", "one-to-many"] and found["problems"].tolist() == [2, 1]
    assert found["mean"].tolist() == pytest.approx([math.sqrt(2 * 8), 3])
    first = found.iloc[0]
    assert (first["least"], first["least_at"]) == (2.0, "1-to-1 16x16")
    assert (first["most"], first["most_at"]) == (8.0, "1-to-1 64x64")


@pytest.mark.parametrize("blocks", [("", ""), (BLOCK, f"{sets.RUN}.2")])
def test_points_of_different_blocks_or_of_none_are_not_compared(blocks):
    rows = point(FAITHFUL, 16, 4, block=blocks[0]) + point(OURS, 16, 2, block=blocks[1])
    lines, apart = steps.compared(sets.result_set(rows))
    assert lines.empty and {one.faithful: count for one, count in apart if count} == {FAITHFUL: 1}
    text = steps.TABLE.page(sets.result_set(rows)).markdown()
    assert f"not of one block (number of problems): `{FAITHFUL}` and `{OURS}` 1." in text and "| Source |" not in text


def test_an_older_block_is_not_compared_with_the_newest_one():
    older = point(FAITHFUL, 16, 1, run="20240101T000000-abcdef", block="20240101T000000-abcdef.1")
    (ratio,) = lines_of(older + point(FAITHFUL, 16, 4) + point(OURS, 16, 2))["ratio"]
    assert ratio == 2.0


def test_incorrect_rows_are_not_compared():
    assert lines_of(point(FAITHFUL, 16, 4, outcome="incorrect") + point(OURS, 16, 2)).empty


def test_the_page_says_what_has_no_rows():
    text = steps.TABLE.page(sets.result_set(point(OURS, 16, 2))).markdown()
    assert f"Not measured in this set, so that the step has no number: `{FAITHFUL}` beside `{OURS}`." in text
    assert "warp_per_overlap" not in text and "| Source |" not in text
    assert f"`{OURS}` beside `{FAITHFUL}`" in steps.TABLE.page(sets.result_set(point(FAITHFUL, 16, 2))).markdown()
    assert steps.page(sets.result_set([sets.row()])) is None, "a set of other variants has no such table"
    assert steps.TABLE.files(steps.TABLE.page(sets.result_set([sets.row()]))) == {}


def test_a_pair_before_a_further_step_is_said_too():
    text = steps.TABLE.page(sets.result_set(point("multi_matrix_both", 16, 2))).markdown()
    for name in (
        "dynamic_indexing` beside `multi_matrix_both_static_indexing",
        "static_indexing` beside `multi_matrix_both",
    ):
        assert f"`multi_matrix_both_{name}`" in text


def test_the_page_and_its_file():
    files = steps.TABLE.files(steps.TABLE.page(sets.result_set(measured())))
    assert set(files) == {"steps.md", "steps.csv"} and files["steps.csv"].count("\n") == 4
    shown = files["steps.md"]
    assert "| paper 4.2.2 | grouped-overlap-phases | grouped-overlap |" in shown
    assert "| one-to-one | 2 | 4.00x | 2.00x (1-to-1 16x16) | 8.00x (1-to-1 64x64) |" in shown


def test_images_with_fields_and_windows_are_compared():
    many = {"same": "yes", "window": "sy:0..3,sx:-3..3"}
    rows = point("autocorr_cuda_whole_lines", 16, 6, "", **many) + point("autocorr_cuda_line", 16, 2, **many)
    results = sets.result_set([sets.row()])
    frame = sets.points(rows)
    with_fields = tidy.ResultSet("k", "published", Path("nowhere"), results.rows, results.points, with_fields=frame)
    (line,) = steps.summary(steps.compared(with_fields)[0]).to_dict("records")
    assert (line["mean"], line["most_at"]) == (pytest.approx(3), "1-to-1 16x16 sy:0..3,sx:-3..3")


def test_the_pairs_of_the_papers_kernels_are_there():
    found = {(one.faithful, one.ours) for one in steps.steps()}
    assert found >= {
        ("warp_per_overlap_division", "warp_per_overlap"),
        ("warp_shuffle_rotating", "warp_shuffle"),
        (FAITHFUL, OURS),
        ("multi_matrix_right_smaller_last_group", "multi_matrix_right"),
        ("multi_matrix_both_dynamic_indexing", "multi_matrix_both_static_indexing"),
        ("multi_matrix_both_static_indexing", "multi_matrix_both"),
        ("autocorr_cuda_simple_texture", "autocorr_cuda_simple"),
        ("autocorr_cuda_whole_lines", "autocorr_cuda_line"),
    }
    for one in steps.steps():
        for variant in (one.faithful, one.ours):
            assert len([*(ROOT / "algorithms").rglob(f"{variant}.c*")]) == 1, f"{variant}: no such variant"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('ours = "b"\nstep = "s"\nsection = "1"', "key faithful: missing"),
        ('faithful = "a"\nours = "b"\nstep = "s"\nsection = "1"\nsections = "2"', "did you mean section?"),
        ('faithful = "a"\nours = "b"\nstep = ""\nsection = "1"', "key step: missing"),
    ],
)
def test_mistakes_in_the_data_are_one_line(tmp_path, text, told):
    (tmp_path / "one").mkdir()
    (tmp_path / "one/baselines.toml").write_text(f"[[steps]]\n{text}\n")
    with pytest.raises(UserError) as error:
        steps.steps(tmp_path)
    assert told in str(error.value) and str(error.value).startswith("one/baselines.toml: step ")


def test_points_of_an_imported_set_stand_for_the_papers_variant_too():
    points = sets.points(point(OURS, 16, 2, outcome="published"))
    found = steps.with_faithful(points)
    assert sorted(found["variant"]) == [OURS, FAITHFUL]
    assert [assignments(one) for one in found["params"]] == [{"k": "1"}] * 2
    assert isinstance(found, pd.DataFrame) and set(found["compute_us"]) == {2.0}
