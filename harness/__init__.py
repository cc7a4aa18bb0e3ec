"""The measuring programs (C++). Their Python binding is `xcorr.library`."""

from xcorr.moved import tell

tell(__name__, {"library": "xcorr.library", "arguments": "xcorr.arguments"})
