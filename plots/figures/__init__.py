"""The figures for all sources. One that needs code is a module with ORDER, TITLE and `draw(set)`, which returns a list
of Drawing and Omitted; others are tables of a source's figures.toml. plots.catalogue lists them. Names that start with
an underscore are helpers."""
