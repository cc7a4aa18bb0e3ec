"""Tables of a result set for all sources: one module a table. They read tidy frames and draw nothing.

What a module has says where its table stands (plots.sources finds the modules, those of a source too):
- `files(set)`: files of the set, text by name.
- `chapter(set)` and CHAPTER: a chapter of the report, and its place there.
- `chapter_parts(set)` and PART_OF, (chapter, place): notes and tables at the end of a chapter of another module.
- `on_real_input(folder)`: tables of the report's section on real input.
"""
