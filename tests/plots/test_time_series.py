"""Time series: Table 2, the fastest by precision class, sweeps, the map, and the claims of the source."""

import math
from pathlib import Path

import pytest
from fixtures import real, sets

from experiments.compare import artifacts, fragments
from experiments.driver import schema
from plots import style, tidy
from plots.drawing import Drawing, Omitted
from plots.sources.time_series import claims
from plots.sources.time_series.figures import time_series as figure
from plots.sources.time_series.tables import amplitudes, time_series, waveforms
from plots.tables.claims import verdicts
from xcorr.errors import UserError

KEY = "nvidia-h200-132-sm-140-gib"


def series(variant, us, precision="tf32", samples=256, templates=16, shifts=4_320_000, **cells):
    """Rows of a point of a time series; the headline problem unless said otherwise."""
    shape = {"left_rows": 1, "left_cols": samples, "right_rows": 1, "right_cols": samples + shifts - 1}
    usual = {"form": "n-to-m", "lefts": templates, "window": "valid", "experiment": "time-series", "backend": "cuda"}
    given = {**usual, **shape, "fmas": templates * samples * shifts, "family": "time_series", **cells}
    return [
        sets.row(variant=variant, precision=precision, repetition=i, compute_us=float(us), **given) for i in range(3)
    ]


def result_set(rows, key=KEY, folder=Path("nowhere")):
    return sets.result_set(rows, folder, key)


def headline():
    tensor = []
    for us, point in (
        (180, "fragments=keep;instruction=mma;shifts_per_warp=64"),
        (200, "fragments=load;instruction=wmma;shifts_per_warp=96"),
        (210, "fragments=load;instruction=wmma;shifts_per_warp=32"),
    ):
        tensor += series("timeseries_tf32", us, params=point, normalised_error=1.1e-4)
    library = series("timeseries_cublas", 1800, build_us=700.0, normalised_error=1.12e-4)
    grade = series("timeseries_fft", 160, "fp32", normalised_error=1e-6)
    return tensor + library + grade + series("timeseries_3xtf32", 400, "3xtf32", normalised_error=2e-6)


def claims_of(rows):
    lines = verdicts.table(result_set(rows), [f"K{n:02}" for n in range(1, 11)])
    return dict(zip(lines["id"], lines["verdict"])), dict(zip(lines["id"], lines["here"]))


def test_table2_has_our_lines_before_the_papers():
    lines = time_series.table2(result_set(headline()))
    assert lines["outcome"].tolist() == ["passed"] * 4 + ["published"] * 4
    assert lines["class"].tolist()[:4] == ["FP32 grade", "FP32 grade", "tf32", "tf32"]
    fastest = lines[lines["method"] == style.label("timeseries_tf32", "tf32")].iloc[0]
    assert fastest["time_us"] == 180 and "mma" in fastest["params"] and fastest["error"] == pytest.approx(1.1e-4)
    flops = 2 * 16 * 256 * 4_320_000 / 180e-6
    assert fastest["tflops"] == pytest.approx(flops / 1e12)
    assert fastest["nominal"] == pytest.approx(flops / 494.7e12) and math.isnan(fastest["measured"])
    transform = lines[lines["method"] == style.label("timeseries_fft")].iloc[0]
    assert math.isnan(transform["nominal"]) and transform["tflops"] > 0, "it needs less work than is counted"
    built = lines[lines["method"] == style.label("timeseries_cublas", "tf32")].iloc[0]
    assert built["build_us"] == 700
    paper = lines[lines["outcome"] == "published"]
    assert paper["time_us"].tolist() == [1366, 3947, 661, 84910] and paper["nominal"].max() == pytest.approx(0.3434)
    elsewhere = time_series.table2(result_set(headline(), key="some-card"))
    assert elsewhere["nominal"].iloc[:4].isna().all()


def test_fp32_grade_never_shares_a_line_with_tf32_or_fp16():
    rows = headline() + series("timeseries_fp16", 110, "fp16") + series("timeseries_cpu_dgemm", 9e4, "fp64")
    found = time_series.best(result_set(rows))
    assert found["class"].tolist() == ["FP32 grade", "tf32", "fp16", "fp64"]
    assert found["contenders"].tolist() == [2, 2, 1, 1]
    grade = found.iloc[0]
    assert "fft" in grade["best"] and "3xtf32" in grade["runner_up"] and grade["margin"] == 2.5
    tied = time_series.best(result_set(headline() + series("timeseries_cufft", 160.5, "fp32")))
    assert "cufft" in tied.iloc[0]["tied_with"]


