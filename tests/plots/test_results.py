"""Surfaces beside peaks: the table, the figure and the chapter, with rows, with some of them and with none."""

import pytest
from fixtures import sets
from fixtures.sets import loaded
from stored import row

from experiments.driver import schema
from plots.drawing import Drawing, Omitted
from plots.figures import results as figure
from plots.sources.jpdc.tables import application
from plots.tables import results as table
from plots.tables import table as tables
from plots.tables.table import readable
from xcorr.problem import GEOMETRY, Problem

HASH, REDUCTION = "h" * 16, "r" * 8


def rows_of(name: str, us: dict[str, float], mode: str = "stream", energy: float = 0.0):
    """Rows of a problem by its id, of outputs with their times; a made-up variant writes peaks, another surfaces."""
    found = []
    for output, time in us.items():
        plain = Problem.of_id(name)
        fields = {"result": "" if output.startswith("surface") and "reduction" not in output else "peak"}
        fields["boundary"] = "circular" if output.endswith("circular") else ""
        given = "".join(f"/{key}={value}" for key, value in reversed(fields.items()) if value)
        problem = Problem.of_id(f"{plain.id}{given}")
        cells = dict(zip(GEOMETRY, problem.cells)) | fields | {"experiment": "results", "mode": mode}
        cells |= {"backend": "cuda", "family": "fused_fft", "bytes": problem.bytes(4), "fmas": problem.fmas}
        cells |= {"variant": "peaks" if output.startswith("fused") else "surfaces", "compute_us": time}
        cells |= {"source_hash": f"{HASH}+{REDUCTION}" if "reduction" in output else HASH}
        found.append(row(**cells, energy_uj=energy * time if energy else ""))
    return found


EBSD = {
    "surface": 600.0,
    "surface + reduction": 1100.0,
    "fused peak": 480.0,
    "surface, circular": 200.0,
    "surface + reduction, circular": 330.0,
    "fused peak, circular": 140.0,
}
PROBLEM = "n-to-mn/96x96/96x96/86:4300/full"


@pytest.fixture
def measured(tmp_path):
    own = rows_of(PROBLEM, EBSD, energy=0.5)
    own += rows_of(PROBLEM, {"surface": 650.0, "surface + reduction": 1000.0})
    own[-1]["variant"] = own[-2]["variant"] = "others"
    own += rows_of("one-to-one/96x96/96x96/1:1/full", {"surface": 9.0, "surface + reduction": 36.0}, mode="latency")
    return loaded(tmp_path, [*own, row(compute_us=3.0), {**row(compute_us=9.0), "result": "peak"}])


def test_each_output_has_its_fastest_variant_bytes_and_energy(measured):
    lines = table.table(measured)
    assert list(lines["output"]) == [*table.OUTPUTS, "surface", "surface + reduction"]
    own = lines.iloc[:6].set_index("output")
    assert own.loc["surface + reduction", "variant"] == "others" and own.loc["surface + reduction", "time_us"] == 1000
    inputs, surface = 4 * (86 + 4300) * 96 * 96, 4 * 4300 * 191 * 191
    assert own.loc["surface", "moved_bytes"] == inputs + surface
    assert own.loc["surface + reduction", "moved_bytes"] == inputs + 2 * surface + 32 * 4300
    assert own.loc["fused peak", "moved_bytes"] == inputs + 32 * 4300
    assert own.loc["fused peak, circular", "speedup"] == pytest.approx(600 / 140)
    assert own.loc["fused peak", "energy_uj"] == pytest.approx(240)
    assert list(lines["mode"])[-2:] == ["latency"] * 2


def test_a_reader_sees_units_and_what_is_missing(measured):
    lines = table.table(measured)
    shown = readable(lines, table.SHOWN)
    assert list(shown["Problem"])[0] == "86-to-4300, 96x96" and list(shown["Problem"])[-1] == "1-to-1, 96x96, latency"
    fused = shown[shown["Output"] == "fused peak"].iloc[0]
    units = ["Time", "Bytes", "Energy", "Speed-up over the surface"]
    assert fused[units].tolist() == ["480 µs", "162 MB", "240 µJ", "1.25x"]
    assert list(shown["Energy"])[-1] == table.MISSING
    assert table.lacking(lines) == "Not measured: 1-to-1, 96x96, latency (fused peak)."
    text = sets.files(table, measured)["results.md"]
    assert "Not measured:" in text and "surface + reduction, circular" in text


