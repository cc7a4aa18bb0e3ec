"""Cross-correlate arrays with the fastest known variant: the call, the binding of libxcorr, the choice, the command."""

from xcorr.call.columns import columns
from xcorr.call.correlate import correlate, plan

__all__ = ["columns", "correlate", "plan"]
