"""Times one point with xcorr-bench, or one call in this process."""

import json
import subprocess
import time
from collections.abc import Callable
from typing import Any

from experiments.driver.bench import problem_options, program, words_of
from xcorr.errors import UserError
from xcorr.problem import Problem


def call_seconds(call: Callable[[], Any], duration: float, synchronise: Callable[[], Any] = lambda: None) -> float:
    """Mean seconds of a call, for as many calls as fill `duration` seconds."""
    calls, begin = 0, time.perf_counter()
    while True:
        call()
        calls += 1
        if time.perf_counter() - begin >= duration:
            synchronise()
            return (time.perf_counter() - begin) / calls
        if calls % 100 == 0:  # limits the length of the queue
            synchronise()


def record_of(
    device: str, variant: str, params: str, problem: Problem, repetitions: int, min_time_s: float
) -> dict[str, Any]:
    """The record of a measured point. UserError, which names the point, where it does not pass."""
    timing = {"repetitions": repetitions, "min-time": min_time_s, "records": "-"}
    point = {"device": device, "variant": variant, **({"params": params} if params else {}), **problem_options(problem)}
    done = subprocess.run([str(program()), *words_of(point | timing)], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        record = json.loads(line).get("record") if line.startswith('{"record"') else None
        if record and record["outcome"] == "passed":
            return dict(record)
        if record:
            raise UserError(f"{variant} {params}: {record['outcome']}: {record['reason']}")
    last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    raise UserError(f"{variant} {params}: {last.removeprefix('error: ')}")


def seconds_of(
    device: str, variant: str, params: str, problem: Problem, repetitions: int, min_time_s: float
) -> list[float]:
    """Seconds of a call in each repetition. UserError as record_of."""
    record = record_of(device, variant, params, problem, repetitions, min_time_s)
    return [float(one["compute_us"]) * 1e-6 for one in record["repetitions"]]
