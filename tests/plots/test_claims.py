"""Claims: every id is there, computations on small sets, and a changed value changes its verdict only."""

import csv
import io
import math
import subprocess
import sys

import pytest
from fixtures import sets

from experiments.compare import counters
from experiments.driver import schema
from plots import tidy
from plots.sources.jpdc import claims as later
from plots.tables.claims import __main__ as check_claims
from plots.tables.claims import counted, measured, values, verdicts
from plots.tables.claims.rows import Rows, asked, parse_series
from plots.tables.claims.values import DIFFERS, HOLDS, UNKNOWN, Found, Value, known, verdict
from plots.tables.selection import parse
from xcorr.errors import UserError
from xcorr.paths import ROOT

# The claims of the paper and its thesis, and the observations on its data: all that there are.
COUNTS = {"P": 7, "A": 10, "O": 21, "M": 12, "N": 8, "C": 4, "D": 4, "X": 14, "K": 10, "I": 13, "J": 5, "H": 4, "W": 10}
PAPER = [f"{letter}{n:02}" for letter, last in COUNTS.items() for n in range(1, last + 1)]
PAPER += [f"T-{line}" for line in ("1-to-1", "1-to-2", "1-to-8", "1-to-32", "2-to-2", "8-to-8", "32-to-32")]
SPLIT_1 = "distribution=triangle;rows_per_thread=1;warps_per_block=4"
GROUPED_8 = "left_rows=8;overlaps_per_thread=8;warps_per_block=4"


def point(variant, size, time, params="", **cells):
    """Rows of a one-to-one point."""
    given = {**sets.square(size), "fmas": size**4, **cells}
    return [sets.row(variant=variant, params=params, repetition=i, compute_us=float(time), **given) for i in range(3)]


def paper_like():
    """One-to-one rows on which the claims of Fig. 16 and 17 hold."""
    rows = []
    for size, base, wpo, split, grouped, none in (
        (16, 13.4, 2.54, 4.0, 15.8, 15.0),
        (24, 17.0, 3.1, 4.6, 19.7, 16.0),
        (32, 24.0, 4.0, 6.0, 22.0, 19.0),
        (48, 50.0, 7.2, 7.8, 30.0, 23.0),
        (64, 90.0, 20.1, 19.0, 60.0, 50.0),
        (96, 260.0, 80.0, 72.0, 110.0, 160.0),
        (128, 640.0, 240.0, 199.0, 210.0, 350.0),
        (192, 1700.0, 1100.0, 730.0, 540.0, 1000.0),
        (256, 3230.0, 3900.0, 2300.0, 1050.0, 2700.0),
    ):
        rows += point("overlap_wise_serial_batch", size, base)
        rows += point("warp_per_overlap_division", size, wpo, "overlaps_per_block=4")
        rows += point("split_row", size, split, SPLIT_1)
        rows += point("grouped_overlap_phases", size, grouped, GROUPED_8)
        rows += point("warp_shuffle", size, none, "warps_per_block=4")
        rows += point("cufft_paper", size, 8 + 0.75 * wpo**0.5 * 1.8, plan_us=4000.0)
    return rows


def result_set(rows, folder=None):
    frame = sets.frame(rows)
    return tidy.ResultSet(sets.KEY, "local", folder or ROOT, frame, tidy.tidy(frame))


def decided(rows, **options):
    lines = verdicts.table(result_set(rows), **options)
    return dict(zip(lines["id"], lines["verdict"]))


def rows_of(rows, series=None):
    named = {"a": ["alpha"], "b": ["beta"], "c": ["gamma"], **(series or {})}
    return Rows(sets.points(rows), parse_series(named))


CELLS = {"form": "one-to-one", "counts": "1-to-1"}


def test_every_claim_is_there_with_a_class_and_a_way_or_a_reason():
    claims = verdicts.catalogue().claims
    assert len(PAPER) == 129 and list(dict.fromkeys(PAPER)) == PAPER
    assert set(PAPER) <= set(claims)
    for claim in claims.values():
        assert claim.kind in verdicts.CLASSES and claim.paper and claim.statement and claim.section
        assert claim.compute or claim.reason, claim.id
        if claim.kind in ("machine", "static", "later"):
            assert claim.compute, f"{claim.id}: what measuring or counting decides must be computed"
        if claim.kind == "machine":
            assert claim.experiments and claim.quantity, claim.id


