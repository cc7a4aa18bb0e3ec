"""Template matching: the table beside the paper's numbers, the figures, the chapter and the claims, with and without rows."""

import pytest
from fixtures import sets
from fixtures.sets import loaded
from stored import row

from experiments.driver import schema
from plots.drawing import Drawing, Omitted
from plots.sources.template_matching import claims as templates
from plots.sources.template_matching.figures import template_matching as figure
from plots.sources.template_matching.tables import template_matching, template_passes
from plots.tables.claims import verdicts
from plots.tables.table import readable
from xcorr.errors import UserError

TILED = template_matching.variant("tiled")
UNROLLED = "template_pearson_jit_unrolled"


def matched(variant, us, shapes, templates_=10, params="", **cells):
    names = ("left_rows", "left_cols", "right_rows", "right_cols")
    given = {"experiment": "template-matching", "family": "template_matching", "backend": "cuda", "fmas": 1_000_000}
    problem = {"form": "n-to-m", "window": "valid", "score": "zncc:0.3", "lefts": templates_, "rights": 1}
    problem |= dict(zip(names, shapes))
    return row(**{"variant": variant, "params": params, "compute_us": us, **given, **problem, **cells})


def of_patients(speed=2.0):
    """Rows of every patient: passes with all tiles of two kinds and all shifts of a block, the CPU, transforms."""
    rows = []
    for one in template_matching.patients().values():
        shapes = (*one.template, *one.frame)
        for count in (1, 10, 16):
            phases = {"forward_us": 12.0, "inverse_us": 8.0, "hadamard_us": 4.0 * count}
            for tile, cost in (("4x4", 1.2), ("16x10", 1.0)):
                for threads in (64, 128, 192, 256, 512, 1024):
                    us = cost * (30 + 4 * count) * (1 if threads == 256 else 1.1)
                    params = f"shifts_per_block={threads};template_tile={tile}"
                    rows.append(matched(TILED, us, shapes, count, params, upload_us=5.0, plan_us=2000.0, **phases))
            cpu = speed * one.area**0.5 * (30 + 4 * count)
            rows.append(matched("cpu_one", cpu, shapes, count, "threads=all", backend="cpu"))
            rows.append(matched("cpu_one", 3 * cpu, shapes, count, "threads=1", backend="cpu"))
            rows.append(matched(template_matching.variant("transform"), 12.0, shapes, count, "tile=128"))
    for side in (8, 16):
        for area in (16, 64):
            shapes = (side, side, side + area - 1, side + area - 1)
            rows.append(matched(template_matching.variant("direct"), 0.1 * side * area, shapes, 1))
            rows.append(matched(template_matching.variant("centred"), 0.05 * side * area, shapes, 1))
            rows.append(matched(template_matching.variant("transform"), 1.0 * area, shapes, 1, "tile=64"))
    return rows


@pytest.fixture
def measured(tmp_path):
    return loaded(tmp_path, [*of_patients(), row()])


def test_the_papers_numbers_are_data():
    patients = template_matching.patients()
    assert list(patients) == [f"P{n}" for n in range(1, 7)]
    assert patients["P2"].frame == (27, 39) and patients["P4"].frame == (174, 152)
    areas = [one.shifts[0] * one.shifts[1] for one in patients.values()]
    assert (min(areas), max(areas)) == (95, 703)


def test_the_experiment_has_the_frames_of_the_patients():
    found = schema.load_experiments()["template-matching"]
    problems = schema.grid(found, "")
    shapes = {(one.left, one.right) for one in problems}
    for one in template_matching.patients().values():
        assert (one.template, one.frame) in shapes
    headline = [one for one in problems if one.right == (1080, 1920)]
    assert {(one.lefts, one.fields.score, one.fields.result) for one in headline} >= {
        (1, "zncc:0.3", "peak"),
        (100, "zncc:0.3", "peak"),
    }
    assert {one.fields.boundary for one in problems if one.fields.views == "windows"} == {"zero", "circular"}


def test_a_line_is_the_fastest_point_of_a_variant(measured):
    lines = template_matching.table(measured)
    own = lines[(lines["patient"] == "P4") & (lines["lefts"] == 10)]
    assert own["variant"].tolist() == [template_matching.variant("transform"), TILED, "cpu_one", "cpu_one"]
    tiled = own.iloc[1]
    assert (tiled["time_us"], tiled["total_us"]) == (70, 75) and tiled["shifts"] == 703
    assert set(sets.files(template_matching, measured)) == {"template_matching.md", "template_matching.csv"}
    shown = readable(lines, template_matching.SHOWN)
    assert "10 x 156x116 (P4)" in shown["Templates"].tolist()


