"""Claims recomputed by another path: plain pandas on the files of rows against the numbers that the command prints."""

import gzip
import math
import re
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pandas as pd
import pytest
import tomllib

from plots.tables.claims import __main__ as check_claims
from xcorr.paths import RESULTS, ROOT

FIELDS = ["boundary", "score", "masks", "result", "same", "views"]  # empty in rows of plain problems
POINT = ["variant", "params", "form", "lefts", "rights", "left_rows"]
PRESETS = ["smoke", "quick", "extended", "paper", "paper-full", "evaluation"]  # a later one replaces an earlier one
LEAST = 20  # claims that must have rows


@dataclass(frozen=True)
class Kernel:
    """Points of a variant with these parameters and without those."""

    variant: str
    params: dict = field(default_factory=dict)
    without: dict = field(default_factory=dict)

    def fits(self, text):
        own = dict(one.split("=") for one in text.split(";")) if text else {}
        fixed = all(own.get(name) == str(value) for name, value in self.params.items())
        return fixed and not any(own.get(name) == str(value) for name, value in self.without.items())


FOUR = {"warps_per_block": 4}
ROW = {"distribution": "triangle", "rows_per_thread": 1, **FOUR}
SPLIT_ANY, GROUPED_ANY = {"distribution": "none"}, {"overlaps_per_thread": 1}
BASELINE, FFT = Kernel("overlap_wise_serial_batch"), Kernel("cufft_paper")
SHARED = Kernel("warp_per_overlap_shared_memory")
PLAIN, ONE_ROW = Kernel("warp_shuffle", FOUR), Kernel("split_row", ROW)
SPLIT = Kernel("split_row", {}, SPLIT_ANY)
RIGHT_8 = Kernel("multi_matrix_right", {"right_mats": 8, **FOUR})
RIGHT_8_ROW = Kernel("multi_matrix_right_split_row", {"right_mats": 8, **ROW})
GROUP_4 = {"overlaps_per_thread": 4, "left_rows": 4, **FOUR}
RIGHT_4_GROUPED = Kernel("multi_matrix_right_grouped_overlap", {"right_mats": 4, **GROUP_4})
MANY_SPLIT = Kernel("multi_matrix_right_split_row", {}, SPLIT_ANY)
MANY_GROUPED = Kernel("multi_matrix_right_grouped_overlap", {}, GROUPED_ANY)
BOTH, BOTH_ROW, BOTH_GROUPED = (
    Kernel(f"multi_matrix_both{name}", {"left_mats": 4, "right_mats": 4, **more})
    for name, more in (("", FOUR), ("_split_row", ROW), ("_grouped_overlap", GROUP_4))
)
RIGHT_ONLY = Kernel("multi_matrix_both_grouped_overlap", {"left_mats": 1, "right_mats": 4, **GROUP_4})
RIGHT_ONE = Kernel("multi_matrix_right_grouped_overlap", {"right_mats": 4, "streams": "one_kernel", **GROUP_4})
M_SPLIT = Kernel("multi_matrix_both_split_row", {}, SPLIT_ANY)
M_GROUPED = Kernel("multi_matrix_both_grouped_overlap", {}, GROUPED_ANY)
SIZES, NINE = (16, 32, 64, 128, 256), (16, 24, 32, 48, 64, 96, 128, 192, 256)
CROSSED = (16, 32, 64, 128, 192, 256, 384)


def key():
    """The set that docs/claims.md shows."""
    return re.search(r"generated:claims ([\w-]+)", (ROOT / "docs/claims.md").read_text(encoding="utf-8"))[1]


@cache
def rows():
    """All rows of plain problems of square matrices, under the usual condition."""
    files = []
    for path in sorted((RESULTS / "published" / key()).glob("*.csv.gz")):
        with gzip.open(path, "rt") as file:
            if file.readline().startswith("run,experiment,"):
                files.append(pd.read_csv(path, dtype={"params": str, "block": str}, low_memory=False))
    found = pd.concat(files, ignore_index=True)
    own = [name for name in FIELDS if name in found]
    square = (found["left_rows"] == found[["left_cols", "right_rows", "right_cols"]].T).all()
    usual = (found["window"] == "full") & (found["mode"] == "stream") & (found["input"] == "uniform")
    found = found[usual & square & found[own].isna().all(axis=1) & (found["precision"] == "fp32")]
    return found.assign(params=found["params"].fillna(""))


