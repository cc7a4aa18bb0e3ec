"""The command xcorr with --result: where a variant writes records itself, memory is bounded by matrices and records, and no
surface is made; elsewhere by surfaces, which the library reduces."""

from dataclasses import replace

import numpy as np
import pytest
from scipy_library import ScipyLibrary, scipy_correlation

from xcorr import results
from xcorr.choice import table as times
from xcorr.commands import correlate
from xcorr.native import stream
from xcorr.problem import Problem

PEAK = "--result peak --chunk-mib 2"
SIDE, TILES, PATTERNS = 48, 4, 40  # a surface of 95 x 95 has 36 KB, a matrix 9 KB, a record 32 bytes


class Library(ScipyLibrary):
    """cpu_fft makes surfaces only, cpu_peak writes peaks too."""

    def variants(self):
        found = super().variants()
        own = {**found[1], "id": "cpu_peak", "parent": "cpu_fft", "results": ["surface", "peak"], "source_hash": "peak"}
        return [*found, own]

    def describe(self, problem):
        facts = super().describe(problem)
        size = {"peak": 32, "surface": 4 * facts.out_rows * facts.out_cols}[problem.fields.result_kind]
        return replace(facts, result_bytes=facts.pairs * size)

    def correlate(self, problem, left, right, *, variant, out=None, **_):
        self.calls.append((problem, variant, out))
        surface = scipy_correlation(problem, left, right)
        if problem.fields.result_kind == "surface":
            out[:] = surface
            return out
        found = np.zeros(len(surface), results.PEAK)
        at = [np.unravel_index(one.argmax(), one.shape) for one in surface]
        found["sy"], found["sx"] = (np.array(at) - (SIDE - 1)).T
        found["value"] = surface.max(axis=(1, 2))
        return found


@pytest.fixture
def arrays(save):
    """Files of tiles and of patterns, which are the tiles turned round by (3, -5)."""
    tiles = np.random.default_rng(4).standard_normal((TILES, SIDE, SIDE)).astype(np.float32)
    moved = np.repeat(np.roll(tiles, (3, -5), (1, 2)), PATTERNS, axis=0)
    return save("tiles.npy", tiles), save("patterns.npy", moved), "--form n-to-mn --right-order tile"


def test_records_bound_the_memory_of_a_variant_that_writes_them(arrays, table):
    library = Library()
    lines = table(library, *arrays, "--variant cpu_peak", PEAK)
    assert [(one["sy"], one["sx"]) for one in lines] == [("3", "-5")] * (TILES * PATTERNS)
    assert len(library.calls) == 1, "1.5 MB of matrices and 5 KB of records; its surfaces would be 5.8 MB"
    ((problem, _, out),) = library.calls
    assert problem.fields.result == "peak" and out is None, "no surface is asked for or made"


def test_surfaces_bound_the_memory_of_a_variant_whose_surfaces_are_reduced(arrays, table):
    library = Library()
    lines = table(library, *arrays, "--variant cpu_fft", PEAK)
    assert len(lines) == TILES * PATTERNS and len(library.calls) == 4
    assert all(problem.rights <= (2 << 20) // (4 * 95 * 95) for problem, _, _ in library.calls)


def test_auto_is_asked_for_the_chunk_that_its_choice_allows(arrays, table, tmp_path, monkeypatch):
    monkeypatch.setattr(times, "SHIPPED", tmp_path / "empty.json")
    times.SHIPPED.write_text("[]")
    library = Library()
    table(library, *arrays, PEAK)
    assert [variant for _, variant, _ in library.calls] == ["cpu_peak"]
    library = Library()
    library.refuses = {"cpu_peak": "not here"}
    table(library, *arrays, PEAK)
    assert len(library.calls) == 4 and {variant for _, variant, _ in library.calls} <= {"cpu_fft", "cpu_row_streaming"}


def test_memory_that_is_refused_is_that_of_records_where_no_surface_is_made(arrays, table, monkeypatch):
    told = []

    def note(what, parts):
        told.extend(parts[name] for name in ("output at a time",) if name in parts)

    monkeypatch.setattr(correlate, "check_memory", note)
    for variant in ("cpu_peak", "cpu_fft"):
        table(Library(), *arrays, f"--variant {variant}", PEAK)
    assert told == [TILES * PATTERNS * 32, PATTERNS * 4 * 95 * 95]


@pytest.mark.parametrize(
    ("form", "lefts", "rights", "matrices"),
    [
        ("one-to-one", 1, 1, 2),
        ("one-to-many", 1, 8, 1 + 1 / 8),
        ("n-to-mn", 2, 8, 1 + 1 / 4),
        ("n-to-m", 4, 8, 1 / 4 + 1 / 8),
    ],
)
def test_matrices_that_pairs_share_are_divided_among_them(form, lefts, rights, matrices):
    problem = Problem(form, (8, 8), (8, 8), lefts, rights)
    assert stream.input_bytes(problem, np.float32) == 4 * 64 * matrices