def test_claims_name_experiments_that_exist_and_are_no_experiment():
    there = set(schema.load_experiments())
    assert "claims" not in there
    real = {"real-ebsd", "real-photo", "series-amplitudes", "series-waveforms", "series-fragments"}
    real |= {"image-autocorrelation", counters.EXPERIMENT}
    for claim in verdicts.catalogue().claims.values():
        assert set(claim.experiments) <= there | real, claim.id


def test_claims_name_series_computations_and_arguments_that_exist():
    # every argument is looked at even where no row is: UserError if one is wrong
    found = decided([sets.row()])
    assert {found[one] for one in PAPER if one[0] in "OMNTCD"} == {UNKNOWN}


def test_static_claims_need_no_row():
    found = decided([sets.row()])
    claims = verdicts.catalogue().claims
    mine = [one for one in PAPER if claims[one].kind != "published"]  # imported sets decide those
    holding = {"A01", "A02", "A03", "A04", "A07", "A10", "W06"}
    assert {one for one in mine if found[one] == HOLDS} == holding
    assert {one for one in mine if found[one] == DIFFERS} == {"A05", "A06", "A08", "A09"}


@pytest.fixture(scope="module")
def papers():
    """Verdicts of the set that bears out Fig. 16 and 17."""
    return decided(paper_like())


def test_verdicts_of_a_set_like_the_papers(papers):
    for one in ("O05", "O07", "O08", "O09", "O10", "O11", "O13", "O14", "O15", "C02", "T-1-to-1"):
        assert papers[one] == HOLDS, one
    assert papers["O12"] == UNKNOWN  # beyond 256: 384 was not measured


@pytest.mark.parametrize(
    ("variant", "size", "time", "changed"),
    [
        ("overlap_wise_serial_batch", 16, 26.8, {"O07": DIFFERS}),
        ("overlap_wise_serial_batch", 256, 6460.0, {"O08": DIFFERS}),
        ("grouped_overlap_phases", 32, 9.0, {"O13": DIFFERS}),
        ("warp_shuffle", 16, 12.0, {"O05": DIFFERS}),  # the gain peaks at 24
        # behind split-row again: the baseline's ratio, the crossing and the order of winners
        ("grouped_overlap_phases", 256, 2400.0, {"O08": DIFFERS, "O10": DIFFERS, "T-1-to-1": DIFFERS}),
        ("warp_per_overlap_division", 64, 19.5, {}),  # the crossing moves within the tolerance
        ("overlap_wise_serial_batch", 64, 91.0, {}),
    ],
)
def test_one_changed_value_changes_exactly_its_verdicts(papers, variant, size, time, changed):
    rows = paper_like()
    for row in rows:
        if row["variant"] == variant and row["left_rows"] == size:
            row["compute_us"] = time
    after = decided(rows)
    assert {one: said for one, said in after.items() if said != papers[one]} == changed


def test_a_missing_row_is_named_with_its_parameters():
    rows = [row for row in paper_like() if row["variant"] != "grouped_overlap_phases"]
    line = verdicts.table(result_set(rows), ["O08"]).iloc[0]
    assert line["verdict"] == UNKNOWN and line["here"] == ""
    assert "grouped_overlap_phases left_rows=8 overlaps_per_thread=8 warps_per_block=4" in line["reason"]
    assert "one-to-one 1-to-1 at 256" in line["reason"]


def test_a_row_that_the_preset_did_not_select_says_so():
    rows = paper_like()
    for row in rows:
        if row["variant"] == "grouped_overlap_phases" and row["left_rows"] == 256:
            row.update(outcome="not_selected", reason="predicted 2.6 s per launch")
    line = verdicts.table(result_set(rows), ["O08"]).iloc[0]
    assert "at 256: predicted to take longer than the preset allows" in line["reason"]
    others = verdicts.table(result_set([row for row in rows if row["outcome"] == "passed"]), ["O08"]).iloc[0]
    assert "at 256" in others["reason"] and "predicted" not in others["reason"]


def test_only_verified_rows_of_the_usual_condition_count():
    wrong = []
    for outcome in ("incorrect", "published"):
        wrong += point("overlap_wise_serial_batch", 16, 99.0, outcome=outcome)
    wrong += point("overlap_wise_serial_batch", 16, 99.0, mode="cold")
    rows = [row for row in paper_like() if row["variant"] != "overlap_wise_serial_batch"]
    assert decided(rows + wrong)["O07"] == UNKNOWN


# --- computations ---


