"""Series, labels, ranges and scales of the figures, asserted from a fixture set."""

import gzip
import zipfile

import numpy as np
import pandas as pd
import pytest
from fixtures import real, sets
from fixtures.sets import draw, result_set
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

import plots.real
from plots import catalogue, drawing, style, tidy
from plots.drawing import Omitted
from plots.figures import _panels, comparison, phases, speedup
from plots.metrics import METRICS
from plots.sources.beyond.figures import photo
from plots.sources.jpdc.figures import displacement
from xcorr.files import MOST_BYTES


@pytest.fixture(scope="module")
def cpu():
    return result_set(sets.model_rows())


def curves(drawing, facet=0):
    """label -> line of a facet; straight helper lines have labels with an underscore."""
    lines = drawing.figure.axes[facet].get_lines()
    return {line.get_label(): line for line in lines if not line.get_label().startswith("_")}


def tick_texts(axis):
    return [text.get_text() for text in axis.get_ticklabels() if text.get_text()]


def test_figures_are_found_in_report_order():
    names = list(catalogue.entries())
    assert names[:7] == ["summary", "comparison", "speedup", "phases", "displacement", "photo", "image_motion"]
    assert names.index("fig15") < names.index("fig23") < names.index("study_warp_per_overlap")
    assert names[7:14] == ["crossover", "floor", "roofline", "energy", "cache", "replay", "accuracy"]


def test_comparison_has_a_figure_per_form_and_a_facet_per_count(cpu):
    drawn = draw(comparison, cpu)
    assert list(drawn) == [f"comparison_{form}" for form in tidy.FORMS]
    titles = [axes.get_title() for axes in drawn["comparison_n-to-m"].figure.axes]
    assert titles == ["2-to-2", "8-to-8", "32-to-32"]
    assert drawn["comparison_one-to-one"].figure.get_figwidth() < drawn["comparison_n-to-m"].figure.get_figwidth()
    assert drawn["comparison_n-to-m"].figure.get_figwidth() == style.PAGE_IN


def test_many_variants_are_drawn_as_families_and_the_caption_says_so():
    few = [(f"v{place}", "tiled", [""], 0.01 * (1 + place)) for place in range(comparison.FEW - 1)]
    other = ("cufft", "fft", [""], None)
    asked = {"sizes": [16, 32], "counts": {"one-to-one": [(1, 1)]}}
    drawing = draw(comparison, result_set(sets.model_rows([*few, other], **asked)))["comparison_one-to-one"]
    assert "v0" in curves(drawing) and comparison.EVERY not in drawing.caption
    many = [*few, ("v9", "tiled", [""], 1e-9)]
    results = result_set(sets.model_rows([*many, other], **asked))
    drawing = draw(comparison, results)["comparison_one-to-one"]
    assert set(curves(drawing)) == {"tiled", "fft", "fft + plan"} and comparison.EVERY in drawing.caption
    fastest = results.points[results.points["family"] == "tiled"].groupby("side")["compute_us"].min()
    np.testing.assert_allclose(curves(drawing)["tiled"].get_ydata(), fastest * 1e-6)
    names = [text.get_text() for text in drawing.figure.axes[0].texts]
    assert sorted(names) == ["fft", "tiled"] and not drawing.figure.legends
    assert set(
        curves(draw(speedup, result_set(sets.model_rows([*many, other, sets.GPU[0]], **asked)))["speedup_one-to-one"])
    ) == {"tiled", "fft"}


def test_families_differ_by_colour_and_without_it():
    looks = [style.family_look(family, False) for family in style.FAMILY_COLOURS]
    for part in ("colour", "marker"):
        assert len({getattr(look, part) for look in looks}) == len(looks)


def test_phases_of_many_counts_show_the_fewest_and_the_most_pairs():
    counts = [(1, n) for n in (2, 4, 8, 16, 32)]
    rows = sets.model_rows([sets.CPU[2]], [16, 32], {"one-to-many": counts})
    drawing = draw(phases, result_set(rows))["phases_one-to-many"]
    titles = [text.get_text() for axes in drawing.figure.axes for text in axes.texts if "-to-" in text.get_text()]
    assert len(titles) == phases.MOST and titles[0] == "1-to-2" and titles[-1] == "1-to-32"
    assert all(f"1-to-{n}" in drawing.caption for n in (4, 16)), "what is not drawn is named"


