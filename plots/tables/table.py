"""A table of a result set: its files (Markdown, CSV, LaTeX) and its part of the report follow from its columns and texts.

A module of plots/tables/ or plots/sources/<source>/tables/ that has a TABLE is found; no list names it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from plots import sources, style
from plots.metrics import MICRO, si_time
from plots.tables.text import csv, markdown
from plots.tidy import ResultSet, size_label
from xcorr.native.variants import assignments

MISSING = "–"
# What a reader sees: the header, the columns of the lines it is made of (joined by spaces), and what makes a cell of their
# values; without the last the value itself.
Column = tuple[str, str] | tuple[str, str, Callable[..., str]]


def known(form: str) -> Callable[[Any], str]:
    """Makes cells of numbers: `form` is a format string, and a number that is not known is MISSING."""
    return lambda value: MISSING if pd.isna(value) else form.format(value)


def duration(us: float) -> str:
    return si_time(us * MICRO)


def parameters(text: str) -> str:
    return text.replace(";", ", ") or MISSING


def fields_text(text: str) -> str:
    return text.replace("/", ", ")


def threads_of(backend: str, params: str) -> str:
    """A number or `all` of a point on a CPU; empty of one on a GPU."""
    return assignments(params).get("threads", "1") if backend == "cpu" else ""


def contender(variant: str, threads: str) -> str:
    """A variant with a number of threads as figures and tables call it."""
    return style.label(variant) + {"1": ", one thread", "all": ", all threads"}.get(threads, "")


def rate(number: float, whole: float = 100) -> str:
    """A number per second; from `whole` on without decimals."""
    return f"{number:,.0f}" if number >= whole else f"{number:.3g}"


FORM, WINDOW = ("Form", "form"), ("Window", "window")
MATRICES = ("Matrices", "lefts rights", "{}-to-{}".format)
SIZE = ("Size", "left_rows left_cols right_rows right_cols", size_label)
FIELDS = ("Fields", "fields", fields_text)
VARIANT = ("Variant", "variant precision", style.label)
PARAMETERS = ("Parameters", "params", parameters)
TIME = ("Time", "time_us", duration)


def readable(lines: pd.DataFrame, columns: Iterable[Column]) -> pd.DataFrame:
    """The lines as a reader sees them."""
    shown = {}
    for header, names, *form in columns:
        values = [lines[name].to_list() for name in names.split()]
        shown[header] = [form[0](*cells) for cells in zip(*values)] if form else values[0]
    return pd.DataFrame(shown)


@dataclass(frozen=True)
class Grid:
    """Lines of a table with a title in the report, where those that are not `open` unfold. Without columns the lines are
    readable as they are. `file`: stem of the CSV file of all columns of the lines; empty: they have none."""

    lines: pd.DataFrame
    columns: Sequence[Column] = ()
    title: str = ""
    open: bool = True
    file: str = ""
    digits: int = 6  # of numbers in the CSV file

    @property
    def shown(self) -> pd.DataFrame:
        return readable(self.lines, self.columns) if self.columns else self.lines


@dataclass(frozen=True)
class Page:
    """What a table says of a set. `text`: the paragraphs, headings (`## ...`) and grids of the Markdown file below its title;
    empty paragraphs and grids are left out. The chapter of the report has the same notes and grids unless `notes` or `grids`
    says otherwise. `more`: further files, text by name."""

    text: Sequence[str | Grid] = ()
    notes: Sequence[str] | None = None
    grids: Sequence[Grid] | None = None
    more: Mapping[str, str] = field(default_factory=dict)

    def markdown(self) -> str:
        blocks = [
            one if isinstance(one, str) else markdown(one.shown)[:-1] if len(one.lines) else "" for one in self.text
        ]
        return "\n\n".join(filter(None, blocks)) + "\n"

    def chapter(self) -> tuple[list[str], list[dict[str, Any]]]:
        """The notes and tables of the report, as template data."""
        notes, grids = self.notes, self.grids
        if notes is None:
            notes = [one for one in self.text if isinstance(one, str) and not one.startswith("#")]
        if grids is None:
            grids = [one for one in self.text if isinstance(one, Grid)]
        return [one for one in notes if one], [_in_report(one) for one in grids if len(one.lines)]


def _in_report(grid: Grid) -> dict[str, Any]:
    plain = grid.shown.astype(str).replace(r"\*\*", "", regex=True)
    cells = {"columns": [str(one) for one in plain.columns], "rows": plain.to_numpy().tolist()}
    return {"title": grid.title, "grid": cells, "open": grid.open}


@dataclass(frozen=True)
class Table:
    """A table. `name`: of its files, of what experiments feed, and of its chapter, unless that has another `id` and
    `heading`. `of` makes its page of a set; None: the set has no rows for it, and the page says `none`, in which
    {command} is `command`, what measures them. Without such a text there is no file and no chapter. `chapter`: its
    place in the report. `part_of`: name and place in the chapter of another table that its notes and grids end."""

    name: str
    title: str
    of: Callable[[ResultSet], Page | None]
    command: str = ""
    none: str = ""
    chapter: int | None = None
    part_of: tuple[str, int] | None = None
    id: str = ""
    heading: str = ""

    @property
    def nothing(self) -> str:
        """What the page of a set without rows says."""
        return self.none.format(command=self.command)

    def page(self, results: ResultSet) -> Page:
        return self.of(results) or Page([self.nothing] if self.none else [])

    def files(self, page: Page) -> dict[str, str]:
        grids = [one for one in page.text if isinstance(one, Grid) and one.file and len(one.lines)]
        found = {f"{one.file}.csv": csv(one.lines, one.digits) for one in grids} | {**page.more}
        return {f"{self.name}.md": f"# {self.title}\n\n{page.markdown()}", **found} if page.text else found


Pages = list[tuple[Table, Page]]


def found() -> list[Table]:
    return [module.TABLE for module in sources.modules("tables") if hasattr(module, "TABLE")]


def pages(results: ResultSet) -> Pages:
    return [(one, one.page(results)) for one in found()]


def chapters(pages: Pages) -> list[dict[str, Any]]:
    """The chapters of the report, in order, as template data: id, title, notes and tables."""
    parts = sorted(((one.part_of, page) for one, page in pages if one.part_of), key=lambda part: part[0])
    made = []
    for table, page in sorted(pages, key=lambda one: one[0].chapter or 0):
        if table.chapter is not None and (page.text or page.notes):
            notes, tables = page.chapter()
            for (whole, _), part in parts:
                if whole == table.name:
                    more_notes, more_tables = part.chapter()
                    notes, tables = notes + more_notes, tables + more_tables
            title = table.heading or table.title
            made.append({"id": table.id or table.name, "title": title, "notes": notes, "tables": tables})
    return made
