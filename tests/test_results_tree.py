"""What may be tracked below results/: published sets, their report, and the files that README.md there names. Nothing local."""

import re
from pathlib import Path

import pytest
from calls import call
from tree import TREE

from experiments import folders

BESIDE = {"README.md", "auto_regret_points.json", "auto_table.json", "published/README.md"}
# The published sets side by side (plots/machines.py).
MACHINES = r"machines/machines(?:\.md|\.csv|_[a-z0-9_-]+\.svg)"
# A machine key as harness/device/device.cpp makes it, and what a set of it holds besides rows.
SET = r"published/[a-z0-9]+(?:-[a-z0-9]+)*/"
RECORDS = "runs|ceilings|auto_table|profiler-counters|rivals|template-rivals|series-fragments"
# On real input: a table, a summary and previews, all named by the experiment.
REAL = (
    "image-autocorrelation|particle-velocimetry|real-ebsd|real-photo|real-seismic|series-amplitudes|template-tracking"
)
EXPERIMENTS = "|".join(folders.experiments())
TRACKED = re.compile(
    rf"{MACHINES}|{SET}(?:(?:{EXPERIMENTS})\.csv\.gz|(?:{RECORDS})\.json|accuracy_offset\.csv"
    rf"|(?:{REAL})\.(?:[a-z]+\.csv\.gz|previews\.npz|summary\.json)"
    r"|figures/[a-zA-Z0-9_-]+\.svg|tables/[a-z0-9_]+\.(?:csv|md|tex))"
    r"|report/(?:[a-z_]+\.(?:html|css|js)|data/[a-z0-9_-]+\.(?:csv|js))"
)


def may_be_tracked(path: Path) -> bool:
    """`path`: relative to results/."""
    return str(path) in BESIDE or bool(TRACKED.fullmatch(str(path)))


def test_results_hold_published_sets_and_nothing_else() -> None:
    found = [path.relative_to("results") for path in TREE if path.parts[0] == "results"]
    assert found and not [str(path) for path in found if not may_be_tracked(path)]


@pytest.mark.parametrize(
    "name",
    [
        "local/m/one-to-one/20260101T000000-aaaaaa-0000.csv.gz",
        "local.old/m/auto_table.json",
        "published/m/one-to-one/20260101T000000-aaaaaa-0000.csv.gz",
        "published/m/.sweeps.lock",
        "published/m/notes.csv.gz",
        "published/m/report.html",
        "machines/machines_crossover.png",
        "report/rows.csv.gz",
        "report/figures/one.svg",
        "notes.json",
    ],
)
def test_the_list_has_no_local_file(name: str) -> None:
    assert not may_be_tracked(Path(name))


@pytest.mark.parametrize("folder", ["local", "local.old", "local-2", "slurm"])
def test_git_ignores_what_a_machine_makes_for_itself(folder: str) -> None:
    path = f"results/{folder}/some-machine/one-to-one/rows.csv.gz"
    assert call("git", "check-ignore", "-q", path).returncode == 0
