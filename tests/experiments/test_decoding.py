"""A file of rows is read line by line, and no further than the line that shows that it is none."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from stored import OLD, record, row, save

from experiments.driver import decoding, store
from xcorr import files
from xcorr.errors import UserError
from xcorr.paths import ROOT

HEAD = (",".join(store.COLUMNS) + "\n").encode()


def of_lines(path: Path, *parts: bytes, times: int = 1) -> Path:
    """A gzip file: the parts, the last one as often as `times`, never in memory as a whole."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        for part in parts[:-1]:
            file.write(part)
        for _ in range(times):
            file.write(parts[-1])
    return path


@pytest.mark.parametrize(
    "parts, says",
    [
        ((b"\n" * 2**20,), "line 1 is empty"),
        ((HEAD, b"\n" * 2**20), "line 2 is empty"),
        ((HEAD, b"\r\n" * 2**19), "line 2 is empty"),
        ((HEAD, b"a\n" * 2**19), "line 2 has not as many cells as columns"),
        ((HEAD, b"," * 2**20), "line 2 has more than 64 KiB"),
        ((HEAD, b'"' + b"a" * 2**20), "line 2 has more than 64 KiB"),
        ((b"," * 2**20,), "line 1 has more than 64 KiB"),
        ((b"\0" * 2**20,), "line 1 has more than 64 KiB"),
    ],
)
def test_a_bomb_is_refused_at_its_first_line(tmp_path, monkeypatch, parts, says):
    path = of_lines(tmp_path / "one-to-one.csv.gz", *parts, times=40)
    unpacked = 0
    lines = decoding._lines

    def counted(file: gzip.GzipFile) -> Iterator[str]:
        nonlocal unpacked
        for line in lines(file):
            yield line
            unpacked = file.tell()

    monkeypatch.setattr(decoding, "_lines", counted)
    with pytest.raises(store.Damaged, match=says):
        store.decode(path)
    assert unpacked <= len(HEAD) + 2
    with pytest.raises(UserError, match=f"{says}.*restore it from git"):
        store.read_rows(tmp_path)


def test_a_file_of_rows_has_a_limit(tmp_path, monkeypatch):
    path = save(tmp_path, OLD, [row(repetition=i) for i in range(50)])
    size = len(gzip.decompress(path.read_bytes()))
    monkeypatch.setattr(decoding, "MOST_BYTES", size)
    assert len(store.decode(path)) == 50
    monkeypatch.setattr(decoding, "MOST_BYTES", size - 1)
    with pytest.raises(store.Damaged, match="MiB unpacked"):
        store.decode(path)


def test_a_large_record_is_left_out(tmp_path):
    save(tmp_path, OLD, [row()])
    path = record(tmp_path, OLD, note="x" * files.MOST_BYTES)
    said: list[str] = []
    assert store.run_records(tmp_path, said.append) == []
    assert said == [f"{path}: cannot be read (more than 64 MiB); left out"]


def test_a_long_reason_does_not_make_its_file_unreadable(tmp_path):
    path = save(tmp_path, OLD, [row(outcome="failed", compute_us=None, reason="no\nmemory " * 2**16)])
    (one,) = store.decode(path)
    assert len(one["reason"]) == store.LONGEST_CELL and one["reason"].startswith("no memory no")


def test_the_limits_leave_room_for_what_was_published():
    largest = max((ROOT / "results" / "published").glob("*/*.csv.gz"), key=lambda path: path.stat().st_size)
    data = gzip.decompress(largest.read_bytes())
    assert 20 * len(data) < decoding.MOST_BYTES and 20 * max(map(len, data.split(b"\n"))) < decoding.LONGEST_LINE