def test_crossing_by_hand():
    # ratios 1/2 at 16 and 2 at 64: half-way on a logarithmic axis
    assert measured.crossed([(16, math.log(0.5)), (64, math.log(2))]) == pytest.approx((32, 32))
    assert measured.crossed([(16, -1.0), (64, -0.1)]) == (64.0, math.inf)
    assert measured.crossed([(16, 0.1), (64, 1.0)]) == (0.0, 16.0)
    # a dip counts until the last size at which the first is faster
    last = measured.crossed([(16, 1.0), (32, -1.0), (64, 1.0)])
    assert last == pytest.approx((math.sqrt(32 * 64),) * 2)


def test_crossing_uses_the_sizes_that_both_have():
    rows = point("alpha", 16, 1) + point("alpha", 32, 9) + point("alpha", 64, 4)
    rows += point("beta", 16, 2) + point("beta", 64, 2)
    args = {**CELLS, "of": "a", "to": "b", "sizes": [16, 32, 64, 128]}
    found = measured.crossing(rows_of(rows), args)
    assert found.values[0].low == pytest.approx(32) and not found.missing and not found.hints
    shown = measured.crossing(rows_of(rows), {**args, "sizes": [16]})
    assert not shown.values
    never = rows_of(point("alpha", 16, 1) + point("beta", 16, 2) + point("alpha", 64, 1) + point("beta", 64, 2))
    bound = measured.crossing(never, args)
    assert bound.text() == "1-to-1: >64" and any("beta" in hint for hint in bound.hints)


def test_fastest_joins_ties_and_beating_names_who_leads_somewhere():
    rows = point("alpha", 16, 100) + point("beta", 16, 100.5) + point("gamma", 16, 120)
    rows += point("alpha", 32, 100) + point("beta", 32, 300) + point("gamma", 32, 90)
    args = {**CELLS, "sizes": [16, 32]}
    found = measured.fastest(rows_of(rows), {**args, "series": ["a", "b", "c"]})
    assert [one.word for one in found.values] == ["a = b", "c"]
    ahead = measured.beating(rows_of(rows), {**args, "series": ["b", "c"], "to": "a"})
    assert ahead.text() == "c"


def test_paired_compares_points_that_differ_in_one_parameter():
    rows = point("alpha", 16, 8, "k=1;m=a") + point("alpha", 16, 4, "k=1;m=b")
    rows += point("alpha", 16, 9, "k=2;m=a") + point("alpha", 16, 3, "k=2;m=b")
    rows += point("alpha", 16, 1, "k=3;m=a")
    args = {**CELLS, "sizes": [16], "series": "a", "parameter": "m", "values": ["a", "b"]}
    assert measured.paired(rows_of(rows), args).values == [known("16", 2.5, "1-to-1")]
    lacking = measured.paired(rows_of(rows), {**args, "values": ["a", "c"]})
    assert not lacking.values and "m=a and m=c" in lacking.missing[0]


def test_matching_counts_cells_where_two_parameters_agree():
    rows = point("alpha", 16, 9, "l=1;o=2") + point("alpha", 16, 8, "l=2;o=2")
    rows += point("alpha", 16, 5, "l=2;o=4") + point("alpha", 16, 7, "l=4;o=4")
    args = {**CELLS, "sizes": [16], "series": "a", "parameter": "l", "to": "o", "values": [2, 4]}
    found = measured.matching(rows_of(rows), args)
    assert found.values == [known("1 of 2", 0.5)] and not found.missing
    tie = [{**one, "compute_us": 5.01} if one["params"] == "l=4;o=4" else one for one in rows]
    assert measured.matching(rows_of(tie), args).values == [known("2 of 2", 1.0)]
    lacking = measured.matching(rows_of(rows), {**args, "values": [2, 8]})
    assert lacking.values == [known("1 of 1", 1.0)] and "o=8" in lacking.missing[0]
    none = measured.matching(rows_of(rows), {**args, "sizes": [64]})
    assert not none.values and none.missing


def test_growth_is_of_one_series_over_another():
    rows = point("alpha", 16, 10) + point("alpha", 17, 30) + point("beta", 16, 4) + point("beta", 17, 6)
    args = {**CELLS, "of": "a", "to": "b", "steps": [[16, 17], [32, 33]]}
    found = measured.growth(rows_of(rows), args)
    assert found.values == [known("16 to 17: 3 and 1.5, ratio", 2.0)] and "32" in found.missing[0]
    assert verdict(found, {"at_least": 3}) == DIFFERS and verdict(found, {"at_least": 1}) == UNKNOWN


