"""The precisions that a variant may compute in."""

import numpy as np

# Unit roundoffs. A test compares them with harness/registry.cpp. Three bf16 terms carry 16 bits.
ROUNDOFF = {
    "fp64": 2.0**-53,
    "fp32": 2.0**-24,
    "tf32": 2.0**-11,
    "3xtf32": 2.0**-21,
    "bf16x3": 2.0**-16,
    "fp16": 2.0**-11,
}
PRECISIONS = tuple(ROUNDOFF)


def scalar_type(precision: str) -> type:
    """NumPy type of inputs and output of a precision: float64 for fp64, else float32."""
    return np.float64 if precision == "fp64" else np.float32
