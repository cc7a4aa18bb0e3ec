"""auto with fields: times of problems with such fields decide; without them a variant that writes the result itself is weighed
against a surface and its reduction."""

from dataclasses import replace

import pytest
from fixtures import sets
from scipy_library import ScipyLibrary
from tables import results

from experiments.driver import measured, store
from xcorr.choice import auto, estimates, speeds, table
from xcorr.choice.prediction import neighbours
from xcorr.fields import Fields
from xcorr.native.variants import Variant
from xcorr.problem import Problem

__all__ = ["results"]
FORMS = ["one-to-one", "one-to-many", "n-to-mn", "n-to-m"]


def entry(name, results=("surface",), parent="", algorithm_class="fft", points=("",)):
    return {
        **{"id": name, "family": "f", "backend": "cuda", "algorithm_class": algorithm_class, "parent": parent},
        **{"precisions": ["fp32"], "forms": FORMS, "points": list(points), "modes": ["stream"]},
        **{"results": list(results), "source_hash": name, "summary": "made up"},
    }


BLOCK, LANES, PEAK = entry("block"), entry("lanes"), entry("block_peak", ("surface", "peak"), "block")
DIRECT = entry("direct", algorithm_class="definition", points=("a=1", "a=2"))


class Library(ScipyLibrary):
    """Variants of a GPU that do not exist."""

    def __init__(self, *entries):
        super().__init__()
        self.entries = entries

    def variants(self):
        return list(self.entries)


def square(side, **fields):
    return Problem("n-to-mn", (side, side), (side, side), 4, 64, "full", Fields(**fields))


def source(times):
    return auto.Source("made up", times)


def listed(*entries):
    return [Variant.from_list(one) for one in entries]


def first(problem, times, *entries):
    return estimates.estimates(problem, source(times), listed(*entries))[0]


def reduction_us(problem):
    return 1e6 * speeds.reduction_s(speeds.shipped(), "cuda", problem)


def test_measured_times_with_such_fields_decide_and_no_others():
    peaks = {square(64, result="peak"): {("lanes", ""): 50.0, ("block", ""): 70.0}}
    plain = {square(64): {("lanes", ""): 90.0, ("block", ""): 10.0}}
    best = first(square(64, result="peak"), {**peaks, **plain}, BLOCK, LANES)
    assert best.point == ("lanes", "") and best.why == "measured 50 us"
    near = first(square(56, result="peak"), {**peaks, **plain}, BLOCK, LANES)
    assert near.point == ("lanes", "") and "nearest n-to-mn/64x64/64x64/4:64/full/result=peak" in near.why
    assert auto.pick(square(64), source({**peaks, **plain}), lambda _: "").variant == "block"
    assert auto.pick(square(56), source(peaks), lambda _: "") is None, "times of peaks say nothing of surfaces"


def test_a_variant_without_such_a_time_is_weighed_against_those_that_have_one():
    problem = square(64, result="peak")
    times = {problem: {("lanes", ""): 50.0}, square(64): {("lanes", ""): 30.0, ("block", ""): 40.0}}
    best = first(problem, times, BLOCK, LANES, PEAK)
    assert best.point == ("block_peak", "") and best.us == 40, "that of its parent"
    slow = {**times, square(64): {("lanes", ""): 30.0, ("block", ""): 60.0}}
    assert first(problem, slow, BLOCK, LANES, PEAK).point == ("lanes", "")


def test_a_borrowed_time_never_comes_before_the_one_that_it_is_borrowed_from():
    child = entry("a_child", parent="block")
    times = {square(64): {("block", ""): 40.0}}
    found = estimates.estimates(square(64, boundary="circular"), source(times), listed(child, BLOCK))
    assert [one.point[0] for one in found] == ["block", "a_child"] and found[0].us == found[1].us
    points = entry("direct", points=("a=1", "a=2"))
    some = {square(64): {("direct", "a=2"): 9.0}}
    found = estimates.estimates(square(64, boundary="circular"), source(some), listed(points))
    assert [one.point for one in found] == [("direct", "a=2")], "the other point was left out, as slow ones are"


