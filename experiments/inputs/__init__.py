"""Experiments on real input: what is correlated comes from packages, checked by its SHA-256."""
