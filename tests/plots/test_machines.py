"""Figures that compare machines: the crossover, what is best, what is drawn hollow, what is left out."""

import math
from pathlib import Path

import pytest
from fixtures import published, sets
from matplotlib.colors import to_hex

from experiments.published import importing
from experiments.published.artifact_files import Names
from plots import imported, machine_figures, machine_table, machines, tidy
from plots.drawing import Drawing, Omitted
from plots.figures import _bars
from plots.tables.crossover import crossed
from plots.tables.table import duration
from xcorr.files import load_toml
from xcorr.native.variants import is_transform
from xcorr.paths import RESULTS

COUNTS = {"one-to-one": [(1, 1)], "n-to-m": [(128, 128)]}
SIZES = [16, 32, 64, 128]
VARIANTS = [
    ("overlap_wise_serial_batch", "overlap_wise", [""], 0.004),
    ("grouped_overlap", "warp_shuffle", ["left_rows=1", "left_rows=4"], 0.0004),
    ("cufft", "fft", [""], None),
]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """One measured set, one measured set at twice its times, and one imported."""
    rows = sets.model_rows(VARIANTS, SIZES, COUNTS, repetitions=2)
    sets.write_set(tmp_path, rows, key="fast-gpu")
    slow = [{**row, "machine_key": "slow-gpu"} for row in rows]
    for row in slow:
        row["compute_us"] = row["compute_us"] and 2 * row["compute_us"]
    sets.write_set(tmp_path, slow, key="slow-gpu")
    package = published.package(tmp_path / "package")
    assert importing.main([str(package), "--folder", "volta", "--results", str(tmp_path)]) == 0
    return tmp_path


def load(results: Path, key: str) -> tidy.ResultSet:
    return tidy.load(results / "published" / key, key, "published")


def machine(results: Path, key: str, place: int = 0) -> machines.Machine:
    return machines.machine(load(results, key), place, load_toml(machines.DATA))


def crossing(sizes, first, second):
    return crossed([(size, math.log(a / b)) for size, a, b in zip(sizes, first, second)], tie_wins=False)


def test_the_crossover_of_two_power_laws():
    """First grows with the fourth power and second with the square: equal where size = 50, whatever the grid."""
    for sizes in ([16, 32, 64, 128], [16, 128], [40, 60]):
        assert crossing(sizes, [s**4 for s in sizes], [2500.0 * s**2 for s in sizes]) == pytest.approx((50.0, 50.0))


def test_a_crossover_beyond_what_was_measured_has_a_bound():
    sizes, slow, fast = [16, 32, 64], [3.0, 3.0, 3.0], [1.0, 1.0, 1.0]
    assert crossing(sizes, slow, fast) == (0.0, 16.0)
    assert crossing(sizes, fast, slow) == crossing(sizes, fast, fast) == (64.0, math.inf), "a tie is no win"


def test_only_a_lasting_lead_counts():
    """The second is faster at 32, but not at 64: it takes over after 64."""
    assert 64 < crossing([16, 32, 64, 128], [1, 4, 4, 9], [2, 2, 8, 3])[0] < 128


def test_best_times_are_over_variants_and_parameters(results):
    cells = machine(results, "fast-gpu").cells.set_index(["form", "size"])
    points = load(results, "fast-gpu").points
    at = points[(points["form"] == "n-to-m") & (points["size"] == "32x32")]
    cell = cells.loc[("n-to-m", "32x32")]
    assert cell["definition_us"] == at.loc[at["family"] != "fft", "compute_us"].min()
    assert cell["fft_us"] == at.loc[at["family"] == "fft", "compute_us"].min()
    assert cell["baseline_us"] == at.loc[at["variant"] == "overlap_wise_serial_batch", "compute_us"].min()
    fft = at[at["family"] == "fft"]
    assert cell["fft_plan_us"] == pytest.approx((fft["compute_us"] + fft["plan_us"]).min())


