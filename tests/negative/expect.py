"""Runs a program that must fail, and passes only if it fails as it should: with this exit code, and saying this.

usage: expect.py CODE PATTERN -- PROGRAM [ARGUMENT...]

PATTERN is a regular expression that a line of what the program prints must match. Exit code 77 of the program is passed on:
the test is skipped. meson.build of tests/negative and tests/stress call it.
"""

import re
import subprocess
import sys
from collections.abc import Sequence

SKIPPED = 77


def main(argv: Sequence[str]) -> int:
    code, pattern, dashes, *words = argv
    if dashes != "--" or not words:
        print(__doc__, file=sys.stderr)
        return 2
    done = subprocess.run(
        words, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    print(done.stdout, end="")
    if done.returncode == SKIPPED:
        return SKIPPED
    faults = []
    if done.returncode != int(code):
        faults.append(f"exit code {done.returncode} in place of {code}")
    if not re.search(pattern, done.stdout, re.MULTILINE):
        faults.append(f"no line matches {pattern!r}")
    for fault in faults:
        print(f"NOT AS EXPECTED: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
