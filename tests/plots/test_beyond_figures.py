"""Figures beyond the paper's: the numbers behind the pictures, and when there is no picture."""

import json
import math

import numpy as np
import pytest
from fixtures import sets
from fixtures.sets import draw, result_set
from matplotlib.backends.backend_agg import FigureCanvasAgg

from experiments.driver import schema
from plots import ceilings as limits
from plots import floor as floors
from plots import style
from plots.drawing import Omitted
from plots.figures import _cells, _ratios, accuracy, crossover, floor, roofline
from plots.sources.beyond.figures import cache, energy, in_kernel, replay
from xcorr.choice.floor import crossing_bytes, crossing_rate, crossings
from xcorr.paths import ROOT
from xcorr.problem import Problem

# Round numbers of an imaginary card, but for the matrix product: 51 TFLOP/s.
MEASURED = {
    "copy_bytes_per_s": 4.0e12,
    "fill_bytes_per_s": 4.69e12,
    "fp32_fma_flop_per_s": 65e12,
    "cublas_fp32_flop_per_s": 51e12,
    "cublas_tf32_flop_per_s": 400e12,
    "empty_launch_stream_us": 3.15,
    "empty_launch_graph_us": 2.2,
}
ALL = (crossover, floor, roofline, energy, cache, replay, accuracy, in_kernel)


@pytest.fixture
def ceilings(tmp_path):
    """Folder of a set with ceilings."""
    (tmp_path / limits.FILE).write_text(json.dumps(MEASURED))
    return tmp_path


def texts(axes):
    """The texts inside the cells of a grid, row by row; an empty cell has none."""
    placed = sorted((t.get_position()[1], t.get_position()[0], t.get_text()) for t in axes.texts)
    return [text for _, _, text in placed]


def square(form, size, lefts, rights, us, **values):
    """One row of a square problem with the work and bytes that belong to it."""
    problem = Problem(form, (size, size), (size, size), lefts, rights, "full")
    cells = {"form": form, "experiment": form, **sets.square(size), "lefts": lefts, "rights": rights, "compute_us": us}
    cells |= {"fmas": problem.fmas, "bytes": problem.bytes(4)}
    cells |= {"variant": "one", "family": "warp_shuffle", "backend": "cuda"}
    return sets.row(**{**cells, **values})


# Floor


def test_floor_is_launch_memory_direct_or_fft(ceilings):
    found = sets.points(
        [
            square("one-to-one", 64, 1, 1, 9.0),
            square("one-to-one", 64, 1, 1, 9.0, mode="graph"),
            square("n-to-m", 256, 32, 32, 2000.0),
            square("n-to-m", 16, 128, 128, 400.0),
            square("n-to-m", 16, 128, 128, 400.0, bytes=4, variant="without_bytes"),
        ]
    ).set_index(["variant", "left_rows", "mode"], drop=False)
    lowest = floors.floor_us(found, limits.load(ceilings))
    bound = floors.bound_by(found, limits.load(ceilings))
    assert lowest["one", 64, "stream"] == 3.15 and bound["one", 64, "stream"] == "launch"
    assert lowest["one", 64, "graph"] == 2.2
    # 1088 transforms of 512 x 512, 2.5 * 512^2 * 18 each, and 4 * 512^2 for each of 1024 products.
    flops = 1088 * 2.5 * 512**2 * 18 + 1024 * 4 * 512**2
    assert lowest["one", 256, "stream"] == pytest.approx(flops / 51e6)
    assert lowest["one", 256, "stream"] == pytest.approx(272.7, abs=0.05)
    assert bound["one", 256, "stream"] == "fft"
    # 2 * 128 inputs of 16 x 16 and 128^2 outputs of 31 x 31, four bytes each.
    moved = 4 * (256 * 256 + 128**2 * 961)
    assert lowest["one", 16, "stream"] == pytest.approx(moved / 4.69e6)
    assert bound["one", 16, "stream"] == "memory"
    # 2 * 16^4 FLOPs per pair; a transform of 32 x 32 alone is 25600 and its product 4096.
    direct, fft = 2 * 16**4 * 128**2, (16384 + 256) * 25600 + 16384 * 4096
    assert lowest["without_bytes", 16, "stream"] == pytest.approx(min(direct, fft) / 51e6)