@pytest.mark.parametrize(
    "cells", [{"window": "full"}, {"outcome": "incorrect"}, {"mode": "latency"}, {"rights": 2}, {"right_rows": 2}]
)
def test_other_problems_and_unverified_rows_are_left_out(cells):
    assert time_series.points(result_set(series("x", 1, **cells))).empty


def test_without_rows_every_output_says_what_is_missing():
    results = result_set(sets.model_rows(sizes=[16], counts={"one-to-one": [(1, 1)]}))
    files = sets.files(time_series, results)
    assert "| published | tf32 | the paper's method | A100 |" in files["time_series.md"]
    found = figure.draw(results)
    assert [type(one) for one in found] == [Omitted] * 4 and all("time-series" in one.reason for one in found)
    said, _ = claims_of(sets.model_rows(sizes=[16], counts={"one-to-one": [(1, 1)]}))
    assert set(said.values()) == {"not measured"}
    chapter = sets.chapter(results, "time_series")
    assert chapter["notes"][0] == time_series.TABLE.nothing


def test_files_and_chapter_of_a_set_with_rows():
    results = result_set(headline())
    files = sets.files(time_series, results)
    assert set(files) == {"time_series.md", "time_series.csv", "time_series_table2.csv"}
    assert time_series.TABLE.nothing not in files["time_series.md"]
    _, grids = time_series.page(results).chapter()
    assert grids[1]["title"] == "Fastest variant by precision class"


def sweep():
    rows = []
    for samples in (64, 256, 4096):
        for templates in (1, 16):
            place = {"samples": samples, "templates": templates, "shifts": 1_000_000}
            rows += series("timeseries_tf32", samples * templates, **place)
            rows += series("timeseries_fft", 500 * templates, "fp32", **place)
            rows += series("timeseries_3xtf32", 3 * samples * templates, "3xtf32", **place)
    return rows + series("timeseries_tf32", 3, shifts=10_000)


def test_sweeps_are_drawn_from_their_data():
    with style.context():
        drawn = {one.name: one for one in figure.draw(result_set(sweep()))}
    assert list(drawn) == [f"time_series_{key}" for key in (*figure.sweeps(), "crossover")]
    assert all(isinstance(one, Drawing) for one in drawn.values())
    axes = drawn["time_series_samples"].figure.axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["64", "256", "4,096"]
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert len(lines) == 3 and axes.get_xscale() == "log"
    line = lines[style.label("timeseries_tf32", "tf32")]
    assert list(line.get_xdata()) == [64, 256, 4096]
    assert line.get_ydata()[0] == pytest.approx(2 * 1_000_000 / 1e-6)  # 2 x 16 x 64 x shifts in 64 x 16 us
    curves = [one for one in drawn["time_series_signal"].figure.axes[0].get_lines() if one.get_linestyle() != "None"]
    assert list(curves[-1].get_xdata()) == [10_000, 1_000_000]


def test_a_transform_whose_segments_hardly_fit_the_template_is_no_rival():
    rows = []
    for samples in (64, 256, 4096):
        place = {"samples": samples, "templates": 16, "shifts": 1_000_000}
        rows += series("timeseries_tf32", 100.0, **place)
        rows += series("timeseries_fft", 50.0 if samples < 4096 else 3e5, "fp32", params="segment=4096", **place)
    with style.context():
        drawn = {one.name: one for one in figure.draw(result_set(rows))}
    lines = {line.get_label(): line for line in drawn["time_series_samples"].figure.axes[0].get_lines()}
    assert list(lines[style.label("timeseries_fft")].get_xdata()) == [64, 256]
    for name in ("time_series_samples", "time_series_crossover"):
        assert "4,096 samples (300 ms)" in drawn[name].caption, "what is not drawn is named"
    texts = [text.get_text() for axes in drawn["time_series_crossover"].figure.axes for text in axes.texts]
    alone = [text for text in texts if text.endswith(figure.ALONE)]
    assert alone and all("100 µs" in text for text in alone) and len(alone) < len(texts)


