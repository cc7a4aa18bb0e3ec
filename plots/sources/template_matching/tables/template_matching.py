"""Template matching: time, and time with transfers, of each implementation by template, area of shifts and number of templates, with
the numbers of the paper of the sliding window beside ours."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pandas as pd

from experiments import folders
from plots.sources.template_matching.tables import rivals
from plots.tables.hosts import host_of
from plots.tables.table import MISSING, PARAMETERS, TIME, Grid, Page, Table, contender, duration, threads_of
from plots.tidy import PROBLEM, TRANSFERS, ResultSet, passed, select
from xcorr.native.variants import assignments
from xcorr.problem import parse_size

ABOUT = (
    "Scores of templates in frames that contain them at every shift. The total time is that of the computation and of the transfers: upload of the matrices, "
    "download of the result. Both are the same for all variants of a problem, and medians over their points. A variant on a CPU has no transfers. Plans are kept "
    "between frames and are in no time here. A line is the point of a variant with the shortest time; on a CPU of a number of threads."
)
PAPER = (
    "P1 to P6 are the template sizes of the paper of the sliding window. Its speed-ups are of total times, transfers included, on a Tesla C1060 over four "
    "threads of a Xeon W3580. Here the fastest CPU variant with all threads is compared with the tile that has the shortest time without transfers. The paper's text gives the smallest and the largest area of shifts, 5 x 19 and 19 x 37, but not of which patients: which one is whose was chosen here."
)
TEMPLATES = 10  # of each patient, in what stands beside the paper
COLUMNS = [*PROBLEM, "fields", "patient", "shifts", "variant", "threads", "params", "time_us", "total_us", "tflops"]


@dataclass(frozen=True)
class Patient:
    """One of the paper's data sets: its own numbers, and the frame (region of interest) that was chosen here."""

    name: str
    template: tuple[int, int]
    frame: tuple[int, int]
    tile: str
    speedup: float

    @property
    def shifts(self) -> tuple[int, int]:
        """Rows and columns of the area of shifts."""
        return self.frame[0] - self.template[0] + 1, self.frame[1] - self.template[1] + 1

    @property
    def area(self) -> int:
        """Elements of the template."""
        return self.template[0] * self.template[1]


@lru_cache(maxsize=1)
def data() -> dict[str, Any]:
    return folders.part("template_matching", "baselines")


@lru_cache(maxsize=1)
def patients() -> dict[str, Patient]:
    found = (
        Patient(one["name"], *parse_size(one["size"]), one["tile"], float(one["speedup"])) for one in data()["patients"]
    )
    return {one.name: one for one in found}


def variant(role: str) -> str:
    """The variant of a role: `tiled`, `centred`, `direct`, `transform` or `specialised`."""
    return str(data()["variants"][role])


def every_point(results: ResultSet) -> pd.DataFrame:
    """Verified points of templates in larger frames in the usual mode, with `patient` (empty: none), `shifts` (their number), `threads` of a CPU,
    `time_us`, `total_us` (with transfers, see ABOUT) and `tflops`."""
    found = passed(results.with_fields, mode="stream", input="uniform", window="valid", precision="fp32")
    if found.empty:
        return found
    own = found[(found["left_rows"] < found["right_rows"]) & (found["left_cols"] < found["right_cols"])]
    by_shape = {(*one.template, *one.frame): one.name for one in patients().values()}
    shapes = own[["left_rows", "left_cols", "right_rows", "right_cols"]].astype(int)
    valid = (shapes["right_rows"] - shapes["left_rows"] + 1) * (shapes["right_cols"] - shapes["left_cols"] + 1)
    transfers = own.groupby([*PROBLEM, "fields", "backend"])[TRANSFERS].transform("median").fillna(0).sum(axis=1)
    return own.assign(
        patient=[by_shape.get(tuple(one), "") for one in shapes.to_numpy().tolist()],
        shifts=valid,
        threads=[threads_of(*one) for one in zip(own["backend"], own["params"])],
        time_us=own["compute_us"],
        total_us=own["compute_us"] + transfers,
        tflops=2e-6 * own["fmas"] / own["compute_us"],
    )


def points(results: ResultSet) -> pd.DataFrame:
    """The fastest of every_point of each variant and number of threads on each problem."""
    found = every_point(results)
    if found.empty:
        return found
    by = [*PROBLEM, "fields", "variant", "threads"]
    return found.sort_values("time_us", kind="stable").drop_duplicates(by)


