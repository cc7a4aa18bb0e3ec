"""Times calls: by the clock of the host on a CPU; on a GPU by cuda-bench, or by events of torch or CuPy."""

import contextlib
import importlib
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.compare.records import call_seconds
from xcorr.errors import UserError

QUEUE = 200  # most calls between two events
NAME = "rivals"  # of the one benchmark of cuda-bench


@dataclass(frozen=True)
class Round:
    """A call to be timed. `note` takes its seconds, `fail` the error of its library instead."""

    call: Callable[[], Any]
    duration: float  # seconds to fill with calls
    follows_stream: bool
    note: Callable[[float], Any]
    fail: Callable[[BaseException], Any]


Clock = Callable[[Callable[[], Any], float], float]  # seconds of a call, from calls that fill a duration
# Times all rounds in their order; there are at most as many as the number says. What makes the rounds runs between them.
Timer = Callable[[Iterator[Round], int], None]


def one_by_one(clock: Clock) -> Timer:
    def timer(rounds: Iterator[Round], _: int) -> None:
        for one in rounds:
            _timed(clock, one)

    return timer


def _timed(clock: Clock, one: Round) -> None:
    try:
        one.note(clock(one.call, one.duration))
    except Exception as error:  # of a library that is not ours
        one.fail(error)


def by_events(module: Any) -> Clock:
    """Clock with events in the current stream of torch or cupy."""

    def elapsed(call: Callable[[], Any], count: int) -> float:
        options = {} if module.__name__ == "cupy" else {"enable_timing": True}
        start, end = module.cuda.Event(**options), module.cuda.Event(**options)
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        gone = module.cuda.get_elapsed_time(start, end) if module.__name__ == "cupy" else start.elapsed_time(end)
        return float(gone) * 1e-3 / count

    def clock(call: Callable[[], Any], duration: float) -> float:
        one = elapsed(call, 1)
        return elapsed(call, max(1, min(QUEUE, int(duration / max(one, 1e-6)))))

    return clock


def by_nvbench(bench: Any, otherwise: Clock) -> Timer:
    """Timer with cuda-bench: the mean of batches of calls, without a blocking kernel, since a library of Python may allocate
    in a call. Calls that do not follow the stream are timed by `otherwise`.

    A process can run the benchmarks of cuda-bench once. So there is one benchmark, whose axis numbers the rounds, and its
    times are known when all rounds have run.
    """
    results = importlib.import_module(f"{bench.__name__}.results")

    def timer(rounds: Iterator[Round], most: int) -> None:
        ran: dict[int, Round] = {}
        raised: list[BaseException] = []

        def next_of_stream() -> Round | None:
            for one in rounds:
                if one.follows_stream:
                    return one
                _timed(otherwise, one)
            return None

        # Nothing may be raised through cuda-bench.
        def body(state: Any) -> None:
            try:
                one = None if raised else next_of_stream()
            except BaseException as error:
                raised.append(error)
                one = None
            if one is None:
                state.skip("every round has run")
                return
            failed = _executed(state, one)
            if failed is None:
                ran[state.get_int64("round")] = one
                return
            if isinstance(failed, Exception):
                one.fail(failed)
            else:
                raised.append(failed)
            state.skip("the call failed")

        bench.register(body).set_name(NAME).set_min_samples(3).add_int64_axis("round", list(range(most)))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "times.json"
            bench.run_all_benchmarks([NAME, "--quiet", "--json", str(path), "--devices", "0", "--benchmark", NAME])
            if raised:
                raise raised[0]
            while late := next_of_stream():  # what follows the last round runs here too
                late.fail(RuntimeError(f"more than {most} rounds"))
            for state in results.BenchmarkResult.from_json(path).subbenches[NAME].states:
                if one := ran.pop(int(state.point["round"]), None):
                    _noted(one, state)
        for one in ran.values():
            one.fail(RuntimeError("cuda-bench gave no time"))

    return timer


def _executed(state: Any, one: Round) -> BaseException | None:
    """Runs a round as a state of cuda-bench; the error of its library."""
    failed: list[BaseException] = []

    def launched(launch: Any) -> None:
        if failed:
            return
        try:
            with contextlib.ExitStack() as stack:
                for stream in _streams(launch.get_stream().addressof()):
                    stack.enter_context(stream)
                one.call()
        except BaseException as error:
            failed.append(error)

    state.set_disable_blocking_kernel(True)
    state.set_timeout(2 * one.duration)
    state.set_batch_target_time(one.duration)
    state.exec(launched)
    return failed[0] if failed else None


def _noted(one: Round, state: Any) -> None:
    for tag in ("nv/batch/time/gpu/mean", "nv/cold/time/gpu/mean"):
        if tag in state.summaries:
            one.note(float(state.summaries[tag].value))
            return
    one.fail(RuntimeError(f"cuda-bench gave no time ({state.skip_reason})"))


def _streams(address: int) -> list[Any]:
    """Contexts in which the libraries that are there work in the stream."""
    found: list[Any] = []
    with contextlib.suppress(ImportError):
        torch = importlib.import_module("torch")
        found.append(torch.cuda.stream(torch.cuda.ExternalStream(address)))
    with contextlib.suppress(ImportError):
        found.append(importlib.import_module("cupy").cuda.ExternalStream(address))
    return found


def timers(device: str, wanted: str) -> tuple[str, Timer, Callable[[], Any]]:
    """Name of the timer, the timer, and what waits for the device. `wanted`: auto, nvbench or events."""
    if device == "cpu":
        return "clock of the host", one_by_one(call_seconds), lambda: None
    modules = []
    for name in ("cupy", "torch"):
        with contextlib.suppress(ImportError):
            modules.append(importlib.import_module(name))
    if not modules:
        raise UserError(f"device {device}: neither torch nor cupy can be imported, which time it; pip install torch")
    module = modules[-1]

    def wait() -> None:
        (module.cuda.Device() if module.__name__ == "cupy" else module.cuda).synchronize()

    events = by_events(module)
    if wanted != "events":
        try:
            return (
                f"cuda-bench, events of {module.__name__} for calls in the default stream",
                by_nvbench(importlib.import_module("cuda.bench"), events),
                wait,
            )
        except ImportError as error:
            if wanted == "nvbench":
                raise UserError(f"timer nvbench: {error}; pip install cuda-bench, or use --timer events") from error
    return f"events of {module.__name__}", one_by_one(events), wait


def once(step: Callable[[], Any], wait: Callable[[], Any]) -> tuple[Any, float]:
    """Result and seconds of a step by the clock of the host."""
    wait()
    begin = time.perf_counter()
    result = step()
    wait()
    return result, time.perf_counter() - begin