def test_ours_stands_beside_the_paper(measured):
    ours = template_matching.beside_paper(measured).set_index("Patient")
    assert ours.loc["P1", "Best tile, paper"] == "16x2" and ours.loc["P1", "Best tile"] == "16x10"
    expected = 2 * (53 * 54) ** 0.5 * 70 / 75
    assert float(ours.loc["P1", "Speed-up with transfers"]) == pytest.approx(expected, rel=0.01)
    assert float(ours.loc["P1", "Speed-up without transfers"]) == pytest.approx(expected * 75 / 70, rel=0.01)


def test_the_total_has_transfers_and_no_plan(tmp_path):
    shapes = (53, 54, 63, 76)
    times = {"upload_us": 30.0, "download_us": 10.0, "plan_us": 5000.0, "allocate_us": 900.0}
    rows = [matched(template_matching.variant("direct"), 50.0, shapes, **times)]
    for tile, upload in (("4x4", 30.0), ("8x4", 90.0)):
        rows.append(matched(TILED, 20.0, shapes, params=f"template_tile={tile}", **{**times, "upload_us": upload}))
    rows.append(matched("cpu_one", 100.0, shapes, params="threads=all", backend="cpu", plan_us=400.0))
    found = template_matching.every_point(loaded(tmp_path, rows)).sort_values("time_us")
    # Transfers are the medians of a problem, and plans are not counted.
    assert found["total_us"].tolist() == [60, 60, 90, 100]


def test_the_best_tile_is_that_of_the_shortest_time(tmp_path):
    one, rows = template_matching.patients()["P4"], []
    for tile, us, upload in (("8x8", 100.0, 10.0), ("16x10", 90.0, 80.0)):
        params = f"shifts_per_block=256;template_tile={tile}"
        rows.append(matched(TILED, us, (*one.template, *one.frame), params=params, upload_us=upload))
    rows.append(matched("cpu_one", 900.0, (*one.template, *one.frame), params="threads=all", backend="cpu"))
    results = loaded(tmp_path, rows)
    gain = template_matching.speedup(results, one, 10)
    assert gain == template_matching.Speedup("16x10", pytest.approx(900 / 135), pytest.approx(10))
    (drawn,) = [one for one in figure.draw(results) if one.name == "template_matching_tiles"]
    assert min(drawn.figure.axes[0].lines[0].get_ydata()) == drawn.figure.axes[0].lines[0].get_ydata()[-1] == 1
    (drawn,) = [one for one in figure.draw(results) if one.name == "template_matching_speedups"]
    heights = [round(bar.get_height(), 3) for bar in drawn.figure.axes[0].patches if bar.get_height()]
    assert heights[:2] == [round(900 / 135, 3), 10.0] and len(heights) == 2 + 6
    assert [text.get_text() for text in drawn.figure.legends[0].get_texts()][-1] == "paper: Tesla C1060"
    assert sum(not bar.get_fill() for bar in drawn.figure.axes[0].patches) == 6
    assert template_matching.data()["paper"]["over"] in drawn.caption and "{" not in drawn.caption


def passes_of(results):
    (drawn,) = [one for one in figure.draw(results) if one.name == "template_matching_passes"]
    return drawn, [text.get_text() for text in drawn.figure.legends[0].get_texts()]


def test_the_passes_have_three_parts(measured):
    lines = template_passes.table(measured).set_index("Patient")
    parts = lines.loc["P1", ["Averages", "Denominators", "Both", "Numerators", "Rest"]]
    assert parts.tolist() == ["17 %", "11 %", "29 %", "57 %", "14 %"]
    drawn, labels = passes_of(measured)
    assert labels == ["averages", "denominators", "numerators", "the rest"]
    assert "as one phase" not in drawn.caption + " ".join(template_passes.notes(measured))


def test_rows_without_a_phase_of_denominators_have_two_parts(tmp_path):
    rows = [{**one, "inverse_us": "", "forward_us": "20"} if one["inverse_us"] else one for one in of_patients()]
    results = loaded(tmp_path, rows)
    lines = template_passes.table(results).set_index("Patient")
    parts = lines.loc["P1", ["Averages", "Denominators", "Both", "Numerators", "Rest"]]
    assert parts.tolist() == ["–", "–", "29 %", "57 %", "14 %"]
    drawn, labels = passes_of(results)
    assert labels == [template_passes.TOGETHER, "numerators", "the rest"]
    assert "measured as one phase for P1" in drawn.caption
    both = loaded(tmp_path / "new", of_patients())
    assert found_of(results)[1] == found_of(both)[1], "claims take both kinds of rows"


def test_a_set_without_rows_says_what_measures_them(tmp_path):
    results = loaded(tmp_path, [row()])
    drawn = figure.draw(results)
    assert len(drawn) == 5 and all(isinstance(one, Omitted) for one in drawn)
    experiments = ["run-time-compilation" if one.name.endswith("compiled") else "template-matching" for one in drawn]
    assert all(f"--experiments {name}" in one.reason for one, name in zip(drawn, experiments))
    chapter = sets.chapter(results, "template_matching")
    assert chapter["notes"][0] == template_matching.TABLE.nothing and len(chapter["tables"]) == 1


