"""Shared by the experiments on real input: options, choice of variants, artifacts, resuming."""

import argparse
import gzip
import hashlib
import io
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from experiments.driver.store import write_atomic
from experiments.inputs import datasets
from xcorr.choice.auto import Auto
from xcorr.commands.outputs import cell
from xcorr.commands.peaks import Peaks
from xcorr.errors import LibraryError, Parser, UserError, command, warn
from xcorr.files import load_json
from xcorr.native.library import Library, find_variant
from xcorr.native.stream import Job
from xcorr.native.variants import candidates, default_params
from xcorr.problem import Problem

PRESETS = ("smoke", "quick", "paper")
SCHEMA = 1
TABLE = "displacements"  # of rows, unless an experiment has others
Found = TypeVar("Found")


@dataclass
class Context:
    """Options of a run, the library, and the folder of the artifacts."""

    experiment: str
    preset: str
    seed: int
    device: str
    library: Any
    variants: list[dict[str, Any]]
    requested: list[str]
    machine_key: str
    folder: Path
    cache: Path
    offline: bool
    force: bool

    def path(self, suffix: str) -> Path:
        return self.folder / f"{self.experiment}.{suffix}"

    def fetch(self, dataset: datasets.Dataset) -> tuple[bytes, str]:
        """The dataset's bytes, or b"" and the reason why it is not available."""
        try:
            return datasets.fetch(dataset, self.cache, self.offline), ""
        except datasets.Unavailable as reason:
            return b"", str(reason)

    def load(
        self, dataset: datasets.Dataset, read: Callable[[bytes], Any], twin: Callable[[], Any], generator: str
    ) -> tuple[Any, dict[str, Any]]:
        """`read` of the dataset's bytes, or `twin` by `generator` without them; and the entry in the summary."""
        content, reason = self.fetch(dataset)
        if content:
            print(f"data: {dataset.credit}")
            return read(content), dataset.facts()
        note = f"synthetic twin in place of {dataset.name}: {reason}"
        print(f"data: {note}")
        return twin(), dataset.twin_facts(note, generator)

    def entry_of(self, job: Job) -> dict[str, str]:
        """The facts of a variant in a summary."""
        algorithm_class = self.library.variant(job.variant)["algorithm_class"]
        point = {"variant": job.variant, "params": job.params, "precision": job.precision}
        return {**point, "algorithm_class": algorithm_class}


Compute = Callable[[Context], int]


def parse(experiment: str, description: str, argv: Sequence[str] | None) -> argparse.Namespace:
    module = f"experiments.inputs.{experiment.partition('-')[2]}"
    example = f"example: python3 -m {module} --preset smoke --variants cpu_fft"
    parser = Parser(prog=f"python3 -m {module}", description=description, allow_abbrev=False, epilog=example)
    add = parser.add_argument
    add("--preset", choices=PRESETS, default="quick", help="how many cases are computed (default: quick)")
    variants_help = "ids of variants, comma-separated (default: the fastest ones, see experiments/inputs/README.md)"
    add("--variants", default="", help=variants_help)
    add("--device", default="cpu", help="cpu (default) or cuda:N")
    parser.add_results()
    facts_help = "read the facts of the machine from this file instead of asking xcorr-bench"
    add("--machine-facts", type=Path, metavar="JSON", help=facts_help)
    cache_help = "folder of downloads (default: xcorr-bench in the cache folder of the user)"
    add("--cache", type=Path, metavar="DIR", help=cache_help)
    add("--offline", action="store_true", help="download nothing; use synthetic data where a download is needed")
    add("--seed", type=int, default=1, help="seed of everything that is drawn at random (default: 1)")
    add("--force", action="store_true", help="compute again even where results exist")
    return parser.parse_args(argv)


def run_main(
    experiment: str, description: str, compute: Compute, argv: Sequence[str] | None = None, library: Any = None
) -> int:
    """Runs an experiment; its exit code: 0, also where no variant computes its problem, which a line says; 1 where its
    assertion fails, 2 for a user's mistake."""

    def run(words: Sequence[str]) -> int:
        arguments = parse(experiment, description, words)
        if arguments.seed < 0:
            raise UserError(f"seed {arguments.seed}: negative; use 0 or more")
        try:
            return compute(_context(experiment, arguments, library or Library()))
        except LeftOut as reason:
            print(f"{experiment}: left out: {reason}")
            return 0
        except OSError as error:
            cause = f"{error.filename or 'results'}: {error.strerror or error}"
            raise UserError(f"{cause}; choose another --results") from None

    return command(run, argv, interrupted="interrupted; artifacts are as they were")


