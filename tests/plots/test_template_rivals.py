"""The table of template matching by other libraries, in sets that have it."""

import json

import pytest
from fixtures import sets

from experiments.compare import artifacts
from plots import tidy
from plots.sources.template_matching.tables import rivals as tables
from plots.tables.table import readable
from xcorr.errors import UserError


def store(folder, facts, rows):
    known = {"schema": 1, "experiment": "template-rivals", **facts, "rows": rows}
    return artifacts.store(folder, "template-rivals", known)


def test_the_table_has_the_fastest_first(tmp_path):
    folder = tmp_path / "published" / sets.KEY
    shape = {"template": "9x7", "frame": "33x40", "templates": 2, "params": "", "max_error": 1e-6, "outcome": "passed"}
    rows = [
        {
            **shape,
            "name": "Other",
            "device": "cpu",
            "variant": "",
            "seconds": 3e-3,
            "max_error": 0.5,
            "outcome": "incorrect",
        },
        {**shape, "name": "xcorr-bench", "device": "cpu", "variant": "cpu_fft", "seconds": 1e-3},
    ]
    path = store(folder, {"machine_key": sets.KEY, "versions": {"Other": "1.2"}, "skipped": {"CuPy": "no GPU"}}, rows)
    frame = sets.frame([sets.row()])
    results = tidy.ResultSet(sets.KEY, "published", folder, frame, tidy.tidy(frame))
    lines = readable(tables.table(results), tables.SHOWN)
    assert list(lines["Over ours"]) == ["1", "3"] and lines["Implementation"][1] == "Other 1.2"
    assert lines["Error"][1] == "5.0e-01, incorrect"
    assert "Left out: CuPy: no GPU." in tables.notes(results)
    path.write_text(json.dumps({"schema": 0}))
    with pytest.raises(UserError, match="restore it from git"):
        tables.table(results)


def test_a_library_is_compared_with_ours_on_its_own_device(tmp_path):
    folder = tmp_path / "published" / sets.KEY
    shape = {"template": "9x7", "frame": "33x40", "templates": 2, "params": "", "max_error": 1e-6, "outcome": "passed"}
    times = (
        ("xcorr-bench", "cuda", 1e-4),
        ("xcorr-bench", "cpu", 1e-3),
        ("Other", "cpu", 2e-3),
        ("Other", "cuda", 3e-4),
    )
    rows = [{**shape, "name": n, "device": d, "variant": "", "seconds": t} for n, d, t in times]
    store(folder, {"machine_key": sets.KEY, "versions": {}, "skipped": {}}, rows)
    frame = sets.frame([sets.row()])
    results = tidy.ResultSet(sets.KEY, "published", folder, frame, tidy.tidy(frame))
    lines = readable(tables.table(results), tables.SHOWN)
    found = {(n, d): over for n, d, over in zip(lines["Implementation"], lines["Device"], lines["Over ours"])}
    assert (found["Other", "CPU"], found["Other", "CUDA"]) == ("2", "3")


def test_a_set_without_the_run_says_so(tmp_path):
    frame = sets.frame([sets.row()])
    results = tidy.ResultSet(sets.KEY, "published", tmp_path, frame, tidy.tidy(frame))
    assert tables.table(results).empty and tables.notes(results) == [tables.NONE]
