"""Make one table of the records that tests.mutants.run has written: which place caught which mutant.

A later record replaces what an earlier one says of the same mutant, unit and place.

Example: python3 -m tests.mutants.table cpu.json card.json --output docs/evidence/mutants.md
"""

import argparse
import json
import sys
from pathlib import Path

from tests.mutants.mutants import DATA, PLACES, Mistake, Mutant, load
from tests.mutants.run import CONTROL

FIELDS = ("commit", "machine", "utc", "seconds", "places", "counts")


def read(path: Path) -> dict:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Mistake(f"{path}: not a record of tests.mutants.run ({error})") from error
    if not isinstance(record, dict) or {*FIELDS, "results"} - record.keys():
        raise Mistake(f"{path}: not a record of tests.mutants.run")
    return record


def table(mutants: list[Mutant], records: list[dict]) -> tuple[str, list[str]]:
    """The page, and a line for each mutant that no place has caught though one must, or that no place has run."""
    found: dict[tuple[str, str, str], str] = {}
    for record in records:
        for result in record["results"]:
            found[result["mutant"], result["unit"], result["place"]] = result["outcome"]
    rows, missed, not_run, caught_in = [], [], [], dict.fromkeys(PLACES, 0)
    for mutant in mutants:
        for unit in mutant.units:
            outcomes = {place: found.get((mutant.name, unit, place), "") for place in PLACES}
            caught = [place for place in PLACES if outcomes[place] == "caught"]
            for place in caught:
                caught_in[place] += 1
            if not any(outcomes.values()):
                not_run.append(f"NOT RUN {mutant.name} ({unit})")
            elif not caught and not mutant.equivalent:
                missed.append(f"NOT CAUGHT {mutant.name} ({unit})")
            cells = [outcomes[place] for place in PLACES]
            rows.append(f"| {mutant.name} | {unit} | {' | '.join(cells)} | {mutant.equivalent} |")
    controls = [outcome for (name, _, _), outcome in found.items() if name == CONTROL]
    equivalent = sum(bool(mutant.equivalent) for mutant in mutants)
    lines = [
        "# Mutants and where they are caught",
        "",
        "Made by `python3 -m tests.mutants.table` from the records of `python3 -m tests.mutants.run`.",
        "An empty cell was not run: one place that catches a mutant is enough.",
        "",
        f"{len(mutants)} mutants, {len(missed)} that no place caught, {len(not_run)} that were not run, "
        + f"{equivalent} that change nothing. "
        + f"Caught: {', '.join(f'{place} {n}' for place, n in caught_in.items())}. "
        + f"Controls passed: {controls.count('passed')} of {len(controls)}.",
        "",
        "| commit | machine | UTC | places | seconds |",
        "|---|---|---|---|---:|",
        *(
            f"| {record['commit'][:12]}{' with changes' if 'with' in record['commit'] else ''} | {record['machine']} "
            f"| {record['utc']} | {', '.join(record['places'])} | {record['seconds']} |"
            for record in records
        ),
        "",
        f"| mutant | variant | {' | '.join(PLACES)} | why it changes nothing |",
        "|---|---|" + "---|" * (len(PLACES) + 1),
        *rows,
    ]
    return "\n".join(lines) + "\n", missed + not_run


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.mutants.table", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, required=True, help="the page, in Markdown")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the TOML files")
    args = parser.parse_args(argv)
    try:
        page, missed = table(load(args.data), [read(path) for path in args.records])
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(page, encoding="utf-8")
    except Mistake as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    for what in missed:
        print(what)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