def test_who_writes_the_result_meets_surface_and_reduction():
    problem = square(64, result="peak")
    reduction = reduction_us(problem)
    times = {square(64): {("lanes", ""): 100.0, ("block_peak", ""): 100 + 0.9 * reduction}}
    best = first(problem, times, LANES, PEAK)
    assert best.point == ("block_peak", "") and best.us == pytest.approx(100 + 0.9 * reduction)
    assert "or less, since it writes peak itself; its surface: measured" in best.why
    times[square(64)]["block_peak", ""] = 100 + 1.1 * reduction
    best = first(problem, times, LANES, PEAK)
    assert best.point == ("lanes", "") and best.us == pytest.approx(100 + reduction)
    assert "to reduce its surface to peak; its surface: measured 100 us" in best.why


def test_surfaces_with_the_fields_count_before_plain_ones():
    problem = square(64, boundary="circular", result="peak")
    times = {square(64): {("lanes", ""): 10.0, ("block", ""): 20.0}}
    assert first(problem, times, BLOCK, LANES).point == ("lanes", "")
    times[square(64, boundary="circular")] = {("block", ""): 5.0, ("lanes", ""): 6.0}
    best = first(problem, times, BLOCK, LANES)
    assert best.point == ("block", "") and best.us == pytest.approx(5 + reduction_us(problem))


def test_the_boundary_changes_the_work_of_each_class_by_its_own_measure():
    problem, plain = square(64, boundary="circular"), square(64)
    times = {plain: {("lanes", ""): 100.0, ("direct", "a=1"): 100.0, ("direct", "a=2"): 90.0}}
    found = {one.point: one for one in estimates.estimates(problem, source(times), listed(LANES, DIRECT))}
    assert found["lanes", ""].us == pytest.approx(100 * problem.fft_work / plain.fft_work)
    assert found["direct", "a=1"].us == pytest.approx(100 * problem.fmas / plain.fmas)
    assert problem.fmas == plain.fmas, "64^2 outputs of 64^2 products, or 127^2 of fewer"
    assert found["direct", "a=2"].us == pytest.approx(90)
    assert "for the work with boundary circular" in found["lanes", ""].why


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ({"score": "zncc:0.3"}, {"score": "zncc:0.1"}, True),
        ({"result": "peak"}, {"result": "peak:gaussian"}, True),
        ({"result": "peak"}, {"result": "peak:upsample=20"}, False),
        ({"result": "peaks:2"}, {"result": "peaks:9"}, True),
        ({"result": "above:0.5:10"}, {"result": "above:0.7:99"}, True),
        ({"result": "above:8mad:10"}, {"result": "above:0.7:99"}, False),
        ({"result": "above:0.5:10:3"}, {"result": "above:0.7:99:8"}, True),
        ({"result": "above:0.5:10:3"}, {"result": "above:0.5:10"}, False),
        ({"result": "peak"}, {"result": "sum"}, False),
        ({"score": "ncc"}, {"score": "zncc"}, False),
        ({"same": "yes"}, {}, False),
        ({"boundary": "circular", "score": "phase:0"}, {"boundary": "circular", "score": "phase:0.5"}, True),
    ],
)
def test_fields_of_which_a_call_takes_as_long(one, other, alike):
    assert (Fields(**one).alike == Fields(**other).alike) is alike
    assert Fields(**one).alike.alike == Fields(**one).alike


def chosen(results, problem, *entries, **machine):
    return auto.Auto(Library(*entries), "cuda", results).choose(problem)


def cells(variant, side, us, **given):
    counts = {"form": "n-to-mn", "lefts": 4, "rights": 64}
    return sets.row(variant=variant, compute_us=us, backend="cuda", **sets.square(side), **counts, **given)


def test_auto_reads_such_times_from_tables_and_says_what_they_are(results):
    key = ScipyLibrary().machine("cuda")["machine_key"]
    rows = [cells("lanes", 64, 100.0), cells("block", 64, 110.0), cells("lanes", 64, 190.0, result="peak")]
    measured.write(sets.write_set(results, rows, key, "local"))
    best = chosen(results, square(64, result="peak"), BLOCK, LANES, PEAK)
    assert best.variant == "block_peak" and "local rows of this machine" in best.why and "\n" not in best.why
    rows.append(cells("block_peak", 64, 500.0, result="peak"))
    measured.write(sets.write_set(results, rows, key, "local"))
    best = chosen(results, square(64, result="peak"), BLOCK, LANES, PEAK)
    # 110 and a reduction: block_peak was measured to be slow.
    assert best.variant == "block" and "next lanes" in best.why
    assert chosen(results, square(64), BLOCK, LANES, PEAK).variant == "lanes"


