#!/usr/bin/env python3
"""Write the skeleton of a new variant: one file, which builds and is correct as it is.

Nothing else is to be edited: the build finds it, the tests check it, experiments that select its
family or `*` measure it, and the table and figures show it.

Example: scripts/new_variant.py cpu_tiled --family cpu --backend cpu --parent cpu_definition
"""

import argparse
import difflib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "build"))
from stamp_sources import NOT_VARIANTS, variant_files  # noqa: E402

TEMPLATES = ROOT / "scripts" / "templates"
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
EXTENSION = {"cpu": "cpp", "cuda": "cu"}
# What a registration says of the variant itself, and what a skeleton says instead.
FIELDS = {
    r'\.summary = "[^"]*"': '.summary = "@ID@: one line for the table"',
    r'\.parent = ""': '.parent = "@PARENT@"',
    r'\.source = "[^"]*"': '.source = "none"',
    r"namespace xcorr::\w+ \{": "namespace xcorr::@FAMILY@ {",
    r"// namespace xcorr::\w+": "// namespace xcorr::@FAMILY@",
}


def refuse(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


def check_name(what: str, name: str) -> None:
    if not NAME.fullmatch(name) or len(name) > 60:
        refuse(f"{what} {name!r}: not a name; use lower-case words joined by _, e.g. cuda_tiled")


def cpu_skeleton(variants: Iterable[Path]) -> str:
    """The code of the root (the variant without a parent) under a new opening."""
    sources = {path: (ROOT / path).read_text(encoding="utf-8") for path in variants}
    roots = [p for p, text in sources.items() if p.suffix == ".cpp" and '.parent = ""' in text]
    if len(roots) != 1:
        refuse(f"backend cpu: {len(roots)} variants have no parent, not one; copy a variant instead")
    code = sources[roots[0]]
    code = code[code.index("#include"):]
    for field, skeleton in FIELDS.items():
        code, found = re.subn(field, skeleton, code)
        if found != 1:
            refuse(f"{roots[0]}: has {found} times {field}, needed once; copy a variant instead")
    return (TEMPLATES / "opening.txt").read_text(encoding="utf-8") + code


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("id", help="file stem = id in rows, tables and figures")
    parser.add_argument("--family", required=True, help="folder of algorithms/")
    parser.add_argument("--backend", required=True, choices=("cpu", "cuda"))
    parser.add_argument("--parent", required=True, help="id of the variant it is a step from")
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
    if args.backend == "cpu":
        text = cpu_skeleton(known.values())
    else:
        text = (TEMPLATES / "variant.cu").read_text(encoding="utf-8")
    path = ROOT / "algorithms" / args.family / f"{args.id}.{EXTENSION[args.backend]}"
    new_family = not path.parent.is_dir()
    path.parent.mkdir(exist_ok=True)
    for word, value in {"@ID@": args.id, "@FAMILY@": args.family, "@PARENT@": args.parent}.items():
        text = text.replace(word, value)
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}")
    if new_family:
        print(f"{args.family} is a new family: it wants a README.md of its own")
    print(f"next: edit it, then scripts/test.sh -k {args.id} or "
          f"scripts/reproduce.sh --variants {args.id}")


if __name__ == "__main__":
    main()
