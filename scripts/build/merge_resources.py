#!/usr/bin/env python3
"""Merge the reports of compile_kernels.py into two tables of the build, and print a line a variant.

KERNELS gets a line for every kernel and architecture, with the occupancy of a block of 256 threads; SECONDS what
each unit took to compile. Printed are the variants that were compiled since these tables were written last.

  merge_resources.py KERNELS SECONDS REPORT...
Example: scripts/build/merge_resources.py resources.csv compile_seconds.csv *.resources.json
"""

import argparse
import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

WARP = 32
BLOCK_WARPS = 8
REGISTERS = 65536  # of a multiprocessor, on every capability below
# Compute capability -> warps and KiB of shared memory of a multiprocessor. Its limit of blocks is 16 or more, so
# blocks of 8 warps never meet it.
MULTIPROCESSORS = {
    70: (64, 96),
    75: (32, 64),
    80: (64, 164),
    86: (48, 100),
    87: (48, 164),
    89: (48, 100),
    90: (64, 228),
    100: (64, 228),
    103: (64, 228),
    120: (48, 100),
    121: (48, 100),
}
COLUMNS = (
    "arch variant kernel arguments registers shared_bytes stack_bytes spill_store_bytes spill_load_bytes "
    "warps_per_sm occupancy"
).split()
UNIT_COLUMNS = ("variant", "unit", "seconds")

Row = dict[str, Any]


def occupancy(arch: str, registers: int, shared_bytes: int) -> tuple[int, float] | None:
    """Warps that a multiprocessor holds and their share of what it can, by registers and static shared memory.

    None for an unknown capability. A kernel that asks for dynamic shared memory at its launch may have fewer.
    """
    capability = int(arch.rstrip("af"))  # sm_90a and sm_100f have the multiprocessors of sm_90 and sm_100
    if capability not in MULTIPROCESSORS:
        return None
    most_warps, shared_kib = MULTIPROCESSORS[capability]
    of_a_warp = -(-registers * WARP // 256) * 256
    # A warp's registers lie in one quarter of the file.
    blocks = min(most_warps, REGISTERS // 4 // of_a_warp * 4) // BLOCK_WARPS
    if capability >= 80:
        shared_bytes += 1024  # the system's share of every block
    if shared_bytes:
        granule = 128 if capability >= 80 else 256
        blocks = min(blocks, shared_kib * 1024 // (-(-shared_bytes // granule) * granule))
    return blocks * BLOCK_WARPS, blocks * BLOCK_WARPS / most_warps


def rows(reports: Iterable[Row]) -> list[Row]:
    """A row for every kernel and architecture; one that several units of a variant compile counts once."""
    found = {}
    for report in reports:
        for kernel in report["kernels"]:
            row = {**kernel, "variant": report["variant"]}
            known = kernel["registers"] is not None
            held = occupancy(kernel["arch"], kernel["registers"], kernel["shared_bytes"]) if known else None
            row["warps_per_sm"], row["occupancy"] = held or ("", "")
            found[tuple(str(row[name]) for name in COLUMNS)] = {name: row[name] for name in COLUMNS}
    return [found[key] for key in sorted(found)]


def span(values: Iterable[int]) -> str:
    """`32` or `32-64`; nothing of nothing."""
    ordered = sorted(set(values))
    return "-".join(str(value) for value in ordered[:: max(1, len(ordered) - 1)]) if ordered else "-"


def summary(reports: list[Row], variants: Iterable[str]) -> list[str]:
    """A heading and one line a variant: what it costs to compile and what it takes of a multiprocessor."""
    lines = [f"{'variant':<36} points  seconds  registers  stack bytes"]
    table = rows(reports)
    for variant in sorted(variants):
        own = [row for row in table if row["variant"] == variant]
        points = len({(row["kernel"], row["arguments"]) for row in own})
        seconds = sum(report["seconds"] for report in reports if report["variant"] == variant)
        registers = span(row["registers"] for row in own if row["registers"] is not None)
        stack = span(row["stack_bytes"] for row in own)
        lines.append(f"{variant or '(harness)':<36} {points:6} {seconds:8.1f}  {registers:>9}  {stack:>11}")
    return lines


def write(path: Path, columns: Sequence[str], table: Iterable[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", type=Path)
    parser.add_argument("seconds", type=Path)
    parser.add_argument("reports", type=Path, nargs="+", metavar="REPORT")
    args = parser.parse_args()
    written = args.kernels.stat().st_mtime if args.kernels.exists() else 0
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in args.reports]
    fresh = {one["variant"] for one, path in zip(reports, args.reports) if path.stat().st_mtime > written}
    write(args.kernels, COLUMNS, rows(reports))
    write(args.seconds, UNIT_COLUMNS, ({name: one[name] for name in UNIT_COLUMNS} for one in reports))
    if fresh:
        print("\n".join(summary(reports, fresh)))


if __name__ == "__main__":
    main()
