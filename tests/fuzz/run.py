"""One run of random inputs, in a process that the sanitizers watch.

    python3 -m tests.fuzz.run c_api --examples 100000 --seed 3
    python3 -m tests.fuzz.run npy --examples 5000

The command starts itself again with the sanitizer loaded before Python. Exit code 1 where an example fails or ends the
process; the example is printed.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz import npy_files, requests
from xcorr.paths import ROOT, build_directory

sys.path.insert(0, str(ROOT / "tests" / "support"))
from c_api import Api  # noqa: E402

WATCHED = "XCORR_FUZZ_WATCHED"
MOST_ELEMENTS = 1 << 16  # of what is computed
MOST_BYTES = 1 << 22


def library() -> Path:
    return build_directory() / "tests" / "fuzz" / "libxcorr-sanitized.so"


def sanitizer() -> str:
    """The runtime that the library is linked with, as the loader finds it, and that of C++, whose exceptions it watches."""
    if not library().exists():
        raise SystemExit(
            f"error: {library()}: is not built; run ninja -C {build_directory()} tests/fuzz/{library().name}"
        )
    listed = subprocess.run(["ldd", library()], capture_output=True, text=True, check=True).stdout
    found = {name: line.split()[2] for name in ("libasan", "libstdc++") for line in listed.splitlines() if name in line}
    if len(found) != 2:
        raise SystemExit(f"error: {library()}: is not linked with a shared libasan; build with GCC")
    return " ".join(found.values())


def watched(argv: list[str]) -> int:
    """Runs the same command under the sanitizer; shows the example that was the last one of a process that ended."""
    with tempfile.TemporaryDirectory() as folder:
        last = Path(folder) / "last"
        options = "detect_leaks=0:exitcode=99:allocator_may_return_null=1"
        environment = {**os.environ, WATCHED: str(last), "LD_PRELOAD": sanitizer(), "ASAN_OPTIONS": options}
        environment |= {"UBSAN_OPTIONS": "print_stacktrace=1", "OMP_NUM_THREADS": "1", "PYTHONMALLOC": "malloc"}
        code = subprocess.run([sys.executable, "-m", "tests.fuzz.run", *argv], cwd=ROOT, env=environment, check=False)
        if code.returncode not in (0, 1) and last.exists():
            print(f"error: the process ended with exit code {code.returncode} at the example {last.read_text()}")
        return min(abs(code.returncode), 1)


class CApi:
    """Examples of the C API. Every answer is a success, or an error of one line."""

    def __init__(self, last: Path, plant: bool) -> None:
        self.api, self.last, self.plant = Api(str(library())), last, plant
        self.seen: Counter[str] = Counter()

    def note(self, example: Any) -> None:
        self.last.write_text(repr(example))

    def check(self, answer: Any, what: str) -> bool:
        self.seen[f"{what} {'done' if answer.status == 0 else 'refused'}"] += 1
        if answer.status == 0:
            return True
        assert answer.status == 1 and answer.error and "\n" not in answer.error, answer
        return False

    def wrong(self, text: bytes) -> None:
        self.note(text)
        for name in ("describe", "supports"):
            self.check(self.api.call(name, text), name)
        described = self.api.call("describe", _problem_of(text))
        if described.status == 0 and json.loads(described.json)["fmas"] > MOST_ELEMENTS:
            return  # right, and too large to be computed here
        answer, handle = self.api.open(text)
        if self.check(answer, "open"):
            assert self.api.call("close", handle).status == 0
        else:
            assert handle is None

    def right(self, request: dict[str, Any], fill: int) -> None:
        self.note((request, fill))
        problem = {name: value for name, value in request.items() if name not in (*requests.SETTINGS, "device")}
        described = self.api.call("describe", json.dumps(problem).encode())
        if not self.check(described, "describe"):
            return
        facts = json.loads(described.json)
        answer, handle = self.api.open(request)
        if not self.check(answer, "open"):
            return
        scalar = np.float64 if request["precision"] == "fp64" else np.float32
        rng = np.random.default_rng(fill)
        sides = [rng.normal(size=(request[f"{one}s"], *request[one])).astype(scalar) for one in ("left", "right")]
        masks = [(rng.random(side.shape) < 0.8).astype(np.uint8) for side in sides]
        # Bytes of records do not depend on the scalar, those of surfaces do; so the memory has its exact size.
        surface = request.get("result", "surface") == "surface"
        size = facts["result_bytes"] * (scalar().itemsize // 4 if surface else 1)
        out = np.zeros(size - (1 if self.plant else 0), np.uint8)
        offsets, pitches = [None, None], [0, 0]
        if request.get("views") == "windows":
            offsets = [np.arange(len(side), dtype=np.int64) * side[0].size for side in sides]
            pitches = [side.shape[2] for side in sides]
        elif request.get("views") == "channels":
            offsets = [np.arange(side[..., 0].size, dtype=np.int64) * side.shape[2] for side in sides]
        arrays = (ctypes.c_void_p * 7)(*(None if a is None else a.ctypes.data for a in (*sides, out, *masks, *offsets)))
        numbers = (ctypes.c_int64 * 4)(*pitches, *(side.size for side in sides))
        struct = bytes(arrays) + bytes(numbers)
        kept = ctypes.create_string_buffer(struct, len(struct))
        for _ in range(2):
            self.check(self.api.call("compute_with", handle, kept), "compute")
        assert self.api.call("close", handle).status == 0
        assert self.api.call("close", handle).status == 1


def _problem_of(text: bytes) -> bytes:
    """The text without the keys that are no part of a problem, where it is an object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(found, dict):
        return text
    return json.dumps(
        {key: value for key, value in found.items() if key not in (*requests.SETTINGS, "device")}
    ).encode()


def npy(content: bytes, folder: Path) -> str:
    """What reading the file says; any error but a UserError of one line is a fault."""
    from xcorr.commands.matrices import read_header, read_matrices
    from xcorr.errors import UserError

    path = folder / "matrix.npy"
    path.write_bytes(content)
    try:
        header = read_header(path)
        array = read_matrices(path, header)
    except UserError as error:
        assert "\n" not in str(error) and "matrix.npy" in str(error), error
        return "refused"
    assert array.dtype.kind in "biuf" and array.nbytes <= max(MOST_BYTES, len(content)), array.shape
    return "read"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["c_api", "npy"])
    parser.add_argument("--examples", type=int, default=1000, help="of each kind (default 1000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", action="store_true", help="give the C API one byte too few, which must be found")
    args = parser.parse_args(argv)
    if WATCHED not in os.environ:
        return watched(argv)
    last = Path(os.environ[WATCHED])
    chosen = settings(
        max_examples=args.examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    if args.what == "c_api":
        fuzz = CApi(last, args.plant)
        seed(args.seed)(chosen(given(requests.computed(), requests.st.integers(0, 9))(fuzz.right)))()
        seed(args.seed)(chosen(given(requests.wrong())(fuzz.wrong)))()
        print(", ".join(f"{count} {what}" for what, count in sorted(fuzz.seen.items())))
        return 0
    seen: Counter[str] = Counter()

    def one(content: bytes) -> None:
        last.write_text(repr(content))
        seen[npy(content, last.parent)] += 1

    seed(args.seed)(chosen(given(npy_files.files())(one)))()
    print(", ".join(f"{count} {what}" for what, count in sorted(seen.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
