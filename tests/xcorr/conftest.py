"""For the tests of the library and of the command: the built library, and runs of the command that must succeed."""

import csv
import io
from functools import partial

import pytest
from built_library import built_library

from xcorr.commands import correlate


@pytest.fixture(scope="session")
def library():
    return built_library()


@pytest.fixture
def xcorr(capsys):
    """Runs the command with a library; what it prints. Options may be one text, such as "--form n-to-m --same"."""

    def run(library, *words):
        parts = [word.split() if word.startswith("-") or not word else [word] for word in map(str, words)]
        assert correlate.main(sum(parts, []), library) == 0, capsys.readouterr().err
        return capsys.readouterr()

    return run


@pytest.fixture
def table(xcorr):
    """Runs the command; the lines of the table that it prints to stdout, by the names of the columns."""
    return lambda library, *words: list(csv.DictReader(io.StringIO(xcorr(library, *words).out)))


@pytest.fixture
def lines(library, table):
    """As `table`, of the built library."""
    return partial(table, library)