def test_comparison_series_scales_and_values(cpu):
    drawing = draw(comparison, cpu)["comparison_one-to-one"]
    axes = drawing.figure.axes[0]
    lines = curves(drawing)
    assert set(lines) == {"definition", "row streaming", "FFT (FFTW)", "FFT (FFTW) + plan"}
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_ylabel() == "Wall time"
    points = cpu.points[(cpu.points["variant"] == "cpu_fft") & (cpu.points["form"] == "one-to-one")]
    best = points.groupby("side")["compute_us"].min()
    np.testing.assert_allclose(lines["FFT (FFTW)"].get_xdata(), best.index)
    np.testing.assert_allclose(lines["FFT (FFTW)"].get_ydata(), best * 1e-6)
    with_plan = (points["compute_us"] + points["plan_us"]).groupby(points["side"]).min()
    np.testing.assert_allclose(lines["FFT (FFTW) + plan"].get_ydata(), with_plan * 1e-6)
    low, high = axes.get_ylim()
    values = np.concatenate([line.get_ydata() for line in lines.values()])
    assert low < np.nanmin(values) and np.nanmax(values) < high
    assert axes.get_xlim()[0] < 16 and axes.get_xlim()[1] > 256
    assert {"16x16", "64x64", "256x256"} <= set(tick_texts(axes.xaxis))
    assert {"10 µs", "1 ms", "100 ms"} <= set(tick_texts(axes.yaxis))


def test_a_curve_does_not_bridge_a_size_that_only_others_have():
    every = sets.model_rows(counts={"one-to-one": [(1, 1)]})
    rows = [one for one in every if (one["variant"], one["left_rows"]) != ("cpu_fft", 48)]
    lines = curves(draw(comparison, result_set(rows))["comparison_one-to-one"])
    assert np.isnan(lines["FFT (FFTW)"].get_ydata()).tolist() == [False] * 3 + [True] + [False] * 5


def test_rows_that_did_not_pass_are_never_drawn():
    rows = sets.model_rows(sizes=[16, 32], counts={"one-to-one": [(1, 1)]})
    for outcome in ("incorrect", "failed", "not_selected", "timeout"):
        rows.append(sets.row(variant=f"bad_{outcome}", outcome=outcome, compute_us=1e9))
        rows.append(sets.row(variant="cpu_fft", family="cpu", params="threads=2", outcome=outcome, compute_us=1e-9))
    drawing = draw(comparison, result_set(rows))["comparison_one-to-one"]
    assert not any("bad" in label for label in curves(drawing))
    low, high = drawing.figure.axes[0].get_ylim()
    assert low > 1e-7 and high < 1.0


def test_published_rows_are_hollow():
    rows = sets.model_rows(sizes=[16, 32], counts={"one-to-one": [(1, 1)]})
    rows += [sets.row(variant="paper_best", outcome="published", **sets.square(s)) for s in (16, 32)]
    drawing = draw(comparison, result_set(rows))["comparison_one-to-one"]
    lines = curves(drawing)
    assert to_hex(lines["paper-best, published"].get_markerfacecolor()) == "#ffffff"
    assert to_hex(lines["definition"].get_markerfacecolor()) != "#ffffff"
    assert "not verified" in drawing.caption


def test_a_variant_nobody_has_heard_of_is_drawn_and_changes_no_other():
    rows = sets.model_rows(sizes=[16, 32, 64], counts={"one-to-one": [(1, 1)]})
    before = curves(draw(comparison, result_set(rows))["comparison_one-to-one"])
    new = [("quantum_leap", "never_seen_family", ["a=1"], 0.01)]
    rows += sets.model_rows(new, sizes=[16, 32, 64], counts={"one-to-one": [(1, 1)]})
    after = curves(draw(comparison, result_set(rows))["comparison_one-to-one"])
    assert set(after) - set(before) == {"quantum-leap"}
    for label, line in before.items():
        assert line.get_color() == after[label].get_color()
        assert line.get_marker() == after[label].get_marker()


def test_looks_of_the_usual_variants_differ_without_colour():
    definitions = ["overlap_wise", "warp_shuffle", "split_row", "grouped_overlap", "warp_per_overlap"]
    gpu = [*definitions, "multi_matrix_right", "multi_matrix_both", "cufft"]
    for group in (["cpu_definition", "cpu_row_streaming", "cpu_fft"], gpu):
        looks = [style.look(name, "") for name in group]
        assert len({look.marker for look in looks}) == len(group)
        assert len({look.colour for look in looks}) == len(group)


def test_non_square_unequal_and_single_sizes_do_not_break():
    shapes = [(20, 20, 20, 20), (36, 90, 36, 90), (100, 100, 100, 100), (24, 24, 480, 640)]
    names = ("left_rows", "left_cols", "right_rows", "right_cols")
    rows = [
        sets.row(variant=v, family="cpu", compute_us=1.0 + i * 7, forward_us=0.5, **dict(zip(names, s)))
        for i, s in enumerate(shapes)
        for v in ("cpu_definition", "cpu_fft")
    ]
    for module in (comparison, speedup, phases):
        (drawing,) = draw(module, result_set(rows)).values()
        assert {"20x20", "36x90", "24x24:480x640"} <= set(tick_texts(drawing.figure.axes[-1].xaxis))
    one = result_set([sets.row(variant="cpu_definition")])
    (drawing,) = draw(comparison, one).values()
    assert tick_texts(drawing.figure.axes[0].xaxis) == ["16x16"]