def test_by_rule_too_who_writes_the_result_comes_first(results):
    best = chosen(results, square(64, result="peak"), LANES, PEAK)
    assert best.variant == "block_peak" and "nothing was measured; by rule with result=peak" in best.why
    assert "speeds.toml" in best.why and best.us > 0


def test_one_array_counts_where_it_was_measured_and_is_two_elsewhere(results):
    key = ScipyLibrary().machine("cuda")["machine_key"]
    twice = {"lefts": 4, "rights": 4}
    rows = [
        {**cells("lanes", 64, 100.0), **twice},
        {**cells("block", 64, 110.0), **twice},
        {**cells("line", 64, 20.0, same="yes"), **twice},
    ]
    measured.write(sets.write_set(results, rows, key, "local"))
    line = {**entry("line", algorithm_class="definition"), "same_only": True}
    problem = replace(square(64, same="no"), rights=4)
    same = replace(problem, fields=Fields(same="yes"))
    assert chosen(results, same, BLOCK, LANES, line).variant == "line"
    large = Problem("n-to-mn", (900, 900), (900, 900), 4, 4, "full", Fields(same="yes"))
    best = chosen(results, large, BLOCK, LANES)
    assert best.variant == "lanes" and "/same=yes" not in best.why


def test_groups_of_a_table_leave_plain_problems_as_they_were():
    rows = [cells("lanes", 64, 100.0), cells("block", 32, 9.0)]
    text = [{name: store.text_of(value) for name, value in one.items()} for one in rows]
    plain = table.digest(measured.times_of(text))
    other = {name: store.text_of(value) for name, value in cells("block_peak", 64, 50.0, result="peak").items()}
    both = table.digest(measured.times_of([*text, other]))
    assert both["fp32"]["n-to-mn"] == plain["fp32"]["n-to-mn"]
    assert both["fp32"]["n-to-mn/result=peak"]["points"] == [["block_peak", ""]]
    assert table.undigest(both) == measured.times_of([*text, other])


def test_a_variant_of_scores_only_borrows_the_times_of_its_parent_and_comes_before_it():
    made_for = entry("a_later_name", parent="a_block", points=("threads=1", "threads=all")) | {"scores": ["zncc"]}
    parent = entry("a_block", points=("threads=1", "threads=all")) | {"scores": ["product", "zncc"]}
    plain, scored = square(64), square(64, score="zncc:0.3")
    times = {plain: {("a_block", "threads=1"): 9.0, ("a_block", "threads=all"): 4.0}}
    found = estimates.estimates(scored, source(times), listed(parent, made_for))
    assert [one.point for one in found] == [
        (name, params) for params in ("threads=all", "threads=1") for name in ("a_later_name", "a_block")
    ]
    assert found[0].us == found[1].us < found[2].us
    by_speed = estimates.by_speeds(scored, listed(parent, made_for), 1)
    assert by_speed[0].point[0] == "a_later_name"


def test_a_score_that_was_not_measured_costs_more_than_a_sum_of_products():
    scored = entry("scored") | {"scores": ["product", "zncc"]}
    times = {square(64): {("scored", ""): 100.0}}
    costs = speeds.shipped()["scores"]["cuda"]["fft"]
    found = first(square(64, score="zncc:0.3"), times, scored)
    assert found.us == pytest.approx(100 * costs["factor"] + costs["launch_us"])
    assert "what score zncc costs" in found.why
    assert first(square(64, score="covariance"), times, scored).us == 100.0


def test_a_measured_score_comes_before_a_sum_of_products_that_is_a_little_faster():
    special = entry("special", algorithm_class="definition") | {"scores": ["zncc"]}
    general = entry("general") | {"scores": ["product", "zncc"]}
    scored = square(64, score="zncc:0.3")
    times = {square(64): {("general", ""): 20.0}, scored: {("special", ""): 30.0}}
    assert first(scored, times, special, general).point == ("special", "")