def test_table_2_of_the_paper_stands_hollow_in_the_sweep_that_passes_through_its_problem():
    with style.context():
        drawn = {one.name: one for one in figure.draw(result_set(sweep()))}
    points = {
        key: [one for one in drawn[f"time_series_{key}"].figure.axes[0].get_lines() if one.get_linestyle() == "None"]
        for key in figure.sweeps()
    }
    assert not points["samples"] and not points["templates"]
    assert all(one.get_markerfacecolor() == "white" for one in points["signal"])
    found = {one.get_label(): (one.get_xdata()[0], one.get_ydata()[0]) for one in points["signal"]}
    assert found["paper: A100, the paper's method"] == (4_320_000, pytest.approx(53.56e12))
    assert found["paper: V100, Yamaguchi 2019"] == (4_320_000, pytest.approx(25.90e12))
    assert len(found) == len(time_series.data()["published"]) == 4
    assert "Hollow" in drawn["time_series_signal"].caption and "Hollow" not in drawn["time_series_samples"].caption


def test_the_rates_and_shares_of_table_2_follow_from_its_times_and_table_1():
    peaks = {"V100": {"fp16": 125.0}, "A100": {"tf32": 156.0}, "Xeon Platinum 8360Y": {"fp64": 2.765}}
    for one in time_series.data()["published"]:
        flops = 2 * 16 * 256 * 4_320_000 / (1e-3 * one["time_ms"])
        assert flops / 1e12 == pytest.approx(one["tflops"], rel=0.01)
        assert 100 * one["tflops"] / peaks[one["device"]][one["class"]] == pytest.approx(one["share"], rel=0.01)


def test_the_map_has_a_grid_for_each_class_and_names_the_kind():
    with style.context():
        drawing = figure.draw(result_set(sweep()))[-1]
    grids = {axes.get_title(loc="left").partition(":")[0]: axes for axes in drawing.figure.axes}
    assert list(grids) == ["FP32 grade", "tf32 or FP32 grade"]
    either = [text.get_text() for text in grids["tf32 or FP32 grade"].texts]
    assert any("tf32" in one and "3xtf32" not in one for one in either) and any("fft" in one for one in either)
    texts = [text.get_text() for text in grids["FP32 grade"].texts]
    assert any("3xtf32" in one for one in texts) and any("fft" in one for one in texts)
    assert figure.kind("timeseries_fft", "fp32") == "transform"
    assert figure.kind("timeseries_tf32", "tf32") == "tensor cores"
    assert figure.kind("timeseries_cublas", "fp32") == "direct"


def test_claims_are_decided_at_the_problem_of_table_2():
    said, here = claims_of(headline())
    share = 100 * 2 * 16 * 256 * 4_320_000 / 200e-6 / 494.7e12
    assert said["K01"] == "holds" and float(here["K01"]) == pytest.approx(share, rel=0.01)
    assert said["K02"] == "differs here" and float(here["K02"]) == pytest.approx(1100 / 200, rel=0.01)
    ours = verdicts.table(result_set(headline()), ["K01", "K02"])["ours"].astype(float)
    assert list(ours) == pytest.approx([share * 200 / 180, 1100 / 180], rel=0.01), (
        "the fastest variant, no other verdict"
    )
    assert said["K03"] == "holds" and said["K07"] == "holds"
    assert said["K04"] == said["K05"] == said["K06"] == said["K08"] == "not measured"
    slower = headline() + series("timeseries_tf32_load_matrix", 181) + series("timeseries_fp16", 110, "fp16")
    slower += series(
        "timeseries_fp16_scaled", 160, "fp16", normalised_error=6e-4, params="shifts_per_warp=96;warps_per_block=4"
    )
    said, here = claims_of(slower)
    assert said["K08"] == "differs here" and said["K05"] == "holds" and said["K04"] == "differs here"
    assert here["K04"] == f"{6e-4 / 1.1e-4:.3g}"


def claim(folder, name):
    """Verdict and value of a claim in the set at `folder`."""
    raw = sets.frame(headline())
    results = tidy.ResultSet(KEY, "local", folder, raw, tidy.tidy(raw))
    (line,) = verdicts.table(results, [name]).to_dict("records")
    return line["verdict"], line["here"], line["reason"]


