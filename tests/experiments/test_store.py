"""Files of rows: atomic, united, without duplicates, damaged ones set aside."""

import csv
import errno
import gzip
import math
import os
from pathlib import Path

import pytest
from stored import NEW, OLD, record, row, save

from experiments.driver import measured, store
from experiments.driver.run_records import read_runs
from xcorr.errors import UserError
from xcorr.fields import NAMES, PLAIN
from xcorr.problem import Problem


def test_chunk_grows_and_is_reproducible(tmp_path):
    chunk = store.Chunk(tmp_path, OLD, 3)
    chunk.add([row()])
    assert len(store.decode(chunk.path)) == 1
    chunk.add([row(repetition=1)])  # which is too soon to write again
    chunk.close()
    assert chunk.path.name == f"{OLD}-0003.csv.gz"
    assert len(store.decode(chunk.path)) == 2
    assert chunk.path.read_bytes() == store.encode([row(), row(repetition=1)])
    assert [path.name for path in tmp_path.iterdir()] == [chunk.path.name]


def test_what_is_noted_is_written_with_the_next_point_or_at_the_end(tmp_path):
    chunk = store.Chunk(tmp_path, OLD, 3)
    chunk.note([row(outcome="not_supported")])
    assert not chunk.path.exists()
    chunk.add([row()])
    assert [one["outcome"] for one in store.decode(chunk.path)] == ["not_supported", "passed"]
    chunk.note([row(variant="w", outcome="not_supported")])
    chunk.close()
    before = chunk.path.read_bytes()
    assert len(store.decode(chunk.path)) == 3
    chunk.close()
    assert chunk.path.read_bytes() == before


def test_never_writes_over_another_run(tmp_path):
    path = save(tmp_path, OLD, [row()])
    before = path.read_bytes()
    with pytest.raises(UserError, match="exists already"):
        save(tmp_path, OLD, [row(compute_us=7.0)])
    assert path.read_bytes() == before


@pytest.mark.parametrize("number, says", [(errno.ENOSPC, "no space left"), (errno.EACCES, "no permission")])
def test_failing_disk_loses_nothing(tmp_path, monkeypatch, number, says):
    chunk = store.Chunk(tmp_path, OLD, 0)
    chunk.add([row()])
    before = chunk.path.read_bytes()

    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    chunk.add([row(repetition=1)])
    with pytest.raises(UserError, match=says) as caught:
        chunk.close()
    assert "\n" not in str(caught.value) and "--results" in str(caught.value)
    assert chunk.path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1
    monkeypatch.undo()
    chunk.close()
    assert len(store.decode(chunk.path)) == 2


def test_newest_run_of_a_point_wins(tmp_path):
    save(tmp_path, OLD, [row(repetition=i) for i in range(3)] + [row(variant="w")])
    save(tmp_path, NEW, [row(outcome="failed", compute_us=None, reason="x")])
    rows = store.read_rows(tmp_path)
    assert [(one["variant"], one["outcome"], one["run"]) for one in rows] == [
        ("v", "failed", NEW),
        ("w", "passed", OLD),
    ]


def test_copied_files_do_not_double_rows(tmp_path):
    path = save(tmp_path, OLD, [row(), row(repetition=1)])
    path.with_name(f"{OLD}-0007.csv.gz").write_bytes(path.read_bytes())
    assert len(store.read_rows(tmp_path)) == 2


