"""Runs the program xcorr-bench: its list of variants, its facts of the machine, and a process of measurements."""

import contextlib
import ctypes
import json
import math
import os
import selectors
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

from experiments.driver.points import Unit
from experiments.driver.schema import Preset
from xcorr.errors import UserError
from xcorr.files import resolved
from xcorr.native.variants import Variant
from xcorr.paths import build_directory
from xcorr.problem import Problem, format_shape

SEED = 1
# Exit codes of xcorr-bench, see its --help.
USER_ERROR, DEVICE_LOST = 2, 3
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def _die_with(parent: int) -> None:
    """The child calls this before exec. The system then kills the child when the driver ends for any reason."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the driver ended before the request
            os._exit(1)


@dataclass(frozen=True)
class Starting:
    """The process begins to verify a point. `number`: its index in the list of points, None without a list."""

    params: str
    number: int | None = None


@dataclass(frozen=True)
class Record:
    """The report of xcorr-bench on a finished point."""

    fields: dict[str, Any]
    number: int | None = None

    @property
    def params(self) -> str:
        return str(self.fields.get("params", ""))


@dataclass(frozen=True)
class Ended:
    """How a process ended. `reason` is empty for exit codes 0 and 1.

    `device_lost`: the point reported last made the device unusable, and the process stopped. The points that were not
    reported can be measured by a new process.
    """

    reason: str
    timed_out: bool = False
    user_error: bool = False
    device_lost: bool = False


def program() -> Path:
    """`$XCORR_BUILD/xcorr-bench`, by default build/xcorr-bench; UserError when it is not built."""
    path = build_directory() / "xcorr-bench"
    if not path.is_file():
        raise UserError(f"{path}: not built; run meson setup build && ninja -C build")
    return resolved(path)


# Outcomes that xcorr-bench reports. The driver itself adds not_selected and timeout.
REPORTED = ("passed", "incorrect", "not_supported", "out_of_memory", "failed")


def verdict_of(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Outcome and reason of a record. A record that is `passed` without a time or an error counts as failed."""
    outcome, reason = fields.get("outcome"), str(fields.get("reason") or "")
    if outcome not in REPORTED:
        return "failed", f"xcorr-bench reported the outcome {outcome!r}"
    if outcome != "passed":
        return outcome, reason
    repetitions = fields.get("repetitions")
    times = [one.get("compute_us") if isinstance(one, dict) else None for one in repetitions or ()]
    if not times or not all(is_number(us) and us > 0 for us in times):
        return "failed", "reported as passed without a time of each repetition"
    if not is_number(fields.get("max_error")):
        return "failed", "reported as passed without an error against the reference"
    return outcome, reason


def is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


class Bench:
    """Runs xcorr-bench for one device."""

    def __init__(self, path: Path, device: str = "cpu") -> None:
        self.path = path
        self.device = device

    def _json(self, *arguments: str) -> Any:
        command = [str(self.path), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"{shlex.join(command)}: {error}; build again") from error
        if done.returncode != 0:
            cause = _last_line(done.stderr) or f"exit code {done.returncode}"
            raise UserError(cause.removeprefix("error: "))
        try:
            return json.loads(done.stdout)
        except ValueError as error:
            raise UserError(f"{shlex.join(command)}: not JSON ({error}); build again") from error

    def variants(self) -> list[Variant]:
        """The variants of this build, sorted by id."""
        return sorted(map(Variant.from_list, self._json("--list=json")["variants"]), key=lambda variant: variant.id)

    def machine(self) -> dict[str, Any]:
        """Facts of the device and the build; `machine_key` names the folder of its results."""
        facts: dict[str, Any] = self._json("--machine", "--device", self.device)
        if not facts.get("machine_key"):
            raise UserError("xcorr-bench --machine: machine_key is missing; build again")
        return facts

    def measure(
        self, unit: Unit, params: Sequence[str], preset: Preset, timeout_s: Callable[[str], float]
    ) -> Iterator[Starting | Record | Ended]:
        """Runs one process, yields its reports as they arrive, and then how it ended.

        `timeout_s(params)` is the longest time, in seconds, for a point; then the process is killed. The process is
        also killed when the caller stops iterating.
        """
        chosen = [word for one in params if one for word in ("--params", one)]
        energy = ["--energy-time", str(unit.energy_s)] if unit.energy_s else []
        words = [*words_of(_options(unit)), *chosen, *_timing(preset), *energy]
        yield from self._events(words, b"", params[0], lambda event: timeout_s(event.params))

    def measure_points(
        self,
        points: Sequence[tuple[Unit, str]],
        preset: Preset,
        timeout_s: Callable[[int], float],
        own: Sequence[Mapping[str, Any]] = (),
    ) -> Iterator[Starting | Record | Ended]:
        """As measure, for points of several problems. Events carry the index of a point, and `timeout_s` takes it. `own`: options
        of each point beside those of the preset."""
        words = ["--points", "-", *_timing(preset)]
        asked = [{**_options(unit), "params": one, "energy_time": float(unit.energy_s)} for unit, one in points]
        asked = [{**point, **more} for point, more in zip(asked, own)] if own else asked
        lines = "".join(json.dumps(point) + "\n" for point in asked)
        yield from self._events(words, lines.encode(), points[0][1], lambda event: timeout_s(event.number or 0))

    def _events(
        self, words: Sequence[str], lines: bytes, first: str, timeout_s: Callable[[Starting], float]
    ) -> Iterator[Starting | Record | Ended]:
        with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as asked:
            asked.write(lines)
            asked.seek(0)
            try:
                child = subprocess.Popen(
                    [str(self.path), "--device", self.device, *words],
                    stdin=asked,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,  # Ctrl-C reaches the driver, which ends the child
                    preexec_fn=partial(_die_with, os.getpid()),
                )
            except OSError as error:
                raise UserError(f"{self.path}: {error.strerror}; build again") from error
            assert child.stdout is not None
            try:
                output = _Lines(child.stdout)
                flight = Starting(first)
                begin = time.monotonic()
                while line := output.next(begin + timeout_s(flight) - time.monotonic()):
                    event = _event(line)
                    if event is not None:
                        begin = time.monotonic()
                        if isinstance(event, Starting):
                            flight = event
                        yield event
                if line is not None:  # the end of the output, and not a timeout
                    child.wait()
            finally:
                child.kill()  # does nothing where it has ended
                code = child.wait()
                child.stdout.close()
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - 4000))
            yield _ended(code, line is None, errors.read().decode(errors="replace"))