def test_every_figure_is_drawn(measured):
    drawn = {one.name: one for one in figure.draw(measured)}
    without = drawn.pop("template_matching_compiled")
    assert isinstance(without, Omitted), "no rows of what is compiled at run time"
    assert all(isinstance(one, Drawing) for one in drawn.values()), drawn
    assert len(drawn["template_matching_tiles"].figure.axes[0].lines) >= 6
    lines = drawn["template_matching_crossover"].figure.axes[0].lines
    assert len(lines) == 3
    # The centred sums take half of the time of the others.
    assert lines[0].get_ydata()[0] == pytest.approx(0.1 * lines[0].get_xdata()[0] / 2)
    titles = [one["title"] for one in sets.chapter(measured, "template_matching")["tables"]]
    assert titles[:2] == ["The paper's patients, 10 templates", "Time by template and frame"]
    assert titles[2:] == ["Shares of the passes, 10 templates"]


def test_other_rows_are_none_of_the_table(tmp_path):
    shapes = (53, 54, 63, 76)
    own = [matched(TILED, 5.0, shapes, window="sy:0..1,sx:0..1"), matched(TILED, 5.0, shapes, mode="latency"), row()]
    assert template_matching.table(loaded(tmp_path, own)).empty


def found_of(results):
    lines = verdicts.table(results).set_index("id")
    return lines["verdict"].to_dict(), lines["here"].to_dict()


def test_claims_are_decided_by_rows(measured):
    found, here = found_of(measured)
    assert found["W01"] == found["W02"] == found["W03"] == found["W04"] == found["W05"] == found["W10"] == "holds"
    assert found["W06"] == "holds" and here["W06"] == "16 KiB: 1"
    assert found["W07"] == "differs here"
    assert found["W08"] == found["W09"] == "not measured"


@pytest.mark.parametrize(
    "us, registers, verdict, of_registers, of_time",
    [
        (56.0, 36, "holds", "16x10: 1.5", "P1, pays after 3.6e+04 calls: 1.25"),
        (700.0, 90, "differs here", "16x10: 0.6", "P1, never pays: 0.1"),
    ],
)
def test_claims_of_what_is_compiled_at_run_time(tmp_path, us, registers, verdict, of_registers, of_time):
    compiled = {"compile_us": 5e5, "load_us": 900.0, "registers": registers, "experiment": "run-time-compilation"}
    params = "shifts_per_block=256;template_tile=16x10"
    rows = of_patients()
    # The figure shows our variant, and claims are about the paper's: with every loop unrolled, and in its own launches.
    for one in template_matching.patients().values():
        shapes = (*one.template, *one.frame)
        rows.append(matched("template_pearson_jit", us, shapes, 10, params, **compiled))
        rows.append(matched(UNROLLED, us, shapes, 10, f"launches=one;{params}", **compiled))
        rows.append(matched(UNROLLED, 2 * us, shapes, 10, "launches=per_192_shifts;template_tile=16x10", **compiled))
        rows.append(matched(UNROLLED, us / 2, shapes, 10, "launches=per_192_shifts;template_tile=6x12", **compiled))
    results = loaded(tmp_path, rows)
    (drawn,) = [one for one in figure.draw(results) if one.name == "template_matching_compiled"]
    assert isinstance(drawn, Drawing) and "500 ms the first time" in drawn.caption and "0.9 ms to load" in drawn.caption
    _, firsts = drawn.figure.axes
    heights = [bars[0].get_height() for bars in firsts.containers]
    # In milliseconds: for all sizes, warm, cold.
    assert heights == pytest.approx([2.07, 0.9 + us / 1000, 500.9 + us / 1000])
    found, here = found_of(results)
    assert found["W08"] == found["W09"] == verdict
    assert of_registers in here["W08"]
    assert of_time in here["W09"]


def test_claims_without_rows_are_not_measured(tmp_path):
    found, _ = found_of(loaded(tmp_path, [row()]))
    assert {found[f"W{n:02}"] for n in (1, 2, 3, 4, 5, 7, 8, 9, 10)} == {"not measured"}


def test_a_wrong_argument_of_a_claim_is_one_line(measured):
    side = {"variants": [TILED]}
    with pytest.raises(UserError, match="patient P7: unknown"):
        templates.ratio(measured, {"templates": 10, "patients": ["P7"], "of": side, "to": side})
    with pytest.raises(UserError, match="key variant: unknown; did you mean variants"):
        templates.ratio(measured, {"templates": 10, "of": {"variant": []}, "to": side})
    with pytest.raises(UserError, match="metric tim"):
        templates.ratio(measured, {"templates": 10, "of": side, "to": side, "metric": "tim"})
