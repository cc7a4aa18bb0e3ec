"""Other libraries beside ours: their scores are right, a wrong one is told, and what is not there is left out with its reason."""

import dataclasses
import json

import numpy as np
import pytest
from built_library import built_library
from fixtures import sets

from experiments.compare import rivals, zncc_peers
from plots import tidy
from plots.sources.template_matching.tables import rivals as tables
from plots.tables.table import readable
from xcorr.errors import UserError

PROBLEM = {"template": (9, 7), "frame": (33, 40), "templates": 2}


@pytest.fixture(scope="module")
def library():
    return built_library()


def rows_of(library, peers, problem=PROBLEM):
    return list(rivals.measure(library, ["cpu"], peers, [problem], rounds=1, duration=0.001))


@pytest.mark.parametrize("peer", zncc_peers.PEERS, ids=lambda peer: peer.name)
def test_scores_of_each_library_are_those_of_float64(peer):
    found, skipped = rivals.usable([peer], has_gpu=False)
    if not found:
        pytest.skip(f"{peer.name}: {skipped[peer.name]}")
    arrays = rivals.inputs(PROBLEM)
    scores = rivals.of_peer(peer, *arrays, rounds=1, duration=0.001)["scores"]
    # Float32 sums of flat windows about a mean of 200 cost scikit-image and OpenCV digits.
    assert rivals.difference(scores, zncc_peers.truth(*arrays)) < 1e-2


def test_truth_is_the_reference_of_the_library(library):
    templates, frame = rivals.inputs(PROBLEM)
    exact = library.reference(rivals.request_of(PROBLEM), templates.astype(float), frame[None].astype(float))
    np.testing.assert_allclose(zncc_peers.truth(templates, frame), exact, atol=1e-9)


def test_ours_and_a_wrong_library_are_told_apart(library):
    right = next(peer for peer in zncc_peers.PEERS if peer.name == "SciPy transforms")
    wrong = dataclasses.replace(right, name="wrong", host=lambda _, scores: scores[:, ::-1])
    rows = rows_of(library, [right, wrong])
    assert {row["name"]: row["outcome"] for row in rows} == {
        "xcorr-bench": "passed",
        "SciPy transforms": "passed",
        "wrong": "incorrect",
    }
    assert all(row["seconds"] > 0 for row in rows) and rows[0]["variant"]


def test_what_cannot_be_imported_is_left_out_with_its_reason():
    absent = dataclasses.replace(zncc_peers.PEERS[0], name="absent", module="no_such_library")
    on_gpu = next(peer for peer in zncc_peers.PEERS if peer.device == "cuda")
    found, skipped = rivals.usable([absent, on_gpu], has_gpu=False)
    assert found == [] and "no_such_library" in skipped["absent"]
    assert skipped[on_gpu.name] == "measured with --device cpu"


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
    path = rivals.store(
        folder, {"machine_key": sets.KEY, "versions": {"Other": "1.2"}, "skipped": {"CuPy": "no GPU"}}, rows
    )
    frame = sets.frame([sets.row()])
    results = tidy.ResultSet(sets.KEY, "published", folder, frame, tidy.tidy(frame))
    lines = readable(tables.table(results), tables.SHOWN)
    assert list(lines["Over ours"]) == ["1", "3"] and lines["Implementation"][1] == "Other 1.2"
    assert lines["Error"][1] == "5.0e-01, incorrect"
    assert "Left out: CuPy: no GPU." in tables.notes(results)
    path.write_text(json.dumps({"schema": 0}))
    with pytest.raises(UserError, match="measure again"):
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
    rivals.store(folder, {"machine_key": sets.KEY, "versions": {}, "skipped": {}}, rows)
    frame = sets.frame([sets.row()])
    results = tidy.ResultSet(sets.KEY, "published", folder, frame, tidy.tidy(frame))
    lines = readable(tables.table(results), tables.SHOWN)
    found = {(n, d): over for n, d, over in zip(lines["Implementation"], lines["Device"], lines["Over ours"])}
    assert (found["Other", "CPU"], found["Other", "CUDA"]) == ("2", "3")


def test_times_have_their_rounds_and_range():
    assert rivals.spread([3.0, 1.0, 2.0]) == {"seconds": 2.0, "rounds": 3, "least": 1.0, "most": 3.0}


def test_a_set_without_the_run_says_how_to_make_it(tmp_path):
    frame = sets.frame([sets.row()])
    results = tidy.ResultSet(sets.KEY, "published", tmp_path, frame, tidy.tidy(frame))
    assert tables.table(results).empty and tables.notes(results) == [tables.NONE]