def _timing(preset: Preset) -> list[str]:
    """The options for the repetitions of a point, their times and the records."""
    repeated = ["--repetitions", str(preset.repetitions), "--min-time", str(preset.min_time_s)]
    if preset.noise is not None and preset.max_time_s is not None:
        repeated += ["--noise", str(preset.noise), "--max-time", str(preset.max_time_s)]
    if preset.brief:
        repeated.append("--brief")
    return ["--seed", str(SEED), *repeated, "--records", "-"]


def problem_options(problem: Problem) -> dict[str, Any]:
    """The options of xcorr-bench that give a problem."""
    shapes = {"form": problem.form, "left": format_shape(problem.left), "right": format_shape(problem.right)}
    counts = {"lefts": problem.lefts, "rights": problem.rights, "window": problem.window}
    return {**shapes, **counts, **problem.fields.given}


def words_of(options: Mapping[str, Any]) -> list[str]:
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]


def _options(unit: Unit) -> dict[str, Any]:
    """The options of a unit except its parameters and its energy time."""
    variant = {"variant": unit.variant.id, "precision": unit.precision}
    return {**variant, **problem_options(unit.problem), "mode": unit.mode, "input": unit.input}


class _Lines:
    """Reads lines of a pipe, with a deadline for each line."""

    def __init__(self, pipe: Any) -> None:
        self._pipe: BinaryIO = pipe
        self._buffer = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(pipe, selectors.EVENT_READ)

    def next(self, timeout_s: float) -> bytes | None:
        """The next line; b"" at the end, None after `timeout_s` seconds."""
        end = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            left = end - time.monotonic()
            if left <= 0 or not self._selector.select(left):
                return None
            part = os.read(self._pipe.fileno(), 65536)
            if not part:
                self._selector.close()
                return b""  # an incomplete line of a killed process is no report
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line + b"\n"


def _event(line: bytes) -> Starting | Record | None:
    """The report in a line; None for other output, such as the table of Google Benchmark."""
    if not line.lstrip().startswith(b"{"):
        return None
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        report = json.loads(line)
        number = report.get("point")
        if "starting" in report:
            return Starting(report["starting"]["params"], number)
        if "record" in report:
            return Record(dict(report["record"]), number)
    return None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _ended(code: int, timed_out: bool, stderr: str) -> Ended:
    if timed_out:
        return Ended("timed out", timed_out=True)
    if code in (0, 1):
        return Ended("")
    reason = f"exit code {code}"
    if code < 0:
        known = [one.name for one in signal.Signals if one == -code]
        reason = f"killed by {known[0] if known else f'signal {-code}'}"
    if -code == signal.SIGKILL:
        reason += " (the system may have run out of memory)"
    said = _last_line(stderr)
    reason += f": {said}" if said else ""
    return Ended(reason, user_error=code == USER_ERROR, device_lost=code == DEVICE_LOST)
