"""Matched filters: days of data a second from rows, planted earthquakes from artifacts, their figure and their chapter."""

import pandas as pd
import pytest
from fixtures import real, sets
from fixtures.sets import loaded
from stored import row

from experiments.driver import schema
from plots import style
from plots.drawing import Drawing, Omitted
from plots.sources.time_series.figures import detection
from plots.sources.time_series.tables import detections, time_series
from plots.tables.table import readable

DAY = {"left_rows": 3, "left_cols": 256, "right_rows": 3, "right_cols": 8_640_255, "lefts": 16, "form": "n-to-m"}


def rows(*times, score="zncc:0.3", result="above:8mad:99", **cells):
    """Rows of a day, a variant or precision each."""
    fields = {"window": "valid", "score": score, "result": result}
    given = {**DAY, **fields, "experiment": "time-series-detections", **cells}
    return [row(variant=v, precision=p, compute_us=us, **given) for v, p, us in times]


@pytest.fixture
def day(tmp_path):
    own = rows(("timeseries_a", "tf32", 500.0), ("timeseries_b", "fp32", 1000.0))
    return loaded(tmp_path, own + [row(compute_us=3.0)])


def test_days_a_second_are_those_of_all_channels(day):
    lines = detections.table(day)
    assert lines["variant"].tolist() == ["timeseries_a", "timeseries_b"]
    assert lines["days_per_s"].tolist() == pytest.approx([2000, 1000], rel=1e-3)
    shown = readable(lines, detections.SHOWN)
    assert shown["Class"].tolist() == ["tf32", "FP32 grade"] and shown["Days a second"].tolist() == ["2,000", "1,000"]
    assert shown["Fields"].iloc[0] == "score=zncc:0.3, result=above:8mad:99"
    made = sets.files(detections, day)
    assert set(made) == {"detections.md", "detections.csv"} and "days_per_s" in made["detections.csv"]


@pytest.mark.parametrize(
    "cells", [{"result": "peak"}, {"window": "full"}, {"rights": 2}, {"mode": "latency"}, {"outcome": "incorrect"}]
)
def test_other_rows_are_no_detections(tmp_path, cells):
    assert detections.table(loaded(tmp_path, rows(("a", "fp32", 5.0), **cells) + [row()])).empty


def test_a_set_without_any_says_what_is_missing(tmp_path):
    results = loaded(tmp_path, [row()])
    made = sets.files(detections, results)
    assert list(made) == ["detections.md"]
    assert "not measured in this set" in made["detections.md"] and "inputs.seismic` does" in made["detections.md"]
    (omitted,) = detection.draw(results)
    assert isinstance(omitted, Omitted) and "inputs.seismic" in omitted.reason
    chapter = sets.chapter(results, "time_series")
    assert len(chapter["notes"]) == 5 and all("in this set" in one for one in chapter["notes"])


def test_planted_earthquakes_have_a_table_and_a_figure(tmp_path, day):
    real.write_seismic(day.folder)
    found = detections.planted(day)
    assert isinstance(found, pd.DataFrame) and found["Differing"].tolist() == [0, 1]
    assert "LGPLv3" in detections.about_planted(day) and "20 minutes" in detections.about_planted(day)
    assert set(sets.files(detections, day)) == {"detections.md", "detections.csv", "detections_planted.csv"}
    with style.context():
        (drawing,) = detection.draw(day)
    assert isinstance(drawing, Drawing) and "All 2 variants" in drawing.caption
    events = drawing.figure.axes[2]
    drawn = {line.get_label(): len(line.get_xdata()) for line in events.get_lines()}
    assert drawn["detected"] + drawn["not detected"] == 40
    chapter = sets.chapter(day, "time_series")
    titles = [one["title"] for one in chapter["tables"]]
    assert titles[-2:] == ["Matched filters: days of data a second", "Planted earthquakes in real noise"]


def test_the_experiment_is_a_day_of_three_components():
    known = schema.load_experiments()["time-series-detections"]
    assert known.feeds == [detections.TABLE.name]
    ids = [one.id for one in schema.grid(known, "quick")]
    assert "n-to-m/3x256/3x8640255/16:1/valid/score=zncc:0.3/result=above:8mad:262144" in ids
    assert all(one.right[1] < 10_000 for one in schema.grid(known, "smoke"))
    assert detections.DAY == 24 * 3600 * 100 and time_series.TABLE.name != detections.TABLE.name
