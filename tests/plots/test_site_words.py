"""Texts of the report: Markdown as HTML, findings and run cards of rows whose numbers are known."""

import json
from pathlib import Path

import pytest
from fixtures import sets

from plots import tidy
from plots.site import blocks, cards, counts, findings, lines, prose
from xcorr.paths import ROOT

PAGE = ROOT / "experiments" / "jpdc" / "README.md"
CEILINGS = {"copy_bytes_per_s": 4e12, "fill_bytes_per_s": 4e12, "cublas_fp32_flop_per_s": 5e13}
CEILINGS |= {"empty_launch_stream_us": 2.0, "empty_launch_graph_us": 1.5}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`a <b>` & c", "<code>a &lt;b&gt;</code> &amp; c"),
        ("**far** off", "<strong>far</strong> off"),
        ("one ` alone", "one ` alone"),
        ("[beyond](../beyond/README.md)", '<a href="../../experiments/beyond/README.md">beyond</a>'),
        ("[term](../../docs/glossary.md#floor)", '<a href="../../docs/glossary.md#floor">term</a>'),
        ("[page](https://doi.org/x)", '<a href="https://doi.org/x">page</a>'),
        ("<script>", "&lt;script&gt;"),
    ],
)
def test_a_line_of_markdown(text, expected):
    assert prose.inline(text, PAGE, "../../") == expected


def test_a_page_of_markdown(tmp_path):
    page = ROOT / "experiments" / "beyond" / "README.md"
    found = prose.html(page, "../../")
    lines = page.read_text(encoding="utf-8").splitlines()
    assert "<h1>" not in found and found.count("<tr>") == sum(line.startswith("|") for line in lines) - 1
    assert prose.tables("| a | b |\n|---|---|\n| `x\\|y` | 2 |\n\ntext\n") == [[["a", "b"], ["`x|y`", "2"]]]
    part = Path(tmp_path / "page.md")
    part.write_text("# Title\n\n## Part\n\n- one\n- two\n")
    assert prose.html(part, "") == "<h3>Part</h3>\n<ul><li>one</li><li>two</li></ul>"


def gpu(tmp_path, rows):
    folder = sets.write_set(tmp_path, rows)
    (folder / "ceilings.json").write_text(json.dumps(CEILINGS))
    return tidy.load(folder, sets.KEY, "published")


def times(variant, family, us, **values):
    return [
        sets.row(variant=variant, family=family, backend="cuda", compute_us=us, repetition=i, **values)
        for i in range(3)
    ]


def test_an_answer_has_floor_runner_up_and_the_lines_that_run_it(tmp_path):
    rows = times("some_direct", "tiled", 8.0, params="a=1;b=2") + times("cufft", "fft", 12.0)
    (line,) = lines.table(gpu(tmp_path, rows)).to_dict("records")
    assert (line["best"], line["time_us"], line["runner_up"], line["contenders"]) == ("some_direct", 8.0, "cufft", 2)
    assert (line["floor_us"], line["roof"], line["group"], line["plan"]) == (2.0, "the launch", "tiled", "kept")
    expected = '--form one-to-one --variant some_direct --params "a=1;b=2" --device cuda:0 --output OUT.npy'
    assert line["command"] == f"LEFT.npy RIGHT.npy {expected}"
    assert line["python"] == (
        "# left (16, 16), right (16, 16): arrays of PyTorch or CuPy on the GPU\n"
        'out = xcorr.correlate(left, right, variant="some_direct:a=1;b=2")'
    )


def test_a_problem_with_fields_has_no_floor_and_a_single_array_has_no_right(tmp_path):
    own = {"form": "n-to-m", "window": "full", "same": "yes", "score": "zncc:0.3", "result": "peak"}
    (line,) = lines.table(gpu(tmp_path, times("some_direct", "tiled", 8.0, **own))).to_dict("records")
    assert line["floor_us"] != line["floor_us"] and line["roof"] == "" and line["more"] == "same=yes"
    assert (line["score"], line["result"], line["runner_up"]) == ("zncc:0.3", "peak", "")
    assert line["command"].startswith("LEFT.npy --form n-to-m --score zncc:0.3 --result peak --same")
    assert line["command"].endswith("--peaks PEAKS.csv") and "(left, None, " in line["python"]


