"""Finds imported rows that a GPU with the published label cannot have measured.

Useful work is 2 FLOP per FMA, as in the published evaluation. A warp-shuffle kernel also multiplies padding: lanes hold
32 neighbouring shifts, and columns are taken 32 at a time. The bytes are those that a phase of an FFT must move. Where
labels do not fit, all permutations of the labels over the imported sets are tried, and the one with the fewest
impossible points is reported as an inference. No label is changed.
"""

import itertools
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from experiments.compare.artifact import FOLDER
from experiments.driver import store
from experiments.driver.run_records import read_runs
from experiments.driver.store import Row
from xcorr.files import load_toml

PEAKS = FOLDER / "gpu_peaks.toml"
LANES = 32
COMPLEX, REAL = 8, 4
Labels = Mapping[str, str]  # by set
Counts = Mapping[str, Mapping[str, int]]  # impossible points by set and label
KINDS = {
    "useful": ("useful work", "TFLOP/s", 1e12),
    "executed": ("executed work", "TFLOP/s", 1e12),
    "bytes": ("DRAM traffic", "GB/s", 1e9),
    "memory": ("buffers", "GB", 1e9),
}


@dataclass(frozen=True)
class Gpu:
    """Stated peaks of a GPU: FLOP/s (FP32), bytes/s, and bytes of memory and cache."""

    name: str
    flops: float
    dram: float
    memory: float
    cache: float

    def limit(self, kind: str) -> float:
        return {"bytes": self.dram, "memory": self.memory}.get(kind, self.flops)


@dataclass(frozen=True)
class Peaks:
    """gpu_peaks.toml: GPUs by label, and the rules."""

    gpus: dict[str, Gpu]
    beyond_cache: float
    enqueue_error: float
    padded_families: list[str]


@dataclass(frozen=True)
class Demand:
    """The demand of a point: FLOP/s, bytes/s or bytes, by kind."""

    kind: str
    value: float
    where: str


def load_peaks() -> Peaks:
    data = load_toml(PEAKS)
    rules = data.pop("rules")
    return Peaks({label: Gpu(**entry) for label, entry in data.items()}, **rules)


