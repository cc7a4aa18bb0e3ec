"""A published set `card` of made-up rows, and the tables that are printed of it."""

from __future__ import annotations

from experiments.driver import store

RUN = "20260101T000000-aaaaaa"
FAMILIES = {"cufft": "fft", "split_row": "warp_shuffle", "multi_matrix_both_split_row": "warp_shuffle"}


def row(variant: str, repetition: int = 0, **cells: object) -> store.Row:
    made = dict.fromkeys(store.COLUMNS, "")
    size = cells.get("left_rows", 16)
    cells = {
        "run": RUN,
        "experiment": "one-to-one",
        "machine_key": "card",
        "input": "uniform",
        "variant": variant,
        "family": FAMILIES.get(variant, variant),
        "backend": "cuda",
        "precision": "fp32",
        "form": "one-to-one",
        "left_rows": size,
        "left_cols": size,
        "right_rows": size,
        "right_cols": size,
        "lefts": 1,
        "rights": 1,
        "window": "full",
        "mode": "stream",
        "preset": "quick",
        "repetition": repetition,
        "iterations": 9,
        "outcome": "passed",
        "source_hash": "h" * 16,
        **cells,
    }
    return made | {name: store.text_of(value) for name, value in cells.items()}


def line(text: str, *start: str) -> list[str]:
    """Cells of the Markdown line that starts with these cells."""
    for found in text.splitlines():
        cells = [cell.strip() for cell in found.strip("|").split("|")]
        if tuple(cells[: len(start)]) == start:
            return cells
    raise AssertionError(f"no line {start} in {text}")
