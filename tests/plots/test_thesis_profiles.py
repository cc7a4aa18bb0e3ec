"""The thesis's profiles: counters become panels, and times of arrays in local memory become ratios."""

import json

import pytest
from fixtures import sets

from experiments.compare import counters
from plots import style, tidy
from plots.drawing import Drawing, Omitted
from plots.sources.jpdc.figures import local_memory, profiles

POINTS = counters.data()["points"]


def set_of(tmp_path, values):
    """A set with these counters, by launch."""
    folder = tmp_path / sets.KEY
    points = {name: {**POINTS[name], "source_hash": "", "counters": own} for name, own in values.items()}
    path = folder / counters.EXPERIMENT / "artifacts" / f"{counters.EXPERIMENT}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"schema": counters.SCHEMA, "machine_key": sets.KEY, "points": points}))
    frame = sets.frame([sets.row()])
    return tidy.ResultSet(sets.KEY, "local", folder, frame, tidy.tidy(frame))


def values_of(names, **own):
    return {name: {**dict.fromkeys(counters.metrics(POINTS[name]), 2.0), **own} for name in names}


def titles(drawing):
    return [axes.get_title(loc="right") for axes in drawing.figure.axes]


def drawn(results):
    with style.context():
        (one,) = profiles.draw(results)
    return one


def test_every_panel_names_launches_and_counters_of_the_data():
    for panel in profiles.panels():
        asked = profiles._texts(panel)
        for launch in [*panel["launches"].values(), panel.get("of")]:
            assert launch is None or asked.keys() <= counters.metrics(POINTS[launch]).keys(), (panel["title"], launch)
        assert panel.get("by", next(iter(asked))) in asked


def test_all_panels_are_drawn_where_all_launches_were_profiled(tmp_path):
    one = drawn(set_of(tmp_path, values_of(POINTS)))
    assert isinstance(one, Drawing)
    assert titles(one) == [panel["title"] for panel in profiles.panels()]
    assert "warp_per_overlap_division" not in one.caption and "overlaps_per_block=4" in one.caption


def test_a_panel_without_a_launch_is_left_out_and_so_is_the_figure_without_any(tmp_path):
    some = drawn(set_of(tmp_path / "some", values_of(["shared-memory", "shared-memory-8-rights"])))
    assert titles(some) == [p["title"] for p in profiles.panels() if "right" in " ".join(p["launches"])]
    old = {"flat-indexing": {"fma_pct": 1.0, "lsu_pct": 1.0, "active_lanes": 1.0, "load_requests": 1.0}}
    none = drawn(set_of(tmp_path / "none", old))
    assert isinstance(none, Omitted) and "experiments.compare.counters" in none.reason


def test_numbers_are_over_those_of_the_named_launch():
    panel = {"counters": {"a": "A", "b": "B"}, "launches": {"one": "x", "two": "y"}, "of": "x"}
    values = {"x": {"a": 4.0, "b": 0.0}, "y": {"a": 2.0, "b": 3.0}}
    found = profiles.shown(panel, values)
    assert found["two"] == pytest.approx([0.5, float("nan")], nan_ok=True)
    assert profiles.shown({**panel, "by": "a"}, values)["two"] == [0.5, 0.75]
    assert profiles.shown({"counters": {"b": "B"}, "launches": {"two": "y"}}, values) == {"two": [3.0]}


SPEC = {"form": "n-to-m", "counts": ["2-to-2", "8-to-8"], "slow": "slow", "fast": "fast", "params": {"m": 4}}


def row(variant, side, us, params="m=4;w=8", lefts=2):
    shape = dict.fromkeys(("left_rows", "left_cols", "right_rows", "right_cols"), side)
    counts = {"form": "n-to-m", "lefts": lefts, "rights": lefts}
    return sets.row(variant=variant, compute_us=us, params=params, **shape, **counts)


def test_the_ratio_is_of_points_with_the_parameters_of_the_figure():
    rows = [row("slow", 16, 30.0), row("fast", 16, 10.0), row("fast", 16, 1.0, "m=2;w=8"), row("slow", 32, 9.0)]
    points = sets.points(rows)
    found = local_memory.gains(points, SPEC)
    assert list(found) == ["2-to-2"] and found["2-to-2"]["y"].to_dict() == {16: 3.0}
    assert local_memory.gains(sets.points(rows[1:]), SPEC) == {}


def test_a_set_without_both_variants_says_so():
    frame = sets.frame([sets.row()])
    made = local_memory.draw(tidy.ResultSet(sets.KEY, "local", None, frame, tidy.tidy(frame)))
    assert len(made) == 2 and all(isinstance(one, Omitted) for one in made)
    assert "multi_matrix_both_dynamic_indexing and multi_matrix_both_static_indexing" in made[0].reason
