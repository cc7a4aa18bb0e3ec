"""The figures. An entry of paper.toml is a figure; one that needs code is a module with ORDER, TITLE and `draw(set)`,
which returns a list of Drawing and Omitted. plots.catalogue lists both. Names that start with an underscore are
helpers.
"""