def test_other_modes_windows_and_inputs_get_figures_of_their_own():
    rows = [sets.row(), sets.row(mode="cold"), sets.row(window="sy:-2..3,sx:0..4")]
    names = set(draw(comparison, result_set(rows)))
    assert names == {"comparison_one-to-one", "comparison_one-to-one_cold", "comparison_one-to-one_sy--2-3-sx-0-4"}


def test_counts_with_one_size_are_left_to_the_table():
    rows = sets.model_rows(sizes=[16, 32], counts={"n-to-mn": [(2, 8)]})
    rows += sets.model_rows(sizes=[96], counts={"n-to-mn": [(8, 32)]})
    drawing = draw(comparison, result_set(rows))["comparison_n-to-mn"]
    assert [axes.get_title() for axes in drawing.figure.axes] == ["2-to-8"]
    assert "what was measured at one size only: 8-to-32" in drawing.caption


def test_an_experiment_that_feeds_only_the_table_is_not_drawn():
    rows = [sets.row(experiment="off-grid"), sets.row(experiment="off-grid", left_rows=20)]
    results = result_set(rows, feeds={"off-grid": ["best_table"]})
    (omitted,) = comparison.draw(results)
    assert isinstance(omitted, Omitted) and len(results.feeding("best_table")) == 2


def test_speedup_is_over_the_first_baseline_present(cpu):
    drawing = draw(speedup, cpu)["speedup_one-to-one"]
    lines = curves(drawing)
    assert set(lines) == {"row streaming", "FFT (FFTW)"}
    assert drawing.figure.axes[0].get_ylabel() == "Speed-up over definition"
    points = cpu.points[cpu.points["form"] == "one-to-one"]
    base = points[points["variant"] == "cpu_definition"].set_index("side")["compute_us"]
    fast = points[points["variant"] == "cpu_row_streaming"].groupby("side")["compute_us"].min()
    expected = (base / fast).dropna()
    np.testing.assert_allclose(lines["row streaming"].get_ydata(), expected)
    assert "10x" in tick_texts(drawing.figure.axes[0].yaxis)
    gpu = result_set(sets.model_rows(sets.GPU + sets.CPU[:1], sizes=[16, 32]))
    assert "overlap-wise" in draw(speedup, gpu)["speedup_n-to-m"].title


def test_speedup_without_a_baseline_is_left_out():
    (omitted,) = speedup.draw(result_set([sets.row()]))
    assert isinstance(omitted, Omitted) and "no baseline" in omitted.reason


def test_phases_add_up_and_show_only_variants_that_mark_them(cpu):
    points = cpu.points[cpu.points["variant"] == "cpu_fft"]
    parts = phases.shares(points)
    np.testing.assert_allclose(parts.sum(axis=1), 1.0)
    assert (parts >= 0).all().all()
    drawing = draw(phases, cpu)["phases_one-to-one"]
    axes = drawing.figure.axes[0]
    assert axes.get_ylim() == (0.0, 1.0)
    assert tick_texts(axes.xaxis)[0] == "16x16" and "50" not in tick_texts(axes.yaxis)
    assert len(axes.patches) == 4 * 9
    assert "definition" not in drawing.caption
    (omitted,) = phases.draw(result_set([sets.row()]))
    assert isinstance(omitted, Omitted)


def test_phases_of_several_variants_stand_in_rows():
    transforms = sets.CPU[2:] + [("other_fft", "fft", [""], None)]
    rows = sets.model_rows(transforms, [16, 32], {"n-to-m": [(2, 2), (8, 8)], "one-to-one": [(1, 1)]})
    drawn = draw(phases, result_set(rows))
    assert len(drawn["phases_n-to-m"].figure.axes) == 4
    axes = drawn["phases_one-to-one"].figure.axes
    assert [one.get_ylabel().split("\n")[0] for one in axes] == ["FFT (FFTW)", "other-fft"]


def test_every_metric_can_be_drawn():
    cpu = result_set(sets.model_rows(counts={"one-to-one": [(1, 1)]}))
    for metric in METRICS.values():
        drawn = draw(comparison, cpu, metric)
        tail = "" if metric.name == "time" else f"_{metric.name}"
        axes = drawn[f"comparison_one-to-one{tail}"].figure.axes[0]
        assert axes.get_ylabel() == metric.axis_label and tick_texts(axes.yaxis)


def test_no_data_no_figure():
    empty = result_set([])
    for module in (comparison, speedup, phases, displacement, photo):
        (omitted,) = module.draw(empty)
        assert isinstance(omitted, Omitted) and omitted.reason


