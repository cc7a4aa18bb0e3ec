"""Which points figures and claims show, by the files of the sources and by small ones."""

from pathlib import Path

import pytest

from experiments.driver import schema
from experiments.driver.points import Unit
from experiments.driver.shown import groups_of, needed, shown
from xcorr.native.variants import Variant
from xcorr.problem import Problem

TILES = tuple(
    f"left_rows={a};overlaps_per_thread={b};warps_per_block={w}" for a in (1, 2, 8) for b in (1, 2, 8) for w in (4, 8)
)


FIGURE_15 = {f"left_rows={n};overlaps_per_thread={n};warps_per_block=4" for n in (1, 2, 4, 8)}


def unit(variant, form, size, lefts, rights, points, experiment="e", **more):
    problem = Problem(form, (size, size), (size, size), lefts, rights)
    made = Variant(variant, "f", "cuda", "definition", ("fp32",), (form,), points, ("stream", "graph"), "")
    return Unit(experiment, problem, made, more.get("precision", "fp32"), more.get("mode", "stream"), "uniform", points)


@pytest.mark.parametrize("size", [16, 192, 256])
def test_the_ends_of_figure_15_are_needed(size):
    own = unit("grouped_overlap", "n-to-mn", size, 4000, 4000, TILES)
    for one in (1, 2, 8):
        assert (f"left_rows={one};overlaps_per_thread={one};warps_per_block=4",) in needed(own, shown())


@pytest.mark.parametrize(
    "variant, form, counts, points",
    [
        ("multi_matrix_right_grouped_overlap", "one-to-many", (1, 4000), ("left_rows=4;overlaps_per_thread=4;right_mats=2;streams=one_kernel;warps_per_block=4",)),
        ("multi_matrix_both_grouped_overlap", "n-to-m", (128, 128), ("left_mats=4;left_rows=4;overlaps_per_thread=4;right_mats=4;warps_per_block=4",)),
    ],
)  # fmt: skip
def test_the_ends_of_figures_18_and_21_are_needed(variant, form, counts, points):
    assert needed(unit(variant, form, 256, *counts, points), shown()) == [points]
    assert not needed(unit(variant, form, 100, *counts, points), shown()), "no figure has this size"


def test_a_claim_that_pairs_points_needs_all_of_them():
    """Claim O03: 4 and 8 warps a block."""
    groups = needed(unit("grouped_overlap_phases", "n-to-mn", 256, 4000, 4000, TILES), shown())
    assert {(one,) for one in TILES} <= set(groups)


def test_what_stands_beside_a_claim_is_shown_and_not_needed():
    """Claim O03 with our variant: drawn, but not measured however long it takes."""
    own = unit("grouped_overlap", "n-to-mn", 256, 4000, 4000, TILES)
    shown_all, as_needed = set(groups_of(own, shown())), set(needed(own, shown()))
    beside = {(one,) for one in TILES}
    assert beside <= shown_all and as_needed & beside == {(one,) for one in TILES if one in FIGURE_15}


CLAIM = """
[series]
theirs = ["v"]
mine = ["w"]
[[claims]]
id = "Z1"
section = "s"
statement = "s"
paper = "1"
experiments = ["e"]
compute = { name = "ratio", of = "theirs", to = "theirs", form = "one-to-one", counts = "1-to-1", sizes = [8] }
OURS
test = { at_least = 1 }
"""


@pytest.mark.parametrize(
    "ours, variant, is_shown, is_needed",
    [
        ('ours = { of = "mine" }', "w", True, False),
        ('ours = { of = "mine" }', "v", True, True),
        ("", "w", False, False),
        ('ours = { of = { series = "mine", size = 16 }, sizes = [16] }', "w", False, False),
    ],
)
def test_the_sides_of_ours_are_collected(tmp_path: Path, ours, variant, is_shown, is_needed):
    (tmp_path / "one").mkdir()
    (tmp_path / "one/claims.toml").write_text(CLAIM.replace("OURS", ours))
    own, groups = unit(variant, "one-to-one", 8, 1, 1, ("a=1", "a=2")), shown(tmp_path)
    assert any(one.of(own) for one in groups) == is_shown and bool(needed(own, groups)) == is_needed


def test_our_classes_of_table_1_are_shown_and_not_needed():
    for variant, of_paper in (("warp_per_overlap_division", True), ("warp_per_overlap", False)):
        own = unit(variant, "one-to-one", 384, 1, 1, ("overlaps_per_block=4", "overlaps_per_block=16"))
        (group,) = {one for one in groups_of(own, shown())}
        assert group == own.params and bool(needed(own, shown())) == of_paper