def test_rows_of_other_experiments_and_fields_are_no_lines(tmp_path):
    own = rows_of(PROBLEM, {"fused peak": 5.0})
    other = [{**one, "experiment": "fields"} for one in own]
    assert table.table(loaded(tmp_path, [row(), *other])).empty
    scored = [{**one, "boundary": "circular", "score": "phase:0"} for one in own]
    assert table.table(loaded(tmp_path / "scored", [row(), *scored])).empty


def test_without_rows_it_says_what_measures_them(tmp_path):
    results = loaded(tmp_path, [row()])
    (omitted,) = figure.draw(results)
    assert isinstance(omitted, Omitted) and table.TABLE.command in omitted.reason
    notes, grids = table.TABLE.page(results).chapter()
    assert grids == [] and table.TABLE.command in notes[0]


def test_the_figure_has_a_panel_for_time_bytes_and_energy(measured):
    (drawn,) = figure.draw(measured)
    assert isinstance(drawn, Drawing) and "Not measured: 1-to-1, 96x96, latency (fused peak)." in drawn.caption
    panels = drawn.figure.axes
    assert [one.get_xlabel() for one in panels] == ["Time ratio", "Bytes ratio", "Energy ratio"]
    texts = [text.get_text() for text in panels[0].get_yticklabels()]
    assert texts == ["86-to-4300, 96x96\n600 µs, 789 MB, 300 µJ", "1-to-1, 96x96, latency\n9.00 µs, 220 kB"]
    (fused,) = (one for one in panels[0].lines if one.get_label() == "fused peak")
    assert fused.get_xdata() == pytest.approx([480 / 600]) and list(fused.get_ydata()) == [0]


def test_without_energy_the_panel_says_so(tmp_path):
    (drawn,) = figure.draw(loaded(tmp_path, rows_of(PROBLEM, EBSD)))
    assert [text.get_text() for text in drawn.figure.axes[2].texts] == ["not measured"]


def test_the_chapter_stands_in_the_report_with_and_without_rows(measured, tmp_path):
    for results, count in ((measured, 2), (loaded(tmp_path / "none", [row()]), 0)):
        (chapter,) = tables.chapters([(one, one.page(results)) for one in (table.TABLE, application.TABLE)])
        assert chapter["id"] == table.TABLE.name and len(chapter["tables"]) == count


def test_the_experiment_measures_every_output():
    experiment = schema.load_experiments()["results"]
    found = schema.modes_by_problem(experiment, "quick")
    latency = {problem for problem, modes in found.items() if modes == ["latency"]}
    assert latency and all(problem.form == "one-to-one" for problem in latency)
    outputs = {(one.fields.boundary, one.fields.result) for one in latency}
    assert outputs == {(b, r) for b in ("zero", "circular") for r in ("surface", "peak")}
    assert experiment.energy_s >= 1 and experiment.study


def test_the_application_has_the_paper_every_family_and_peaks(tmp_path):
    surfaces = [one for us in (7900.0, 9000.0, 600.0) for one in rows_of(PROBLEM, {"surface": us})]
    for one, family in zip(surfaces, ("tiled", "tiled", "fft")):
        one.update(family=family, variant=f"of_{one['compute_us']}", experiment="n-to-mn")
    own = rows_of(PROBLEM, {"surface + reduction": 1000.0, "fused peak": 395.0, "fused peak, circular": 158.0})
    results = loaded(tmp_path, [*surfaces, *own])
    shown = application.readable(application.table(results))
    assert list(zip(shown["Family"], shown["Output"])) == [
        ("the paper", "surface"),
        ("tiled", "surface"),
        ("fused_fft", "surface + reduction"),
        ("fft", "surface"),
        ("fused_fft", "fused peak"),
        ("fused_fft", "fused peak, circular"),
    ]
    assert list(shown["Time"])[:2] == ["79.0 ms", "7.90 ms"] and list(shown["Speed-up over the paper"])[-1] == "500x"
    text = sets.files(application, results)["application.md"]
    assert "Not measured: surface, circular; surface + reduction, circular." in text
    nothing = loaded(tmp_path / "none", [row()])
    assert application.TABLE.command in sets.files(application, nothing)["application.md"]
    assert application.TABLE.page(nothing).chapter() == ([application.TABLE.nothing], [])