def test_text_stays_inside_the_figure_and_legends_do_not_cover_axes():
    counts = {form: sets.COUNTS[form] for form in ("one-to-one", "n-to-m")}
    counts["n-to-m"] = [*counts["n-to-m"], (128, 128)]
    gpu = result_set(sets.model_rows(sets.GPU, counts=counts))
    for module in (comparison, speedup, phases):
        for drawn in draw(module, gpu).values():
            figure = drawn.figure
            renderer = FigureCanvasAgg(figure).get_renderer()
            box = figure.bbox
            for axes in figure.axes:
                tight = axes.get_tightbbox(renderer)
                assert tight.x0 >= box.x0 - 1 and tight.x1 <= box.x1 + 1, drawn.name
                assert tight.y1 <= box.y1 + 1, drawn.name
                for one in figure.legends:
                    legend = one.get_window_extent(renderer)
                    assert legend.y1 <= tight.y0 + 2 and legend.x0 >= 0, drawn.name


def test_slanted_labels_keep_their_distance():
    kept = _panels._thin([16.0, 24.0, 32.0, 48.0, 64.0], 0.3, 0.2)
    assert kept == [16.0, 32.0, 64.0]


def test_real_figures_draw_their_data_and_say_what_is_a_substitute(tmp_path):
    real.write_ebsd(tmp_path)
    real.write_photo(tmp_path)
    results = result_set([], folder=tmp_path)
    ebsd = draw(displacement, results)["displacement"]
    assert "nickel patterns (substitute: package not reachable)" in ebsd.caption
    assert ebsd.section == "real" and len(ebsd.figure.axes) == 6
    errors = ebsd.figure.axes[2]
    labels = [text.get_text() for text in errors.get_legend().get_texts()]
    assert labels == ["FFT (FFTW) (180 pairs)", "row streaming (24 pairs)"]
    known = pd.DataFrame(
        {"variant": ["a"] * 2 + ["b"] * 2 + ["c"] * 2, "precision": "fp32", "error_px": [0.1, 0.2] * 2 + [0.1, 0.9]}
    )
    assert [names for names, _ in displacement.alike(known)] == [["a", "b"], ["c"]]
    crops = draw(photo, results)["photo"]
    assert "known shift (-30, 40), recovered by FFT (FFTW) (-30.02, 40.05)" in crops.caption
    assert "4 of 4 cases" in crops.caption
    peak = crops.figure.axes[3]
    assert peak.get_lines()[0].get_xdata() == [40] and peak.get_lines()[0].get_ydata() == [-30]


def test_damaged_real_data_is_left_out_with_its_cause(tmp_path):
    real.write_ebsd(tmp_path)
    (tmp_path / "real-ebsd.previews.npz").write_bytes(b"PK\x03\x04 truncated")
    (omitted,) = displacement.draw(result_set([], folder=tmp_path))
    assert isinstance(omitted, Omitted) and "cannot be read" in omitted.reason


@pytest.mark.parametrize(
    "name, content, says",
    [
        ("displacements.csv.gz", gzip.compress(b"\n" * (MOST_BYTES + 1), compresslevel=1), "more than 64 MiB"),
        ("displacements.csv.gz", b"\x1f\x8b\x08 no deflate", "cannot be read"),
        ("summary.json", b" " * (MOST_BYTES + 1), "more than 64 MiB"),
        ("summary.json", b"[" * 100_000, "cannot be read"),
        ("summary.json", b'{"machine_key": "elsewhere"}', "is of another machine"),
    ],
    ids=["rows", "deflate", "summary", "depth", "machine"],
)
def test_real_data_that_are_too_large_or_of_another_machine_are_left_out(tmp_path, name, content, says):
    real.write_ebsd(tmp_path)
    (tmp_path / f"real-ebsd.{name}").write_bytes(content)
    assert says in plots.real.load(tmp_path, "real-ebsd")


def test_previews_that_are_too_large_are_not_unpacked(tmp_path):
    real.write_ebsd(tmp_path)
    packed = zipfile.ZipFile(tmp_path / "real-ebsd.previews.npz", "w", zipfile.ZIP_DEFLATED)
    with packed, packed.open("a.npy", "w") as member:
        for _ in range(65):
            member.write(bytes(2**20))
    assert "more than 64 MiB" in plots.real.load(tmp_path, "real-ebsd")
    with zipfile.ZipFile(tmp_path / "real-ebsd.previews.npz", "w") as packed:
        head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }" % 2**50
        packed.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
    assert "cannot be read" in plots.real.load(tmp_path, "real-ebsd")


def test_what_is_left_out_for_one_reason_is_said_once():
    left_out = [drawing.Omitted("fig_a", "no GPU"), drawing.Omitted("b", "no rows"), drawing.Omitted("c", "no GPU")]
    assert drawing.by_reason(left_out) == [("fig a, c", "no GPU"), ("b", "no rows")]
