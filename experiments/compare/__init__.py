"""Ours against other programs, and one version of ours against another."""