def test_lost_outputs_decide_whether_scaling_is_needed(tmp_path):
    assert claim(tmp_path, "K06")[0] == "not measured" and "inputs.amplitudes" in claim(tmp_path, "K06")[2]
    tensor, half, scaled = ("timeseries_tf32", "tf32"), ("timeseries_fp16", "fp16"), ("timeseries_fp16_scaled", "fp16")
    real.write_amplitudes(tmp_path, {tensor: {}, half: {1e-6: 400}, scaled: {}})
    assert claim(tmp_path, "K06")[:2] == ("holds", "lost 0 of 3000 and 400 of 3000: none / some")
    real.write_amplitudes(tmp_path, {tensor: {1e4: 1}, half: {1e-6: 400}})
    assert claim(tmp_path, "K06")[0] == "differs here"
    real.write_amplitudes(tmp_path, {tensor: {}, half: {}})
    assert claim(tmp_path, "K06")[0] == "differs here"
    real.write_amplitudes(tmp_path, {tensor: {}, scaled: {}})
    assert claim(tmp_path, "K06")[0] == "not measured" and "timeseries_fp16" in claim(tmp_path, "K06")[2]


def test_lost_outputs_are_a_table_of_the_chapter(tmp_path):
    real.write_amplitudes(tmp_path, {("timeseries_tf32", "tf32"): {}, ("timeseries_fp16", "fp16"): {1e-6: 400}})
    raw = sets.frame(headline())
    results = tidy.ResultSet(KEY, "local", tmp_path, raw, tidy.tidy(raw))
    own = sets.chapter(results, "time_series")
    (grid,) = [one["grid"] for one in own["tables"] if one["title"] == amplitudes.TABLE.title]
    assert grid["columns"] == ["Variant", "Class", "1e-06", "1", "10000"]
    assert [row[1:] for row in grid["rows"]] == [["fp16", "40 %", "0", "0"], ["tf32", "0", "0", "0"]]


TENSOR, CUBLAS, SCALED = ("timeseries_tf32", "tf32"), ("timeseries_cublas", "tf32"), ("timeseries_fp16_scaled", "fp16")


def test_err_on_waveforms_decides_claims_of_its_own(tmp_path):
    assert claim(tmp_path, "K11")[0] == "not measured" and "inputs.waveforms" in claim(tmp_path, "K11")[2]
    real.write_waveforms(tmp_path, {TENSOR: (9e-5, 1e-4), CUBLAS: (9e-5, 2e-4), SCALED: (9e-5, 2.76e-4)})
    assert claim(tmp_path, "K11")[:2] == ("holds", "2.76"), "the waveforms, not the noise"
    assert claim(tmp_path, "K12")[:2] == ("differs here", "0.5")
    real.write_waveforms(tmp_path, {TENSOR: (9e-5, 1e-4), SCALED: (2.5e-4, 1e-4)})
    assert claim(tmp_path, "K11")[:2] == ("differs here", "1")
    assert claim(tmp_path, "K12")[0] == "not measured" and "timeseries_cublas" in claim(tmp_path, "K12")[2]


def test_err_on_waveforms_stands_beside_noise_and_what_is_printed(tmp_path):
    raw = sets.frame(headline())
    results = tidy.ResultSet(KEY, "local", tmp_path, raw, tidy.tidy(raw))
    assert sets.files(waveforms, results) == {}
    assert any("inputs.waveforms" in one for one in sets.chapter(results, "time_series")["notes"])
    real.write_waveforms(tmp_path, {TENSOR: (9e-5, 1.8e-4), ("timeseries_fft", "fp32"): (1e-7, 9e-7)})
    (grid,) = [
        one["grid"] for one in sets.chapter(results, "time_series")["tables"] if one["title"] == waveforms.TABLE.title
    ]
    own = [dict(zip(grid["columns"], line)) for line in grid["rows"]]
    assert [(one["Class"], one["ERR, noise"], one["Waveforms over noise"]) for one in own[:2]] == [
        ("FP32 grade", "1e-07", "9.00x"),
        ("tf32", "9e-05", "2.00x"),
    ]
    assert own[1]["Of the largest output, waveforms"] == "0.00072"
    printed = [one for one in own if one["Outcome"] == "published"]
    assert [one["Printed in the paper"] for one in printed] == ["0.00056", "0.0002", "0.0002"]
    assert all(one["ERR, waveforms"] == "–" for one in printed), "the paper's unit is not known"
    text = sets.files(waveforms, results)
    assert set(text) == {"waveforms.md", "waveforms.csv"} and "Licence: LGPLv3" in text["waveforms.md"]


