"""Measures template matching by other libraries and by ours in one run: times, and differences from float64.

Ours is the variant that xcorr.auto chooses on each device. xcorr-bench times it without Python on uniform random
numbers; its scores are those of the photograph. The libraries are called from Python. All times are of the computation
with data on the device, without transfers. A library that cannot be imported is left out, and the stored file gives the
reason.
"""

import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from experiments import folders
from experiments.compare import artifacts
from experiments.compare.records import call_seconds, seconds_of
from experiments.compare.zncc_peers import PEERS, Peer, truth
from xcorr.choice.auto import Auto
from xcorr.errors import Parser, UserError, command
from xcorr.native.library import Library
from xcorr.problem import Problem

EXPERIMENT = "template-rivals"
SCHEMA = 1
LONGEST_S = 1.0  # for the calls of one contestant on one problem; a slow contestant has fewer rounds
NOISE = 4.0  # standard deviation, for grey values of 0 to 255; with noise no window is constant
EPILOG = """example:
  python3 -m experiments.compare.rivals --device cuda:0 --rounds 5 --seconds 0.05

Publish the set afterwards with python3 -m experiments.published.publish KEY --add --partial --experiments template-rivals."""


def data() -> dict[str, Any]:
    """Table `rivals` of experiments/template_matching/baselines.toml."""
    return dict(folders.part("template_matching", "baselines")["rivals"])


def problems() -> list[dict[str, Any]]:
    """The problems of `data`, one for each number of templates: `template` and `frame` (rows, columns), `templates`."""
    found = []
    for one in data()["problems"]:
        shapes = {name: tuple(map(int, one[name].split("x"))) for name in ("template", "frame")}
        found += [{**shapes, "templates": count} for count in one["templates"]]
    return found