def _context(experiment: str, arguments: argparse.Namespace, library: Any) -> Context:
    if arguments.machine_facts is None:
        key = library.machine(arguments.device)["machine_key"]
    else:
        try:
            key = load_json(arguments.machine_facts)["machine_key"]
        except (UserError, KeyError, TypeError):
            way_out = "give the output of xcorr-bench --machine"
            raise UserError(f"{arguments.machine_facts}: no machine_key in it; {way_out}") from None
    variants = library.variants()
    requested = arguments.variants.replace(",", " ").split()
    for name in requested:
        find_variant(variants, name)
    folder = arguments.results / "local" / key / experiment / "artifacts"
    folder.mkdir(parents=True, exist_ok=True)
    made = {"library": library, "variants": variants, "requested": requested, "machine_key": key, "folder": folder}
    options = {name: getattr(arguments, name) for name in ("preset", "seed", "device", "offline", "force")}
    return Context(experiment, cache=datasets.cache_directory(arguments.cache), **made, **options)


class LeftOut(Exception):
    """Why no variant of this build computes the problem of an experiment, in one line."""


def job_of(context: Context, variant: dict[str, Any], requests: Sequence[Problem], precision: str = "fp32") -> Job:
    """The variant at the first point, beginning with the default one, that computes all requests. LeftOut for none."""
    preferred = default_params(variant)
    reason = f"needs a {variant['backend']} device"
    if variant["backend"] == context.device.partition(":")[0]:
        for params in dict.fromkeys((preferred, *variant["points"])):
            point = {"variant": variant["id"], "params": params, "precision": precision, "device": context.device}
            reasons = filter(None, (context.library.supports(request, **point) for request in requests))
            reason = next(reasons, "")
            if not reason:
                return Job(variant["id"], params, precision, context.device)
    raise LeftOut(f"variant '{variant['id']}' in {precision}: {reason}")


def jobs_of(
    context: Context, variants: Iterable[Any], requests: Sequence[Problem], precisions: Sequence[str] = ("fp32",)
) -> tuple[list[Job], list[str]]:
    """`job_of` for each variant in each precision that it has, and the reasons against those that are left out."""
    jobs, reasons = [], []
    for variant in variants:
        for precision in (one for one in precisions if one in variant["precisions"]):
            try:
                jobs.append(job_of(context, variant, requests, precision))
            except LeftOut as reason:
                reasons.append(str(reason))
    return jobs, reasons


def requested_jobs(context: Context, requests: Sequence[Problem]) -> list[Job]:
    """The variants that the user named. UserError for one that does not compute the requests."""
    jobs = []
    for name in context.requested:
        try:
            jobs.append(job_of(context, find_variant(context.variants, name), requests))
        except LeftOut as reason:
            raise UserError(f"{reason}; choose another") from None
    return jobs


def auto_job(context: Context, request: Problem, auto: Auto | None = None) -> Job:
    """The point that auto chooses for the request. LeftOut where no variant computes it."""
    try:
        choice = (auto or Auto(context.library, context.device)).choose(request)
    except UserError as reason:
        raise LeftOut(str(reason)) from None
    return Job(choice.variant, choice.params, "fp32", context.device)


def timed(call: Callable[..., Found], *arguments: Any, rounds: int = 2) -> tuple[Found, float]:
    """The result and the seconds of the last of `rounds` calls. The first call makes the plans."""
    for _ in range(rounds):
        start = time.perf_counter()
        found = call(*arguments)
        seconds = time.perf_counter() - start
    return found, seconds


def fastest(context: Context, algorithm_class: str, requests: Sequence[Problem]) -> Job | None:
    """The variant of a class that computes all requests and is fastest on a small probe of the first request."""
    rng = np.random.default_rng(0)
    request = requests[0]
    rights = 1 if request.form == "one-to-one" else 4
    probe = Problem(request.form, request.left, request.right, 1, rights, request.window)
    left = rng.random((1, *request.left), np.float32)
    right = rng.random((rights, *request.right), np.float32)
    known = candidates(context.variants, algorithm_class, request.form, context.device)
    jobs, _ = jobs_of(context, known, [probe, *requests])
    if len(jobs) == 1:
        return jobs[0]
    seconds: dict[Job, float] = {}
    for job in jobs:
        try:
            seconds[job] = timed(job.correlate, context.library, probe, left, right)[1]
        except LibraryError as error:
            warn(f"{context.experiment}: {job.variant} is left out: {error}")
    return min(seconds, key=lambda job: seconds[job], default=None)


