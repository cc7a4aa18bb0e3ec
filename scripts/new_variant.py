#!/usr/bin/env python3
"""Write the skeleton of a new variant: one file, which builds and is correct as it is.

It has an axis, a workspace, phases and a remainder, a CUDA one also shared memory; delete what the
variant does not need. Nothing else is to be edited: the build finds it, the tests check it,
experiments that select its family or `*` measure it under every preset, and the tables and figures
show it. `scripts/try ID` verifies it and says whether it is faster.

Example: scripts/new_variant.py cpu_tiled --family cpu --backend cpu --parent cpu_definition
"""

import argparse
import difflib
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "build"))
from stamp_sources import NOT_VARIANTS, variant_files  # noqa: E402

TEMPLATES = ROOT / "scripts" / "templates"
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
EXTENSION = {"cpu": "cpp", "cuda": "cu"}


def refuse(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


def check_name(what: str, name: str) -> None:
    if not NAME.fullmatch(name) or len(name) > 60:
        refuse(f"{what} {name!r}: not a name; use lower-case words joined by _, e.g. cuda_tiled")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("id", help="file stem = id in rows, tables and figures")
    parser.add_argument("--family", required=True, help="folder of algorithms/")
    parser.add_argument("--backend", required=True, choices=("cpu", "cuda"))
    parser.add_argument("--parent", required=True, help="id of the variant it is derived from")
    args = parser.parse_args()

    check_name("id", args.id)
    check_name("family", args.family)
    if args.family in NOT_VARIANTS:
        refuse(f"family {args.family}: holds building blocks, no variants; name another folder")
    known = {path.stem: path for path in variant_files(ROOT)}
    if args.id in known:
        refuse(f"id {args.id}: taken by {known[args.id]}; choose another")
    if args.parent not in known:
        nearest = difflib.get_close_matches(args.parent, known, n=1, cutoff=0.0)
        refuse(f"parent {args.parent}: no such variant; nearest: {''.join(nearest) or 'none'}")
    extension = EXTENSION[args.backend]
    text = (TEMPLATES / f"variant.{extension}").read_text(encoding="utf-8")
    for word, value in {"@ID@": args.id, "@FAMILY@": args.family, "@PARENT@": args.parent}.items():
        text = text.replace(word, value)
    path = ROOT / "algorithms" / args.family / f"{args.id}.{extension}"
    new_family = not path.parent.is_dir()
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}")
    if new_family:
        print(f"{args.family} is a new family: it wants a README.md of its own")
    print(f"next: edit it, then scripts/try {args.id}, which verifies it and times it beside {args.parent}")


if __name__ == "__main__":
    main()
