"""The winners of every mode side by side."""

import csv
import io

from fixtures import sets

from plots import tidy
from plots.tables import best_by_mode
from plots.tables import table as tables

TIMES = {"stream": (20.0, 10.0), "graph": (20.0, 19.9), "cold": (30.0, 33.0), "latency": (40.0, 50.0)}


def results(tmp_path, *more):
    rows = [
        sets.row(variant=name, family=family, experiment="modes", mode=mode, compute_us=us)
        for mode, times in TIMES.items()
        for name, family, us in zip(("warp_shuffle", "fused_fft_grid"), ("warp_shuffle", "fused_fft"), times)
    ]
    folder = sets.write_set(tmp_path, [*rows, *more])
    return tidy.load(folder, sets.KEY, "published")


def test_each_mode_has_its_winner_and_no_other_mode_lends_times(tmp_path):
    main = [
        sets.row(variant="fused_fft_grid", family="fused_fft", compute_us=9.0),
        sets.row(variant="elsewhere", family="tiled", compute_us=0.5),
    ]
    loaded = results(tmp_path, *main)
    (line,) = best_by_mode.readable(best_by_mode.table(loaded)).to_dict("records")
    assert line["stream"] == "fused-fft-grid 10.0 µs", "the rows of the experiment on modes, side by side"
    assert line["graph"] == "fused-fft-grid = warp-shuffle 19.9 µs"
    assert (line["cold"], line["latency"]) == ("warp-shuffle 30.0 µs", "warp-shuffle 40.0 µs")
    files = sets.files(best_by_mode, loaded)
    assert "a wait after each launch" in files["best_by_mode.md"]
    assert "| stream | graph | cold | latency |" in files["best_by_mode.md"]
    lines = {one["mode"]: one for one in csv.DictReader(io.StringIO(files["best_by_mode.csv"]))}
    assert lines["latency"]["best"] == "warp_shuffle" and float(lines["latency"]["margin"]) == 1.25
    chapters = tables.chapters(tables.pages(loaded))
    assert chapters[0]["id"] == "modes" and chapters[0]["tables"][0]["grid"]["columns"][-1] == "latency"


def test_a_family_that_one_mode_lacks_is_marked_there(tmp_path):
    lone = [
        sets.row(variant=name, family=family, experiment="modes", mode="latency", compute_us=us, left_rows=8)
        for name, family, us in (("tiled_direct", "tiled", 9.0), ("fused_fft_grid", "fused_fft", 90.0))
    ]
    found = best_by_mode.table(results(tmp_path, *lone)).set_index("mode")["missing_families"]
    assert found.to_dict() == {"stream": "", "graph": "", "cold": "", "latency": "tiled"}
