"""Tables of a result set: one module a table. They read tidy frames and draw nothing."""
