"""Hashes that results/equivalent.csv connects are one source; rows of both count and are not measured again."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import fake_bench
import pytest
from driving import Driver, driver
from stored import NEW, OLD, row, save

from experiments.driver import identity, store
from experiments.driver.identity import Identities, Line, add_lines, architecture, read_lines
from experiments.driver.run_records import read_runs
from xcorr.errors import UserError
from xcorr.paths import ROOT

__all__ = ["driver"]

A, B, C, D = ("a" * 16, "b" * 16, "c" * 16, "d" * 16)
FIRST = fake_bench.VARIANTS[0]["id"]
H200 = {"run": OLD, "before": {"device": "cuda:0", "compute_capability": "9.0"}}


def line(before: str, after: str, architectures: str = "9.0", variant: str = "v") -> Line:
    return Line(variant, before, after, architectures, "nvcc 13.0", "tokens")


@pytest.fixture
def equivalent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "equivalent.csv"
    monkeypatch.setattr(identity, "EQUIVALENT", path)
    return path


def test_classes_are_transitive_and_named_by_the_newest() -> None:
    known = Identities([line(A, B), line(B, C), line(D, C)])
    assert {known.of("v", one, "9.0") for one in (A, B, C, D)} == {C}
    assert known.of("w", A, "9.0") == A
    assert known.of("v", "e" * 16, "9.0") == "e" * 16


def test_a_line_holds_for_its_architectures() -> None:
    known = Identities([line(A, B, "8.0 9.0"), line(B, C, "9.0"), line(C, D, "all")])
    assert [known.of("v", A, where) for where in ("8.0", "9.0", "12.0", "cpu")] == [B, D, A, A]
    assert known.of("v", C, "cpu") == D


def test_a_way_back_is_no_endless_loop() -> None:
    known = Identities([line(A, B), line(B, A)])
    assert known.of("v", A, "9.0") == known.of("v", B, "9.0") == A


def test_architectures_of_machines() -> None:
    assert architecture("cuda", {"device": "cuda:0", "compute_capability": "9.0"}) == "9.0"
    assert architecture("cpu", {"device": "cuda:0", "compute_capability": "9.0"}) == "cpu"
    assert architecture("cuda", {}) == "unknown"


def test_lines_on_disk(equivalent: Path) -> None:
    assert read_lines(equivalent) == []
    assert add_lines(equivalent, [line(A, B), line(A, B)]) == 1
    assert add_lines(equivalent, [line(A, B), line(B, C)]) == 1
    assert read_lines(equivalent) == [line(A, B), line(B, C)]
    with equivalent.open("a") as file:
        file.write("v,a\n")
    with pytest.raises(UserError, match="restore it from git"):
        read_lines(equivalent)


def test_rows_of_an_equivalent_source_count(tmp_path: Path, equivalent: Path) -> None:
    save(tmp_path, OLD, [row(source_hash=A), row(source_hash=A, left_rows=8)])
    save(tmp_path, NEW, [row(source_hash=B)])
    assert len(store.read_set(tmp_path)) == 1, "without a line the older source is outdated"
    add_lines(equivalent, [line(A, B, "cpu")])
    frame = store.read_set(tmp_path)
    assert sorted(zip(frame.left_rows, frame.source_hash, frame.run)) == [(4, B, NEW), (8, A, OLD)]


def test_a_row_counts_on_the_architecture_of_its_run(tmp_path: Path, equivalent: Path) -> None:
    save(tmp_path, OLD, [row(source_hash=A, backend="cuda", left_rows=8)])
    save(tmp_path, NEW, [row(source_hash=B, backend="cuda")])
    add_lines(equivalent, [line(A, B, "9.0")])
    assert len(store.read_set(tmp_path)) == 1, "nothing says what the rows were measured on"
    store.write_json(tmp_path / "runs.json", [H200, {**H200, "run": NEW}])
    assert len(store.read_set(tmp_path)) == 2


def test_files_keep_the_hash_that_was_measured(tmp_path: Path, equivalent: Path) -> None:
    save(tmp_path, OLD, [row(source_hash=A)])
    add_lines(equivalent, [line(A, B, "cpu")])
    (one,) = store.read_rows(tmp_path)
    assert one["source_hash"] == A and store.key_of(one)[-1] == B
    store.write_atomic(tmp_path / "published.csv.gz", store.encode([one]))
    assert store.decode(tmp_path / "published.csv.gz") == [row(source_hash=A, machine_key=tmp_path.name)]


def test_what_has_equivalent_rows_is_not_measured_again(
    driver: Driver, equivalent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.run()
    edited = [dict(fake_bench.VARIANTS[0], source_hash=B), *fake_bench.VARIANTS[1:]]
    driver.variants(edited)
    add_lines(equivalent, [line(A, B, "cpu", FIRST)])
    calls = len(driver.calls())
    assert driver.run() == 0
    assert "nothing to do" in capsys.readouterr().out and len(driver.calls()) == calls
    driver.variants([dict(edited[0], source_hash=C), *edited[1:]])
    assert driver.run() == 0 and len(driver.calls()) > calls, "an unknown hash is measured"


def test_an_equivalent_source_keeps_the_hash_of_its_reduction() -> None:
    known = identity.Identities([line(A, B, "cpu")])
    assert known.of("v", A, "cpu") == B
    assert known.of("v", f"{A}+01234567", "cpu") == f"{B}+01234567"
    assert known.of("v", f"{C}+01234567", "cpu") == f"{C}+01234567"


def test_both_sources_are_published(driver: Driver, equivalent: Path) -> None:
    driver.run("--sizes", "4")
    driver.variants([dict(entry, source_hash=B) for entry in fake_bench.VARIANTS])
    add_lines(equivalent, [line(A, B, "cpu", entry["id"]) for entry in fake_bench.VARIANTS])
    driver.run()
    assert driver.publish() == 0
    rows = store.read_rows(driver.results / "published" / "fake-2-cores")
    assert {one["source_hash"] for one in rows} == {A, B}
    assert len({store.key_of(one) for one in rows}) == len({store.key_of(one) for one in driver.rows()})


def reduction_hashes() -> dict[str, str]:
    """By backend, as the build stamps them."""
    sys.path.insert(0, str(ROOT / "scripts" / "build"))
    from stamping.source_tokens import REDUCTION, reduction_hash

    return {backend: reduction_hash(ROOT, backend) for backend in REDUCTION}


def current() -> dict[str, str]:
    command = [sys.executable, ROOT / "scripts" / "build" / "stamp_sources.py", "hash", ROOT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(one.split(":") for one in done.stdout.splitlines())


@pytest.mark.parametrize("folder", sorted((ROOT / "results" / "published").glob("[!p]*")), ids=lambda path: path.name)
def test_every_published_row_counts(folder: Path) -> None:
    """Whoever changes tokens of measured code compares (python3 -m experiments.compare.equivalent), measures again, or says in
    results/measure_again.csv what is still to be measured."""
    now, known, reductions = current(), identity.identities(), reduction_hashes()
    runs, stale, counted = read_runs(folder), set(), set()
    for one in store.read_rows(folder):
        where = architecture(one["backend"], runs[one["run"]]["before"])
        counted.add((one["variant"], where))
        source, expected = store.source_of(one), known.of(one["variant"], now[one["variant"]], where)
        if "+" in source:
            expected += "+" + reductions[one["backend"]]
        if source != expected:
            stale.add((one["variant"], where))
    with open(ROOT / "results" / "measure_again.csv", encoding="utf-8", newline="") as file:
        listed = {(one["variant"], one["architecture"]) for one in csv.DictReader(file)}
    assert stale == listed & counted, "rows of an older source; see results/README.md"
