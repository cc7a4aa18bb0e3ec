"""Tables of a result set for all sources: one module a table. They read tidy frames and draw nothing.

A module that has a TABLE (plots.tables.table) is found here and in the sources; `on_real_input(folder)` of a module makes tables of the
report's section on real input.
"""
