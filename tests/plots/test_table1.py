"""Table 1 by rule: winners, ties, cells without a time, the three accountings, the printed order."""

import csv
import io

import pytest
from fixtures import sets

from plots.sources.jpdc.tables import table1

WPO, SPLIT, GROUPED, FFT = "warp_per_overlap_division", "split_row", "grouped_overlap_phases", "cufft_paper"


def one(variant, size, time, repetitions=3, **cells):
    """Rows of a one-to-one point that takes `time` microseconds."""
    if variant == SPLIT:
        cells.setdefault("params", "distribution=triangle;rows_per_thread=1;warps_per_block=4")
    return [
        sets.row(variant=variant, repetition=i, compute_us=float(time), **{**sets.square(size), **cells})
        for i in range(repetitions)
    ]


def cell(size, wpo, split, grouped, fft, plan, **cells):
    """Rows of all four classes at a size."""
    rows = one(WPO, size, wpo, **cells) + one(SPLIT, size, split, **cells)
    return rows + one(GROUPED, size, grouped, **cells) + one(FFT, size, fft, plan_us=plan, **cells)


def paper_like():
    """1-to-1 whose winners are W W S G in the paper's accounting."""
    return (
        cell(16, 2, 4, 9, 10, 500)
        + cell(32, 4, 6, 9, 10, 500)
        + cell(64, 20, 15, 30, 12, 500)
        + cell(256, 900, 800, 450, 15, 500)
    )


def cells(rows):
    return table1.cells(sets.points(rows))


def winners(found, accounting="paper"):
    own = found[found["accounting"] == accounting]
    return dict(zip(own["side"], own["winner"]))


def test_the_lowest_time_wins_and_the_transform_pays_its_plan():
    found = cells(paper_like())
    assert winners(found) == {16: "W", 32: "W", 64: "S", 256: "G"}
    line = found[(found["accounting"] == "paper") & (found["side"] == 256)].iloc[0]
    assert (line["time_us"], line["runner_up"], line["runner_up_us"]) == (450.0, "F", 515.0)
    assert line["margin"] == pytest.approx(515 / 450) and not line["is_tie"]


def test_with_plans_kept_the_transform_wins_earlier_and_is_called_fft():
    found = cells(paper_like())
    assert winners(found, "plan amortised") == {16: "W", 32: "W", 64: "F", 256: "F"}
    shown = table1.paper_shaped(found, "plan amortised").set_index("Matrices")
    assert shown.loc["1-to-1", "64x64"] == "fft" and shown.loc["1-to-1", table1.INFINITY] == "fft"
    assert "Printed" not in shown


def test_a_changed_time_changes_its_cell_only():
    before = winners(cells(paper_like()))
    rows = paper_like()
    for row in rows:
        if row["variant"] == GROUPED and row["left_rows"] == 64:
            row["compute_us"] = 10.0
    after = winners(cells(rows))
    assert after[64] == "G" and {**after, 64: before[64]} == before


def test_transfers_turn_a_small_lead_into_a_tie():
    moved = {"upload_us": 300.0, "download_us": 700.0}
    found = cells(cell(16, 2, 4, 9, 10, 500, **moved))
    own = found.set_index("accounting")
    assert not own.loc["paper", "is_tie"]
    line = own.loc["with transfers"]
    assert line["winner"] == "W" and line["tied_with"] == "S;G" and line["transfers_us"] == 1000.0
    assert line["time_us"] == 1002.0
    shown = table1.paper_shaped(found, "with transfers").set_index("Matrices")
    assert shown.loc["1-to-1", "16x16"] == "(warp-overlap = split = grouped)"
    assert "Transfers are 100 % of the winner's time" in table1.page(found).markdown()


def test_transfers_are_the_problems_not_the_variants():
    # a slow copy before one variant's timing is chance: all variants move the same arrays
    rows = cell(16, 100, 200, 900, 10, 5000, upload_us=1.0, download_us=1.0)
    for row in rows:
        if row["variant"] == WPO:
            row["upload_us"] = 500.0
    assert winners(cells(rows), "with transfers") == {16: "W"}


def test_without_transfers_that_accounting_is_left_out():
    found = cells(paper_like())
    assert winners(found, "with transfers") == {}
    assert "its times were not measured" in table1.page(found).markdown()


def test_ties_follow_the_noise_rule_and_stand_in_parentheses():
    found = cells(cell(16, 100.0, 100.9, 101.1, 10, 5000))
    line = found[found["accounting"] == "paper"].iloc[0]
    assert line["winner"] == "W" and line["tied_with"] == "S"
    shown = table1.paper_shaped(found, "paper").set_index("Matrices")
    assert shown.loc["1-to-1", "16x16"] == "(warp-overlap = split)"