@cache
def padding(size: int) -> float:
    """Executed / useful FMAs of a warp-shuffle kernel for square inputs of `size`; 1 + 32 / size where 32 divides it.
    Each step takes 32 columns for 32 neighbouring shifts."""
    steps = 0
    for first in range(1 - size, size, LANES):
        last = min(first + LANES - 1, size - 1)
        columns = min(size, size - first) - max(0, -last)
        steps += -(-columns // LANES)
    return steps * LANES * LANES / size**2


def fft_demands(row: Row, times: Mapping[str, float], where: str, peaks: Peaks) -> list[Demand]:
    """Traffic of the phases of an FFT at 2h x 2w (section 3) where it streams, and its necessary buffers. Transforms
    are out of place. The product overwrites the spectra of the right matrices; in n-to-m it has its own buffer."""
    rows, cols, lefts, rights = (int(row[name]) for name in ("left_rows", "left_cols", "lefts", "rights"))
    pairs = lefts * rights if row["form"] == "n-to-m" else rights
    plane, spectrum = REAL * 2 * rows * 2 * cols, COMPLEX * 2 * rows * (cols + 1)
    moved = {
        "forward_us": (lefts + rights) * (plane + spectrum),
        "hadamard_us": (lefts + rights + pairs) * spectrum,
        "inverse_us": pairs * (plane + spectrum),
    }
    found = []
    streams = peaks.beyond_cache * max(gpu.cache for gpu in peaks.gpus.values())  # larger amounts stream on every GPU
    for phase, amount in moved.items():
        if phase in times and amount > streams:
            slack = 1.0 if phase == "hadamard_us" else 1.0 + peaks.enqueue_error
            rate = amount / (times[phase] * 1e-6) / slack
            found.append(Demand("bytes", rate, f"{phase.removesuffix('_us')} phase, {where}"))
    held = (lefts + rights) * (plane + spectrum) + pairs * plane
    return [*found, Demand("memory", held, where)]


def demands(rows: Sequence[Row], peaks: Peaks) -> list[Demand]:
    """The demands of the points of a set, by the medians of their repetitions."""
    points: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["outcome"] == "published":
            points[store.key_of(row)].append(row)
    found = []
    for own in points.values():
        row = own[0]
        size = row["left_rows"] if row["left_rows"] == row["left_cols"] else f"{row['left_rows']}x{row['left_cols']}"
        where = f"{row['variant']} {row['form']} {row['lefts']}-to-{row['rights']}, size {size}"
        names = [name for name in ("compute_us", "forward_us", "hadamard_us", "inverse_us") if row[name]]
        times = {name: statistics.median(float(one[name]) for one in own) for name in names}
        if "hadamard_us" in times:
            found += fft_demands(row, times, where, peaks)
            continue
        rate = 2.0 * float(row["fmas"]) / (times["compute_us"] * 1e-6)
        found.append(Demand("useful", rate, where))
        if row["family"] in peaks.padded_families and row["left_rows"] == row["left_cols"]:
            found.append(Demand("executed", rate * padding(int(row["left_rows"])), where))
    return found


def impossible(found: Sequence[Demand], gpu: Gpu) -> list[Demand]:
    """The demands above the limits of the GPU, the largest ratio first."""
    above = [one for one in found if one.value > gpu.limit(one.kind)]
    return sorted(above, key=lambda one: -one.value / gpu.limit(one.kind))


def describe(above: Sequence[Demand], gpu: Gpu) -> str:
    """The number of impossible demands of each kind, and the largest one."""
    parts = []
    for kind, (name, unit, scale) in KINDS.items():
        own = [one for one in above if one.kind == kind]
        if own:
            worst = f"{own[0].value / scale:.4g} of {gpu.limit(kind) / scale:.4g} {unit}"
            parts.append(f"{len(own)} in {name} (up to {worst}: {own[0].where})")
    return "; ".join(parts)


def fit_labels(counts: Counts, labels: Labels) -> Labels | None:
    """The permutation of the labels with the fewest impossible points. None for the published one, or for several."""
    keys = sorted(labels)
    tried = [dict(zip(keys, order)) for order in set(itertools.permutations(labels[key] for key in keys))]
    least = min(total(counts, one) for one in tried)
    best = [one for one in tried if total(counts, one) == least]
    return None if len(best) > 1 or best[0] == labels else best[0]


def total(counts: Counts, labels: Labels) -> int:
    """The number of impossible points of all sets under these labels."""
    return sum(counts[key][label] for key, label in labels.items())


def check_sets(results: Path) -> list[str]:
    """Checks all imported sets together, stores the findings in their records and returns them as sentences."""
    peaks = load_peaks()
    records: dict[str, dict[str, Any]] = {}
    for path in sorted((results / "published").glob("*/runs.json")):
        for record in read_runs(path.parent).values():
            if record.get("imported", {}).get("gpu") in peaks.gpus:
                records[path.parent.name] = record
    labels = {key: record["imported"]["gpu"] for key, record in records.items()}
    asked = {key: demands(store.read_rows(results / "published" / key), peaks) for key in records}
    counts = {key: {one: len(impossible(asked[key], peaks.gpus[one])) for one in labels.values()} for key in asked}
    fitting = fit_labels(counts, labels) if labels else None
    sentences = []
    for key, record in records.items():
        own = _sentences(key, labels, asked[key], counts, fitting, peaks)
        like = fitting[key] if fitting and fitting[key] != labels[key] else None
        found = {"impossible": counts[key][labels[key]], "sentences": own, "behaves_like": like}
        record["imported"]["guard"] = {"with": sorted(records), **found}
        store.write_json(results / "published" / key / "runs.json", [record])
        sentences += own
    return sentences


def _sentences(
    key: str, labels: Labels, asked: Sequence[Demand], counts: Counts, fitting: Labels | None, peaks: Peaks
) -> list[str]:
    """The sentences about a set; none where its label fits."""
    gpu = peaks.gpus[labels[key]]
    said = []
    above = impossible(asked, gpu)
    if above:
        said.append(f"{key}: beyond the peaks of its published label, {gpu.name}: {describe(above, gpu)}")
    if fitting and fitting[key] != labels[key]:
        like = peaks.gpus[fitting[key]]
        said.append(
            f"{key}: inference: the folder labelled {gpu.name} behaves like {like.name}. Of all ways to give these "
            f"{len(labels)} labels to the imported sets one fits best: {total(counts, fitting)} impossible points, "
            f"{total(counts, labels)} as published. Only the authors can confirm it; no label was changed"
        )
    elif above and len(labels) == 1:
        said.append(f"{key}: import the other folders too: labels can only be exchanged between sets")
    elif above:
        said.append(f"{key}: no other way to give the labels of {', '.join(sorted(labels))} fits better")
    return said
