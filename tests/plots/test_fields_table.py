"""The table of problems with fields: its rows stay out of the plain points."""

from pathlib import Path

from fixtures import sets
from stored import OLD, row, save

from plots import tidy
from plots.tables import fields


def test_rows_with_fields_stay_apart_and_meet_their_plain_surface(tmp_path: Path) -> None:
    times = {"": 2.0, "zncc:0.3": 5.0}
    save(tmp_path, OLD, [row(experiment="fields", compute_us=us, score=score) for score, us in times.items()])
    results = tidy.load(tmp_path, "k", "local")
    assert list(results.points["compute_us"]) == [2.0] and list(results.rows["compute_us"]) == [2.0]
    assert list(results.with_fields["fields"]) == ["score=zncc:0.3"]
    (line,) = fields.table(results).to_dict("records")
    assert (line["time_us"], line["plain_us"], line["fields"]) == (5.0, 2.0, "score=zncc:0.3")
    assert "| score=zncc:0.3 | v | 5.00 µs | 2.00 µs | 2.50 |" in sets.files(fields, results)["fields.md"]