def test_a_transform_is_one_wherever_its_family_lies(results):
    """The class is that of the registry: a fused transform is no definition-based variant."""
    fused = [("fused_fft_grid", "fused_fft", ["exchange=barrier"], 1e-6)]
    sets.write_set(results, sets.model_rows([*VARIANTS, *fused], SIZES, COUNTS, repetitions=1), key="fused-gpu")
    plain, own = (machine(results, key).cells for key in ("fast-gpu", "fused-gpu"))
    assert own["definition_us"].tolist() == pytest.approx(plain["definition_us"].tolist(), rel=0.02)  # other noise
    assert set(own["fft"]) == {"fused_fft_grid"} and not own["definition"].map(is_transform).any()


def test_the_papers_transform_is_the_only_one_of_an_imported_set():
    named = {name: is_transform(entry["variant"]) for name, entry in Names().data["algorithms"].items()}
    assert [name for name, transform in named.items() if transform] == ["fft"]


@pytest.fixture(scope="module")
def measured():
    """The H200 set that is committed."""
    return machine(RESULTS, "nvidia-h200-132-sm-140-gib")


def test_known_numbers_of_the_committed_set(measured):
    """By definition 30.7 us for 1:1 at 128 x 128; a fused transform takes 5.56 us there, which used to be taken for it."""
    line = measured.cells.set_index(["form", "counts", "size"]).loc[("one-to-one", "1-to-1", "128x128")]
    assert line["definition_us"] == pytest.approx(30.7, rel=0.02) and not is_transform(line["definition"])
    assert line["fft_us"] == pytest.approx(5.56, rel=0.02) and line["fft"].startswith("fused_fft")


def test_the_committed_set_has_its_crossovers_between_measured_sizes(measured):
    found = machines.crossovers([measured])
    found = found[(found["form"] == "one-to-one") & (found["accounting"] == "fft_us")].set_index("counts")
    assert found.loc["1-to-1", "where"] == "between" and 16 < found.loc["1-to-1", "size"] < 64


def test_other_modes_inputs_and_precisions_take_no_part(results):
    rows = sets.model_rows(VARIANTS, [16, 32], COUNTS, repetitions=1)
    odd = [dict(row, mode="graph", compute_us=1e-3) for row in rows[:1]]
    odd += [dict(row, precision="fp16", compute_us=1e-3) for row in rows[:1]]
    sets.write_set(results, rows + odd, key="odd-gpu")
    assert machine(results, "odd-gpu").cells["definition_us"].min() > 1e-3


def test_shapes_off_the_grid_lie_on_no_curve(results):
    cells = {"experiment": "off-grid", "variant": "grouped_overlap", "family": "warp_shuffle", **sets.square(20)}
    odd = sets.row(**cells, compute_us=1e-3)
    sets.write_set(results, [*sets.model_rows(VARIANTS, SIZES, COUNTS, repetitions=1), odd], key="grid-gpu")
    assert "20x20" not in set(machine(results, "grid-gpu").cells["size"])


def test_crossovers_are_a_property_of_each_machine(results):
    fast, imported_one = machine(results, "fast-gpu"), machine(results, "published-volta", 1)
    found = machines.crossovers([fast, imported_one])
    assert set(found["accounting"]) == {"fft_us", "fft_plan_us"}
    own = found[(found["form"] == "n-to-m") & (found["accounting"] == "fft_us")]
    assert len(own) == 2 and own["size"].nunique() == 2
    with_plan = found[(found["form"] == "n-to-m") & (found["accounting"] == "fft_plan_us")]
    assert (with_plan["size"].to_numpy() >= own["size"].to_numpy()).all(), "a plan only postpones the FFT"


