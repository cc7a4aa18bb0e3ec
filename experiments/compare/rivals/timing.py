"""Seconds of a call: by the clock of the host on a CPU; on a GPU by cuda-bench, or by events of torch or CuPy."""

import contextlib
import importlib
import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments.compare.records import call_seconds
from xcorr.errors import UserError

QUEUE = 200  # most calls between two events
Timer = Callable[[Callable[[], Any], float, bool], float]  # a call, seconds to fill, whether it follows the stream


def on_host(call: Callable[[], Any], duration: float, _: bool) -> float:
    return call_seconds(call, duration)


def by_events(module: Any) -> Timer:
    """Timer with events in the current stream of torch or cupy."""

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

    def timer(call: Callable[[], Any], duration: float, _: bool) -> float:
        one = elapsed(call, 1)
        return elapsed(call, max(1, min(QUEUE, int(duration / max(one, 1e-6)))))

    return timer


def by_nvbench(bench: Any, otherwise: Timer) -> Timer:
    """Timer with cuda-bench: the mean of batches of calls, without a blocking kernel, since a library of Python may allocate
    in a call. Calls that do not follow the stream are timed by `otherwise`."""
    results = importlib.import_module(f"{bench.__name__}.results")
    numbers = itertools.count()

    def timer(call: Callable[[], Any], duration: float, follows_stream: bool) -> float:
        if not follows_stream:
            return otherwise(call, duration, follows_stream)
        name = f"rival-{next(numbers)}"

        def body(state: Any) -> None:
            state.set_disable_blocking_kernel(True)

            def launched(launch: Any) -> None:
                with contextlib.ExitStack() as stack:
                    for stream in _streams(launch.get_stream().addressof()):
                        stack.enter_context(stream)
                    call()

            state.exec(launched)

        entry = bench.register(body).set_name(name).set_min_samples(3)
        entry.set_timeout(2 * duration).set_batch_target_time(duration)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "times.json"
            bench.run_all_benchmarks(["rivals", "--quiet", "--json", str(path), "--devices", "0", "--benchmark", name])
            (state,) = results.BenchmarkResult.from_json(path).subbenches[name].states
        for tag in ("nv/batch/time/gpu/mean", "nv/cold/time/gpu/mean"):
            if tag in state.summaries:
                return float(state.summaries[tag].value)
        raise RuntimeError(f"cuda-bench gave no time ({state.skip_reason})")

    return timer


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
        return "clock of the host", on_host, lambda: None
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
    return f"events of {module.__name__}", events, wait


def once(step: Callable[[], Any], wait: Callable[[], Any]) -> tuple[Any, float]:
    """Result and seconds of a step by the clock of the host."""
    wait()
    begin = time.perf_counter()
    result = step()
    wait()
    return result, time.perf_counter() - begin