def inputs(problem: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Templates (n x rows x cols) and the frame (rows x cols) that has them: float32 grey values of 0 to 255."""
    from skimage import data

    rng = np.random.default_rng(1)
    photo = data.camera().astype(np.float64)
    rows, cols = problem["frame"]
    frame = np.pad(photo, [(0, max(0, rows - photo.shape[0])), (0, max(0, cols - photo.shape[1]))], "symmetric")
    frame = frame[:rows, :cols] + NOISE * rng.normal(size=(rows, cols))
    height, width = problem["template"]
    corners = [(rng.integers(rows - height + 1), rng.integers(cols - width + 1)) for _ in range(problem["templates"])]
    templates = [frame[y : y + height, x : x + width] for y, x in corners]
    return np.array(templates, np.float32), frame.astype(np.float32)


def request_of(problem: dict[str, Any]) -> Problem:
    """The problem of our library: templates are the left matrices, the frame is the right matrix."""
    sizes = (problem["template"], problem["frame"], problem["templates"], 1)
    return Problem("n-to-m", *sizes, window="valid", score="zncc")


def difference(scores: np.ndarray, exact: np.ndarray) -> float:
    """The largest absolute difference; infinite for another shape or a value that is not finite."""
    scores = np.asarray(scores, np.float64)
    if scores.shape != exact.shape or not np.isfinite(scores).all():
        return float("inf")
    return float(np.abs(scores - exact).max())


def spread(times: Sequence[float]) -> dict[str, Any]:
    """Median, number and range of the rounds."""
    return {"seconds": statistics.median(times), "rounds": len(times), "least": min(times), "most": max(times)}


def of_peer(peer: Peer, templates: np.ndarray, frame: np.ndarray, rounds: int, duration: float) -> dict[str, Any]:
    """`spread` of a peer's seconds, and its scores."""
    module = peer.load()
    call = peer.make(module, templates, frame)
    scores = np.asarray(peer.host(module, call()))
    times: list[float] = []
    while len(times) < rounds and sum(times) < LONGEST_S:
        times.append(call_seconds(call, duration, partial(peer.synchronise, module)))
    return {"params": "", **spread(times), "scores": scores}


def of_ours(
    auto: Auto, library: Any, device: str, request: Problem, *arrays: np.ndarray, rounds: int, duration: float
) -> dict[str, Any]:
    """`spread` of the seconds of the variant that auto chooses on the device, and its scores. `arrays`: as inputs."""
    choice = auto.choose(request)
    chosen = {"variant": choice.variant, "params": choice.params}
    scores = library.correlate(request, arrays[0], arrays[1][None], precision="fp32", device=device, **chosen)
    times = seconds_of(device, choice.variant, choice.params, request, rounds, duration)
    return {**chosen, **spread(times), "scores": scores}


def usable(peers: Iterable[Peer], has_gpu: bool) -> tuple[list[Peer], dict[str, str]]:
    """The peers that can be used here, and the reasons against the others by name."""
    found, skipped = [], {}
    for peer in peers:
        try:
            if peer.device == "cuda" and not has_gpu:
                raise RuntimeError("measured with --device cpu")
            peer.load()
            found.append(peer)
        except (ImportError, RuntimeError, AttributeError) as error:
            skipped[peer.name] = str(error).splitlines()[0]
    return found, skipped


def measure(
    library: Any,
    devices: Sequence[str],
    peers: Sequence[Peer],
    each: list[dict[str, Any]],
    rounds: int,
    duration: float,
) -> Iterator[dict[str, Any]]:
    """A row for each problem and contestant: `template`, `frame`, `templates`, `name`, `device`, `variant`, `params`,
    `seconds`, `max_error` and `outcome`, which is `incorrect` where the error exceeds `largest_error` of `data`."""
    limit = float(data()["largest_error"])
    autos = [(Auto(library, device), library, device) for device in devices]
    for problem in each:
        arrays = inputs(problem)
        exact = truth(*arrays)
        shapes = {key: "x".join(map(str, problem[key])) for key in ("template", "frame")}
        contestants: list[tuple[str, str, Callable[..., dict[str, Any]]]] = [
            *(("xcorr-bench", one[-1], partial(of_ours, *one, request_of(problem))) for one in autos),
            *((one.name, one.device, partial(of_peer, one)) for one in peers),
        ]
        for name, device, measured in contestants:
            found = measured(*arrays, rounds=rounds, duration=duration)
            error = difference(found.pop("scores"), exact)
            facts = {**shapes, "templates": problem["templates"], "name": name, "device": device.partition(":")[0]}
            outcome = "passed" if error <= limit else "incorrect"
            yield {**facts, "variant": "", **found, "max_error": error, "outcome": outcome}


stored = partial(artifacts.stored, experiment=EXPERIMENT, schema=SCHEMA, way_out="measure again")


def store(folder: Path, facts: dict[str, Any], rows: list[dict[str, Any]]) -> Path:
    return artifacts.store(folder, EXPERIMENT, {"schema": SCHEMA, "experiment": EXPERIMENT, **facts, "rows": rows})


def run(argv: Sequence[str]) -> int:
    parser = Parser(prog="python3 -m experiments.compare.rivals", description=__doc__, epilog=EPILOG)
    parser.add_argument("--device", default="cpu", help="cpu, or cuda:N, which measures the CPU too (default: cpu)")
    parser.add_argument("--rounds", type=int, default=5, help="of which the median counts (default: 5)")
    parser.add_argument("--seconds", type=float, default=0.05, help="of each contestant in a round (default: 0.05)")
    parser.add_argument("--first", type=int, metavar="N", help="only the first N problems")
    parser.add_results()
    options = parser.parse_args(argv)
    if options.rounds < 1 or not 0 < options.seconds <= 60:
        raise UserError("--rounds, --seconds: out of range; use 1 or more and 0 to 60")
    library = Library()
    key = library.machine(options.device)["machine_key"]
    has_gpu = options.device != "cpu"
    peers, skipped = usable(PEERS, has_gpu)
    each, rows = problems()[: options.first], []
    folder = options.results / "local" / key
    known = {"machine_key": key, "versions": {peer.name: peer.version() for peer in peers}, "skipped": skipped}
    devices = [options.device, "cpu"] if has_gpu else ["cpu"]
    count = len(each) * (len(devices) + len(peers))
    for row in tqdm(measure(library, devices, peers, each, options.rounds, options.seconds), total=count):
        rows.append(row)
        store(folder, known, rows)
    for name, why in skipped.items():
        print(f"left out: {name}: {why}")
    print(f"stored: {folder / EXPERIMENT}")
    wrong = [one for one in rows if one["outcome"] != "passed"]
    for one in wrong:
        print(f"incorrect: {one['name']} at {one['template']} in {one['frame']}: differs by {one['max_error']:.2g}")
    return 1 if any(one["name"] == "xcorr-bench" for one in wrong) else 0


if __name__ == "__main__":
    sys.exit(command(run))
