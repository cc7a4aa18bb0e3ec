"""Winners, margins, ties, the two accountings, and the three formats."""

import csv
import io
import math
import re

import pytest
from fixtures import sets

from plots.tables import best_table


def table(rows):
    return best_table.best_table(sets.points(rows))


def samples(variant, times, **cells):
    return [sets.row(variant=variant, repetition=i, compute_us=t, **cells) for i, t in enumerate(times)]


def test_winner_runner_up_and_margin():
    rows = samples("a", [10.0], params="x=1") + samples("a", [11.0], params="x=2")
    rows += samples("b", [15.0], params="y=1") + samples("c", [30.0])
    (line,) = table(rows).to_dict("records")
    assert (line["best"], line["params"], line["runner_up"]) == ("a", "x=1", "b")
    assert line["margin"] == 1.5 and not line["is_tie"] and line["contenders"] == 3


def test_less_than_one_percent_is_a_tie_and_names_all():
    rows = samples("a", [100.0]) + samples("b", [100.9]) + samples("c", [101.1])
    (line,) = table(rows).to_dict("records")
    assert line["is_tie"] and line["tied_with"] == "b"
    text = best_table.readable(table(rows))
    assert text["Best variant"].item() == "a = b" and text["Margin"].item() == "tie"


def test_noise_is_twice_the_combined_standard_error():
    # SD 10 of 4 samples: standard error 5 each, combined 7.07, twice that 14.1
    wide = [90.0, 110.0, 90.0, 110.0]
    sd = math.sqrt(4 * 100 / 3)
    limit = 2 * math.sqrt(2) * sd / 2
    inside = samples("a", wide) + samples("b", [t + limit - 0.1 for t in wide])
    outside = samples("a", wide) + samples("b", [t + limit + 0.1 for t in wide])
    assert table(inside)["is_tie"].item() and not table(outside)["is_tie"].item()


def test_a_lone_variant_has_no_margin():
    shown = best_table.readable(table(samples("a", [1.0])))
    assert shown["Margin"].item() == "–" and shown["Runner-up"].item() == "–"


def test_plan_changes_the_winner_in_its_own_accounting():
    rows = samples("transform", [5.0], plan_us=100.0) + samples("direct", [20.0])
    both = table(rows).set_index("accounting")
    assert both["best"].to_dict() == {"compute": "transform", "compute + plan": "direct"}
    assert both.loc["compute + plan", "runner_up_us"] == 105.0
    assert best_table.present_accountings(table(samples("a", [1.0]))) == ["compute"]


@pytest.mark.parametrize("outcome", ["published", "incorrect", "failed"])
def test_unverified_and_wrong_times_never_enter(outcome):
    rows = samples("a", [10.0]) + samples("b", [1.0], outcome=outcome)
    assert table(rows)["best"].tolist() == ["a"]


def test_conditions_are_never_mixed():
    rows = samples("a", [10.0]) + samples("b", [1.0], mode="cold")
    rows += samples("c", [2.0], precision="fp16") + samples("d", [3.0], window="valid")
    found = table(rows)
    assert len(found) == 4 and set(found["contenders"]) == {1}
    shown = best_table.readable(found)
    assert {"Mode", "Precision", "Window"} <= set(shown.columns) and "Input" not in shown


def test_order_is_form_then_count_then_size():
    rows = []
    for form, lefts, rights in (("n-to-m", 2, 2), ("one-to-one", 1, 1), ("one-to-many", 1, 8)):
        for size in (128, 16, 24):
            rows += samples("a", [1.0], form=form, lefts=lefts, rights=rights, **sets.square(size))
    found = table(rows)
    assert found["form"].tolist() == ["one-to-one"] * 3 + ["one-to-many"] * 3 + ["n-to-m"] * 3
    assert found["size"].tolist() == ["16x16", "24x24", "128x128"] * 3
    wide = best_table.overview(found)
    assert wide.columns.tolist() == ["Form", "Matrices", "16x16", "24x24", "128x128"]
    assert len(wide) == 3


def test_formats():
    rows = samples("my_variant|x", [10.0], params="a_b=1;c=2", plan_us=3.0)
    found = table(rows + samples("other", [20.0]))
    markdown = best_table.page(found).markdown()
    assert "| a_b=1, c=2 | 10.0 µs | other | 2.00x |" in markdown
    assert len({line.replace("\\|", "").count("|") for line in markdown.splitlines() if line.startswith("|")}) == 1
    lines = list(csv.DictReader(io.StringIO(best_table.page(found).more["best_algorithm.csv"])))
    assert lines[0]["best"] == "my_variant|x" and float(lines[0]["margin"]) == 2.0
    tex = best_table.page(found).more["best_algorithm.tex"]
    assert tex.count(r"\begin{tabular}") == tex.count(r"\end{tabular}") == 2
    body = [line for line in tex.splitlines() if line.endswith(r"\\")]
    columns = re.search(r"begin\{tabular\}\{(\w+)\}", tex)[1]
    assert all(line.count(" & ") == len(columns) - 1 for line in body)
    assert r"a\_b=1" in tex and not re.search(r"(?<!\\)[_#%&](?!.*plan)", tex.replace(" & ", " "))
    assert "µ" not in tex and "$\\mu$" in tex


def test_no_time_at_all():
    empty = table([sets.row(outcome="failed", compute_us=None)])
    assert empty.empty
    assert "No verified time" in best_table.page(empty).markdown()
    assert best_table.page(empty).more["best_algorithm.tex"].startswith("%")


def test_a_cell_without_a_transform_is_not_decided_where_the_form_has_some():
    rows = samples("cpu_definition", [10.0], **sets.square(8))
    rows += samples("cpu_fft", [5.0], **sets.square(8))
    rows += samples("cpu_definition", [900.0], **sets.square(64))
    decided = table(rows)
    assert list(decided["size"]) == ["8x8"]
    assert "no transform was measured there: one-to-one 1-to-1 64x64." in best_table.page(decided).markdown()
    alone = table([row for row in rows if row["variant"] == "cpu_definition"])  # no transform anywhere: as it is
    assert list(alone["size"]) == ["8x8", "64x64"] and not best_table.left_out(alone)
