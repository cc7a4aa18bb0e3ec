"""Autocorrelation of images: the table, the curves, the figures of lengths, and the chapter, with and without rows."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fixtures import sets
from fixtures.sets import loaded
from stored import row

from experiments.driver import schema
from plots import real
from plots.drawing import Drawing, Omitted
from plots.sources.autocorrelation import claims as images
from plots.sources.autocorrelation.figures import autocorrelation as figure
from plots.sources.autocorrelation.tables import autocorrelation
from plots.tables.claims import verdicts
from plots.tables.table import readable
from xcorr.errors import UserError

IMAGE = {"left_rows": 1500, "left_cols": 750, "right_rows": 1500, "right_cols": 750, "same": "yes"}


def half(radius: int) -> str:
    return f"sy:0..{radius},sx:-{radius}..{radius}"


def timed(variant, us, radius, params="", **cells):
    given = {**IMAGE, "window": half(radius), "experiment": "autocorrelation", "family": "autocorrelation", **cells}
    return row(variant=variant, params=params, compute_us=us, fmas=1_000_000 * radius, **given)


@pytest.fixture
def measured(tmp_path):
    own = []
    for radius in (10, 100):
        moved = {"upload_us": 300.0, "download_us": 30.0, "plan_us": 5.0}
        own += [
            timed("autocorr_simple", 1000.0 * radius, radius),
            timed("autocorr_simd", 100.0 * radius, radius, "threads=1"),
            timed("autocorr_simd", 60.0 * radius, radius, "threads=all"),
            timed("line", 2.0 * radius, radius, "sums=float", backend="cuda", **moved),
            timed("line", 3.0 * radius, radius, "sums=integer", backend="cuda"),
        ]
    return loaded(tmp_path, own + [row(compute_us=3.0)])


@pytest.mark.parametrize(
    "window, plane",
    [
        ("sy:0..16,sx:-16..16", ("half", 16)),
        ("sy:-10..10,sx:-10..10", ("whole", 10)),
        ("sy:0..16,sx:-16..15", ("", 0)),
        ("sy:-3..16,sx:-16..16", ("", 0)),
        ("full", ("", 0)),
    ],
)
def test_a_window_of_all_shifts_up_to_r_is_known(window, plane):
    assert autocorrelation.plane_of(window) == plane


def test_a_variant_stands_once_a_number_of_threads_with_its_total_time(measured):
    lines = autocorrelation.table(measured)
    own = lines[lines["radius"] == 100]
    assert own["variant"].tolist() == ["line", "autocorr_simd", "autocorr_simd", "autocorr_simple"]
    assert own["threads"].tolist() == ["", "all", "1", "1"] and own["params"].iloc[0] == "sums=float"
    fastest = own.iloc[0]
    assert (fastest["time_us"], fastest["total_us"]) == (200, 300)
    assert fastest["frames_per_s"] == pytest.approx(1e6 / 300) and fastest["tflops"] == pytest.approx(1)
    shown = readable(lines, autocorrelation.SHOWN)
    assert shown["Variant"].tolist()[1].endswith(", all threads") and shown["R"].tolist()[0] == "10"
    assert set(sets.files(autocorrelation, measured)) == {"autocorrelation.md", "autocorrelation.csv"}


@pytest.mark.parametrize(
    "cells", [{"same": ""}, {"mode": "latency"}, {"outcome": "incorrect"}, {"window": "full"}, {"result": "peak"}]
)
def test_other_rows_are_none_of_the_table(tmp_path, cells):
    assert autocorrelation.table(loaded(tmp_path, [timed("a", 5.0, 10, **cells), row()])).empty


def test_a_set_without_rows_says_what_measures_them(tmp_path):
    results = loaded(tmp_path, [row()])
    drawn = figure.draw(results)
    assert len(drawn) == len(figure.data()["curves"]) + 4 and all(isinstance(one, Omitted) for one in drawn)
    assert sum("--experiments autocorrelation" in one.reason for one in drawn) == len(figure.data()["curves"])
    assert sum("experiments.inputs.autocorrelation" in one.reason for one in drawn) == 4
    notes = sets.chapter(results, "autocorrelation")["notes"]
    assert notes == [autocorrelation.TABLE.nothing, autocorrelation.NO_ERRORS]


def test_curves_have_a_line_a_contender(measured):
    drawn = {one.name: one for one in figure.draw(measured)}
    for key, spec in figure.data()["curves"].items():
        if spec.get("host"):  # there is none
            assert "its host's CPU" in drawn[f"autocorrelation_{key}"].reason
            continue
        assert isinstance(drawn[f"autocorrelation_{key}"], Drawing), key
        lines = drawn[f"autocorrelation_{key}"].figure.axes[0].lines
        assert sum(line.get_linestyle() != "None" for line in lines) == 4
    assert [one["open"] for one in sets.chapter(measured, "autocorrelation")["tables"]] == [True, False]


def test_the_short_table_has_a_line_a_contender_and_a_column_a_radius(measured):
    shown = autocorrelation.by_radius(autocorrelation.table(measured))
    assert list(shown.columns) == ["1500x750", "R = 10", "R = 100"]
    assert len(shown) == 4
    assert list(shown["1500x750"])[0].startswith("autocorr") and list(shown["R = 100"])[-1] == "200 µs"
    one = autocorrelation.table(measured)
    assert autocorrelation.by_radius(one[one["radius"] == 10]).empty


def test_errors_of_known_lengths_are_a_table(tmp_path):
    results = loaded(tmp_path, [row(), timed("line", 5.0, 10)])
    cases = [("removed", 22.0, 24.0), ("removed", 24.0, 25.0), ("raw", 20.0, np.nan), ("raw", np.nan, np.nan)]
    common = {"case": "truth", "variant": "v", "wavelength": 20.0, "known": 22.0, "rows": 9, "cols": 9}
    common |= {"index": 1.0, "seed": 1}
    stored(results.folder, [{**common, "mean": mean, "r_max": one, "spectral": two} for mean, one, two in cases])
    (line,) = autocorrelation.readable_errors(autocorrelation.errors(results)).to_dict("records")
    assert line == {
        "Wavelength [pixels]": "20",
        "Images": 2,
        "C1D, mean removed [%]": "+4.55 (SD 6.43)",
        "C1D, raw [%]": "-9.09, 1 of 2",
        "spectrum [%]": "+11.36 (SD 3.21)",
    }
    titles = [one["title"] for one in sets.chapter(results, "autocorrelation")["tables"]]
    assert titles == ["Every problem: time, total time, frames a second", "Errors of R_max"]
    assert "C1D, raw [%]" in sets.files(autocorrelation, results)["autocorrelation.md"]


def test_speedups_are_over_the_simple_program(measured):
    found = figure.with_speedup(autocorrelation.points(measured))
    own = found[found["radius"] == 100].set_index(["variant", "threads"])["speedup"]
    assert own["autocorr_simple", "1"] == 1 and own["autocorr_simd", "all"] == pytest.approx(100 / 6)
    assert own["line", ""] == pytest.approx(1e5 / 300)


def test_the_hosts_cpu_stands_beside_its_gpu(tmp_path, monkeypatch):
    gpu = loaded(tmp_path / "gpu", [timed("line", 2.0 * r, r, backend="cuda") for r in (10, 100)])
    cpu = [timed("autocorr_simple", 1000.0 * r, r) for r in (10, 100)] + [timed("line", 9.0, 10)]
    host = loaded(tmp_path / "cpu", cpu)
    monkeypatch.setattr(figure.hosts, "host_of", lambda results: host if results is gpu else None)
    both, sentence = figure.with_host(autocorrelation.points(gpu), gpu)
    assert sorted(both["variant"]) == ["autocorr_simple", "autocorr_simple", "line", "line"], (
        "the set's own line counts"
    )
    assert host.key in sentence
    assert set(figure.with_speedup(both).set_index("variant")["speedup"]["line"]) == {500.0}
    drawn = {one.name: one for one in figure.draw(gpu)}
    assert len(drawn["autocorrelation_over_cpu"].figure.axes[0].lines) >= 2
    assert isinstance(drawn["autocorrelation_speedup"], Omitted), "this set has no simple program"


def stored(folder: Path, rows):
    """Rows of image-autocorrelation in a set, and previews."""
    path = folder / f"{real.AUTOCORRELATION}.lengths.csv.gz"
    pd.DataFrame(rows).to_csv(path, index=False)
    (folder / f"{real.AUTOCORRELATION}.summary.json").write_text("{}")
    radii = np.arange(6.0)
    arrays = {"plane": np.eye(11), "radii": radii, "removed": np.cos(radii), "raw": 1 - radii / 99}
    np.savez_compressed(folder / f"{real.AUTOCORRELATION}.previews.npz", lengths=np.array([5.0, np.nan]), **arrays)


def spread(folder: Path):
    """Images whose lengths from the spectrum spread ten times as far."""
    size = {"case": "truth", "variant": "a", "mean": "removed", "rows": 1500, "cols": 750}
    rows = []
    for wavelength, seed in itertools.product((20, 40, 80, 120), (1, 2, 3)):
        lengths = {"known": 100.0, "r_max": 100 + seed, "spectral": 100 + 10 * seed, "index": 9}
        rows.append({**size, "wavelength": wavelength, "seed": seed, **lengths})
    stored(folder, rows)


def lengths(folder: Path):
    """A small image-autocorrelation of a set."""
    rows = []
    conditions = (("truth", "growth"), ("autocorr_simd", "cpu_fft"), (1, 2), ("removed", "raw"))
    for case, variant, seed, mean in itertools.product(*conditions):
        size = {"case": case, "variant": variant, "seed": seed, "mean": mean, "rows": 1500, "cols": 750}
        lengths = {"known": 22.34 * seed, "r_max": 22.3 * seed, "spectral": 22.0 * seed, "index": 37.6 / seed}
        rows.append({**size, "wavelength": 20.0 * seed, **lengths})
    loop = [{"case": "loop", "variant": "array-language loop", "seconds": 5.0}]
    stored(folder, [*rows, *loop, {"case": "loop", "variant": "autocorr_simple", "seconds": 2.0}])


def test_lengths_have_three_figures(tmp_path):
    lengths(tmp_path)
    drawn = {one.name: one for one in figure.draw(loaded(tmp_path, [row()]))}
    for name in ("c1d", "growth", "lengths"):
        assert isinstance(drawn[f"autocorrelation_{name}"], Drawing), name
    assert "none raw" in drawn["autocorrelation_c1d"].caption


CLAIMS = [f"I{n:02}" for n in range(1, 14)]
COMPARED = {"I01", "I02", "I05", "I13"}


def verdicts_of(results):
    lines = verdicts.table(results, CLAIMS)
    return dict(zip(lines["id"], lines["verdict"])), dict(zip(lines["id"], lines["here"]))


def test_claims_without_rows_are_not_measured(tmp_path):
    found, _ = verdicts_of(loaded(tmp_path, [row()]))
    assert {one for one in CLAIMS if found[one] == "not comparable"} == COMPARED
    assert {found[one] for one in set(CLAIMS) - COMPARED} == {"not measured"}


def test_claims_about_times(tmp_path):
    paper = "lines_per_thread=1;shifts_per_thread=1;sums=float"
    whole = {"window": "sy:-10..10,sx:-10..10"}
    own = [
        timed("autocorr_cuda_simple_texture", 10000.0, 250, backend="cuda"),
        timed("autocorr_cuda_simple", 8000.0, 250, backend="cuda"),
        timed("autocorr_cuda_line", 1000.0, 250, paper, backend="cuda"),
        timed("autocorr_cuda_line", 250.0, 250, paper.replace("=1;sums", "=8;sums"), backend="cuda"),
        timed("autocorr_cuda_two_kernels", 1200.0, 250, paper.removesuffix(";sums=float"), backend="cuda"),
        *(
            timed("autocorr_cuda_whole_lines", us, radius, backend="cuda")
            for radius, us in ((10, 20), (50, 60), (100, 105), (250, 550))
        ),
        timed("autocorr_simple", 800.0, 10, **whole),
        timed("autocorr_reordered", 300.0, 10, **whole),
        timed("autocorr_simd", 50.0, 10, "threads=1", **whole),
        timed("autocorr_simd", 20.0, 10, "threads=all", **whole),
        *(
            timed(name, us, 16, backend="cuda", upload_us=100.0)
            | {"left_rows": 480, "left_cols": 640, "right_rows": 480, "right_cols": 640}
            for name, us in (("autocorr_cuda_whole_lines", 900.0), ("autocorr_cuda_line", 400.0))
        ),
    ]
    results = loaded(tmp_path, own)
    found, here = verdicts_of(results)
    for one in ("I04", "I06", "I07", "I08", "I09"):
        assert found[one] == "holds", (one, here[one])
    assert here["I04"] == "reordered: 2.67; SIMD: 6" and here["I06"] == "18.2" and here["I07"] == "1.2"
    assert here["I08"].endswith("grows, then saturates") and here["I09"] == "1e+03"
    lines = verdicts.table(results, ["I06", "I07", "I08", "I09"]).set_index("id")
    assert dict(lines["ours"]) == {"I06": "32", "I07": "4.8", "I08": "", "I09": "2e+03"}


def test_claims_about_lengths(tmp_path):
    lengths(tmp_path)
    found, here = verdicts_of(loaded(tmp_path, [row()]))
    assert found["I12"] == "holds" and here["I12"] == "2 variants: 0"
    assert found["I11"] == "differs here" and here["I11"] == "1.12"
    assert found["I03"] == "differs here" and here["I03"] == "2.5"
    assert found["I10"] == "not measured"  # of no wavelength two images differ in length
    other = tmp_path / "other"
    results = loaded(other, [row()])
    spread(other)
    found, here = verdicts_of(results)
    assert found["I10"] == "holds"
    assert here["I10"] == "wavelength 20: 10; wavelength 40: 10; wavelength 80: 10; wavelength 120: 10"


def test_a_wrong_argument_of_a_claim_is_one_line(measured):
    with pytest.raises(UserError, match="key variant: unknown; did you mean variants"):
        images.points(measured, {"variant": ["a"], "radius": 10})
    with pytest.raises(UserError, match="metric tim"):
        images.value(measured, {"of": {"radius": 10}, "metric": "tim"})


def test_the_experiment_has_the_images_of_the_source():
    found = schema.load_experiments()["autocorrelation"]
    problems = schema.grid(found, "")
    planes = [autocorrelation.plane_of(one.window) for one in problems]
    assert ("half", 100) in planes and ("half", 300) in planes and ("half", 1) in planes and ("whole", 10) in planes
    assert all(one.fields.same == "yes" and plane for one, (plane, _) in zip(problems, planes))
    assert {one.left for one in problems} == {(1500, 750), (480, 640)}


def of_the_paper(drawing):
    """Its hollow points without a line: label -> (R, value)."""
    lines = [line for line in drawing.figure.axes[0].get_lines() if line.get_linestyle() == "None"]
    assert all(line.get_markerfacecolor() == "white" for line in lines)
    return {line.get_label(): (line.get_xdata()[0], round(float(line.get_ydata()[0]), 2)) for line in lines}


def test_the_papers_factors_stand_hollow_in_the_figure_of_speedups_alone(tmp_path):
    cpu = [
        timed(f"autocorr_{one}", 900.0 / speed * r, r) for one, speed in (("simple", 1), ("simd", 9)) for r in (10, 250)
    ]
    cuda = [
        timed(f"autocorr_cuda_{one}", us * r, r, backend="cuda")
        for one, us in (("simple", 9), ("line", 3))
        for r in (10, 100)
    ]
    drawn = {one.name: one for one in figure.draw(loaded(tmp_path / "cpu", cpu))}
    assert of_the_paper(drawn["autocorrelation_speedup"]) == {
        "paper: Core2 Quad Q6600, SIMD C++": (250, round(125 / 30, 2))
    }
    assert (
        "Hollow" in drawn["autocorrelation_speedup"].caption and "Hollow" not in drawn["autocorrelation_total"].caption
    )
    assert not of_the_paper(drawn["autocorrelation_total"])
    (speedup,) = (one for one in figure.draw(loaded(tmp_path / "gpu", cuda)) if one.name == "autocorrelation_speedup")
    assert of_the_paper(speedup) == {"paper: Tesla C1060, CUDA C": (250, round(4000 / (6 * 30), 2))}
    assert [text.get_text() for text in speedup.figure.axes[0].get_xticklabels()] == ["10", "100", "250"]


def test_the_papers_factors_agree_with_each_other():
    """Section 4.3 and Fig. 9: CUDA C is 130 times as fast as simple C and 30 times as fast as SIMD C++, both rounded."""
    over_c, over_simd = (figure.published(f"autocorr_{one}")["autocorr_cuda_line"][1] for one in ("simple", "simd"))
    assert over_c == pytest.approx(130, rel=0.05) and over_simd == pytest.approx(30, rel=0.1)
    assert {one["variant"] for one in figure.baselines()["published"] if "variant" in one} >= set(
        figure.data()["baselines"]
    )