def of_patient(found: pd.DataFrame, name: str, templates: int) -> pd.DataFrame:
    """The scores of a patient's templates among points, the fastest first."""
    own = select(found, patient=name, lefts=templates, fields="score=zncc:0.3")
    return own.sort_values("time_us", kind="stable") if len(own) else own


def with_params_of(points: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """The points whose parameters `others` have too, so that a side that was not measured whole is not the slower one for that. A parameter that
    no point of the other side has, such as `launches`, counts for none: a point without one of the parameters meets any value of it."""

    def shared(one: str, other: str) -> bool:
        left, right = assignments(one), assignments(other)
        return all(left[name] == right[name] for name in left.keys() & right.keys())

    known = set(others["params"]) if len(others) else set()
    return points[[any(shared(one, other) for other in known) for one in points["params"]]] if len(points) else points


def table(results: ResultSet) -> pd.DataFrame:
    """A line per problem, variant and number of threads, the fastest of a problem first: columns COLUMNS."""
    by = ["left_rows", "left_cols", "right_rows", "right_cols", "lefts", "fields", "time_us"]
    return points(results).reindex(columns=COLUMNS).sort_values(by, kind="stable").reset_index(drop=True)


def _templates(count: int, rows: int, cols: int, patient: str) -> str:
    return f"{count} x {rows}x{cols}" + (f" ({patient})" if patient else "")


SHOWN = (
    ("Templates", "lefts left_rows left_cols patient", _templates),
    ("Frame", "right_rows right_cols", "{}x{}".format),
    ("Fields", "fields"),
    ("Variant", "variant threads", contender),
    *(PARAMETERS, TIME),
    ("Time with transfers", "total_us", duration),
    ("TFLOP/s", "tflops", "{:.3g}".format),
)


@dataclass(frozen=True)
class Speedup:
    """The tile with the shortest time, and what it gains over the threaded CPU: `total` with transfers, `compute` without."""

    tile: str
    total: float
    compute: float


def speedup(results: ResultSet, patient: Patient, templates: int) -> Speedup | None:
    """Times of the threaded CPU, that of the set or of its host, over those of the tiled passes; None without rows of both."""
    found = of_patient(every_point(results), patient.name, templates)
    if found.empty:
        return None
    kind = {"backend": "cpu", "threads": "all"}
    tiled, threaded = select(found, variant=variant("tiled")), select(found, **kind)
    if threaded.empty and (host := host_of(results)):
        threaded = select(of_patient(every_point(host), patient.name, templates), **kind)
    if tiled.empty or threaded.empty:
        return None
    best, rival = tiled.iloc[0], threaded.iloc[0]
    total, compute = (float(rival[one] / best[one]) for one in ("total_us", "time_us"))
    return Speedup(assignments(best["params"])["template_tile"], total, compute)


def beside_paper(results: ResultSet, templates: int = TEMPLATES) -> pd.DataFrame:
    """The paper's best tile and speed-up of each patient beside ours, which are empty where rows are missing."""
    lines = []
    for one in patients().values():
        ours = speedup(results, one, templates)
        lines.append(
            {
                "Patient": one.name,
                "Template": f"{one.template[0]}x{one.template[1]}",
                "Shifts": f"{one.shifts[0]}x{one.shifts[1]}",
                "Best tile, paper": one.tile,
                "Best tile": ours.tile if ours else MISSING,
                "Speed-up with transfers, paper": f"{one.speedup:.2f}",
                "Speed-up with transfers": f"{ours.total:.2f}" if ours else MISSING,
                "Speed-up without transfers": f"{ours.compute:.2f}" if ours else MISSING,
            }
        )
    return pd.DataFrame(lines)


def page(results: ResultSet) -> Page:
    """What the table says of a set, with the paper's numbers even where the set has no rows."""
    lines = table(results)
    about = TABLE.nothing if lines.empty else ABOUT
    every = Grid(lines, SHOWN, "Time by template and frame", open=False, file=TABLE.name)
    paper = Grid(beside_paper(results), title=f"The paper's patients, {TEMPLATES} templates")
    others, said = Grid(rivals.table(results), rivals.SHOWN, rivals.TITLE, open=False), rivals.notes(results)
    text: list[str | Grid] = [about, PAPER, paper] if lines.empty else [about, every, f"\n{PAPER}", paper]
    if len(lines) and len(others.lines):
        text += [f"\n## {rivals.TITLE}", *said, others]
    return Page(text, [about, PAPER, *said], [paper, every, others])


TABLE = Table(
    "template_matching",
    "Template matching",
    page,
    "./scripts/reproduce.sh --preset quick --experiments template-matching",
    "No template matching was measured in this set. `{command}` measures it.",
    chapter=60,
)