def test_several_computations_are_one():
    rows = point("alpha", 16, 10) + point("beta", 16, 4)
    common = {"name": "ratio", "to": "b", **CELLS, "sizes": [16]}
    parts = [{"label": "x", "of": "a", **common}, {"label": "y", "of": "c", **common}]
    found = measured.several(rows_of(rows), {"parts": parts})
    assert found.values == [known("x 16", 2.5, "1-to-1")] and "gamma" in found.missing[0]


def test_a_cpu_and_a_gpu_cross_where_the_gpus_transfers_pay(tmp_path):
    gpu = {"backend": "cuda", "upload_us": 10.0, "download_us": 9.0}
    fast = [row for size in (16, 32, 64) for row in point("alpha", size, 1, **gpu)]
    fast += point("alpha", 128, 0.1, backend="cuda")  # no transfers: does not count
    slow = point("beta", 16, 10) + point("beta", 32, 20) + point("beta", 64, 40)
    sets.write_set(tmp_path, slow, "few-cores")
    args = {**CELLS, "cpu": "few-cores", "sizes": [16, 32, 64, 128]}
    here = result_set(fast, tmp_path / "published" / sets.KEY)
    found = later.cpu_crossing(here, args)
    assert found.values[0].low == pytest.approx(32) and not found.missing
    nobody = later.cpu_crossing(here, {**args, "cpu": "nobody"})
    assert not nobody.values and nobody.missing == ["times of nobody (one-to-one 1-to-1)"]
    assert "times of a GPU" in later.cpu_crossing(result_set([sets.row()], here.folder), args).missing[0]


def test_spread_noise_and_interpolation():
    rows = point("alpha", 16, 10, plan_us=100.0) + point("alpha", 64, 160, plan_us=150.0)
    side = {"series": "a", "metric": "plan"}
    found = measured.spread(rows_of(rows), {**CELLS, "of": side, "sizes": [16, 64]})
    assert found.values[0].low == 1.5
    args = {"of": "a", "cell": {**CELLS, "size": 32}, "between": {**CELLS, "sizes": [16, 64]}}
    curve = measured.interpolated(rows_of(rows + point("alpha", 32, 44)), args)
    assert curve.values[0].low == pytest.approx(1.1)
    times = [98.0, 102.0, 100.0]
    noisy = [sets.row(variant="alpha", repetition=i, compute_us=t) for i, t in enumerate(times)]
    assert measured.noise(rows_of(noisy), {"repetitions": 3}).values[0].low == pytest.approx(2.0)
    assert measured.noise(rows_of(noisy), {"repetitions": 10}).missing


def test_a_series_is_variants_with_allowed_and_forbidden_values():
    choice = parse({"variants": ["alpha"], "params": {"k": [1, 2]}, "without": {"m": "x"}}, "here")
    rows = point("alpha", 16, 1, "k=1;m=x") + point("alpha", 16, 1, "k=2;m=y")
    rows += point("alpha", 16, 1, "k=3;m=y") + point("beta", 16, 1, "k=1;m=y")
    frame = sets.points(rows)
    assert frame[choice.mask(frame)]["params"].tolist() == ["k=2;m=y"]


def test_lane_operations_by_hand():
    # executed / useful: 1 + 32 / w for multiples of 32, and the padding of shorter rows
    for width, wanted in ((16, 4.0), (24, 2048 / 576), (32, 2.0), (48, 4096 / 2304), (128, 1.25), (256, 1.125)):
        assert counted.lane_operations(width) / width**2 == pytest.approx(wanted)


# --- verdicts ---


@pytest.mark.parametrize(
    ("numbers", "test", "said"),
    [
        ([5.0], {"near": 5.3, "tolerance": 0.1}, HOLDS),
        ([4.0], {"near": 5.3, "tolerance": 0.1}, DIFFERS),
        ([1.0, 2.0], {"at_least": 1}, HOLDS),
        ([0.9, 2.0], {"at_least": 1}, DIFFERS),
        ([0.9, 2.0], {"at_least": 1, "judge": "any"}, HOLDS),
        ([0.9, 1.05], {"at_least": 1, "judge": "mean"}, DIFFERS),
        ([0.9, 2.0], {"between": [0, 1]}, DIFFERS),
        ([3.0, 2.0, 2.01], {"decreasing": True}, HOLDS),
        ([3.0, 2.0, 2.1], {"decreasing": True}, DIFFERS),
        ([1.0, 2.0], {"decreasing": False}, HOLDS),
        ([], {"at_least": 1}, UNKNOWN),
    ],
)
def test_verdicts_of_numbers(numbers, test, said):
    values.check(test, "here")
    assert verdict(Found([known(str(i), one) for i, one in enumerate(numbers)]), test) == said


