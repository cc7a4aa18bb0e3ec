"""What a run is asked for: its options, its device, and the record that its rows need."""

import argparse
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from experiments.driver.bench import SEED, Bench, program
from experiments.driver.points import Filters, parse_shard
from experiments.driver.repository import Repository
from experiments.driver.schema import (
    EVALUATION,
    EXTENDED,
    FOLDER,
    SELECT,
    Experiment,
    Preset,
    load_experiments,
    load_presets,
)
from xcorr.errors import Parser, UserError, nearest
from xcorr.native.variants import Variant
from xcorr.paths import ROOT

EPILOG = """example:
  python3 -m experiments.driver.run --preset quick --experiments one-to-one --variants cpu_fft --dry-run

Resuming is the default: points that have rows in the results folder are not measured again.
Exit code: 0; 1 when a point is incorrect or failed; 2 for a mistake in the request; 3 when --for-minutes left something."""


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def parser(description: str | None) -> argparse.ArgumentParser:
    made = Parser(prog="python3 -m experiments.driver.run", description=description, epilog=EPILOG)
    add = made.add_argument
    add("--preset", default="quick", help="smoke, quick, evaluation, extended, paper or paper-full (default: quick)")
    add("--experiments", type=_words, metavar="A,B", help="names of experiments (default: all)")
    add("--variants", type=_words, metavar="A,B", help="variant ids or families (default: all)")
    add("--sizes", type=_words, metavar="A,B", help="sizes such as 64 or 36x90 (default: all)")
    add("--forms", type=_words, metavar="A,B", help="one-to-one, one-to-many, n-to-mn, n-to-m (default: all)")
    add("--device", default="auto", help="cpu, cuda, cuda:N or auto, the first GPU if any (default: auto)")
    add("--dry-run", action="store_true", help="print points and estimated minutes, then stop")
    add("--force", action="store_true", help="measure again; old rows stay, the newest win")
    slowed_help = "re-measure problems timed on a busy host; keep the run on the quieter host"
    add("--slowed", action="store_true", help=slowed_help)
    minutes_help = (
        "with the preset evaluation: start nothing that is predicted to end later (default: measure everything)"
    )
    add("--for-minutes", type=float, metavar="M", help=minutes_help)
    add("--shard", metavar="K/N", default="1/1", help="part K of N of the sweep (default: 1/1)")
    made.add_results()
    add("--folder", type=Path, default=FOLDER, metavar="DIR", help="folder of experiment files (default: experiments)")
    add("--machine-facts", action="store_true", help="print the facts of the device, then stop")
    return made


def open_device(device: str) -> tuple[Bench, dict[str, Any]]:
    """xcorr-bench on a device, and the facts of the machine. `auto` prefers a GPU."""
    path = program()
    if device == "auto":
        try:
            bench = Bench(path, "cuda:0")
            if any(variant.backend == "cuda" for variant in bench.variants()):
                return bench, bench.machine()
        except UserError:
            pass  # no GPU works
        device = "cpu"
    match = re.fullmatch(r"cpu|cuda(?::(\d+))?", device)
    if not match:
        hint = nearest(device, ("cpu", "cuda", "cuda:0", "auto"))
        raise UserError(f"device {device}: unknown; {hint}")
    bench = Bench(path, "cpu" if device == "cpu" else f"cuda:{match[1] or 0}")
    return bench, bench.machine()


def _relative(word: str) -> str:
    """A word of the command line without an absolute path of this machine, so that it can be published."""
    path = Path(word)
    if not path.is_absolute():
        return word
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def record_of(run: str, argv: Sequence[str], preset: str, shard: str, facts: dict[str, Any]) -> dict[str, Any]:
    """What a run was, before it measures: the record that its rows need."""
    made = {"run": run, "argv": [_relative(word) for word in argv], "preset": preset, "shard": shard, "seed": SEED}
    made |= {"before": facts, "machine_key": facts["machine_key"], "package_version": facts.get("package_version")}
    return made | {"utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())} | Repository().record()


def of_preset(experiments: dict[str, Experiment], name: str, device: str) -> dict[str, Experiment]:
    """The experiments that a preset measures: evaluation counts no energy, extended measures what evaluation leaves out and,
    on a CPU, all of them."""
    if name in (EVALUATION, SELECT):
        kept = {key: one for key, one in experiments.items() if not one.extended}
        return {key: one.model_copy(update={"energy_s": 0}) for key, one in kept.items()}
    if name == EXTENDED and device.startswith("cuda"):
        return {key: one for key, one in experiments.items() if one.extended or one.energy_s}
    return experiments


@dataclass(frozen=True)
class Request:
    """A command line with what it names, found: `presets` are all, `experiments` those that the preset measures on this
    device, `folder` holds the rows of this machine."""

    options: argparse.Namespace
    argv: Sequence[str]
    presets: Mapping[str, Preset]
    experiments: dict[str, Experiment]
    shard: tuple[int, int]
    bench: Bench
    facts: dict[str, Any]

    @classmethod
    def of(cls, options: argparse.Namespace, argv: Sequence[str]) -> "Request":
        """Opens the device. Raises UserError for what does not exist."""
        presets = load_presets(options.folder)
        if options.preset not in presets:
            raise UserError(f"preset {options.preset}: unknown; {nearest(options.preset, presets)}")
        experiments, shard = load_experiments(options.folder), parse_shard(options.shard)
        bench, facts = open_device(options.device)
        return cls(options, argv, presets, of_preset(experiments, options.preset, bench.device), shard, bench, facts)

    @property
    def preset(self) -> Preset:
        return self.presets[self.options.preset]

    @cached_property
    def variants(self) -> list[Variant]:
        return self.bench.variants()

    @property
    def folder(self) -> Path:
        return self.options.results / "local" / str(self.facts["machine_key"])

    @property
    def filters(self) -> Filters:
        options = self.options
        return Filters(options.experiments, options.variants, options.sizes, options.forms)

    def selection(self) -> list[str]:
        """The options that decide which points a sweep measures, without its shard."""
        names = ("preset", "experiments", "variants", "sizes", "forms", "force", "slowed", "folder")
        return [f"{name}={getattr(self.options, name)}" for name in names]

    def record(self, run: str, preset: str) -> dict[str, Any]:
        """The record of a run under a preset."""
        return record_of(run, self.argv, preset, self.options.shard, self.facts)