def test_a_time_within_the_noise_of_another_is_a_tie(tmp_path):
    rows = times("some_direct", "tiled", 80.0) + times("cufft", "fft", 80.1)
    (line,) = lines.table(gpu(tmp_path, rows)).to_dict("records")
    assert line["tied_with"] == "cufft"


def test_counts_are_over_all_rows(tmp_path):
    wrong = {"outcome": "incorrect", "reason": "max error 3 > bound 1", "compute_us": None}
    rows = [*times("a", "tiled", 8.0), sets.row(variant="b", **wrong), sets.row(variant="b", score="zncc:0.3", **wrong)]
    found = counts.of_set(gpu(tmp_path, rows))
    assert (found.rows, len(found.points), found.of("passed"), found.variants_of("incorrect")) == (5, 3, 1, {"b": 2})
    assert "2 are incorrect: b (2)" in findings._checked(found).text
    assert cards.excluded(found)["points"].sum() == 2


def test_a_block_has_a_card_with_what_was_excluded(tmp_path):
    wrong = {"outcome": "incorrect", "reason": "max error 3 > bound 1", "compute_us": None}
    rows = times("a", "tiled", 8.0, block=f"{sets.RUN}.10", process=0)
    rows += times("a", "tiled", 9.0, block=f"{sets.RUN}.2", process=0, **sets.square(32))
    rows += [sets.row(variant="b", backend="cuda", block=f"{sets.RUN}.2", process=0, **wrong)]
    folder = sets.write_set(tmp_path, rows)
    facts = {
        "machine_key": sets.KEY,
        "device_name": "NVIDIA H100",
        "uuid_hash": 2**64 - 1,
        "driver": "580.1",
        "clock_mhz": 1755,
    }
    record = {"run": sets.RUN, "experiment": "one-to-one", "machine_key": sets.KEY, "utc": "2026-11-29T10:00:00Z"}
    record |= {
        "git_commit": "0123456789abcdef",
        "git_dirty": False,
        "git_trees": {"algorithms": "aaaaaaaaaa", "harness": "bbbbbbbbbb"},
    }
    record |= {"before": facts, "after": {**facts, "clock_mhz": 1980}}
    (folder / "runs.json").write_text(json.dumps([record]))
    results = tidy.load(folder, sets.KEY, "published")
    first, second = blocks.table(blocks.of_set(results, counts.of_set(results).every)).to_dict("records")
    assert [first["Block or run"], second["Block or run"]] == [f"{sets.RUN}.2", f"{sets.RUN}.10"]
    assert first["Card"] == "NVIDIA H100, UUID hash ffffffffffffffff" and first["Driver"] == "580.1"
    assert first["Clock before, after [MHz]"] == "1755, 1980"
    assert first["Sources"] == "012345678, algorithms aaaaaaa, harness bbbbbbb"
    assert (first["Points"], first["Passed"], first["Incorrect"]) == (2, 1, 1)
    assert (
        first["Excluded and why"] == "b: 1 incorrect (max error 3 > bound 1)"
        and second["Excluded and why"] == "nothing"
    )


def test_rows_of_no_block_have_a_card_for_their_run(tmp_path):
    results = gpu(tmp_path, times("a", "tiled", 8.0))
    (line,) = blocks.table(blocks.of_set(results, counts.of_set(results).every)).to_dict("records")
    assert line["Block or run"] == sets.RUN and line["Points"] == line["Passed"] == 1


def test_the_size_from_which_transforms_win_lies_between_measured_ones(tmp_path):
    rows = []
    for side, direct in ((16, 5.0), (32, 20.0), (64, 80.0)):
        cells = {**sets.square(side), "experiment": "one-to-one"}
        rows += times("some_direct", "tiled", direct, **cells) + times("cufft", "fft", 10.0, **cells)
    (line,) = findings.crossovers(gpu(tmp_path, rows)).to_dict("records")
    assert line["counts"] == "1-to-1" and 22 < line["low"] == line["high"] < 23