def test_fragments_are_compared_with_the_printed_ones(tmp_path):
    assert claim(tmp_path, "K09")[0] == "not measured" and "compare.fragments" in claim(tmp_path, "K09")[2]
    # As PTX says of mma.m16n8k8: groups of four lanes have a row of A, a column of B, a row of C.
    dump = {"a": [], "b": [], "c": []}
    for lane in range(32):
        group, of = divmod(lane, 4)
        dump["a"].append([8 * (group + i) + of + k for k in (0, 4) for i in (0, 8)])
        dump["b"].append([8 * (group + j) + of + k for j in (0, 8) for k in (0, 4)])
        dump["c"].append([16 * (group + i) + 2 * of + j + k for j in (0, 8) for i in (0, 8) for k in (0, 1)])
    artifacts.store(tmp_path, fragments.EXPERIMENT, dump)
    verdict, here, _ = claim(tmp_path, "K09")
    assert verdict == "differs here" and here.endswith(": A, B"), here
    columns = {**dump, "c": [[fragments.by_columns(one) for one in lane] for lane in dump["c"]]}
    artifacts.store(tmp_path, fragments.EXPERIMENT, columns)
    assert claim(tmp_path, "K09")[0] == "holds"


def test_a_cpu_of_another_set_is_compared(tmp_path):
    """K10: a matrix product in float64 in a published set beside this one, over the paper's kernel here."""
    compared = {
        "cpu": "some-cpu",
        "of": {"variants": ["timeseries_cpu_dgemm"]},
        "to": {"variants": ["timeseries_tf32"]},
    }
    raw = sets.frame(headline())
    here = tidy.ResultSet(KEY, "published", tmp_path / KEY, raw, tidy.tidy(raw))
    (missing,) = claims.over_cpu(here, compared).missing
    assert missing == "timeseries_cpu_dgemm in some-cpu"
    there = sets.frame(series("timeseries_cpu_dgemm", 20_000, "fp64"))
    cpu = tidy.ResultSet("some-cpu", "published", tmp_path / "some-cpu", there, tidy.tidy(there))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims.hosts, "published", lambda results, key: cpu)
        (value,) = claims.over_cpu(here, compared).values
    assert value.low == pytest.approx(20_000 / 180)


def test_counts_have_the_words_of_every_verdict():
    lines = verdicts.table(result_set(headline()))
    counts = verdicts.counts(lines)
    assert list(counts.columns) == ["Class", *verdicts.VERDICTS]
    own = counts[counts["Class"] == "series"].iloc[0]
    assert own["holds"] == "3" and own["not measured"] == "8"


GOOD = """
[[claims]]
id = "Z1"
section = "s"
statement = "s"
class = "series"
paper = "1"
compute = { name = "ratio", of = { precision = "tf32" }, to = { variants = ["a"] } }
test = { at_least = 1 }
[[claims]]
id = "Z2"
section = "s"
statement = "s"
class = "series"
paper = "1"
verdict = "differs by implementation"
reason = "r"
"""


@pytest.mark.parametrize(
    "old, new, told",
    [
        ('"ratio"', '"ration"', "did you mean ratio"),
        ("precision =", "precison =", "did you mean precision"),
        ("differs by implementation", "differs by implementaton", "did you mean differs by implementation"),
    ],
)
def test_mistakes_in_the_data_are_one_line(tmp_path, old, new, told):
    for name, text in (("good", GOOD), ("wrong", GOOD.replace(old, new))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "claims.toml").write_text(text)
    lines = verdicts.table(result_set(headline()), folder=tmp_path / "good")
    assert lines["verdict"].tolist() == ["not measured", "differs by implementation"]
    with pytest.raises(UserError) as error:
        verdicts.table(result_set(headline()), folder=tmp_path / "wrong")
    assert told in str(error.value) and "\n" not in str(error.value)


def test_the_experiments_stay_within_what_a_surface_may_be():
    known = schema.load_experiments()
    for name in ("time-series", "time-series-table2"):
        assert known[name].feeds == [time_series.TABLE.name] and known[name].variants == ["time_series"]
        for problem in schema.grid(known[name], ""):
            assert problem.lefts * problem.right[1] <= 2e9, problem.id
    (problem,) = schema.grid(known["time-series-table2"], "")
    assert {"lefts": problem.lefts, "left_rows": 1, "left_cols": 256, "right_cols": problem.right[1]} == (
        time_series.data()["headline"]
    )
    grid = {(problem.left[1], problem.lefts) for problem in schema.grid(known["time-series"], "")}
    assert {(64, 1), (4096, 256), (256, 16)} <= grid
    for spec in figure.sweeps().values():
        assert spec["x"] in figure.LABELS and set(spec["fixed"]) < {*figure.LABELS, "left_rows"}
