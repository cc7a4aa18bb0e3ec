"""The program xcorr-bench: exit codes, one-line errors, JSON, records, and a known time."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hangs import HANG_S

from xcorr.paths import ROOT

BUILD = Path(os.environ.get("XCORR_BUILD", ROOT / "build"))
PROGRAM = BUILD / "xcorr-bench"
# The same program with variants that are wrong on purpose; built with the C++ tests.
BROKEN = BUILD / "tests" / "negative" / "xcorr-bench-broken"
# And on a device that the first error takes with it.
LOST = BROKEN.with_name("xcorr-bench-lost")
SMALL = ["--form", "n-to-m", "--left", "5x6", "--right", "7x4", "--lefts", "2", "--rights", "3"]
ONCE = ["--repetitions", "1", "--min-time", "0.001"]


def run(*arguments: str, program: Path = PROGRAM) -> subprocess.CompletedProcess[str]:
    """One call of the program; skips when it is not built, unless XCORR_REQUIRE_BUILD=1."""
    if not program.exists() and os.environ.get("XCORR_REQUIRE_BUILD") != "1":
        pytest.skip(f"{program.name} is not built")
    return subprocess.run([str(program), *arguments], capture_output=True, text=True, timeout=HANG_S)


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


TWICE = ["--repetitions", "2", "--min-time", "0.001", "--records", "-"]
FFT = ["--variant", "cpu_fft"]
ONE = [*FFT, "--form", "one-to-one"]
MANY = [*FFT, "--form", "n-to-mn"]
NO_TIMES = ("inf", "nan", "-1", "0", "1e+300")
NO_POINT = "--benchmark_filter=nothing"
AGGREGATES = "--benchmark_report_aggregates_only=true"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "nothing to measure"),
        (["--variant", "cpu_ftt", *SMALL], "the nearest is 'cpu_fft'"),
        ([*FFT, "--params", "threads=2", *SMALL], "the nearest is 'threads=1'"),
        ([*FFT, "--precision", "fp31", *SMALL], "the nearest is 'fp32'"),
        ([*FFT, "--mode", "hot", *SMALL], "mode 'hot'"),
        ([*FFT, "--input", "ones", *SMALL], "input 'ones'"),
        ([*FFT, "--window", "same", *SMALL], "window 'same'"),
        ([*FFT, "--window", "valid", *SMALL], "neither 5x6 nor 7x4 contains"),
        ([*FFT, "--window", "sy:0..7,sx:0..0", *SMALL], "leaves the full window"),
        ([*FFT, "--form", "1-to-1", "--left", "4x4"], "form '1-to-1'"),
        *(
            ([*FFT, f"{option}={number}", *SMALL], f"{option}: {number} is beyond 64 bits, give a smaller number")
            for option in ("--seed", "--lefts", "--rights", "--repetitions")
            for number in ("99999999999999999999", "0x10000000000000000")
        ),
        ([*ONE, "--left", "0x4"], "left rows = 0"),
        ([*ONE, "--left", "4x-4"], "left cols = -4"),
        ([*ONE, "--left", "4"], "write ROWSxCOLS"),
        ([*ONE, "--left", "9" * 30 + "x4"], "overflows"),
        ([*ONE, "--left", "4294967296x4294967296"], "overflows"),
        ([*ONE, "--left", "4x4", "--rights", "5"], "1:1"),
        ([*FFT, "--form", "n-to-m", "--left", "4x4", "--lefts", "9" * 30], "lefts"),
        ([*MANY, "--left", "4x4", "--lefts", "3", "--rights", "5"], "divisible"),
        ([*FFT, *SMALL, "--records", "/no/such/folder/r.jsonl"], "cannot be written"),
        ([*FFT, *SMALL, "--device", "tpu"], "use cpu, cuda or cuda:N"),
        ([*FFT, *SMALL, "--params", "threads=1", "--params", "threads=1"], "asked for twice"),
        (["--no-such-option"], "--no-such-option"),
        (["--list=jsno"], "list 'jsno'"),
        ([*FFT, *SMALL, "--repetitions", "2", "--min-time", "0.001", AGGREGATES], "aggregates"),
        *(([*FFT, *SMALL, "--min-time", one], f"--min-time {one}: out of range") for one in NO_TIMES),
        *(([*FFT, *SMALL, "--energy-time", one], f"--energy-time {one}") for one in NO_TIMES if one != "0"),
        *(([*FFT, *SMALL, "--max-time", one, "--noise", "0.1"], f"--max-time {one}: out of range") for one in NO_TIMES),
        *(([*FFT, *SMALL, "--noise", one, "--max-time", "1"], f"--noise {one}") for one in (*NO_TIMES, "1")),
        ([*FFT, *SMALL, "--noise", "0.005"], "--noise and --max-time go together"),
        ([*FFT, *SMALL, "--max-time", "2"], "--noise and --max-time go together"),
        *(([*FFT, *SMALL, "--repetitions", one], "repetitions") for one in ("-5", "0", "2.5", "9" * 20)),
        *(([*FFT, *SMALL, f"--benchmark_min_time={one}"], "not a duration") for one in ("inf", "nan", "-1", "x", "")),
        *(([*FFT, *SMALL, f"--benchmark_repetitions={one}"], "not a number of") for one in ("-5", "2.5", "nan")),
        ([*FFT, *SMALL, "--seed", "-1"], "seed"),
        ([*FFT, *SMALL, *ONCE, NO_POINT], "none of the"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: list[str], part: str):
    done = run(*arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and part in lines[0], done.stderr
    if not {AGGREGATES, NO_POINT} & set(arguments):  # Google Benchmark speaks first
        assert done.stderr.count("\n") == 1, done.stderr


def test_help_has_an_example():
    done = run("--help")
    assert done.returncode == 0
    assert "Example: xcorr-bench" in done.stdout


def test_the_list_is_json_sorted_and_complete():
    catalogue = json.loads(run("--list=json").stdout)
    assert catalogue["grid"] in ("quick", "paper")
    ids = [variant["id"] for variant in catalogue["variants"]]
    assert ids == sorted(ids) and {"cpu_definition", "cpu_fft", "cpu_row_streaming"} <= set(ids)
    for variant in catalogue["variants"]:
        assert Path(variant["source_file"]).stem == variant["id"]
        assert Path(variant["source_file"]).parts[:2] == ("algorithms", variant["family"])
        assert len(variant["source_hash"]) == 16
        assert all(variant[name] for name in ("points", "forms", "precisions", "summary"))
        assert not variant["parent"] or variant["parent"] in ids
    table = run("--list").stdout
    assert all(name in table for name in ids)


def test_the_machine_is_json():
    facts = json.loads(run("--machine").stdout)
    assert facts["device"] == "cpu" and facts["machine_key"] and facts["cores"] >= 1


def test_records_to_a_file_and_to_standard_output(tmp_path: Path):
    path = tmp_path / "records.jsonl"
    options = ["--variant", "cpu_fft", "--variant", "cpu_definition", *SMALL, *ONCE, "--seed", "5"]
    assert run(*options, "--records", str(path)).returncode == 0
    for text in (path.read_text(), run(*options, "--records", "-").stdout):
        lines = records(text)
        points = [("cpu_fft", "threads=1"), ("cpu_fft", "threads=all"), ("cpu_definition", "")]
        assert [next(iter(line)) for line in lines] == ["starting", "record"] * 3
        for point, started, finished in zip(points, lines[::2], lines[1::2]):
            started, finished = started["starting"], finished["record"]
            assert (started["variant"], started["params"]) == point
            assert (finished["variant"], finished["params"]) == point
            assert started["problem"] == "n-to-m/5x6/7x4/2:3/full"
            assert finished["outcome"] == "passed" and finished["reason"] == ""
            assert finished["seed"] == 5 and finished["input"] == "uniform"
            assert finished["exact_error"] <= finished["exact_bound"]
            assert finished["max_error"] <= finished["error_bound"]
            assert 0 < finished["rel_l2_error"] <= finished["rel_l2_bound"] < 1e-5
            assert finished["fmas"] == 5 * 6 * 7 * 4 * 6
            (repetition,) = finished["repetitions"]
            assert repetition["iterations"] >= 1 and repetition["compute_us"] > 0
            phases = [repetition[name] for name in ("forward_us", "hadamard_us", "inverse_us")]
            assert all((phase is not None) == (point[0] == "cpu_fft") for phase in phases)


def test_records_are_appended(tmp_path: Path):
    path = tmp_path / "records.jsonl"
    for _ in range(2):
        run("--variant", "cpu_definition", *SMALL, *ONCE, "--records", str(path))
    assert len(records(path.read_text())) == 4


def test_a_full_disk_is_an_error():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    done = run("--variant", "cpu_definition", *SMALL, *ONCE, "--records", "/dev/full")
    assert done.returncode == 2
    assert "error: records: writing failed" in done.stderr


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        (["--mode", "graph"], "mode graph needs a CUDA device"),
        (["--precision", "tf32"], "precision tf32: the variant computes only fp32, fp64"),
    ],
)
def test_what_cannot_run_here_is_a_record_and_no_failure(wish: list[str], reason: str):
    done = run(*FFT, *SMALL, "--params", "threads=1", *wish, "--records", "-")
    (_, line) = records(done.stdout)
    assert done.returncode == 0
    assert line["record"]["outcome"] == "not_supported" and line["record"]["reason"] == reason
    assert line["record"]["repetitions"] == []


def test_too_little_memory_names_the_bytes():
    done = run(*"--variant cpu_definition --form one-to-one --left 1x1 --right 1048576x1048576 --records -".split())
    (_, line) = records(done.stdout)
    assert done.returncode == 0
    assert line["record"]["outcome"] == "out_of_memory" and "TB" in line["record"]["reason"]


@pytest.mark.parametrize("variant", ["broken_sign", "broken_later", "broken_throws", "broken_throws_later"])
def test_a_wrong_or_failing_variant_is_exit_code_1_and_the_others_go_on(variant: str):
    done = run("--variant", variant, "--variant", "broken_nothing", *SMALL, *TWICE, program=BROKEN)
    assert done.returncode == 1, done.stderr
    lines = [line["record"] for line in records(done.stdout) if "record" in line]
    assert [line["variant"] for line in lines] == [variant, "broken_nothing"]
    assert lines[0]["outcome"] == ("failed" if "throws" in variant else "incorrect")
    assert lines[0]["reason"] and lines[0]["repetitions"] == []
    assert lines[1]["outcome"] == "passed" and len(lines[1]["repetitions"]) == 2


@pytest.mark.parametrize("variant", ["broken_throws", "broken_throws_later"])
def test_a_lost_device_is_exit_code_3_and_blames_no_other_point(variant: str):
    named = ["broken_nothing", variant, "broken_remembers"]
    done = run(*(word for name in named for word in ("--variant", name)), *SMALL, *TWICE, program=LOST)
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: device: lost by " + variant) and "thrown" in line
    lines = records(done.stdout)
    assert [next(iter(line)) for line in lines] == ["starting", "record"] * 2, "nothing after it"
    found = [line["record"] for line in lines if "record" in line]
    assert [one["variant"] for one in found] == named[:2]
    assert [one["outcome"] for one in found] == ["passed", "failed"]
    assert "thrown" in found[1]["reason"]


def test_a_wrong_result_loses_no_device():
    done = run("--variant", "broken_sign", "--variant", "broken_nothing", *SMALL, *ONCE, "--records", "-", program=LOST)
    assert done.returncode == 1, done.stderr
    found = [line["record"]["outcome"] for line in records(done.stdout) if "record" in line]
    assert found == ["incorrect", "passed"]


@pytest.mark.parametrize("silent", [True, False])
@pytest.mark.parametrize(("noise", "why", "number"), [("0.999", "noise", 3), ("1e-12", "time", 13)])
def test_repetitions_end_by_noise_or_by_time_and_the_record_says_which(silent, noise, why, number, tmp_path):
    path = tmp_path / "records"
    quiet = ["--noise", noise, "--max-time", "0.02"]
    said = run(*ONE, "--left", "5x6", *"--repetitions 3 --min-time 0.002".split(), *quiet, "--params", "threads=1",
               "--records", "-" if silent else str(path))  # fmt: skip
    assert said.returncode == 0, said.stderr
    found = records(said.stdout if silent else path.read_text())[-1]["record"]
    assert found["stopped"] == why and 3 <= len(found["repetitions"]) <= number
    assert silent or said.stdout.count("threads=1/fp32") >= len(found["repetitions"])
    assert "enough" not in said.stdout + said.stderr


def test_one_repetition_has_no_noise(tmp_path):
    points = tmp_path / "points"
    line = {"variant": "cpu_definition", "form": "one-to-one", "left": "5x6"}
    points.write_text("".join(json.dumps(one) + "\n" for one in ({**line, "repetitions": 1}, {**line, "left": "5x7"})))
    options = "--repetitions 3 --min-time 0.002 --noise 0.999 --max-time 0.02 --records -"
    said = run("--points", points, *options.split())
    assert said.returncode == 0, said.stderr
    found = [one["record"] for one in records(said.stdout) if "record" in one]
    assert [(one["stopped"], len(one["repetitions"])) for one in found] == [("repetitions", 1), ("noise", 3)]


def test_a_known_time_arrives_in_the_record():
    """A variant of 0.3 ms: a wrong count of iterations or of batches would be a factor of ten. A loaded
    machine makes calls longer, but never shorter, nor all of them longer than the process."""
    began = time.monotonic()
    asked = "--variant spin_300us --form one-to-one --left 1x1 --records - --repetitions 20 --min-time 0.02"
    done = run(*asked.split(), program=BROKEN)
    elapsed_us = 1e6 * (time.monotonic() - began)
    (_, line) = records(done.stdout)
    found = line["record"]["repetitions"]
    assert len(found) == 20 and all(one["compute_us"] >= 300 for one in found)
    assert sum(one["iterations"] for one in found) >= 20
    assert sum(one["compute_us"] * one["iterations"] for one in found) < elapsed_us


def test_points_of_several_problems_in_one_process(tmp_path: Path) -> None:
    path = tmp_path / "points"
    one = {"variant": "cpu_fft", "params": "threads=1", "form": "one-to-one", "left": "8x8"}
    many = {**one, "form": "n-to-m", "left": "4x6", "lefts": 2, "rights": 3}
    path.write_text("\n".join(map(json.dumps, [one, many, one])))
    done = run("--points", str(path), "--repetitions", "1", "--min-time", "0.001", "--records", "-")
    found = [json.loads(line) for line in done.stdout.splitlines() if "record" in line]
    assert done.returncode == 0 and [line["point"] for line in found] == [0, 1, 2], done.stderr
    assert [line["record"]["lefts"] for line in found] == [1, 2, 1]
    assert all(line["record"]["outcome"] == "passed" for line in found)


def test_a_point_may_have_repetitions_of_its_own_and_be_brief(tmp_path: Path) -> None:
    path = tmp_path / "points"
    one = {"variant": "cpu_fft", "params": "threads=1", "form": "one-to-one", "left": "8x8"}
    path.write_text("\n".join(map(json.dumps, [one, {**one, "left": "9x9", "repetitions": 1, "brief": True}])))
    done = run("--points", str(path), "--repetitions", "3", "--min-time", "0.001", "--records", "-")
    found = [json.loads(line)["record"] for line in done.stdout.splitlines() if "record" in line]
    assert done.returncode == 0, done.stderr
    assert [len(record["repetitions"]) for record in found] == [3, 1]
    assert [record["overlap_checked"] for record in found] == ["yes", "no: brief"]
    assert found[0]["plans"] > found[1]["plans"] == 1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("no", "is no JSON object"),
        ('{"repetitions": -1}', "repetitions are out of range"),
        ('{"brief": 1}', "brief has another type"),
        ('{"variant": "cpu_fft", "siez": 1}', "key 'siez' is unknown"),
        ('{"variant": 1}', "variant has another type"),
        ('{"variant": "cpu_fft"}', "nothing to measure"),
        ('{"variant": "cpu_fft", "form": "one-to-one", "left": "8x8"}', "is not one point"),
    ],
)
def test_a_line_of_points_that_is_none_is_refused(tmp_path: Path, line: str, says: str) -> None:
    (tmp_path / "points").write_text(line)
    done = run("--points", str(tmp_path / "points"))
    assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1