def test_bounds_settle_what_they_can():
    beyond = Found([Value("a", 256, math.inf)])
    assert verdict(beyond, {"near": 384, "tolerance": 0.2}) == UNKNOWN
    assert verdict(beyond, {"near": 64, "tolerance": 0.2}) == DIFFERS
    assert verdict(beyond, {"at_least": 100}) == HOLDS
    assert verdict(Found([Value("a", 0, 16)]), {"between": [16, 256]}) == DIFFERS
    falling = Found([Value("a", 256, math.inf), known("b", 150), Value("c", 0, 16)])
    assert verdict(falling, {"decreasing": True}) == HOLDS


def test_missing_rows_leave_open_what_the_others_do_not_settle():
    def said(number, test):
        return verdict(Found([known("a", number)], ["something"]), test)

    assert said(2.0, {"at_least": 1}) == UNKNOWN and said(0.5, {"at_least": 1}) == DIFFERS
    assert said(2.0, {"at_least": 1, "judge": "any"}) == HOLDS
    assert said(0.5, {"at_least": 1, "judge": "any"}) == UNKNOWN
    assert said(0.5, {"at_least": 1, "judge": "mean"}) == UNKNOWN


# --- ours beside the paper's method ---


def our_rows():
    """Our variants beside paper_like, twice as fast as the paper's own at every size."""
    ours = {"warp_per_overlap_division": "warp_per_overlap", "grouped_overlap_phases": "grouped_overlap"}
    return [
        {**row, "variant": ours[row["variant"]], "compute_us": row["compute_us"] / 2}
        for row in paper_like()
        if row["variant"] in ours
    ]


def test_ours_stands_beside_the_papers_method_and_decides_nothing(papers):
    lines = verdicts.table(result_set(paper_like() + our_rows())).set_index("id")
    assert dict(lines["verdict"]) == papers
    assert lines.loc["O07", ["here", "ours"]].tolist() == ["16: 5.28", "16: 10.6"]
    assert lines.loc["O08", "ours_values"] == "256: 6.15"
    assert lines.loc["T-1-to-1", "here"] != lines.loc["T-1-to-1", "ours"] != ""
    assert set(lines.loc[["A01", "O16", "I01"], "ours"]) == {""}, "claims without ours"


def test_ours_without_rows_is_empty():
    line = verdicts.table(result_set(paper_like()), ["O07"]).iloc[0]
    assert (line["verdict"], line["here"], line["ours"]) == (HOLDS, "16: 5.28", "")


def test_only_ours_leaves_the_claim_open():
    rows = [row for row in paper_like() if row["variant"] != "warp_per_overlap_division"] + our_rows()
    line = verdicts.table(result_set(rows), ["O07"]).iloc[0]
    assert (line["verdict"], line["here"], line["ours"]) == (UNKNOWN, "", "16: 10.6")


def test_ours_is_a_column_of_the_page_and_the_command(tmp_path, capsys):
    sets.write_set(tmp_path, paper_like() + our_rows())
    text = verdicts.page(verdicts.table(result_set(paper_like() + our_rows()))).markdown()
    assert "| Here | With ours |" in text and "| 16: 5.28 | 16: 10.6 | holds |" in text
    _, out, _ = call(tmp_path, capsys, sets.KEY, "--id", "O07")
    assert "16: 10.6" in out


def test_one_of_several_series_that_was_never_asked_leaves_the_fastest_open():
    series = {"a": ["alpha"], "b": ["beta"], "c": ["gamma"]}
    rows = point("alpha", 16, 1) + point("gamma", 16, 4)
    args = {**CELLS, "of": "c", "to": ["a", "b"], "sizes": [16]}
    found = measured.ratio(rows_of(rows, series), args)
    assert not found.values and "beta" in found.missing[0] and "alpha" not in found.missing[0]
    for outcome in ("not_selected", "not_supported"):
        said = [{**row, "variant": "beta", "outcome": outcome} for row in rows[:1]]
        frame = sets.frame(rows + said)
        made = Rows(tidy.tidy(frame), parse_series(series), asked=asked(frame))
        assert measured.ratio(made, args).values == [known("16", 4.0, "1-to-1")]