@cache
def points():
    """Mean times of each point: of main experiments before side ones, of the most thorough preset, of its newest run."""
    found = rows()
    found = found[(found["outcome"] == "passed") & (found["compute_us"] > 0) & (found["preset"] != "select")]
    if "block" in found:  # of a problem that a block measured its newest block alone
        run = found["run"].where(found["block"].notna(), "")
        found = found[run == run.groupby([found[name] for name in POINT[2:]]).transform("max")]
    paths = (ROOT / "experiments").glob("*/*.toml")
    studies = {path.stem for path in paths if tomllib.loads(path.read_text(encoding="utf-8")).get("study")}
    found = found.assign(main=~found["experiment"].isin(studies), rank=found["preset"].map(PRESETS.index))
    for name in ("main", "rank", "run"):
        found = found[found[name] == found.groupby(POINT)[name].transform("max")]
    found = found.drop_duplicates([*POINT, "repetition"], keep="last")
    times = found.groupby(POINT)["compute_us"]
    low, high = times.transform("quantile", 0.25), times.transform("quantile", 0.75)
    inside = found["compute_us"].between(low - 1.5 * (high - low), high + 1.5 * (high - low))
    kept = found[inside | (times.transform("size") < 4)]
    return kept.groupby(POINT)[["compute_us", "plan_us", "clear_us"]].mean().reset_index()


@cache
def places(of):
    """The lines of `points` or `rows` by form, counts and size."""
    return dict(iter(of().groupby(POINT[2:])))


def at(of, form, counts, size):
    return places(of).get((form, *counts, size), of().iloc[:0])


def best(form, counts, size, *kernels, what="time"):
    """The shortest time of these kernels at a problem, or the plan of that point; None where one of them has no row of any kind."""
    here, asked, found = at(points, form, counts, size), set(at(rows, form, counts, size)["variant"]), []
    for kernel in kernels:
        own = here[(here["variant"] == kernel.variant) & here["params"].map(kernel.fits)]
        if own.empty and (len(kernels) == 1 or kernel.variant not in asked):
            return None
        time, plan = own["compute_us"], own["plan_us"]
        if what == "with plan":
            found += list(time + plan)
        elif what == "without clear":
            found += list(time - own["clear_us"].fillna(0))
        elif what == "plan" and len(own):
            found.append(plan[time.idxmin()])
        else:
            found += list(time)
    return min(found, default=None)


def divided(of, to):
    return [a / b for a, b in zip(of, to) if a is not None and b is not None]


def times(form, counts, sizes, *kernels, what="time"):
    pairs = counts if isinstance(counts[0], tuple) else [counts]
    return [best(form, one, size, *kernels, what=what) for one in pairs for size in sizes]


def crossing(form, counts, sizes, of, to, what="time"):
    """Of each count the size from which `to` is not slower, by interpolation of logarithms after the last size at which `of` is faster."""
    found = []
    for one in counts:
        pairs = [(s, best(form, one, s, *of), best(form, one, s, to, what=what)) for s in sizes]
        logs = [(math.log(s), math.log(a / b)) for s, a, b in pairs if a is not None and b is not None]
        last = max(place for place, (_, log) in enumerate(logs) if log < 0)
        (x, y), (x2, y2) = logs[last], logs[last + 1]
        found.append(math.exp(np.interp(0, [y, y2], [x, x2])))
    return found


ONE, MANY = (1, 1), [(1, 2), (1, 8), (1, 32)]
M_COUNTS = [(2, 2), (8, 8), (32, 32)]


def ratio(form, counts, sizes, of, to, of_what="time", to_what="time"):
    of, to = (one if isinstance(one, tuple) else (one,) for one in (of, to))
    return divided(times(form, counts, sizes, *of, what=of_what), times(form, counts, sizes, *to, what=to_what))


def lasting(form, counts, sizes):
    plans = times(form, counts, sizes, FFT, what="plan")
    return [max(filter(None, plans)) / min(filter(None, plans))]


def concurrent(kernel):
    over = times("n-to-mn", (8, 32), (16, 64, 256), kernel)
    return divided(over, times("one-to-many", (1, 32), (16, 64, 256), RIGHT_ONE))


def rights_only():
    """Of four right matrices alone there are two kernels, of which the faster counts."""
    both = zip(*(times("n-to-m", (128, 128), SIZES, kernel) for kernel in (RIGHT_ONLY, RIGHT_ONE)))
    first = [min((one for one in pair if one is not None), default=None) for pair in both]
    return divided(first, times("n-to-m", (128, 128), SIZES, BOTH_GROUPED))


def streams(number):
    return Kernel(RIGHT_ONE.variant, {**RIGHT_ONE.params, "streams": number})


