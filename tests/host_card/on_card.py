"""What the tests on the card share: arrays, what is right, and what a call that only enqueues does."""

import numpy as np
from device_arrays import Interface, copied
from scipy import signal

RNG = np.random.default_rng(3)


LEFT, RIGHT = RNG.normal(size=(3, 5, 8)).astype("f4"), RNG.normal(size=(4, 7, 8)).astype("f4")


TRUTH = np.array([[signal.correlate2d(right, left) for right in RIGHT] for left in LEFT])


def sides(wrap=Interface, left=LEFT, right=RIGHT):
    return wrap(copied(left)), wrap(copied(right))


def close(made, truth=TRUTH):
    np.testing.assert_allclose(made, truth, rtol=1e-4, atol=1e-4 * max(1, np.abs(truth).max()))


NOTHING = {"allocations": 0, "copies": 0, "waits": 0, "conversions": 0, "calls": 1}
