"""For all tests: Hypothesis measures no time, since a loaded machine would fail what is right; arrays as files; no cache."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Nothing is kept in the cache folder of whoever runs the tests.
os.environ["XCORR_CACHE_DIR"] = os.devnull

# Threads that wait sleep. If other processes have the cores, threads that spin turn a call of 40 ms into one of 8 s.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

collect_ignore_glob = ["*/test_program.py"]  # run by meson

settings.register_profile("xcorr", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("xcorr")


@pytest.fixture
def save(tmp_path):
    """Writes an array as a .npy file of the test; its path as text."""

    def write(name, array):
        np.save(tmp_path / name, array)
        return str(tmp_path / name)

    return write