def test_a_class_of_table_1_that_was_never_asked_leaves_its_line_open():
    without = [row for row in paper_like() if row["variant"] != "warp_per_overlap_division"]
    line = verdicts.table(result_set(without), ["T-1-to-1"]).iloc[0]
    assert line["verdict"] == UNKNOWN and "16" in line["reason"]
    slow = [row | {"outcome": "not_selected"} for row in paper_like() if row["variant"] == "warp_per_overlap_division"]
    assert decided(without + slow)["T-1-to-1"] == DIFFERS


def test_rows_of_an_imported_set_are_of_the_papers_own_program():
    rows = [
        {**row, "outcome": "published"}
        for row in [*our_rows(), *paper_like()]
        if row["variant"] in ("warp_per_overlap", "overlap_wise_serial_batch")
    ]
    line = verdicts.table(result_set(rows), ["O07"]).iloc[0]
    assert line["here"] == line["ours"] == "16: 10.6"


# --- mistakes in the data and in the request ---

GOOD = """
[[claims]]
id = "Z1"
section = "s"
statement = "s"
class = "machine"
paper = "1"
compute = { name = "ratio", of = "fft", to = "fft", form = "one-to-one", counts = "1-to-1", sizes = [16] }
test = { at_least = 1 }

[series]
fft = ["cufft_paper"]
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"machine"', '"machin"', "did you mean machine?"),
        ('"ratio"', '"ration"', "did you mean ratio?"),
        ("test =", "tests =", "did you mean test?"),
        ("at_least = 1", "at_leas = 1", "did you mean at_least?"),
        ("at_least = 1", "near = 1", "near has no tolerance"),
        ('of = "fft"', 'of = "ff"', "did you mean fft?"),
        ('of = "fft", ', "", "argument 'of': missing"),
        ('["cufft_paper"]', "[]", "names no variants"),
        ("test =", 'ours = { too = "fft" }\ntest =', "did you mean to?"),
        ("test =", 'ours = { to = "fft" }\ntest =', "ours gives what compute has"),
        ("test =", 'ours = { to = "ff" }\ntest =', "did you mean fft?"),
        ("compute =", 'reason = "r"\nours = { to = "fft" }\n# compute =', "ours without compute"),
    ],
)
def test_mistakes_in_the_data_are_one_line(tmp_path, old, new, told):
    assert old in GOOD
    for name, text in (("good", GOOD), ("wrong", GOOD.replace(old, new))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "claims.toml").write_text(text)
    assert decided([sets.row()], folder=tmp_path / "good") == {"Z1": UNKNOWN}
    with pytest.raises(UserError) as error:
        decided([sets.row()], folder=tmp_path / "wrong")
    assert told in str(error.value) and "\n" not in str(error.value)


def call(results, capsys, *arguments):
    code = check_claims.main([*arguments, "--results", str(results)])
    return (code, *capsys.readouterr())


def test_the_command(tmp_path, capsys):
    sets.write_set(tmp_path, paper_like())
    code, out, _ = call(tmp_path, capsys)
    assert code == 0 and all(one in out for one in PAPER)
    code, out, _ = call(tmp_path, capsys, sets.KEY, "--id", "O05")
    assert code == 0 and "256: 1.17" in " ".join(out.split()) and "O07" not in out
    assert out.rstrip().endswith("1 holds, 0 differs, 0 not measurable here")
    code, out, _ = call(tmp_path, capsys, "--markdown")
    assert code == 0 and "| O07 |" in out and "## Static" in out
    code, _, error = call(tmp_path, capsys, "--id", "O7")
    assert code == 2 and error.startswith("error: claim O7: unknown") and error.count("\n") == 1
    assert call(tmp_path, capsys, "nowhere")[0] == 2


def test_files_hold_every_claim():
    files = sets.files(verdicts, result_set(paper_like()))
    assert set(files) == {"claims.md", "claims.csv"}
    ids = [line["id"] for line in csv.DictReader(io.StringIO(files["claims.csv"]))]
    assert ids == list(verdicts.catalogue().claims)
    assert "| O08 | ... and 3.1 times at 256x256" in files["claims.md"]
    assert "**differs**" in files["claims.md"]


def test_help_has_an_example():
    done = subprocess.run(
        [sys.executable, "-m", "plots.tables.claims", "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0 and "example:" in done.stdout