WPO_4 = Kernel("warp_per_overlap", {"overlaps_per_block": 4})
OUR_8 = Kernel("grouped_overlap", {"overlaps_per_thread": 8, "left_rows": 8, **FOUR})
OUR_GROUPED = Kernel("grouped_overlap", {}, GROUPED_ANY)
# By claim the column of the command and the numbers in its order.
RECOMPUTED = {
    "O05": ("here", lambda: ratio("one-to-one", ONE, NINE, PLAIN, ONE_ROW)),
    "O07": ("ours", lambda: ratio("one-to-one", ONE, (16,), BASELINE, WPO_4)),
    "O08": ("ours", lambda: ratio("one-to-one", ONE, (256,), BASELINE, OUR_8)),
    "O11": ("here", lambda: ratio("one-to-one", ONE, NINE, FFT, FFT, "plan", "with plan")),
    "O14": ("ours", lambda: ratio("one-to-one", ONE, (16,), FFT, WPO_4)),
    "O16": ("here", lambda: ratio("one-to-one", ONE, (64, 96, 128), SHARED, SPLIT)),
    "C04": ("here", lambda: ratio("one-to-one", ONE, (64, 96, 128), SHARED, SPLIT)),
    "C02": ("ours", lambda: ratio("one-to-one", ONE, (256,), FFT, OUR_GROUPED, "with plan")),
    "M02": ("here", lambda: ratio("one-to-many", (1, 2), (16,), RIGHT_8, RIGHT_8_ROW)),
    "M04": ("here", lambda: ratio("one-to-many", (1, 32), (16,), BASELINE, (RIGHT_8_ROW, RIGHT_4_GROUPED))),
    "M05": ("here", lambda: ratio("one-to-many", (1, 32), (256,), BASELINE, RIGHT_4_GROUPED)),
    "M06": ("here", lambda: crossing("one-to-many", MANY, CROSSED, (MANY_SPLIT,), MANY_GROUPED)),
    "M07": ("here", lambda: crossing("one-to-many", MANY, CROSSED[:-1], (MANY_SPLIT,), FFT)),
    "M08": ("here", lambda: crossing("one-to-many", MANY[:1], CROSSED, (MANY_SPLIT, MANY_GROUPED), FFT, "with plan")),
    "M09": ("here", lambda: crossing("one-to-many", MANY[2:], CROSSED, (MANY_SPLIT, MANY_GROUPED), FFT, "with plan")),
    "M11": ("here", lambda: concurrent(streams(20))),
    "M12": ("here", lambda: ratio("n-to-mn", (8, 32), (16, 64, 256), streams(1), streams(20))),
    "N01": ("here", rights_only),
    "N03": ("here", lambda: ratio("n-to-m", M_COUNTS[:2], (16,), BOTH, BOTH_ROW, to_what="without clear")),
    "N04": ("here", lambda: ratio("n-to-m", (8, 8), (64, 128, 256), BOTH, BOTH_ROW, to_what="without clear")),
    "N05": ("here", lambda: ratio("n-to-m", (32, 32), SIZES, BOTH_ROW, BOTH_GROUPED)),
    "N06": ("here", lambda: crossing("n-to-m", M_COUNTS[2:], CROSSED, (M_SPLIT, M_GROUPED), FFT, "with plan")),
    "N07": ("here", lambda: lasting("n-to-m", M_COUNTS, SIZES)),
    "N08": ("here", lambda: crossing("n-to-m", M_COUNTS, CROSSED, (M_SPLIT, M_GROUPED), FFT, "with plan")),
    "C01": ("here", lambda: ratio("one-to-many", MANY, SIZES, BASELINE, (MANY_SPLIT, MANY_GROUPED))),
}


def printed(out):
    """The cells of each claim in what the command prints, by id and column."""
    lines = out.splitlines()
    rule = next(place for place, line in enumerate(lines) if line.startswith("---"))
    spans = [match.span() for match in re.finditer("-+", lines[rule])]
    names = [lines[rule - 1][slice(*span)].strip() for span in spans]
    found, own = {}, ""
    for line in lines[rule + 1 :]:
        if not line.strip():
            break
        cells = [
            line[start : end + (100 if place == len(spans) - 1 else 0)].strip()
            for place, (start, end) in enumerate(spans)
        ]
        own = cells[0] or own
        for name, cell in zip(names, cells):
            found.setdefault(own, {}).setdefault(name, []).append(cell)
    return {
        one: {name: " ".join(filter(None, cells)) for name, cells in columns.items()} for one, columns in found.items()
    }


def test_what_the_command_prints_is_what_plain_pandas_finds(capsys):
    asked = [word for one in RECOMPUTED for word in ("--id", one)]
    assert check_claims.main([key(), *asked]) == 0
    cells, compared = printed(capsys.readouterr().out), 0
    for one, (column, recompute) in RECOMPUTED.items():
        numbers = [float(text) for text in re.findall(r": ([\d.e+-]+)(?=;|$)", cells[one][column])]
        wanted = recompute() if numbers else []
        assert numbers == pytest.approx([float(f"{number:.3g}") for number in wanted], rel=1e-9), one
        compared += bool(numbers)
    assert compared >= LEAST
