"""What every table has in common: files and the chapter of the report follow from its page."""

import pandas as pd
import pytest
from fixtures import sets
from stored import OLD, row, save

from plots import tidy
from plots.tables import table as tables
from plots.tables.table import Grid, Page, Table

LINES = pd.DataFrame({"time_us": [1.23456789, float("nan")], "word": ["**a**", "b|c"]})
SHOWN = (tables.TIME, ("Word", "word"))
WHOLE = {"best_algorithm", "claims", "table1", "accuracy"}  # have something to say of one plain row


def test_a_page_gives_files_and_a_chapter() -> None:
    grid, empty = Grid(LINES, SHOWN, "The times", file="toy"), Grid(LINES.iloc[:0], SHOWN, "None", file="none")
    first = Table("toy", "A toy", lambda _: None, chapter=2)
    part = Table("more", "More", lambda _: None, part_of=("toy", 1))
    page = Page(["About it.", "", "## The times", grid, empty])
    files = first.files(page)
    table = "| Time | Word |\n| --- | --- |\n| 1.23 µs | **a** |\n| – | b\\|c |\n"
    assert files.pop("toy.md") == f"# A toy\n\nAbout it.\n\n## The times\n\n{table}"
    assert files == {"toy.csv": "time_us,word\n1.23457,**a**\n,b|c\n"}
    (chapter,) = tables.chapters([(part, Page(notes=["And more."])), (first, page)])
    assert (chapter["id"], chapter["title"], chapter["notes"]) == ("toy", "A toy", ["About it.", "And more."])
    (shown,) = chapter["tables"]
    assert shown["title"] == "The times" and shown["grid"]["rows"] == [["1.23 µs", "a"], ["–", "b|c"]]


@pytest.mark.parametrize("table", [one for one in tables.found() if one.name not in WHOLE], ids=lambda one: one.name)
def test_a_set_without_rows_of_a_table_has_no_file_or_one_that_says_so(tmp_path, table: Table) -> None:
    save(tmp_path, OLD, [row()])
    files = table.files(table.page(tidy.load(tmp_path, sets.KEY, "local")))
    assert set(files) <= {f"{table.name}.md"}
    assert all(" measured" in text or "has no row of" in text for text in files.values())
    assert table.nothing in files.get(f"{table.name}.md", "")
