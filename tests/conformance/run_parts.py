#!/usr/bin/env python3
"""Runs the parts of `conformance` at once, as processes that share the device, and adds up what they found. Those of
`--random` and `--properties` write records, which --record joins into one.

Example: run_parts.py --parts 12 --record random.json -- build/tests/conformance/conformance --device cuda --random 100000 --seed 7
         run_parts.py --parts 4 -- build/tests/conformance/conformance --device cuda --variant tiled_direct_peak
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

SUMMED = ("passed", "failed", "not_drawn")
COUNTS = ("families", "variants", "forms", "windows", "inputs", "precisions", "properties", "refused")
SAME = ("what", "machine_key", "seed", "cases", "limits")


def commit() -> dict[str, Any]:
    """Of the working tree; empty where there is no git."""

    def git(*words: str) -> str:
        folder = Path(__file__).resolve().parent
        return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()

    try:
        dirty = git("status", "--porcelain", "--untracked-files=no") != ""
        return {"commit": git("rev-parse", "HEAD"), "dirty": dirty}
    except (OSError, subprocess.CalledProcessError):
        return {}


def summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of each name's counts."""
    total: Counter[str] = Counter()
    for of_part in counts:
        total.update(of_part)
    return dict(total)


def joined(records: list[dict[str, Any]]) -> dict[str, Any]:
    """One record of all parts: counts summed, the longest time, the largest problems."""
    first = records[0]
    return {
        **{key: first[key] for key in (*SAME, "device")},
        "parts": len(records),
        "seconds": max(record["seconds"] for record in records),
        "largest": {key: max(record["largest"][key] for record in records) for key in first["largest"]},
        **{key: sum(record[key] for record in records) for key in SUMMED},
        **{key: dict(sorted(summed(record[key] or {} for record in records).items())) for key in COUNTS},
        "failures": [failure for record in records for failure in record["failures"] or []],
    }


def last_line(texts: list[str]) -> str:
    """The sums of what the parts printed last: "3 passed, 0 failed, 2 skipped"."""
    lines = [(text.strip().splitlines() or [""])[-1] for text in texts]
    found = [{name: int(count) for count, name in re.findall(r"(\d+) (\w+)", line)} for line in lines]
    return ", ".join(f"{count} {name}" for name, count in summed(found).items())


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, required=True, help="processes at once")
    parser.add_argument("--record", type=Path, help="the joined record of a random run, a JSON file")
    parser.add_argument("command", nargs="+", help="after --: conformance and its options")
    options = parser.parse_args(argv)
    if options.parts < 1:
        parser.error(f"--parts {options.parts}: use 1 or more")
    started = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // options.parts)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        processes = []
        for part in range(1, options.parts + 1):
            words = [*options.command, "--shard", f"{part}/{options.parts}"]
            if options.record:
                words += ["--record", str(folder / f"{part}.json")]
            with (folder / f"{part}.txt").open("w") as output:
                # The first one shows its progress; the others are as far.
                errors = None if part == 1 else subprocess.DEVNULL
                processes.append(subprocess.Popen(words, stdout=output, stderr=errors, env=environment))
        codes = [process.wait() for process in processes]
        missing = 0
        records, texts = [], []
        for part, code in enumerate(codes, 1):
            text = (folder / f"{part}.txt").read_text()
            texts.append(text)
            path = folder / f"{part}.json"
            records += [json.loads(path.read_text())] if path.exists() else []
            if code != 0:
                print(f"part {part}/{options.parts}: exit code {code}\n{text}")
                missing += not path.exists()
    if not options.record:
        print(last_line(texts))
        return 0 if not any(codes) else 1
    if not records:
        print("error: no part wrote a record; see the output above", file=sys.stderr)
        return 1
    record = {**commit(), "started": started, "command": options.command, **joined(records)}
    record["parts_without_record"] = missing
    options.record.parent.mkdir(parents=True, exist_ok=True)
    options.record.write_text(json.dumps(record, indent=1) + "\n")
    print(
        f"{record['what']}: seed {record['seed']}, {record['passed']} passed, {record['failed']} failed, "
        f"{record['not_drawn']} not drawn, {record['seconds']:.0f} s; {options.record}"
    )
    return 0 if not any(codes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