def test_times_of_zncc_tell_those_of_ncc_where_these_were_not_measured():
    special = entry("special") | {"scores": ["ncc", "zncc"]}
    times = {square(64, score="zncc:0.3"): {("special", ""): 30.0}}
    for score in ("ncc:0.3", "zncc:0.1"):
        assert first(square(64, score=score), times, special).us == pytest.approx(30)
    times[square(64, score="ncc:0.3")] = {("special", ""): 20.0}
    assert first(square(64, score="ncc:0.3"), times, special).us == 20.0
    assert not estimates.estimates(square(64, score="covariance"), source(times), listed(special))


@pytest.mark.parametrize(
    ("result", "by_one_block"),
    [("sum", True), ("above:8mad:10", True), ("above:0.5:10", False), ("peak", False), ("peaks:3", False)],
)
def test_one_block_reduces_a_large_surface_unless_peaks_are_sought(result, by_one_block):
    large = Problem("one-to-one", (1024, 1024), (1024, 1024), 1, 1, "full", Fields(result=result))
    many = Problem("n-to-mn", (64, 64), (64, 64), 264, 264, "full", Fields(result=result))
    assert 8 * 2047**2 > 264 * 127**2 > 2047**2, "as many outputs"
    assert (reduction_us(large) > 50 * reduction_us(many)) == by_one_block


def test_with_fields_a_third_of_the_variants_is_enough_of_a_measurement():
    def measured_of(problem, count):
        return {problem: {(f"variant{i}", ""): 1.0 + i for i in range(count)}}

    for fields, near in (({}, False), ({"score": "zncc:0.3"}, True)):
        times = measured_of(square(64, **fields), 6) | measured_of(square(60, **fields), 2)
        assert (square(60, **fields) in neighbours(square(61, **fields), times)) == near


def test_what_the_nearest_problem_cannot_have_was_not_found_slow_there():
    """A variant for sides up to 32 was not measured at 64, which is nearer to few pairs of 32 than many pairs of 32 are."""
    fields = Fields(result="peak", views="windows")
    few, many, large = (
        Problem("n-to-mn", (side, side), (side, side), pairs, pairs, "full", fields)
        for side, pairs in ((32, 1000), (32, 16000), (64, 4000))
    )
    times = {many: {("small", ""): 9.0, ("block", ""): 30.0}, large: {("block", ""): 30.0}}
    assert neighbours(few, times)[0] == large
    variants = listed(BLOCK, entry("small"))

    def ranked(can):
        return [one.point[0] for one in estimates.estimates(few, source(times), variants, can)]

    assert ranked(lambda problem, point: point[0] != "small" or problem.left[0] <= 32) == ["small", "block"]
    assert ranked(lambda problem, point: True) == ["block"], "a sweep left it out, as slow points are"


def test_far_times_with_such_fields_count_unless_the_surface_was_measured_nearer():
    def of(pairs, **fields):
        return Problem("n-to-mn", (64, 64), (64, 64), pairs, pairs, "full", Fields(**fields))

    asked, times = of(100, result="peak"), {of(6400, result="peak"): {("block", ""): 640.0}}
    assert first(asked, times, BLOCK).us == pytest.approx(10)
    times[of(3200)] = {("block", ""): 320.0}
    assert first(asked, times, BLOCK).us == pytest.approx(10 + reduction_us(asked))
    times[of(3200)] = {("lanes", ""): 900.0}
    ranked = estimates.estimates(asked, source(times), listed(BLOCK, LANES))
    assert [one.point[0] for one in ranked] == ["block", "lanes"]


def test_pairs_of_one_left_are_the_same_in_every_form_that_has_them():
    def of(form, rights=1, lefts=1, **fields):
        return Problem(form, (8, 8), (32, 32), lefts, rights, "valid", Fields(score="zncc", **fields))

    times = {
        of("n-to-m", result="peak"): {("block", ""): 5.0},
        of("one-to-many", 8): {("block", ""): 9.0},
        of("n-to-mn", 6, 6): {("block", ""): 1.0},
    }
    for form in ("one-to-one", "one-to-many", "n-to-mn"):
        best = first(of(form, result="peak"), times, BLOCK)
        assert best.us == 5 and best.why == "measured 5 us"
    peaks = of("n-to-m", 8, result="peaks:4")
    assert "its surface: measured 9 us" in first(peaks, times, BLOCK).why, "of surfaces too"
    assert estimates.in_known_form(of("n-to-m", 8), times).form == "one-to-many"
    assert estimates.in_known_form(of("n-to-m", 6, 6), times).form == "n-to-m", "36 pairs are not 6"