def test_imported_machines_are_hollow_and_named_as_published(results):
    drawn = machines.draw([machine(results, "fast-gpu"), machine(results, "published-volta", 1)])
    figures = {one.name: one for one in drawn if isinstance(one, Drawing)}
    by_form = {f"machines_{what}_{form}" for what in ("best", "speedup") for form in ("one-to-one", "n-to-m")}
    assert by_form | {"machines_crossover"} <= set(figures)
    axes = figures["machines_best_n-to-m"].figure.axes[0]
    measured, foreign = axes.get_lines()
    assert to_hex(foreign.get_markerfacecolor()) == "#ffffff" != to_hex(measured.get_markerfacecolor())
    assert "volta, published as V100 SXM2 32 GB" in figures["machines_best_n-to-m"].alt
    assert "not verified here" in figures["machines_best_n-to-m"].caption


def test_bars_stand_at_times_that_were_repeated(results, measured):
    for one, repeated in ((measured, True), (machine(results, "published-volta"), False)):
        drawn = {made.name: made for made in machines.draw([one]) if isinstance(made, Drawing)}
        assert (_bars.SAID in drawn["machines_best_one-to-one"].caption) is repeated
        assert (_bars.OF_RATIO in drawn["machines_speedup_one-to-one"].caption) is repeated
    assert not {name for name in measured.cells if str(name).endswith(("_low", "_high"))}, (
        "the numbers that are written"
    )


def test_the_speedup_is_over_the_machines_own_baseline(results):
    drawn = machines.draw([machine(results, "fast-gpu"), machine(results, "slow-gpu", 1)])
    (figure,) = [one.figure for one in drawn if one.name == "machines_speedup_n-to-m"]
    fast, slow = (line.get_ydata() for line in figure.axes[0].get_lines()[:2])
    assert fast == pytest.approx(slow), "twice the times, the same speed-up"
    (figure,) = [one.figure for one in drawn if one.name == "machines_best_n-to-m"]
    fast, slow = (line.get_ydata() for line in figure.axes[0].get_lines()[:2])
    assert slow == pytest.approx([2 * time for time in fast])


def test_counts_of_one_machine_alone_are_left_out(results):
    rows = sets.model_rows(VARIANTS, SIZES, {"n-to-m": [(128, 128), (2, 2)]}, repetitions=1)
    sets.write_set(results, rows, key="more-gpu")
    drawn = machines.draw([machine(results, "fast-gpu"), machine(results, "more-gpu", 1)])
    (figure,) = [one.figure for one in drawn if one.name == "machines_best_n-to-m"]
    assert [axes.get_title() for axes in figure.axes] == ["128-to-128"]


def test_without_a_baseline_the_figure_is_left_out_with_the_reason(results):
    rows = sets.model_rows(VARIANTS[1:], SIZES, COUNTS, repetitions=1)
    sets.write_set(results, rows, key="bare-gpu")
    left_out = [one for one in machines.draw([machine(results, "bare-gpu")]) if isinstance(one, Omitted)]
    without = [one for one in left_out if "speedup" in one.name]
    assert {one.name for one in without} == {"machines_speedup_one-to-one", "machines_speedup_n-to-m"}
    assert all("baseline" in one.reason for one in without)
    assert {"machines_optimisations_n-to-m", "machines_roofs"} <= {one.name for one in left_out}