def choose_jobs(context: Context, requests: Sequence[Problem], definition: bool) -> list[Job]:
    """The variants that the user named, else the fastest FFT variant and, with `definition`, the fastest
    definition-based one. Each computes all requests. LeftOut where none does, UserError where the build has no variant
    for the device."""
    if context.requested:
        return requested_jobs(context, requests)
    classes = ("fft", "definition") if definition else ("fft",)
    jobs = [job for job in (fastest(context, name, requests) for name in classes) if job]
    if not any(variant["backend"] == context.device.partition(":")[0] for variant in context.variants):
        raise UserError(f"variants: none in this build runs on {context.device}; choose another --device")
    if not jobs:
        raise LeftOut(f"no variant of this build computes {requests[0].form} of these sizes on {context.device}")
    return jobs


def source_hash(context: Context) -> str:
    """16 hex digits: hash of the sources of the experiments on real input and of every variant that may run."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    for variant in context.variants:
        if not context.requested or variant["id"] in context.requested:
            digest.update(f"{variant['id']} {variant['source_hash']} {variant['points']}".encode())
    return digest.hexdigest()[:16]


def resume_key(context: Context, sources: dict[str, str]) -> str:
    """Hash of all that the artifacts depend on. `sources`: checksum of each dataset, or 'synthetic'."""
    run = [context.experiment, context.preset, context.seed, context.device, context.requested]
    made_of = [SCHEMA, *run, source_hash(context), sorted(sources.items())]
    return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:16]


def is_done(context: Context, key: str, table: str = TABLE) -> bool:
    """Whether all artifacts exist with this resume key; a line says so. `table`: as in write_artifacts."""
    if context.force:
        return False
    try:
        same = load_json(context.path("summary.json"))["resume_key"] == key
    except (UserError, KeyError, TypeError):
        return False
    if not (same and context.path(f"{table}.csv.gz").exists() and context.path("previews.npz").exists()):
        return False
    kept = f"computed already from the same inputs and sources, kept ({context.folder})"
    print(f"{context.experiment}: {kept}; --force computes again")
    return True


def write_artifacts(
    context: Context,
    title: str,
    key: str,
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    summaries: list[dict[str, Any]],
    previews: dict[str, Any],
    extra: dict[str, Any],
    table: str = TABLE,
    mistakes: Sequence[str] = (),
) -> int:
    """Writes the three artifacts, each atomically, and returns the exit code. `table`: name of the rows.

    With `mistakes`, which are printed, there is no summary. The next run then computes again.
    """
    context.path("summary.json").unlink(missing_ok=True)
    cells = ([cell(row.get(name, "")) for name in columns] for row in rows)
    lines = [",".join(columns), *map(",".join, cells), ""]
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, filename="") as file:
        file.write("\n".join(lines).encode())
    write_atomic(context.path(f"{table}.csv.gz"), packed.getvalue())
    archive = io.BytesIO()
    np.savez_compressed(archive, **previews)
    write_atomic(context.path("previews.npz"), archive.getvalue())
    print(f"{context.experiment}: wrote {len(rows)} rows to {context.path(f'{table}.csv.gz')}")
    for line in mistakes:
        print(f"error: {context.experiment}: {line}", file=sys.stderr)
    if mistakes:
        return 1
    run = {name: getattr(context, name) for name in ("preset", "seed", "machine_key", "device")}
    made_of = {"source_hash": source_hash(context), "resume_key": key}
    head = {"schema": SCHEMA, "experiment": context.experiment, "title": title, **run, **made_of}
    summary = {**head, **extra, "datasets": summaries}
    write_atomic(context.path("summary.json"), (json.dumps(summary, indent=1) + "\n").encode())
    return 0


def peak_cells(peaks: Peaks, number: int) -> dict[str, Any]:
    """The columns of the integer and the sub-pixel peak of a pair."""
    shift = {name: int(getattr(peaks, name)[number]) for name in ("sy", "sx")}
    names = ("value", "sub_sy", "sub_sx", "peak_to_second")
    return shift | {name: float(getattr(peaks, name)[number]) for name in names}


def preview(image: np.ndarray, most: int = 256) -> tuple[np.ndarray, float]:
    """A uint8 copy of `image` with stretched contrast, of at most `most` pixels a side by block means; its scale."""
    step = -(-max(image.shape) // most)
    rows, cols = (extent // step * step for extent in image.shape)
    blocks = image[:rows, :cols].astype(np.float64).reshape(rows // step, step, cols // step, step)
    small = blocks.mean(axis=(1, 3))
    low, high = np.percentile(small, (0.5, 99.5))
    return (np.clip((small - low) / max(high - low, 1e-9), 0, 1) * 255).astype(np.uint8), 1 / step
