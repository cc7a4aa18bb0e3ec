"""What the report says of imported rows (`experiments.published.importing`), and their overlay on a measured set."""

import dataclasses
from typing import Any

import pandas as pd

from plots.tidy import ResultSet


def record(results: ResultSet) -> dict[str, Any]:
    """The import's part of a set's run record; empty for a set that was measured here."""
    return next((run["imported"] for run in results.runs.values() if "imported" in run), {})


def notes(results: ResultSet) -> list[str]:
    """Sentences for the head of the report: where the rows are from, that none was verified, and what the guard over
    them found (an inference is called one). Nothing for a measured set."""
    found = record(results)
    if not found:
        return []
    first = (
        f"Imported, not verified: these times are those of the folder {found['folder']} of the published artifact, "
        f"labelled {found['label']} there. No output was checked here, so they are drawn hollow and are in no table."
    )
    guard = [sentence.partition(": ")[2] for sentence in found.get("guard", {}).get("sentences", [])]
    return [first, *(f"{text[0].upper()}{text[1:]}." for text in guard)]


def method(results: ResultSet) -> list[str]:
    """How the times of an imported set came about, as far as its files say."""
    points = results.points
    return [
        "Times are as published, per computation of the whole problem, in the artifact's own timing; an FFT's is the "
        "sum of its three phases, without padding, quadrant swap and division. Plans are medians.",
        f"{len(points)} points; {int(points['n'].sum())} repetitions kept, {int(points['dropped'].sum())} removed as "
        "outliers (outside 1.5 interquartile ranges beyond the quartiles, with at least 4 samples).",
        *(f"Left out: {text}." for text in record(results).get("left_out", [])),
    ]


def overlay(results: ResultSet, other: ResultSet) -> ResultSet:
    """`results` with the imported points of `other` beside its own, for figures only: outcome `published` keeps them
    hollow and out of every table. Problems that `results` has not measured stay out, so that no facet is foreign."""
    mine = results.points[["form", "counts", "window", "mode", "input"]].drop_duplicates()
    theirs = other.points[other.points["outcome"] == "published"].merge(mine, how="inner")
    return dataclasses.replace(results, points=pd.concat([results.points, theirs], ignore_index=True))
