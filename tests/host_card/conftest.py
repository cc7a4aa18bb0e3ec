"""Fixtures of the tests on the card."""

import ctypes

import pytest
from device_arrays import fake_cupy, fake_torch

from xcorr.call import device
from xcorr.paths import build_directory


@pytest.fixture(autouse=True)
def counts():
    """What the card did since the last call, by name. Afterwards no plan is left."""
    count = ctypes.CDLL(str(build_directory() / "libxcorr.so")).host_card_counts
    count.argtypes = [ctypes.POINTER(ctypes.c_int64)]

    def of_now():
        numbers = (ctypes.c_int64 * 6)()
        count(numbers)
        return dict(zip(("allocations", "copies", "waits", "conversions", "calls", "stream"), numbers))

    of_now()
    yield of_now
    while device._plans:
        device._plans.popitem()[1].close()


@pytest.fixture
def torch(monkeypatch):
    return fake_torch(monkeypatch)


@pytest.fixture
def cupy(monkeypatch):
    return fake_cupy(monkeypatch)
