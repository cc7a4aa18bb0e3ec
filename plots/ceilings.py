"""What a machine can do at most, as measured there: reader of `ceilings.json` beside the rows."""

from dataclasses import dataclass
from pathlib import Path

from xcorr.choice.floor import crossing_rate
from xcorr.errors import UserError
from xcorr.files import load_json

FILE = "ceilings.json"
COMMAND = "xcorr-bench --ceilings --device cuda"


@dataclass(frozen=True)
class Ceilings:
    """Measured limits of one device: bytes/s, FLOP/s and microseconds. `fp32_product` is a matrix
    product, `fp32_fma` chains of FMAs without memory, the last two exchange within warps and blocks; what was not measured is None."""

    copy_bytes_per_s: float
    fill_bytes_per_s: float
    fp32_product: float
    launch_stream_us: float
    launch_graph_us: float
    fp32_fma: float | None = None
    tf32_product: float | None = None
    shuffle_bytes_per_s: float | None = None
    shared_bytes_per_s: float | None = None  # stored and loaded

    @property
    def bytes_per_s(self) -> float:
        """The faster of copy and fill: no kernel moves bytes at a higher rate for long."""
        return max(self.copy_bytes_per_s, self.fill_bytes_per_s)

    @property
    def crossing_per_s(self) -> float:
        """Bytes that pass from thread to thread in a second; infinite where that was not measured."""
        return crossing_rate(vars(self))


KEYS = {  # field -> key of the file
    "copy_bytes_per_s": "copy_bytes_per_s",
    "fill_bytes_per_s": "fill_bytes_per_s",
    "fp32_product": "cublas_fp32_flop_per_s",
    "launch_stream_us": "empty_launch_stream_us",
    "launch_graph_us": "empty_launch_graph_us",
}
OPTIONAL = {
    "fp32_fma": "fp32_fma_flop_per_s",
    "tf32_product": "cublas_tf32_flop_per_s",
    "shuffle_bytes_per_s": "shuffle_bytes_per_s",
    "shared_bytes_per_s": "shared_bytes_per_s",
}


def load(folder: Path) -> Ceilings | str:
    """Ceilings of the set in `folder`, or why there are none and the command that measures them."""
    path = folder / FILE
    way_out = f"measure with {COMMAND} > {FILE} in the set's folder"
    try:
        if not path.exists():
            return f"no {FILE} in this set; {way_out}"
        found = load_json(path)
        values = {field: float(found[key]) for field, key in KEYS.items()}
        values |= {field: float(found[key]) for field, key in OPTIONAL.items() if key in found}
    except KeyError as error:
        return f"{FILE}: {error} is missing; {way_out}"
    except (OSError, ValueError, TypeError, UserError) as error:
        return f"{FILE}: cannot be read ({error}); {way_out}"
    bad = [field for field, value in values.items() if not 0 < value < float("inf")]
    if bad:
        return f"{FILE}: {bad[0]} = {values[bad[0]]} is not positive; {way_out}"
    return Ceilings(**values)
