"""The call `xcorr.correlate(left, right)` and plans of it, on arrays of NumPy and of libraries for GPUs (docs/call.md)."""
