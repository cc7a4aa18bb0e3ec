"""The libraries, one a module: `RIVALS` are the ways to use it."""
