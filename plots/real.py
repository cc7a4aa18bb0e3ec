"""Reader of what experiments/inputs stores (formats: experiments/inputs/README.md)."""

import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import pandas as pd

from xcorr.errors import UserError
from xcorr.files import MOST_BYTES, limited, load_json

EBSD, PHOTO, SEISMIC = "real-ebsd", "real-photo", "real-seismic"  # the experiments
AMPLITUDES, WAVEFORMS, AUTOCORRELATION = "series-amplitudes", "series-waveforms", "image-autocorrelation"
VELOCIMETRY, TRACKING = "particle-velocimetry", "template-tracking"
# What the rows are called where they are no displacements.
TABLES = {
    SEISMIC: "detections",
    AMPLITUDES: "errors",
    WAVEFORMS: "errors",
    AUTOCORRELATION: "lengths",
    VELOCIMETRY: "fields",
    TRACKING: "places",
}


@dataclass(frozen=True)
class RealData:
    """One real-input experiment: rows (a line per pair or case), summary and preview arrays."""

    rows: pd.DataFrame
    summary: dict[str, Any]
    previews: dict[str, np.ndarray]

    def datasets(self) -> list[dict[str, Any]]:
        return list(self.summary.get("datasets", []))

    def of(self, dataset: str, variant: str | None = None) -> pd.DataFrame:
        """Rows of a data set, of one variant if given."""
        own = self.rows[self.rows["dataset"] == dataset]
        return own if variant is None else own[own["variant"] == variant]

    def main_variant(self, dataset: str) -> str:
        """The one drawn: that which the data set names, else the one that covers most pairs (of several, the first by name)."""
        named = next((str(one.get("main") or "") for one in self.datasets() if one["dataset"] == dataset), "")
        if named:
            return named
        return str(self.of(dataset)["variant"].mode()[0])


def load(folder: Path, experiment: str) -> RealData | str:
    """Data of `experiment` in the set at `folder` (published or local), or why there is none."""
    places = (folder, folder / experiment / "artifacts")
    files = (f"{TABLES.get(experiment, 'displacements')}.csv.gz", "summary.json", "previews.npz")
    for place in places:
        paths = [place / f"{experiment}.{name}" for name in files]
        if not any(path.exists() for path in paths):
            continue
        missing = [path.name for path in paths if not path.exists()]
        if missing:
            return f"{missing[0]} is missing"
        try:
            with gzip.open(paths[0], "rb") as packed:
                rows = pd.read_csv(io.BytesIO(limited(packed)))
            summary = load_json(paths[1])
            previews = _arrays(paths[2])
        except (OSError, EOFError, ValueError, KeyError, BadZipFile, MemoryError, zlib.error, UserError) as error:
            return f"{experiment}: cannot be read ({error})"
        if not isinstance(summary, dict) or summary.get("machine_key", folder.name) != folder.name:
            return f"{experiment}: {paths[1].name} is of another machine; measure it here"
        if rows.empty:
            return f"{experiment}: no rows"
        return RealData(rows, summary, previews)
    return f"{experiment} was not run for this set"


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file; ValueError when they take more than MOST_BYTES."""
    with ZipFile(path) as packed:
        if sum(member.file_size for member in packed.infolist()) > MOST_BYTES:
            raise ValueError(f"more than {MOST_BYTES >> 20} MiB")
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def origin(dataset: dict[str, Any]) -> str:
    """`title`, and that it is a substitute where it is one."""
    title = str(dataset.get("title") or dataset.get("dataset"))
    return f"{title} (substitute: {dataset.get('note')})" if dataset.get("substituted") else title


def credit(dataset: dict[str, Any]) -> str:
    """What a data set is, and its source, licence and citation."""
    named = (("source", "Source"), ("licence", "Licence"), ("citation", "Cite"))
    parts = [f"{text}: {str(dataset[key]).rstrip('.')}." for key, text in named if dataset.get(key)]
    return " ".join([f"{dataset['dataset']}: {origin(dataset)}.", *parts])
