"""Prints the resources of the compiled kernels, and names kernels that use local memory and are not allowed to."""

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from experiments.compare.markdown import printed
from xcorr.errors import Parser, UserError, command
from xcorr.files import load_toml
from xcorr.paths import build_directory

ALLOWED = Path(__file__).resolve().parent / "bars" / "local_memory.toml"
KERNELS = "resources.csv"
SECONDS = "compile_seconds.csv"
LOCAL_MEMORY = ("stack_bytes", "spill_store_bytes", "spill_load_bytes")
EPILOG = """example:
  python3 -m experiments.compare.resources --build build --markdown

Reads resources.csv and compile_seconds.csv, which the build writes from the compiler's report. `points` counts compiled
kernels, `seconds` is processor time for all architectures. Occupancy is that of a block of 256 threads by registers and
static shared memory, without the dynamic shared memory of a launch. Exit code: 0; 1 when a kernel uses local memory
(stack or spills) that bars/local_memory.toml does not allow its variant; 2 for a mistake in the request."""

Row = Mapping[str, str]


def read(path: Path) -> list[Row]:
    """The rows of a table of the build. UserError where the build has none."""
    if not path.is_file():
        raise UserError(f"{path}: not there; build with CUDA (scripts/build.sh) or give --build")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def allowed() -> list[str]:
    """Variants whose kernels are meant to use local memory."""
    return load_toml(ALLOWED)["variants"]


def capped() -> dict[str, int]:
    """Bytes that a kernel may spill, by variants with capped registers."""
    return load_toml(ALLOWED).get("capped", {})


def faults(rows: Iterable[Row]) -> list[str]:
    """A line for each kernel that uses more local memory than its variant is allowed."""
    exempt = {*allowed(), ""}  # "": kernels of the harness
    limits = capped()
    return [
        f"{row['variant']}: {kernel_name(row)} on sm_{row['arch']} uses local memory: {row['stack_bytes']} bytes of "
        f"stack, {row['spill_store_bytes']} of spill stores, {row['spill_load_bytes']} of spill loads"
        for row in rows
        if row["variant"] not in exempt and any(int(row[name]) > limits.get(row["variant"], 0) for name in LOCAL_MEMORY)
    ]


def kernel_name(row: Row) -> str:
    return f"{row['kernel']}<{row['arguments']}>" if row["arguments"] else row["kernel"]


def span(values: Iterable[str], percent: bool = False) -> str:
    """The range of the cells that are not empty, as `32` or `32..64`."""
    known = sorted({float(value) for value in values if value})
    ends = [f"{value:.0%}" if percent else f"{value:.0f}" for value in (known[:1] + known[1:][-1:])]
    return "..".join(ends) or "-"


def by_variant(rows: Sequence[Row], seconds: Iterable[Row]) -> tuple[list[str], list[list[str]]]:
    """Headings and a line for each variant and architecture."""
    took: dict[str, float] = {}
    for unit in seconds:
        took[unit["variant"]] = took.get(unit["variant"], 0) + float(unit["seconds"])
    lines = []
    for variant, arch in sorted({(row["variant"], row["arch"]) for row in rows}):
        own = [row for row in rows if (row["variant"], row["arch"]) == (variant, arch)]
        # One compilation makes all architectures. Its time stands in the first line of the variant.
        cost = took.pop(variant, None)
        resources = [span(row[name] for row in own) for name in ("registers", "shared_bytes", *LOCAL_MEMORY)]
        occupancy = span((row["occupancy"] for row in own), percent=True)
        seconds_text = "" if cost is None else f"{cost:.1f}"
        lines.append([variant or "(harness)", f"sm_{arch}", str(len(own)), seconds_text, *resources, occupancy])
    headings = "variant, arch, points, seconds, registers, shared B, stack B, spill stores B, spill loads B, occupancy"
    return headings.split(", "), lines


def by_point(rows: Iterable[Row]) -> tuple[list[str], list[list[str]]]:
    """Headings and a line for each kernel."""
    columns = ["registers", "shared_bytes", *LOCAL_MEMORY, "warps_per_sm"]
    headings = [name.replace("_bytes", " B").replace("_", " ") for name in columns]
    lines = []
    for row in rows:
        named = [row["variant"] or "(harness)", f"sm_{row['arch']}", kernel_name(row)]
        lines.append([*named, *(row[name] for name in columns), span([row["occupancy"]], percent=True)])
    return ["variant", "arch", "kernel", *headings, "occupancy"], lines


def run(argv: Sequence[str]) -> int:
    made = Parser(prog="python3 -m experiments.compare.resources", description=__doc__, epilog=EPILOG)
    add = made.add_argument
    folder_help = "build folder that is read (default: XCORR_BUILD, else build)"
    add("--build", type=Path, default=build_directory(), metavar="DIR", help=folder_help)
    add("--by-point", action="store_true", help="print a line for every kernel instead of every variant")
    add("--markdown", action="store_true", help="print a Markdown table")
    asked = made.parse_args(argv)
    rows = read(asked.build / KERNELS)
    headings, lines = by_point(rows) if asked.by_point else by_variant(rows, read(asked.build / SECONDS))
    print(printed(lines, headings, asked.markdown))
    found = faults(rows)
    for line in found:
        print(f"error: {line}; let it hold less, or name it in bars/{ALLOWED.name}", file=sys.stderr)
    return int(bool(found))


main = partial(command, run)

if __name__ == "__main__":
    sys.exit(main())
