"""The measuring programs (C++) and their Python binding, `harness.library`."""
