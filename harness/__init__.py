"""The measuring programs, in C++. Their Python binding is `xcorr.library`."""

from xcorr.moved import tell

# Old name below `harness` -> module of today.
MOVED = {"library": "xcorr.library", "arguments": "xcorr.arguments"}

tell(__name__, MOVED)
