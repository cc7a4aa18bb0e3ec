"""Runs experiments: from TOML to rows."""