def test_values_of_a_transform_cross_as_often_as_64_a_thread_need():
    # 64 values stay in one thread, 64^2 values are known after one crossing, 64^3 after two.
    known = {32: 0, 64: 0, 65: 1, 64**2: 1, 64**2 + 1: 2, 64**3: 2, 64**3 + 1: 3}
    assert {values: crossings(values) for values in known} == known


@pytest.mark.parametrize(
    ("problem", "transforms", "values", "times"),
    [
        ("one-to-one/4x4/4x4/1:1/full", 3, 8 * 8 // 2, 0),
        ("one-to-one/8x8/8x8/1:1/full", 3, 16 * 16 // 2, 1),
        ("n-to-mn/64x64/64x64/8:32/full", 8 + 32 + 32, 128 * 128 // 2, 2),
        ("n-to-m/256x256/256x256/3:5/full", 3 + 5 + 15, 512 * 512 // 2, 2),
        ("one-to-one/600x600/600x600/1:1/full", 3, 1200 * 1200 // 2, 3),
    ],
)
def test_exchange_counts_every_value_of_every_transform_at_each_crossing(problem, transforms, values, times):
    assert crossing_bytes(Problem.of_id(problem)) == transforms * values * 8 * times


def test_the_faster_way_to_exchange_counts():
    assert crossing_rate({"shuffle_bytes_per_s": 3e13, "shared_bytes_per_s": 4e13}) == 3e13
    assert crossing_rate({"shuffle_bytes_per_s": 1e13, "shared_bytes_per_s": 4e13}) == 2e13, "stored and loaded"
    assert crossing_rate({"shared_bytes_per_s": 4e13}) == 2e13
    assert crossing_rate({}) == math.inf


def test_an_fft_takes_the_longer_of_its_arithmetic_and_its_exchange(ceilings):
    rows = [square("n-to-m", 256, 32, 32, 2000.0), square("n-to-m", 4, 400, 400, 400.0)]

    def found(rate):
        (ceilings / limits.FILE).write_text(json.dumps({**MEASURED, "shuffle_bytes_per_s": rate}))
        lines, measured = sets.points(rows).set_index("left_rows", drop=False), limits.load(ceilings)
        return floors.floor_us(lines, measured), floors.bound_by(lines, measured), floors.binding(lines, measured)

    lowest, bound, said = found(30e12)
    assert (lowest[256], bound[256]) == (pytest.approx(272.7, abs=0.05), "fft")
    # 1088 transforms of 512 x 512 / 2 values, two crossings of 8 bytes: 2.28 GB.
    assert said.endswith(f"takes {100 * 1088 * 512**2 * 8 / 30e6 / 272.7:.0f} % of the floor at most.")
    lowest, bound, said = found(2e12)
    assert (lowest[256], bound[256]) == (pytest.approx(1088 * 512**2 * 8 / 2e6), "exchange")
    assert bound[4] == "memory", "a problem without crossings, or one that direct computation solves faster"
    assert "memory on 1, exchange between threads on 1 of these 2 problems" in said
    # Direct computation, 2 * 256^4 FLOPs a pair, needs no exchange.
    lowest, bound, said = found(1e9)
    assert (lowest[256], bound[256]) == (pytest.approx(2 * 256**4 * 1024 / 51e6), "direct")


@pytest.mark.parametrize(
    ("left", "right", "window", "lengths"),
    [
        ((8, 8), (8, 8), "full", (16, 16)),
        ((36, 90), (36, 90), "full", (72, 180)),
        ((5, 4), (12, 7), "full", (16, 10)),
        ((24, 24), (120, 160), "valid", (120, 160)),
        ((8, 8), (8, 8), "sy:-2..3,sx:0..0", (12, 8)),  # max(3 + 8, 8 + 2) is 11, max(8, 8) is 8
    ],
)
def test_transforms_are_as_long_as_the_shifts_need(left, right, window, lengths):
    area = lengths[0] * lengths[1]
    expected = 3 * 2.5 * area * math.log2(area) + 4 * area
    problem = Problem("one-to-one", left, right, 1, 1, window)
    assert floors.fft_flops(problem) == pytest.approx(expected)


def test_ceilings_that_cannot_be_used_say_how_to_measure_them(tmp_path):
    def reason():
        found = limits.load(tmp_path)
        assert isinstance(found, str) and limits.COMMAND in found
        return found

    assert "no ceilings.json" in reason()
    path = tmp_path / limits.FILE
    path.write_text("{")
    assert "cannot be read" in reason()
    path.write_text(json.dumps({**MEASURED, "fill_bytes_per_s": 0}))
    assert "fill_bytes_per_s = 0.0 is not positive" in reason()
    path.write_text(json.dumps({k: v for k, v in MEASURED.items() if k != "copy_bytes_per_s"}))
    assert "'copy_bytes_per_s' is missing" in reason()
    path.write_text(json.dumps({k: v for k, v in MEASURED.items() if "tf32" not in k}))
    assert limits.load(tmp_path).tf32_product is None


def test_ceilings_are_read_by_the_names_that_the_harness_gives_them():
    source = (ROOT / "harness" / "device" / "device_kernels.cu").read_text()
    read = {*limits.KEYS.values(), *limits.OPTIONAL.values()}
    assert not {name for name in read if f'"{name}"' not in source}


def test_floor_map_shows_the_best_time_over_the_floor(ceilings):
    rows = [
        square("one-to-one", 16, 1, 1, 6.3),
        square("one-to-one", 16, 1, 1, 9.0, variant="slower"),
        square("one-to-one", 16, 1, 1, 1.0, outcome="published", variant="elsewhere"),
        square("one-to-one", 16, 1, 1, 1.0, mode="graph"),
        square("n-to-m", 256, 32, 32, 545.4),
    ]
    drawing = draw(floor, result_set(rows, ceilings))["floor"]
    one, many = drawing.figure.axes
    assert texts(one) == ["2.00x\nlaunch\n3.15 µs"] and texts(many) == ["2.00x\nFFT\n273 µs"]
    assert [one.get_title(loc="left"), many.get_title(loc="left")] == ["One-to-one", "n-to-m"]
    assert "The geometric mean of all 2 cells is 2.00x" in drawing.caption and drawing.section == "beyond"
    assert "Launches that overlap can be faster than the floor" in drawing.caption
    assert "The limit that binds is the launch on 1, FFT arithmetic on 1 of these 2 problems" in drawing.caption
    assert "was not measured and is left out" in drawing.caption
    (ceilings / limits.FILE).write_text(json.dumps({**MEASURED, "shared_bytes_per_s": 4e12}))
    exchanged = draw(floor, result_set(rows, ceilings))["floor"]
    assert texts(exchanged.figure.axes[1])[0].endswith("exchange\n1.14 ms")
    assert "fewest exchanges between threads at 2 TB/s where they take longer" in exchanged.caption
    assert "timed beside them" not in drawing.caption, "rows without launch_us say nothing about it"
    rows += [
        square("one-to-one", 32, 1, 1, us, launch_us=3.2, variant=name) for name, us in (("fast", 2.9), ("slow", 3.3))
    ]
    assert "1 of 2 points are faster than the empty launch" in draw(floor, result_set(rows, ceilings))["floor"].caption


# Crossover


def contest(**best):
    """Rows of two variants per cell: `best` maps size to (definition, FFT) in microseconds."""
    rows = []
    for size, (slow, fast) in best.items():
        size = int(size[1:])
        rows.append(square("one-to-many", size, 1, 8, slow, variant="split_row"))
        rows.append(square("one-to-many", size, 1, 8, fast, variant="cufft", family="fft", plan_us=100.0))
    return rows


def test_crossover_names_winners_margins_and_ties():
    rows = contest(s16=(10.0, 15.0), s32=(20.0, 20.1), s64=(90.0, 30.0))
    drawn = draw(crossover, result_set(rows))
    assert list(drawn) == ["crossover", "crossover_plan"]
    axes = drawn["crossover"].figure.axes[0]
    assert texts(axes) == ["split-row\n1.50x", "split-row\ntie", "FFT (cuFFT)\n3.00x"]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["16x16", "32x32", "64x64"]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["1-to-8"]
    hatched = [patch.get_x() for patch in axes.patches if patch.get_hatch()]
    assert hatched == [1]
    colours = [patch.get_facecolor() for patch in axes.patches if not patch.get_hatch()]
    assert colours[0] == colours[1] != colours[2]
    (edge,) = [line.get_xydata().tolist() for line in axes.get_lines()]
    assert edge == [[2, 0], [2, 1]]
    # With a plan of 100 us the definition wins everywhere.
    plan = texts(drawn["crossover_plan"].figure.axes[0])
    assert plan == ["split-row\n11.50x", "split-row\n6.00x", "split-row\n1.44x"]


def test_crossover_of_one_variant_and_unmeasured_cells():
    rows = [square("n-to-m", 16, 2, 2, 5.0), square("n-to-m", 32, 8, 8, 5.0)]
    (drawing,) = draw(crossover, result_set(rows)).values()
    axes = drawing.figure.axes[0]
    assert texts(axes) == ["one\nalone", "one\nalone"] and len(axes.patches) == 4


def test_borders_skip_cells_that_were_not_measured():
    flags = {("a", "1"): False, ("a", "3"): True, ("b", "1"): True}
    assert crossover.borders(["a", "b"], ["1", "2", "3"], flags) == [((2, 0), (2, 1)), ((0, 1), (1, 1))]


# Roofline


def test_roofline_takes_the_highest_rate_of_each_variant_form_and_size(ceilings):
    rows = [
        square("n-to-m", 64, 2, 2, 10.0),
        square("n-to-m", 64, 8, 8, 20.0),  # 16 times the work in twice the time
        square("n-to-m", 64, 8, 8, 30.0, params="k=2"),
        square("one-to-one", 64, 1, 1, 5.0, variant="two"),
    ]
    results = result_set(rows, ceilings)
    best = roofline.best_points(results.points).set_index("variant")
    assert best.loc["one", "counts"] == "8-to-8" and len(best) == 2
    assert best.loc["one", "rate"] == pytest.approx(2 * 64 * 64**4 / 20e-6)
    expected = 2 * 64 * 64**4 / (4 * (16 * 64**2 + 64 * 127**2))
    assert best.loc["one", "intensity"] == pytest.approx(expected)
    figure = draw(roofline, results)["roofline"].figure
    labels = {text for axes in figure.axes for text in texts(axes)}
    assert {"memory", "TF32, matrix product"} < labels and not figure.legends
    levels = {line.get_ydata()[-1] for line in figure.axes[0].get_lines()}
    assert {65e12, 51e12, 400e12} <= levels


def test_no_transform_lies_above_the_roofs_that_a_definition_keeps_to(ceilings):
    rows = [
        square("n-to-m", 256, 8, 8, us, variant=v, family=f)
        for v, f, us in (("cufft", "fft", 1e3), ("slow", "own", 1e5))
    ]
    best = roofline.best_points(result_set(rows, ceilings).points).set_index("variant")
    assert best.loc["slow", "rate"] == pytest.approx(2 * 64 * 256**4 / 1e-1)
    transforms = (8 + 8 + 64) * 2.5 * 512**2 * 18 + 4 * 64 * 512**2
    assert best.loc["cufft", "rate"] == pytest.approx(transforms / 1e-3, rel=0.02)
    assert 2 * 64 * 256**4 / 1e-3 > 400e12, "by the work of the definition it would be above the highest roof"


# Energy


def test_energy_is_kept_whichever_run_gives_the_times():
    later = "20260101T000000-abcdef"
    rows = [
        square("one-to-one", 16, 1, 1, 10.0, experiment="energy", energy_uj=70.0, repetition=0),
        square("one-to-one", 16, 1, 1, 10.0, experiment="energy", energy_uj=74.0, repetition=1),
        square("one-to-one", 16, 1, 1, 12.0, run=later),
    ]
    (line,) = sets.points(rows).to_dict("records")
    assert line["energy_uj"] == 72.0 and line["compute_us"] == 12.0
    assert line["experiments"] == "energy;one-to-one"


def test_energy_per_pair_of_the_most_frugal_of_each_class():
    rows = []
    for size, factor in ((16, 1.0), (32, 10.0)):
        for variant, family, uj in [
            ("split_row", "warp_shuffle", 640.0),
            ("grouped_overlap", "warp_shuffle", 320.0),
            ("cufft", "fft", 6400.0),
        ]:
            rows.append(square("n-to-m", size, 8, 8, 9.0, variant=variant, family=family, energy_uj=uj * factor))
    rows.append(square("n-to-m", 32, 8, 8, 9.0, variant="uncounted"))
    drawing = draw(energy, result_set(rows))["energy"]
    axes = drawing.figure.axes[0]
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    assert set(lines) == {"warp-shuffle", "fft"}
    np.testing.assert_allclose(lines["warp-shuffle"], [5e-6, 50e-6])
    np.testing.assert_allclose(lines["fft"], [100e-6, 1e-3])
    assert {"10 µJ", "1 mJ"} <= {one.get_text() for one in axes.get_yticklabels()}
    assert axes.get_title() == "n-to-m 8-to-8"
    assert axes.get_ylabel() == "Energy per correlation"
    assert "The least is 5 µJ, grouped-overlap" in drawing.caption


# Modes


def modes(stream, **others):
    """Rows of `one` in several modes; each argument maps a parameter to microseconds."""
    found = []
    for mode, times in {"stream": stream, **others}.items():
        found += [
            square("one-to-one", 16, 1, 1, us, mode=mode, params=f"k={k}", experiment="modes")
            for k, us in times.items()
        ]
    return found


def test_ratios_compare_the_same_parameters():
    rows = modes({1: 4.0, 2: 5.0, 3: 1.0}, cold={1: 12.0, 2: 5.0})
    (line,) = _ratios.ratios(sets.points(rows), "cold").to_dict("records")
    # k=3 was not measured cold; of the others k=1 is the fastest in mode stream.
    assert (line["params"], line["ratio"]) == ("k=1", 3.0)


def test_cache_and_replay_show_the_ratios():
    results = result_set(
        modes({1: 4.0}, cold={1: 6.0}, graph={1: 3.0}, latency={1: 10.0})
        + [
            square("n-to-m", 64, 8, 8, us, mode=mode, variant="cufft", family="fft")
            for mode, us in (("stream", 10.0), ("cold", 11.0), ("graph", 10.0))
        ]
    )
    (axes,) = draw(cache, results)["cache"].figure.axes
    assert texts(axes) == ["1.50x", "1.10x"]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["one", "FFT (cuFFT)"]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["one-to-one\n1-to-1\n16x16", "n-to-m\n8-to-8\n64x64"]
    drawing = draw(replay, results)["replay"]
    graph, latency = drawing.figure.axes
    assert texts(graph) == ["0.75x", "1.00x"] and texts(latency) == ["2.50x"]
    assert "atency (a wait after each launch): geometric mean 2.50x" in drawing.caption


def test_transforms_inside_kernels_are_judged_by_the_fastest():
    us = {("own", "inside"): 4.0, ("slower", "inside"): 6.0, ("vendors", "inside"): 5.0, ("cufft", "fft"): 10.0}
    rows = [
        square("n-to-m", 16, 8, 8, time, variant=variant, family=family, experiment="in-kernel-transforms")
        for (variant, family), time in us.items()
    ]
    rows.append(square("n-to-m", 32, 8, 8, 1.0, variant="own", family="inside", experiment="in-kernel-transforms"))
    drawing = draw(in_kernel, result_set(rows))["in_kernel"]
    (axes,) = drawing.figure.axes
    assert sorted(texts(axes)) == ["1.00x", "1.25x", "1.50x", "2.50x"]  # nothing to compare at 32 x 32
    assert "own 1.00x, 1 of 1; vendors 1.25x, 0 of 1; slower" in drawing.caption


def test_colours_of_factors_deepen_in_both_directions_and_in_grey():
    def grey(factor):
        red, green, blue = style.to_rgb(_cells.factor_colour(factor, 4.0))
        return 0.3 * red + 0.59 * green + 0.11 * blue

    for low, high in ((1.1, 2.0), (2.0, 4.0), (0.9, 0.5), (0.5, 0.25)):
        assert grey(low) > grey(high) + 0.05 > 0.5
    assert grey(4.0) == grey(9.0) and _cells.factor_colour(1.0, 4.0) == "#f0f0f0"


# Accuracy


def test_accuracy_compares_alike_along_a_line():
    rows = []
    for size in (16, 64):
        for variant, family, error in [
            ("split_row", "warp_shuffle", 1e-7),
            ("grouped_overlap", "warp_shuffle", 3e-7),
            ("cufft", "fft", 2e-7),
            ("exact", "other", 0.0),
        ]:
            errors = {"rel_l2_error": error * size, "max_error": error, "error_bound": 1e-6}
            rows.append(square("one-to-one", size, 1, 1, 9.0, variant=variant, family=family, **errors))
    errors = {"rel_l2_error": 9e-5, "max_error": 9.0, "error_bound": 10.0}
    rows.append(square("n-to-m", 64, 8, 8, 9.0, variant="cufft", family="fft", **errors))
    drawn = draw(accuracy, result_set(rows))
    axes = drawn["accuracy"].figure.axes[0]
    lines = sorted((line.get_label(), list(line.get_ydata())) for line in axes.get_lines())
    assert [name for name, _ in lines] == ["fft", "warp-shuffle", "warp-shuffle"]
    np.testing.assert_allclose([one for _, one in lines], [[32e-7, 128e-7], [16e-7, 64e-7], [48e-7, 192e-7]])
    assert "9e-05: FFT (cuFFT), n-to-m, 8-to-8, 64x64" in drawn["accuracy"].caption, "what no line shows"
    assert sorted(texts(axes)) == ["fft", "warp-shuffle"], "a family is named once"
    (share,) = [one for one in drawn["accuracy_bound"].figure.axes[0].get_lines() if one.get_label() == "fft"]
    np.testing.assert_allclose(share.get_ydata(), [0.2, 0.2])


# All


def test_no_data_no_figure(ceilings):
    empty = result_set([], ceilings)
    timed = result_set([sets.row(outcome="published")], ceilings)
    for module in ALL:
        for results in (empty, timed):
            found = module.draw(results)
            assert found and all(isinstance(one, Omitted) and one.reason for one in found), module
    nothing = result_set([sets.row()])
    for module, says in [
        (floor, limits.COMMAND),
        (roofline, limits.COMMAND),
        (cache, "stream and cold"),
        (replay, "graph or latency"),
        (energy, "energy"),
    ]:
        (omitted,) = module.draw(nothing)
        assert isinstance(omitted, Omitted) and says in omitted.reason


def test_text_stays_inside_the_figure(ceilings):
    rows = [row for row in sets.model_rows(sets.GPU) if row["compute_us"]]
    again = [{**row, "compute_us": row["compute_us"] * 1.5} for row in rows if row["form"] == "one-to-one"]
    rows += [{**row, "mode": mode} for row in again for mode in ("cold", "graph")]
    results = result_set(rows, ceilings)
    for module in (crossover, floor, roofline, cache, replay):
        for drawing in draw(module, results).values():
            renderer = FigureCanvasAgg(drawing.figure).get_renderer()
            box = drawing.figure.bbox
            for axes in drawing.figure.axes:
                tight = axes.get_tightbbox(renderer)
                assert tight.x0 >= box.x0 - 1 and tight.x1 <= box.x1 + 1, drawing.name
                assert tight.y1 <= box.y1 + 1 and tight.y0 >= box.y0 - 1, drawing.name


def test_experiments_of_modes_and_energy_feed_their_own_figures_only():
    known = schema.load_experiments()
    assert set(known["modes"].feeds) == {"cache", "replay", "best_by_mode"} and known["energy"].feeds == ["energy"]
    assert {"stream", "cold", "graph", "latency"} == set(known["modes"].modes)
    results = result_set(modes({1: 4.0}, cold={1: 6.0}), feeds=schema.feeds())
    assert results.feeding("comparison").empty and results.feeding("best_table").empty
    assert len(results.feeding("cache")) == 2