DAMAGE = {
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "flipped": lambda data: data[:40] + bytes([data[40] ^ 255]) + data[41:],
    "column": lambda data: gzip.compress(gzip.decompress(data).replace(b"window", b"wimdow")),
    "number": lambda data: gzip.compress(gzip.decompress(data).replace(b",256,", b",2s6,")),
    "outcome": lambda data: gzip.compress(gzip.decompress(data).replace(b"passed", b"past")),
    "short": lambda data: gzip.compress(gzip.decompress(data).rsplit(b",", 3)[0]),
    "binary": lambda data: gzip.compress(bytes(range(256))),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_local_file_is_set_aside(tmp_path, kind):
    good = save(tmp_path, OLD, [row()])
    bad = save(tmp_path, NEW, [row(variant="w")])
    bad.write_bytes(DAMAGE[kind](bad.read_bytes()))
    said: list[str] = []
    assert [one["variant"] for one in store.read_rows(tmp_path, said.append)] == ["v"]
    assert len(said) == 1 and said[0].startswith(f"{bad}: ") and ".damaged" in said[0]
    assert good.exists() and not bad.exists() and Path(f"{bad}.damaged").exists()
    store.read_rows(tmp_path, said.append)
    assert len(said) == 1, "named once"


def test_damaged_published_file_is_an_error(tmp_path):
    path = tmp_path / "one-to-one.csv.gz"
    path.write_bytes(store.encode([row()])[:-9])
    with pytest.raises(UserError, match="restore it from git") as caught:
        store.read_rows(tmp_path)
    assert str(path) in str(caught.value) and path.exists()


def test_other_files_are_not_rows(tmp_path):
    save(tmp_path, OLD, [row()])
    for name in ("one-to-one/real.displacements.csv.gz", "x.displacements.csv.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b"a,b\n1,2\n"))
    (tmp_path / "one-to-one" / f".{NEW}-0000.csv.gz.17.tmp").write_bytes(b"half a fi")
    assert len(store.read_rows(tmp_path)) == 1 and store.read_rows(tmp_path / "none") == []


def test_types_of_a_set(tmp_path):
    save(tmp_path, OLD, [row(compute_us=0.1, plan_us=None, argmax_agrees=True, params="a=1;b=2")])
    frame = store.read_set(tmp_path)
    assert list(frame.columns) == store.COLUMNS
    first = frame.iloc[0]
    assert first.compute_us == 0.1 and math.isnan(first.plan_us) and first.fmas == 256
    assert first.params == "a=1;b=2" and first.argmax_agrees == "true" and first.reason == ""
    assert frame.left_rows.dtype == "int64" and frame.energy_uj.dtype == "float64"
    empty = store.read_set(tmp_path / "none")
    assert list(empty.columns) == store.COLUMNS and len(empty) == 0
    assert empty.compute_us.dtype == "float64"


def test_only_the_newest_source_speaks(tmp_path):
    save(tmp_path, OLD, [row(), row(variant="w"), row(left_rows=8)])
    save(tmp_path, NEW, [row(source_hash="n" * 16)])
    frame = store.read_set(tmp_path)
    assert sorted(zip(frame.variant, frame.source_hash)) == [("v", "n" * 16), ("w", "h" * 16)]
    assert len(store.read_rows(tmp_path)) == 4


def test_every_row_of_a_published_set_is_shown_whatever_its_source(tmp_path):
    store.write_json(tmp_path / "runs.json", [{"run": OLD}])
    rows = [row(machine_key=tmp_path.name), row(machine_key=tmp_path.name, left_rows=8, source_hash="n" * 16)]
    store.write_atomic(tmp_path / "one-to-one.csv.gz", store.encode(rows))
    assert len(store.read_set(tmp_path)) == 2
    times = measured.read(tmp_path)["times"]["fp32"]
    assert {problem.left for problem in times} == {(4, 4), (8, 4)}


def test_cells():
    assert [store.text_of(x) for x in (None, True, 0.1, 3, "a\nb", 1e-7)] == ["", "true", "0.1", "3", "a b", "1e-07"]


def test_run_ids():
    ids = {store.new_run_id() for _ in range(50)}
    assert len(ids) == 50
    assert all(store.CHUNK_NAME.fullmatch(f"{one}-0000.csv.gz") for one in ids)


def test_unreadable_run_record_is_left_out(tmp_path, capsys):
    store.write_json(tmp_path / "one-to-one" / "runs" / "a.json", {"run": "a"})
    (tmp_path / "one-to-one" / "runs" / "b.json").write_text('{"run": "b"')
    assert set(read_runs(tmp_path)) == {"a"}
    assert "b.json" in capsys.readouterr().err


@pytest.mark.parametrize("outcome", ["passed", "failed", "out_of_memory"])
def test_not_selected_replaces_no_outcome_that_was_found(tmp_path, outcome):
    found = row(outcome=outcome, compute_us=0.1 if outcome == "passed" else None)
    unselected = row(outcome="not_selected", iterations=0, compute_us=None)
    save(tmp_path, OLD, [found])
    save(tmp_path, NEW, [unselected])
    assert [(one["outcome"], one["run"]) for one in store.read_rows(tmp_path)] == [(outcome, OLD)]


def test_the_newest_not_selected_wins_and_any_outcome_replaces_it(tmp_path):
    unselected = row(outcome="not_selected", iterations=0, compute_us=None)
    save(tmp_path, OLD, [unselected, {**unselected, "left_rows": "8"}])
    save(tmp_path, NEW, [{**unselected, "reason": "newer"}, row(left_rows=8)])
    record(tmp_path, NEW, argv=["--slowed"])
    rows = store.read_rows(tmp_path)
    assert [(one["outcome"], one["reason"], one["run"]) for one in rows] == [
        ("not_selected", "newer", NEW),
        ("passed", "", NEW),
    ]


BAD_CELLS = {
    "window": [("window", "junk"), ("window", "sy:9..1,sx:0..0"), ("window", "sy:0..4,sx:0..0")],
    "form": [("form", "one-to-two")],
    "counts": [("lefts", "0"), ("rights", "2"), ("rights", "9" * 30)],
    "size": [("left_rows", "-4"), ("left_rows", ""), ("right_cols", "4.5")],
    "repetition": [("repetition", "")],
    "time": [("compute_us", "nan"), ("plan_us", "inf"), ("fmas", "9" * 5000)],
}


@pytest.mark.parametrize("cell, value", [pair for pairs in BAD_CELLS.values() for pair in pairs])
def test_a_bad_cell_names_its_file_and_costs_only_that_file(tmp_path, cell, value):
    save(tmp_path, OLD, [row()])
    bad = save(tmp_path, NEW, [{**row(variant="w"), cell: value}])
    said: list[str] = []
    assert [one["variant"] for one in store.read_rows(tmp_path, said.append)] == ["v"]
    assert len(said) == 1 and said[0].startswith(f"{bad}: line 2 has ") and "\n" not in said[0]
    published = tmp_path / "published.csv.gz"
    published.write_bytes(store.encode([{**row(variant="w"), cell: value}]))
    with pytest.raises(UserError, match="published.csv.gz: line 2 has .*restore it from git"):
        store.read_rows(tmp_path)


def test_a_reader_that_must_not_write_leaves_a_damaged_file_where_it_is(tmp_path):
    bad = save(tmp_path, NEW, [row()])
    bad.write_bytes(b"not gzip")
    said: list[str] = []
    assert store.read_rows(tmp_path, said.append, set_aside=False) == []
    assert [path.name for path in bad.parent.glob("*.gz*")] == [bad.name]
    assert len(said) == 1 and "left out" in said[0]


@pytest.mark.parametrize(
    "damaged",
    [
        {"run": "b", "argv": None},
        {"run": "b", "argv": 7},
        {"run": "b", "argv": [7]},
        {"run": 7},
        {},
        7,
        None,
        {"run": "b", "before": []},
        {"run": "b", "points": "x"},
        {"run": ["b"]},
    ],
)
@pytest.mark.parametrize("listed", [False, True])
def test_a_run_record_of_other_types_is_left_out_and_named(tmp_path, capsys, damaged, listed):
    save(tmp_path, OLD, [row()])
    good = {"run": "a", "argv": ["--slowed"]}
    store.write_json(tmp_path / "runs.json", [good, damaged] if listed else [good])
    if not listed:
        store.write_json(tmp_path / "one-to-one" / "runs" / "b.json", damaged)
    assert len(store.read_rows(tmp_path)) == 1 and set(read_runs(tmp_path)) == {"a", OLD}
    warned = capsys.readouterr().err.splitlines()
    assert len(warned) == 2 and all(("runs.json" if listed else "b.json") in line for line in warned)


def test_a_file_that_cannot_be_read_is_one_line(tmp_path):
    folder = tmp_path / "one-to-one" / f"{OLD}-0000.csv.gz"
    folder.mkdir(parents=True)
    with pytest.raises(UserError, match="cannot be read"):
        store.read_rows(tmp_path)
    folder.rmdir()
    (tmp_path / "published.csv.gz").mkdir()
    with pytest.raises(UserError, match="cannot be read"):
        store.read_rows(tmp_path)


def test_a_row_without_the_columns_of_fields_has_their_defaults(tmp_path):
    path = save(tmp_path, OLD, [row()])
    with gzip.open(path, "rt") as file:
        lines = list(csv.DictReader(file))
    with gzip.open(path, "wt") as file:
        writer = csv.DictWriter(file, [name for name in store.COLUMNS if name not in NAMES], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(lines)
    (read,) = store.read_rows(tmp_path)
    assert {read[name] for name in NAMES} == {""} and Problem.of_row(read).fields == PLAIN
    assert store.key_of(read) == store.key_of(row())


def test_fields_are_part_of_the_resume_key_and_written_in_one_way(tmp_path):
    plain, scored, peak = row(), row(score="zncc:0.3"), row(score="zncc:0.3", result="peak")
    save(tmp_path, OLD, [plain, scored, peak])
    assert len({store.key_of(one) for one in (plain, scored, peak)}) == 3
    kept = store.read_rows(tmp_path)
    assert [Problem.of_row(one).fields.text for one in kept] == ["", "score=zncc:0.3", "score=zncc:0.3/result=peak"]
    for number, cells in enumerate(({"score": "zncc"}, {"score": "product"}, {"masks": "left"}, {"result": "best"})):
        path = save(tmp_path / str(number), OLD, [row(**cells)])
        with pytest.raises(store.Damaged, match="no legal problem"):
            store.decode(path)


def test_a_reduced_result_does_not_outdate_the_surfaces_of_its_variant():
    surface, reduced = row(source_hash="a"), row(run=NEW, result="peak", source_hash="a+r")
    assert store.newest_sources([surface, reduced]) == [surface, reduced]
    other = row(run=NEW, result="sum", source_hash="a+s")
    assert store.newest_sources([surface, row(result="peak", source_hash="a+r"), other]) == [surface, other]
    changed = row(run=NEW, source_hash="b")
    assert store.newest_sources([surface, row(result="peak", source_hash="a+r"), changed]) == [changed]
