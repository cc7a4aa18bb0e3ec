"""Reads the fragments of tf32 matrices back from a GPU; claim K09 compares them with Figs. 5 and 6 of the TF32 paper.

The command compiles fragments.cu with nvcc, or takes the program of --program, and runs it on the first GPU. It stores
the output as an artifact of the experiment `series-fragments`.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from experiments.compare import artifacts
from xcorr.errors import Parser, UserError, command
from xcorr.files import resolved
from xcorr.native.library import Library

EXPERIMENT = "series-fragments"
SOURCE = Path(__file__).with_suffix(".cu")
LIMIT_S = 300
REGISTERS = {"a": 4, "b": 4, "c": 8}
EPILOG = """example:
  python3 -m experiments.compare.fragments                     compiles with nvcc and runs
  nvcc -arch=sm_80 -o fragments experiments/compare/fragments.cu
  python3 -m experiments.compare.fragments --program fragments"""


def compiled(folder: Path) -> Path:
    """The program, compiled with nvcc. UserError without nvcc or where it fails."""
    nvcc = shutil.which("nvcc", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/cuda/bin"]))
    if nvcc is None:
        raise UserError("nvcc: not found; give a compiled fragments.cu with --program")
    program = folder / "fragments"
    _run([nvcc, "-arch=sm_80", "-o", str(program), str(SOURCE)], "nvcc")
    return program


def _run(words: Sequence[str], what: str) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{what}: {error}; see --help") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UserError(f"{what}: {last}; a GPU of compute capability 8.0 or newer is needed")
    return done.stdout


def read(text: str) -> dict[str, list[list[int]]]:
    """The output of the program: elements by fragment, lane and register. UserError for other text."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        found = json.loads(text)
        if all([len(lane) for lane in found[name]] == [count] * 32 for name, count in REGISTERS.items()):
            return found
    way_out = "compile experiments/compare/fragments.cu"
    raise UserError(f"fragments: prints something else than 32 lanes of a, b and c; {way_out}")


def by_columns(element: int) -> int:
    """The column-major index of the element of C with the row-major index 16 i + j."""
    return element // 16 + 16 * (element % 16)


def run(argv: Sequence[str]) -> int:
    parser = Parser(prog="python3 -m experiments.compare.fragments", description=__doc__, epilog=EPILOG)
    program_help = "fragments.cu, compiled (default: nvcc compiles it)"
    parser.add_argument("--program", type=Path, metavar="FILE", help=program_help)
    parser.add_argument("--machine-key", metavar="KEY", help="of the set (default: xcorr-bench is asked)")
    parser.add_results()
    options = parser.parse_args(argv)
    key = options.machine_key or Library().machine("cuda")["machine_key"]
    with tempfile.TemporaryDirectory(prefix="xcorr-") as folder:
        program = resolved(options.program) if options.program else compiled(Path(folder))
        found = read(_run([str(program)], "fragments"))
    path = artifacts.store(options.results / "local" / key, EXPERIMENT, found, indent=None)
    for name in REGISTERS:
        print(f"{name}: lane 0 has the elements {', '.join(map(str, found[name][0]))}")
    print(f"stored: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(command(run))
