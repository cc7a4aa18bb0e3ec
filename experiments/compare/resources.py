"""Prints what the compiled kernels take of a multiprocessor, and flags local memory where none belongs."""

from __future__ import annotations

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

Reads resources.csv and compile_seconds.csv, which the build makes of the compiler's report. Points are compiled
kernels, each precision counted; seconds are processor time of all architectures together. Occupancy is that of a block
of 256 threads by registers and static shared memory; dynamic shared memory, which a launch asks for, is not in it. Exit
code: 0; 1 when a kernel uses local memory (stack or spills) that bars/local_memory.toml does not allow its variant;
2 for a mistake in the request."""

Row = Mapping[str, str]


def parser() -> Parser:
    """The command line."""
    made = Parser(prog="python3 -m experiments.compare.resources", description=__doc__, epilog=EPILOG)
    made.add_argument(
        "--build",
        type=Path,
        default=build_directory(),
        metavar="DIR",
        help="build folder that is read (default: XCORR_BUILD, else build)",
    )
    made.add_argument("--by-point", action="store_true", help="print a line for every kernel instead of every variant")
    made.add_argument("--markdown", action="store_true", help="print a Markdown table")
    return made


def read(path: Path) -> list[Row]:
    """The rows of a table of the build. UserError when the build has none."""
    if not path.is_file():
        raise UserError(f"{path}: not there; build with CUDA (scripts/build.sh) or give --build")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def allowed() -> list[str]:
    """Variants whose kernels may use local memory."""
    return load_toml(ALLOWED)["variants"]


def capped() -> dict[str, int]:
    """Bytes that a kernel of a variant may spill, where its registers are capped."""
    return load_toml(ALLOWED).get("capped", {})


def faults(rows: Iterable[Row]) -> list[str]:
    """One line for each kernel of a variant that uses local memory and is not allowed to."""
    exempt = {*allowed(), ""}  # the harness's own kernels are no variant's
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
    """`32` or `32..64`, of the cells that are not empty."""
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
        # One compilation makes all architectures: its time stands on the first one's line.
        cost = took.pop(variant, None)
        lines.append(
            [
                variant or "(harness)",
                f"sm_{arch}",
                str(len(own)),
                "" if cost is None else f"{cost:.1f}",
                *(span(row[name] for row in own) for name in ("registers", "shared_bytes", *LOCAL_MEMORY)),
                span((row["occupancy"] for row in own), percent=True),
            ]
        )
    return [
        "variant",
        "arch",
        "points",
        "seconds",
        "registers",
        "shared B",
        "stack B",
        "spill stores B",
        "spill loads B",
        "occupancy",
    ], lines


def by_point(rows: Iterable[Row]) -> tuple[list[str], list[list[str]]]:
    """Headings and a line for each kernel."""
    columns = ["registers", "shared_bytes", *LOCAL_MEMORY, "warps_per_sm"]
    headings = [
        "variant",
        "arch",
        "kernel",
        *(name.replace("_bytes", " B").replace("_", " ") for name in columns),
        "occupancy",
    ]
    return headings, [
        [
            row["variant"] or "(harness)",
            f"sm_{row['arch']}",
            kernel_name(row),
            *(row[name] for name in columns),
            span([row["occupancy"]], percent=True),
        ]
        for row in rows
    ]


def run(argv: Sequence[str]) -> int:
    """Reads, prints; the exit code."""
    asked = parser().parse_args(argv)
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