def test_the_command_writes_every_format_and_the_same_bytes(results, tmp_path, capsys):
    keys = ["fast-gpu", "published-volta", "--results", str(results)]
    assert machines.main([*keys, "--out", str(tmp_path / "a")]) == 0
    assert machines.main([*keys, "--out", str(tmp_path / "b")]) == 0
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert {f"machines_crossover.{extension}" for extension in ("svg", "pdf", "png")} | {
        "machines.md",
        "machines.csv",
    } <= names
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    assert "machines_crossover" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, says",
    [
        (["fast-gp"], "did you mean fast-gpu?"),
        (["fast-gpu", "fast-gpu"], "named twice"),
        (["--local", "fast-gpu"], "no local results"),
        (["--nonsense"], "see --help"),
    ],
)
def test_mistakes_end_in_one_line(results, capsys, words, says):
    assert machines.main([*words, "--results", str(results)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and says in line


def test_without_keys_every_published_set_is_compared_and_what_is_gone_goes(results, capsys):
    out = results / "machines"
    out.mkdir()
    (out / "machines_best_n-to-mn.svg").write_text("of an earlier comparison")
    (out / "notes.svg").write_text("of the user")
    empty = [sets.row(mode="graph")]
    sets.write_set(results, empty, key="graph-gpu")
    assert machines.main(["--results", str(results)]) == 0
    assert "left out: graph-gpu: no time of mode stream" in capsys.readouterr().out
    page = (out / "machines.md").read_text()
    for label in ("fast-gpu", "slow-gpu", "volta, published as V100"):
        assert label in page, label
    assert not (out / "machines_best_n-to-mn.svg").exists() and (out / "notes.svg").exists()


def test_a_local_set_stands_beside_the_published_ones(results, capsys):
    rows = sets.model_rows(VARIANTS, SIZES, COUNTS, repetitions=1)
    sets.write_set(results, rows, key="fast-gpu", kind="local")
    assert machines.main(["--local", "fast-gpu", "--results", str(results)]) == 0
    told = capsys.readouterr().out
    assert (results / "local/fast-gpu/machines/machines_crossover.svg").exists()
    assert not (results / "machines").exists()
    head = next(line for line in told.splitlines() if line.startswith("Machine"))
    assert "one-to-one 1-to-1 128x128" in head
    assert "measured here" in told and "volta, published as V100" in told


def test_a_local_set_meets_those_of_the_repository_where_the_results_have_none(tmp_path, capsys):
    rows = sets.model_rows(VARIANTS, SIZES, {"one-to-one": [(1, 1)]}, repetitions=1)
    sets.write_set(tmp_path, rows, key="new-gpu", kind="local")
    assert machines.main(["--local", "new-gpu", "--results", str(tmp_path)]) == 0
    assert "ampere, published as A100" in capsys.readouterr().out


def test_the_table_ranks_each_machine_within_itself_alone(results):
    both = [machine(results, "fast-gpu"), machine(results, "published-volta", 1)]
    lines = machine_table.lines(both, "one-to-one", "1-to-1").set_index("Size")
    for one in both:
        cells = one.cells[one.cells["form"] == "one-to-one"].set_index("size")
        best = cells.loc["64x64", ["definition_us", "fft_us"]].min()
        assert lines.loc["64x64", one.label].startswith(duration(best))
    text = machine_table.page(both, {"one-to-one": "1-to-1"})
    assert "nobody verified it here" in text
    numbers = machine_table.cells_csv(both).splitlines()
    verified = {tuple(line.split(",")[:1]) for line in numbers if ",yes," in line}
    assert verified == {("published/fast-gpu",)}


def test_shares_of_peaks_by_hand(results):
    one = machine(results, "published-volta")
    assert (one.flops, one.dram) == (15.7e12, 900e9)
    line = machine_figures.roof_shares(one).set_index(["form", "size"]).loc[("n-to-m", "64x64")]
    assert line["arithmetic"] == pytest.approx(0.2, rel=0.01), "the made-up package runs at a fifth of the peak"
    assert math.isnan(machine(results, "fast-gpu").flops), "a set whose record has no peaks"


def test_a_swapped_label_is_marked_and_explained(tmp_path):
    package = published.package(tmp_path / "package", swapped=True)
    assert importing.main([str(package), "--results", str(tmp_path)]) == 0
    found = machine(tmp_path, "published-ada")
    assert found.label == "ada, published as L40 PCIe 48 GB*" and "behaves like A100" in found.note


def test_an_overlay_adds_imported_points_of_shared_problems_only(results):
    mine = load(results, "fast-gpu")
    both = imported.overlay(mine, load(results, "published-volta"))
    added = both.points[both.points["outcome"] == "published"]
    assert len(added) and set(added["counts"]) == {"1-to-1", "128-to-128"}
    assert set(added["input"]) == {"uniform"}
    assert len(both.points) == len(mine.points) + len(added)
    own = both.points[both.points["outcome"] == "passed"].reset_index(drop=True)
    assert own["compute_us"].tolist() == mine.points["compute_us"].tolist()
