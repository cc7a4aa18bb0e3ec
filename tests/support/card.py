"""A published set `card` of made-up rows, and the tables that are printed of it."""

import stored

from experiments.driver import store

FAMILIES = {"cufft": "fft", "split_row": "warp_shuffle", "multi_matrix_both_split_row": "warp_shuffle"}


def row(variant: str, repetition: int = 0, **cells: object) -> store.Row:
    """A passed row of a square problem; `left_rows` is the size of both matrices."""
    sides = stored.square(cells.get("left_rows", 16))
    known = {"machine_key": "card", "variant": variant, "family": FAMILIES.get(variant, variant), "backend": "cuda"}
    blank = dict.fromkeys(("compute_us", "fmas", "bytes", "seed"))
    return stored.row(**{**blank, **known, **sides, "repetition": repetition, **cells})


def line(text: str, *start: str) -> list[str]:
    """Cells of the Markdown line that starts with these cells."""
    for found in text.splitlines():
        cells = [cell.strip() for cell in found.strip("|").split("|")]
        if tuple(cells[: len(start)]) == start:
            return cells
    raise AssertionError(f"no line {start} in {text}")
