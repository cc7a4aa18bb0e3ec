"""Figures and tables of velocimetry and tracking, from made artifacts and without any."""

import gzip
import json
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.inputs import tracking, velocimetry
from plots import real
from plots.drawing import Drawing, Omitted
from plots.sources.beyond.figures import image_motion as figures
from plots.sources.beyond.tables import image_motion as tables


def store(folder, experiment, columns, rows, previews, summary):
    table = real.TABLES[experiment]
    lines = [",".join(columns), *(",".join(str(row.get(name, "")) for name in columns) for row in rows)]
    with gzip.open(folder / f"{experiment}.{table}.csv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    np.savez_compressed(folder / f"{experiment}.previews.npz", **previews)
    (folder / f"{experiment}.summary.json").write_text(json.dumps(summary))


@pytest.fixture
def folder(tmp_path):
    y, x = np.mgrid[8:56:16, 8:72:16].astype(np.float32)
    vectors = np.stack([y, x, 0.1 * x, -0.1 * y, x > 50])
    row = {"variant": "cpu_fft", "params": "threads=1", "rows": 64, "cols": 80, "window": 32, "boundary": "zero"}
    row |= {"passes": 2, "vectors": 12, "outliers": 3, "signal_to_noise": 4.2, "seconds": 0.02}
    known = {**row, "case": "vortex", "rms": 0.061, "bias_y": 0.01, "bias_x": -0.02, "largest": 0.3}
    pair = {**row, "case": "particles", "peer_difference": 0.038, "peer_seconds": 0.24}
    data = {"dataset": "particles", "title": "two frames", "licence": "GPLv3"}
    data |= {"citation": "somebody", "source": "a.bmp"}
    previews = {"vortex_vectors": vectors, "particles_vectors": vectors}
    previews["particles_frame"] = np.ones((64, 80), np.uint8)
    summary = {"datasets": [data], "missing": ""}
    store(tmp_path, real.VELOCIMETRY, velocimetry.COLUMNS, [known, pair], previews, summary)
    row = {"dataset": "camera", "variant": "cpu_fft", "y": 100, "error": 0.05}
    rows = [
        {**row, "case": case, "frame": frame, "x": 90 + frame} for case in tracking.TOLERANCES for frame in range(1, 5)
    ]
    previews = {f"{case}_frame": np.zeros((240, 320), np.uint8) for case in tracking.TOLERANCES}
    previews |= {f"{case}_place": np.array([100.0, 90.0, 1.0]) for case in tracking.TOLERANCES}
    own = {"case": "shift", "variant": "cpu_fft", "frames": 4, "rms": 0.05, "largest": 0.1, "tolerance": 0.15}
    facts = {"template": [64, 64], "search": [82, 82], "frame": [240, 320], "noise": 4.0, "turn": 1.0}
    data = {"dataset": "camera", "title": "photograph", "variants": [{**own, "frames_per_second": 2500.0}]}
    store(tmp_path, real.TRACKING, tracking.COLUMNS, rows, previews, {**facts, "datasets": [data]})
    return tmp_path


def test_both_figures_are_drawn_and_say_the_errors(folder):
    fields, path = figures.draw(SimpleNamespace(folder=folder))
    assert isinstance(fields, Drawing) and isinstance(path, Drawing)
    assert "vortex (zero) 0.061" in fields.caption
    assert [one.get_title() for one in fields.figure.axes] == ["vortex, known", "real frames"]
    curves = path.figure.axes[1].get_lines()
    assert [one.get_label() for one in curves] == list(tracking.TOLERANCES)


def test_without_rows_figures_name_the_command(tmp_path):
    for one in figures.draw(SimpleNamespace(folder=tmp_path)):
        assert isinstance(one, Omitted) and "python3 -m experiments.inputs." in one.reason
    assert tables.on_real_input(tmp_path) == []


def test_the_tables_have_errors_times_and_the_peer(folder):
    fields, tracked = tables.on_real_input(folder)
    first, second = (dict(zip(fields["table"]["columns"], row)) for row in fields["table"]["rows"])
    assert (first["RMS error [px]"], first["Bias y, x [px]"], first["Outliers"]) == ("0.061", "+0.010, -0.020", "25 %")
    assert (second["From openpiv [px]"], second["Time of openpiv"]) == ("0.038", "240 ms")
    assert second["RMS error [px]"] == "–"
    assert "GPLv3" in " ".join(fields["notes"])
    row = dict(zip(tracked["table"]["columns"], tracked["table"]["rows"][0]))
    assert row["Frames per second"] == "2500" and row["Allowed RMS [px]"] == "0.15"


def test_one_experiment_that_was_not_run_is_named(folder):
    for path in folder.glob(f"{real.TRACKING}.*"):
        path.unlink()
    _, tracked = tables.on_real_input(folder)
    assert tracked["table"]["rows"] == [] and "experiments.inputs.tracking" in tracked["notes"][0]