def of_passes(template, frame, lefts, experiment="template-matching"):
    points = tuple(f"shifts_per_block={n};template_tile={tile}" for n in (128, 512) for tile in ("4x4", "16x10"))
    fields = {"window": "valid", "score": "zncc"}
    problem = Problem("n-to-m", template, frame, lefts, 1, **fields)
    made = Variant("template_pearson_tiled", "f", "cuda", "definition", ("fp32",), ("n-to-m",), points, ("stream",), "")
    return Unit(experiment, problem, made, "fp32", "stream", "uniform", points)


def test_of_a_parameter_the_fastest_point_of_each_value_is_needed():
    """Claim W10: threads of a block. Its problems are those of the patients, with 10 templates."""
    groups = needed(of_passes((53, 54), (63, 76), 10), shown())
    values = {
        tuple(one for one in of_passes((53, 54), (63, 76), 10).params if f"block={n};" in one) for n in (128, 512)
    }
    assert values <= set(groups) and all(len(one) > 1 for one in groups)
    assert ("shifts_per_block=128;template_tile=4x4", "shifts_per_block=512;template_tile=4x4") in needed(
        of_passes((156, 116), (174, 152), 10), shown()
    ), "claim W03, of the tiles of P4"


def test_a_figure_may_exclude_a_parameter():
    """Figures of the artifact's tiles take points without shmem_rows."""
    params = "column_group_per_block=1;overlaps_per_block=32;right_mats_per_block=1;shmem_row=128;"
    points = (f"{params}strided_load=1", f"{params}shmem_rows=64;strided_load=1")
    of_figure = [one for one in shown() if one.name == "study_warp_per_overlap_shared_memory"]
    of_unit = unit("warp_per_overlap_shared_memory", "one-to-one", 64, 1, 1, points, "one-to-one")
    assert of_figure and set(groups_of(of_unit, of_figure)) == {points, points[:1]}, "the whole grid, and the figure's"


@pytest.mark.parametrize("template, frame, lefts", [((53, 54), (63, 76), 5), ((64, 64), (1080, 1920), 10)])
def test_a_claim_on_patients_needs_no_other_problem(template, frame, lefts):
    assert not needed(of_passes(template, frame, lefts), shown())


def test_what_is_unusual_is_in_no_figure_of_the_paper():
    for more in ({"mode": "graph"}, {"precision": "fp64"}):
        assert not needed(unit("grouped_overlap", "n-to-mn", 256, 4000, 4000, TILES, **more), shown())


def test_the_whole_grid_is_the_first_group():
    own = unit("no_figure_has_it", "n-to-mn", 256, 4000, 4000, TILES)
    assert groups_of(own, shown()) == [TILES] and not needed(own, shown())


def test_autocorrelation_on_a_cpu_is_needed_to_its_largest_shift():
    points = ("threads=1", "threads=2", "threads=all")
    made = Variant("autocorr_simple", "f", "cpu", "definition", ("fp32",), ("one-to-one",), points, ("stream",), "")
    problems = schema.grid(schema.load_experiments()["autocorrelation"], "evaluation")
    (far,) = [one for one in problems if "sx:-300..300" in one.window]
    own = Unit("autocorrelation", far, made, "fp32", "stream", "uniform", points)
    assert {points, ("threads=1",), ("threads=all",)} <= set(needed(own, shown()))


def test_a_study_is_drawn_and_has_the_limit_of_the_preset(tmp_path: Path):
    (tmp_path / "one").mkdir()
    series = '{ each = ["a"], values = [1, 2] }'
    text = f'[NAME]\ntitle = "t"\nmetric = "time"\nexperiments = ["e"]\nsizes = [8]\nwhere = {{ variant = "v" }}\nseries = {series}\n'
    (tmp_path / "one/figures.toml").write_text(
        text.replace("NAME", "study") + text.replace("NAME", "fig7").replace("[1, 2]", "[1]")
    )
    groups = shown(tmp_path)
    own = unit("v", "one-to-one", 8, 1, 1, ("a=1;b=1", "a=1;b=2", "a=2;b=1"))
    assert groups_of(own, groups) == [own.params, own.params[:2], own.params[2:]]
    assert needed(own, groups) == [own.params[:2]]
