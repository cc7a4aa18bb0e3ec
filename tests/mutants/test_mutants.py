"""The mutants' data and their runner (tests/mutants): every text is found, what survives is reported."""

import json
import os
from pathlib import Path

import pytest
from calls import error_of

from tests.mutants import mutants, run, table
from tests.mutants.builds import CONFORMANCE, EMULATION
from xcorr.paths import ROOT

BUILD = Path(os.environ.get("XCORR_BUILD", ROOT / "build"))
CPU_EDIT = {
    "file": "algorithms/autocorrelation/autocorr_simple.cpp",  # few problems: conformance is quick
    "find": "float sum = 0;",
    "replace": "float sum = 0; (void)sum;",
}


def written(folder: Path, name: str = "mine", caught: str = 'caught = ["cpu"]', **edit: str) -> Path:
    """A folder with one mutant of autocorr_simple, by default an edit that changes nothing."""
    folder.mkdir(exist_ok=True)
    lines = ["[[group]]", 'units = ["autocorr_simple"]', "[[group.mutant]]", f'name = "{name}"', caught]
    lines += [f"{key} = {json.dumps(value)}" for key, value in {**CPU_EDIT, **edit}.items()]
    (folder / "mine.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def built(*programs: str) -> list[str]:
    """Options for the build folder; skips where there is none, unless it is required."""
    if os.environ.get("XCORR_REQUIRE_BUILD") != "1" and not all((BUILD / name).exists() for name in programs):
        pytest.skip("the programs are not built (scripts/test.sh builds them)")
    return ["--build", str(BUILD), "--jobs", "2"]


def test_every_text_is_found_exactly_once() -> None:
    found = mutants.load()
    assert len(found) >= 60
    for mutant in found:
        for name, text in mutants.edited(mutant).items():
            assert text != (ROOT / name).read_text(encoding="utf-8"), mutant.name


def test_every_family_has_mutants() -> None:
    sources = mutants.sources()
    met = {sources[unit].parts[1] for mutant in mutants.load() for unit in mutant.units}
    assert met == {path.parts[1] for path in sources.values()}


@pytest.mark.parametrize(
    "edit, says",
    [
        ({"find": "no such text"}, "the text to find occurs 0 times, not once"),
        ({"find": "Index"}, "times, not once"),
        ({"file": "algorithms/none.hpp"}, "algorithms/none.hpp: there is no such file"),
        ({"caught": ""}, "either `caught` names a place or `equivalent` gives the argument"),
        ({"caught": 'caught = ["here"]'}, "here is no place"),
    ],
)
def test_wrong_data_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture, edit: dict, says: str) -> None:
    assert run.main(["--list", "--data", str(written(tmp_path / "data", **edit))]) == 2
    error = error_of(capsys)
    assert error.startswith("error: mine.toml: mine: ") and says in error


@pytest.mark.parametrize(
    "options, says",
    [
        (["--where", "moon"], "--where: moon is no place"),
        (["--only", "none"], "--only: none is no mutant"),
        (["--build", "none"], "none: no build folder"),
        (["--jobs", "0"], "--jobs: 0 is not at least 1"),
    ],
)
def test_wrong_options_are_refused(capsys: pytest.CaptureFixture, options: list[str], says: str) -> None:
    assert run.main(["--where", "cpu", *options]) == 2
    assert capsys.readouterr().err.startswith(f"error: {says}")


@pytest.mark.slow
def test_what_becomes_of_mutants_of_a_cpu_variant(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """One that changes nothing, one that does not compile and one that loses a row, in one run with one control."""
    data, record = tmp_path / "data", tmp_path / "record.json"
    written(data, "survives")
    nothing = (data / "mine.toml").read_text()
    broken = nothing.replace('"survives"', '"broken"').replace("float sum = 0; (void)sum;", "float sum = nothing;")
    wrong = nothing.replace('"survives"', '"wrong"').replace("float sum = 0; (void)sum;", "float sum = 1;")
    (data / "mine.toml").write_text(nothing + broken + wrong)
    options = ["--where", "cpu", "--data", str(data), "--record", str(record)]
    assert run.main([*options, *built(CONFORMANCE)]) == 1
    printed = capsys.readouterr().out
    assert "SURVIVED survives (autocorr_simple, cpu)" in printed and "DOES NOT COMPILE broken" in printed
    assert json.loads(record.read_text())["counts"] == {"broken": 1, "caught": 1, "passed": 1, "survived": 1}


@pytest.mark.slow
def test_a_mutant_of_a_kernel_is_caught(capsys: pytest.CaptureFixture) -> None:
    """Under the emulation, and its control passes."""
    assert run.main(["--where", "emulation", "--only", "d1_unstaged_row_edge", *built(EMULATION)]) == 0
    assert "1 caught" in capsys.readouterr().out.splitlines()[-1]


def result(name: str, place: str, outcome: str) -> run.Result:
    return run.Result(name, "autocorr_simple", place, outcome, "", 0.0)


@pytest.mark.parametrize(
    "caught, outcome, says",
    [
        ('caught = ["cpu"]', "survived", "SURVIVED"),
        ('equivalent = "it changes nothing"', "caught", "NOT EQUIVALENT"),
        ('caught = ["cpu"]', "broken", "DOES NOT COMPILE"),
    ],
)
def test_what_is_wrong_with_a_run(tmp_path: Path, caught: str, outcome: str, says: str) -> None:
    data = mutants.load(written(tmp_path, caught=caught))
    (line,) = run.verdicts(data, [result("mine", "cpu", outcome)])
    assert line.startswith(says)
    assert run.verdicts(data, [result(run.CONTROL, "cpu", "failed")])[0].startswith("CONTROL FAILED")


def test_the_table_names_what_no_place_caught(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    data = written(tmp_path / "data")
    record = {
        "commit": "0123456789abcdef",
        "machine": "a machine",
        "utc": "2026-01-01 00:00",
        "seconds": 3,
        "places": ["cpu"],
        "counts": {},
        "results": [vars(result("mine", "cpu", "survived")), vars(result(run.CONTROL, "cpu", "passed"))],
    }
    path, page = tmp_path / "record.json", tmp_path / "page.md"
    path.write_text(json.dumps(record))
    options = [str(path), "--output", str(page), "--data", str(data)]
    assert table.main(options) == 1
    assert capsys.readouterr().out == "NOT CAUGHT mine (autocorr_simple)\n"
    assert "| mine | autocorr_simple | survived |" in page.read_text()
    record["results"][0]["outcome"] = "caught"
    path.write_text(json.dumps(record))
    assert table.main(options) == 0
    assert "1 mutants, 0 that no place caught, 0 that were not run" in page.read_text()
    record["results"] = []
    path.write_text(json.dumps(record))
    assert table.main(options) == 1
    assert capsys.readouterr().out == "NOT RUN mine (autocorr_simple)\n"
    assert "1 mutants, 0 that no place caught, 1 that were not run" in page.read_text()


def test_a_file_that_is_no_record_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "record.json").write_text("[]")
    assert table.main([str(tmp_path / "record.json"), "--output", str(tmp_path / "page.md")]) == 2
    assert "not a record of tests.mutants.run" in capsys.readouterr().err
