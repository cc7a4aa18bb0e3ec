"""Scores beside products: which times are compared, in which order, against which bar; and no problem of the published rows is left out."""

import math
import statistics
from collections import defaultdict
from dataclasses import replace

import pytest
from fixtures import sets
from fixtures.sets import loaded
from stored import row

from experiments.driver import schema, store
from plots import tidy
from plots.sources.template_matching.tables import template_scores
from plots.tables.table import readable
from xcorr.fields import NAMES as FIELDS
from xcorr.fields import Fields
from xcorr.paths import ROOT
from xcorr.problem import GEOMETRY, Problem

SHAPES = (64, 64, 480, 640)


def measured(variant, us, shapes=SHAPES, **cells):
    names = ("left_rows", "left_cols", "right_rows", "right_cols")
    given = {"form": "n-to-m", "window": "valid", "backend": "cuda", "experiment": "template-matching", **cells}
    return row(variant=variant, compute_us=us, **dict(zip(names, shapes)), **given)


@pytest.fixture
def results(tmp_path):
    zncc = {"score": "zncc:0.3"}
    rows = [
        measured("slow_score", 90.0, **zncc),
        measured("fast_score", 52.0, **zncc),
        measured("product", 60.0),
        measured("other_product", 40.0, experiment="off-grid"),
        measured("in_tf32", 1.0, precision="tf32"),
        measured("other_mode", 1.0, mode="latency"),
        measured("masked", 150.0, masks="left", **zncc),
        measured("peak_score", 30.0, result="peak", **zncc),
        measured("peak_product", 15.0, result="peak"),
        measured("alone", 30.0, (8, 8, 480, 640), **zncc),
        measured("elsewhere", 99.0, (24, 24, 64, 64), experiment="fields", **zncc),
        measured("elsewhere", 33.0, (24, 24, 64, 64), experiment="fields"),
    ]
    return loaded(tmp_path, rows)


def test_the_fastest_score_stands_beside_the_fastest_product(results):
    lines = template_scores.table(results)
    assert lines["variant"].tolist() == ["masked", "peak_score", "fast_score"], "the largest ratio first"
    assert lines["product_variant"].tolist() == ["other_product", "peak_product", "other_product"]
    assert lines["ratio"].tolist() == pytest.approx([3.75, 2, 1.3])


def test_the_bar_is_for_products_of_at_least_20_us(results):
    lines = readable(template_scores.table(results), template_scores.SHOWN)
    assert lines["Bar"].tolist() == ["at most 4", "none, product below 20 µs", "at most 1.3"]
    assert "**above" in template_scores.verdict(1.31, 1.3)
    assert template_scores.summary(template_scores.table(results)) == "3 problems, 2 with a bar, 0 of them above it."


def test_the_report_has_the_table(results):
    chapter = sets.chapter(results, "template_matching")
    assert template_scores.TABLE.title in [one["title"] for one in chapter["tables"]]
    assert any("3 problems" in note for note in chapter["notes"])


def fastest_rows(folder):
    """By the id of a problem the shortest median time of a verified GPU variant of FP32 grade, from rows as they are stored."""
    usual = {"outcome": "passed", "mode": "stream", "input": "uniform", "backend": "cuda"}
    samples = defaultdict(list)
    for one in store.shown(folder, store.read_rows(folder)):
        if one["precision"] in ("fp32", "3xtf32") and all(one[name] == value for name, value in usual.items()):
            problem = tuple(one[name] for name in (*GEOMETRY, *FIELDS))
            point = tuple(one[name] for name in ("variant", "params", "preset", "run"))
            samples[problem, point].append(float(one["compute_us"]))
    shortest = {}
    for (problem, _), times in samples.items():
        shortest[problem] = min(shortest.get(problem, math.inf), statistics.median(times))
    return {Problem.of_row(dict(zip((*GEOMETRY, *FIELDS), cells))).id: us for cells, us in shortest.items()}


PUBLISHED = sorted(path.parent for path in (ROOT / "results" / "published").glob("nvidia-*/template-matching.csv.gz"))


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
def test_every_published_problem_is_in_the_table(folder):
    times = fastest_rows(folder)
    experiment = schema.load_experiments()["template-matching"]
    expected = {}
    for problem in schema.grid(experiment, ""):
        if problem.fields.score.startswith(("ncc", "zncc")):
            plain = replace(problem, fields=replace(problem.fields, score="product", masks="none"))
            if problem.id in times and plain.id in times:
                expected[problem.id] = times[problem.id] / times[plain.id]
    assert len(expected) >= 11
    lines = template_scores.table(tidy.load(folder, folder.name, "published"))
    cells = lines[[*GEOMETRY, "fields"]].to_numpy().tolist()
    ids = [Problem.of_cells(*own, *Fields.of_text(fields).cells).id for *own, fields in cells]
    ratios = dict(zip(ids, lines["ratio"]))
    assert {name: ratios.get(name) for name in expected} == pytest.approx(expected, rel=0.1)
