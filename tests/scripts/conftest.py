"""For the tests of scripts: the scripts in a tree of their own."""

from stub_tree import tree

__all__ = ["tree"]