def test_an_unmeasured_cell_is_a_dash_and_a_missing_class_is_said():
    rows = [r for r in paper_like() if not (r["variant"] == WPO and r["left_rows"] == 256)]
    rows += one(GROUPED, 192, 100)  # no transform there: not decided
    found = cells(rows)
    shown = table1.paper_shaped(found, "paper").set_index("Matrices")
    assert shown.loc["1-to-1", "192x192"] == shown.loc["1-to-1", "384x384"] == table1.UNMEASURED
    assert (shown.loc["8-to-8"].drop(["Printed", "Order"]) == table1.UNMEASURED).all()
    assert shown.loc["8-to-8", "Order"] == "not measured"
    assert table1.incomplete(found, "paper").endswith("1-to-1 256x256 (warp-overlap).")


def test_only_the_papers_classes_and_usual_conditions_take_part():
    base = winners(cells(paper_like()))
    faster = one("warp_per_overlap_shared_memory", 64, 1.0)
    faster += one(SPLIT, 16, 1.0, params="distribution=none;rows_per_thread=1;warps_per_block=4")
    faster += one(GROUPED, 16, 1.0, mode="cold") + one(GROUPED, 16, 1.0, outcome="published")
    assert winners(cells(paper_like() + faster)) == base


def test_all_measured_sizes_and_counts_are_in_the_extended_table():
    many = dict(form="n-to-mn", lefts=2, rights=8)
    rows = paper_like() + cell(24, 2, 4, 9, 10, 500)
    rows += one("multi_matrix_right_split_row", 64, 5, **many) + one(FFT, 64, 9, plan_us=9.0, **many)
    shown = table1.extended(cells(rows), "paper").set_index("Matrices")
    assert list(shown.columns[1:-1]) == ["16x16", "24x24", "32x32", "64x64", "256x256"]
    assert shown.loc["1-to-1", "24x24"] == "warp-overlap" and shown.loc["2-to-8", "64x64"] == "split"
    assert shown.loc["2-to-8", "16x16"] == table1.UNMEASURED
    assert "2-to-8" not in set(table1.paper_shaped(cells(rows), "paper")["Matrices"])


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({}, "same"),
        ({256: (900, 600, 700)}, "same where measured"),  # grouped may win at 192, not measured
        ({32: (4, 3, 9), 64: (10, 15, 30)}, "differs"),  # split before warp-overlap
        ({16: (9, 9, 3)}, "differs"),
    ],
)
def test_the_order_of_winners_against_the_printed_one(times, said):
    rows = [row for row in paper_like() if row["left_rows"] not in times]
    for size, values in times.items():
        rows += cell(size, *values, 10, 500)
    found = cells(rows)
    shown = table1.paper_shaped(found, "paper").set_index("Matrices")
    assert shown.loc["1-to-1", "Order"].strip("*") == said
    assert shown.loc["1-to-1", "Printed"] == "warp-overlap → split → grouped → fft+p"


def test_a_tie_may_be_read_either_way():
    tied = {16: "W", 32: "W", 64: "S", 192: "G", 256: "F"}
    rows = paper_like() + cell(192, 900, 500, 503, 10, 5000)  # S = G
    found = cells([row for row in rows if row["left_rows"] != 256])
    found = found[found["accounting"] == "paper"]
    assert set(tied) - {256} == set(found["side"])
    assert table1.compare(found, ["W", "S", "G", "F"]) == "same"
    assert table1.compare(found, ["W", "S", "F"]) == "same"
    assert table1.compare(found, ["W", "G", "F"]) == "differs"


def test_formats():
    files = table1.TABLE.files(table1.page(table1.cells(sets.points(paper_like()))))
    assert set(files) == {"table1.md", "table1.csv", "table1.tex"}
    assert "| 1-to-1 | warp-overlap | warp-overlap | split | – | – | grouped | – | fft+p |" in files["table1.md"]
    lines = list(csv.DictReader(io.StringIO(files["table1.csv"])))
    assert len(lines) == 8 and lines[0]["winner"] == "W" and float(lines[0]["time_us"]) == 2.0
    tex = files["table1.tex"]
    assert tex.count(r"\begin{tabular}") == tex.count(r"\end{tabular}") == 2
    assert "∞" not in tex and "→" not in tex and "*" not in tex


def test_a_set_without_a_decided_cell():
    files = table1.TABLE.files(table1.page(table1.cells(sets.points([sets.row()]))))
    assert "No cell of it is decided" in files["table1.md"] and files["table1.tex"].startswith("%")
