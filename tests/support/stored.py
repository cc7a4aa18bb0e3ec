"""Rows of a made-up variant as files of a local set."""

from __future__ import annotations

from pathlib import Path

from experiments.driver import store

OLD, NEW = "20260101T000000-aaaaaa", "20260102T000000-bbbbbb"


def row(**cells: object) -> store.Row:
    """A passed row; `cells` replace its values."""
    made = dict.fromkeys(store.COLUMNS, "")
    made |= {
        "run": OLD,
        "experiment": "one-to-one",
        "machine_key": "m",
        "input": "uniform",
        "variant": "v",
        "family": "cpu",
        "backend": "cpu",
        "precision": "fp32",
        "form": "one-to-one",
        "left_rows": "4",
        "left_cols": "4",
        "right_rows": "4",
        "right_cols": "4",
        "lefts": "1",
        "rights": "1",
        "window": "full",
        "mode": "stream",
        "preset": "quick",
        "repetition": "0",
        "iterations": "9",
        "outcome": "passed",
        "compute_us": "0.1",
        "fmas": "256",
        "bytes": "324",
        "seed": "1",
        "source_hash": "h" * 16,
    }
    return made | {name: store.text_of(value) for name, value in cells.items()}


def save(folder: Path, run: str, rows: list[store.Row], number: int = 0) -> Path:
    chunk = store.Chunk(folder / "one-to-one", run, number)
    chunk.add([{**one, "run": run} for one in rows])
    return chunk.path
