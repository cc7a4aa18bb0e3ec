"""Published rows are held against the bound of the relative L2 error by what they store."""

import json

import pytest
import stored
from calls import call

from experiments.driver import store
from experiments.published import l2_errors
from xcorr.native.variants import is_transform
from xcorr.paths import build_directory

BENCH = build_directory() / "xcorr-bench"
PART = "sy:0..1,sx:-1..1"


def row(**cells: str) -> store.Row:
    return stored.row(**{**stored.square(256), "variant": "cufft", **cells})


def test_no_published_row_is_above_its_bound(capsys):
    assert l2_errors.run([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines and all(" 0 of " in line or "no row" in line for line in lines)


@pytest.mark.parametrize(
    ("cells", "wrong"),
    [
        ({"rel_l2_error": "5.4e-7"}, False),
        ({"rel_l2_error": "2.8e-5"}, True),  # one bin off by 1 %
        ({"rel_l2_error": "2.8e-5", "outcome": "incorrect"}, False),
        ({"rel_l2_error": ""}, False),
        ({"rel_l2_error": "4e-6", "variant": "warp_shuffle"}, False),
        ({"rel_l2_error": "4e-5", "variant": "warp_shuffle"}, True),
        ({"rel_l2_error": "1e-12", "precision": "fp64"}, True),
        ({"rel_l2_error": "2.8e-4", "rel_l2_bound": "9e-4", "variant": "tiled_direct", "window": PART}, False),
        ({"rel_l2_error": "1e-3", "rel_l2_bound": "9e-4", "variant": "tiled_direct", "window": PART}, True),
        ({"rel_l2_error": "2.8e-4", "variant": "tiled_direct", "window": PART}, True),
    ],
)
def test_a_row_above_its_bound_is_listed(cells, wrong, tmp_path, capsys):
    folder = tmp_path / "some-machine"
    stored.save(folder, stored.OLD, [row(rel_l2_error="1e-8", params="a=1"), row(**cells)])
    assert l2_errors.run([str(folder)]) == int(wrong)
    listed = capsys.readouterr().out.splitlines()[1:]
    assert len(listed) == int(wrong) and all("256x256/256x256/1:1/" in line for line in listed)


def test_a_folder_that_is_not_there_is_a_mistake(capsys):
    with pytest.raises(l2_errors.UserError, match="no such folder"):
        l2_errors.run(["results/nowhere"])


@pytest.mark.skipif(not BENCH.exists(), reason="the program is not built")
@pytest.mark.parametrize("variant", ["cpu_definition", "cpu_fft"])
@pytest.mark.parametrize("precision", ["fp32", "fp64"])
@pytest.mark.parametrize("size", ["16x20", "33x9"])
def test_the_bound_is_that_of_the_program(variant, precision, size):
    asked = ["--variant", variant, "--precision", precision, "--form", "one-to-one", "--left", size]
    done = call(BENCH, *asked, *"--repetitions 1 --min-time 0.001 --records -".split())
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout.splitlines()[-1])["record"]
    cells = {name: store.text_of(value) for name, value in record.items()}
    # The program's own is wider where a pair has less of a result than the norms of its inputs promise.
    ratio = record["rel_l2_bound"] / l2_errors.l2_bound(cells)
    assert 0.999 < ratio < 1.2
    assert record["rel_l2_error"] <= record["rel_l2_bound"]


@pytest.mark.skipif(not BENCH.exists(), reason="the program is not built")
def test_ids_tell_the_class():
    for variant in json.loads(call(BENCH, "--list=json").stdout)["variants"]:
        assert is_transform(variant["id"]) == (variant["algorithm_class"] == "fft"), variant["id"]
