"""Measures every point of the selected experiments that has no rows yet."""

import argparse
import dataclasses
import json
import re
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import tqdm
from tabulate import tabulate

from experiments.driver import lock, measured, store
from experiments.driver.bench import SEED, Bench, program
from experiments.driver.best import elsewhere, keep_best, ranking, rows_near
from experiments.driver.columns import OUTCOMES
from experiments.driver.evaluation import Evaluation, deadline_of
from experiments.driver.launches import quiet_us, slowed
from experiments.driver.points import Filters, Unit, expand, in_processes, parse_shard, series_of, take_shard
from experiments.driver.predict import Predictor
from experiments.driver.repository import Repository
from experiments.driver.schema import (
    EVALUATION,
    EXTENDED,
    FOLDER,
    SELECT,
    Experiment,
    load_experiments,
    load_presets,
    load_rates,
)
from experiments.driver.shown import shown
from experiments.driver.stages import with_needed
from experiments.driver.sweep import Progress, Sweep
from xcorr.errors import Parser, UserError, command, nearest, warn
from xcorr.fields import NAMES as FIELDS
from xcorr.native.variants import Variant
from xcorr.paths import ROOT

EPILOG = """example:
  python3 -m experiments.driver.run --preset quick --experiments one-to-one --variants cpu_fft --dry-run

Resuming is the default: points that have rows in the results folder are not measured again.
Exit code: 0; 1 when a point is incorrect or failed; 2 for a mistake in the request; 3 when --for-minutes left something."""
LEFT = 3


class Terminated(KeyboardInterrupt):
    """SIGTERM, which batch systems send, ends the command like Ctrl-C."""


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def parser() -> argparse.ArgumentParser:
    made = Parser(prog="python3 -m experiments.driver.run", description=__doc__, epilog=EPILOG)
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


def note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def nothing_to_do(sweep: Sweep, folder: Path) -> int:
    """Prints that every point has rows; the exit code is that of these rows."""
    print(f"nothing to do: every point has rows in {folder}; --force measures again")
    print(summary(sweep.progress, folder, 0.0))
    return 1 if sweep.progress.bad() else 0


def dry_run_table(
    units: Sequence[Unit], pending: Sequence[Unit], predictor: Predictor, problems_a_process: int = 1
) -> str:
    """The number of points, processes and seconds in total; then a table of points, points already measured, points not
    selected and estimated minutes by experiment and variant.

    `pending`: each of `units` with the points that are left to measure.
    """
    chosen = [[one for one in unit.params if not predictor.why_not(unit, one)] for unit in pending]
    selected = [dataclasses.replace(unit, params=tuple(some)) for unit, some in zip(pending, chosen)]
    processes = in_processes([unit for unit in selected if unit.params], problems_a_process)
    shared_by = {unit: len(group) for group in processes for unit in group}
    cells: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0, 0, 0.0])
    total: list[float] = [0, 0, 0, 0.0]
    for unit, left, some in zip(units, pending, selected):
        minutes = predictor.unit_s(unit, some.params, shared_by.get(some, 1)) / 60
        of_unit, of_left, of_some = len(unit.params), len(left.params), len(some.params)
        counts = (of_unit, of_unit - of_left, of_left - of_some, minutes)
        for row in (cells[(unit.experiment, unit.variant.id)], total):
            row[:] = [a + b for a, b in zip(row, counts)]
    head = ["experiment", "variant", "points", "already measured", "not selected", "minutes"]
    body: list[list[Any]] = [[*place, *row] for place, row in cells.items()]
    table = tabulate([*body, ["total", "", *total]], head, floatfmt=".1f")
    points = sum(map(len, chosen))
    return f"to measure: {points} points in {len(processes)} processes, about {total[3] * 60:.0f} s\n\n{table}"


def filters_of(options: argparse.Namespace) -> Filters:
    return Filters(options.experiments, options.variants, options.sizes, options.forms)


def say_left_out(
    options: argparse.Namespace, experiments: dict[str, Experiment], variants: Sequence[Variant], device: str, some: int
) -> None:
    """Prints a line on the points that a preset with `borrow` leaves out. `some`: number of the preset's points."""
    filters = filters_of(options)
    try:
        everything = keep_best(expand(experiments, variants, "quick", device, filters), experiments, "quick", {})[0]
    except UserError:  # the selection has nothing under that preset
        return
    all_of = sum(len(unit.params) for unit in everything)
    if all_of > some:
        note(
            f"preset {options.preset} takes {some} of the {all_of} points of preset quick, which has more sizes and "
            "counts and every point of every variant; scripts/reproduce.sh --preset quick measures them"
        )


def summary(progress: Progress, folder: Path, took_s: float) -> str:
    """Number of points by outcome, the folder of the rows, and every incorrect or failed point."""
    counts = progress.counts()
    order = [outcome for outcome in OUTCOMES if counts[outcome]]
    found = ", ".join(f"{counts[outcome]} {outcome}" for outcome in order) or "none"
    lines = [f"points: {found}; {took_s / 60:.1f} min; rows in {folder}"]
    for key, outcome, reason in progress.bad():
        cell = dict(zip(store.KEY, key))
        lines.append(
            f"{outcome}: {cell['variant']} {cell['params'] or '-'} {cell['precision']} "
            f"{cell['form']} {cell['left_rows']}x{cell['left_cols']}/{cell['right_rows']}x"
            f"{cell['right_cols']} {cell['lefts']}:{cell['rights']} {cell['window']}"
            f"{''.join(f' {name}={cell[name]}' for name in FIELDS if cell[name])}: {reason}"
        )
    return "\n".join(lines)


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


def split(
    units: Sequence[Unit], rows: Sequence[store.Row], options: argparse.Namespace, sweep: Sweep, quiet: float
) -> list[Unit]:
    """Each of the units with the points that are left to measure. The sweep notes the points that have rows.

    A point with the outcome not_selected is left to measure, since every run predicts its time again.
    """
    done = {} if options.force else {(row["experiment"], store.key_of(row)): row for row in rows}
    if options.slowed:
        busy = slowed(rows, quiet)
        problems = {store.rivals_of(row) for place, row in done.items() if place in busy}
        done = {place: row for place, row in done.items() if store.rivals_of(row) not in problems}
    pending: list[Unit] = []
    for unit in units:
        left = []
        for params in unit.params:
            place = sweep.place(unit, params)
            row = done.get(place)
            if row is not None and row["outcome"] != "not_selected":
                sweep.progress.verdicts[place] = row["outcome"], row["reason"]
                continue
            left.append(params)
            if row is not None:
                sweep.unselected.add(place)
        pending.append(dataclasses.replace(unit, params=tuple(left)))
    return pending


def selection(options: argparse.Namespace) -> list[str]:
    """The options that decide which points a sweep measures, without its shard."""
    names = ("preset", "experiments", "variants", "sizes", "forms", "force", "slowed", "folder")
    return [f"{name}={getattr(options, name)}" for name in names]


def of_preset(experiments: dict[str, Experiment], name: str, device: str) -> dict[str, Experiment]:
    """The experiments that a preset measures: evaluation counts no energy, extended measures what evaluation leaves out and,
    on a CPU, all of them."""
    if name in (EVALUATION, SELECT):
        kept = {key: one for key, one in experiments.items() if not one.extended}
        return {key: one.model_copy(update={"energy_s": 0}) for key, one in kept.items()}
    if name == EXTENDED and device.startswith("cuda"):
        return {key: one for key, one in experiments.items() if one.extended or one.energy_s}
    return experiments


def run_stages(evaluation: Evaluation, options: argparse.Namespace, shard: tuple[int, int]) -> int:
    """An evaluation; returns the exit code."""
    print(evaluation.estimate(), flush=True)
    if options.dry_run:
        return 0
    folder = evaluation.folder
    begin = time.monotonic()
    with lock.held(folder, lock.holder(store.new_run_id(store.run_ids(folder)), shard, selection(options))):
        store.check_writable(folder)
        store.remove_stale_temporaries(folder)
        try:
            progress, left = evaluation.run()
        except KeyboardInterrupt:
            print(f"\ninterrupted: complete blocks are saved in {folder}; the same command resumes", file=sys.stderr)
            raise
    print(summary(progress, folder, time.monotonic() - begin))
    if left:
        said = f"stopped after {options.for_minutes:g} min with {left} groups left"
        print(f"{said}: the same command goes on, here or on another machine of the kind")
    measured.write(folder)
    return LEFT if left else 1 if progress.bad() else 0


def run(argv: Sequence[str]) -> int:
    """The command; returns its exit code. Raises UserError and KeyboardInterrupt."""
    options = parser().parse_args(argv)
    presets = load_presets(options.folder)
    if options.preset not in presets:
        raise UserError(f"preset {options.preset}: unknown; {nearest(options.preset, presets)}")
    preset = presets[options.preset]
    experiments = load_experiments(options.folder)
    shard = parse_shard(options.shard)
    bench, facts = open_device(options.device)
    if options.machine_facts:
        print(json.dumps(facts, indent=1, sort_keys=True))
        return 0
    variants = bench.variants()
    key = str(facts["machine_key"])
    folder = options.results / "local" / key
    # A dry run writes nothing and renames no damaged file.
    said = cache(warn)  # the set is read several times, and each warning is printed once
    rows = store.read_rows(folder, said, set_aside=not options.dry_run)
    published = store.read_rows(options.results / "published" / key, said)

    experiments = of_preset(experiments, options.preset, bench.device)
    units = expand(experiments, variants, options.preset, bench.device, filters_of(options))
    rates, groups = load_rates(options.folder), shown(options.folder)
    if preset.block_s is not None:
        if options.slowed:
            raise UserError(f"preset {options.preset}: takes no --slowed; --force measures again")
        units = take_shard(units, shard, series_of)
        near = rows_near(options.results / "published", bench.device, facts)
        predictors = {
            name: Predictor(rates, facts, bench.device, presets[name], name) for name in (SELECT, options.preset)
        }
        for one in predictors.values():
            one.learn(near, variants)
            one.learn(rows)
        evaluation = Evaluation(
            bench,
            folder,
            facts,
            presets,
            options.preset,
            experiments,
            units,
            groups,
            predictors,
            lambda run, name: record_of(run, argv, name, options.shard, facts),
            deadline_of(options.for_minutes),
            store.new_run_id(store.run_ids(folder)) if options.force else "",
        )
        return run_stages(evaluation, options, shard)
    earlier = [*rows, *published]
    instead = None
    if preset.borrow:  # rows of this preset would change the selection during the measurement
        earlier = [row for row in earlier if row["preset"] != options.preset]
        sets = options.results / "published"
        sets = sets if sets.is_dir() else ROOT / "results" / "published"
        instead = elsewhere(sets, bench.device.partition(":")[0], facts, earlier).some
    ranked = ranking(earlier)

    def best_of(some: Sequence[Unit]) -> tuple[list[Unit], list[Unit]]:
        return keep_best(some, experiments, options.preset, ranked, preset.best, instead)

    units, unranked = best_of(units)
    here = [unit for unit in unranked if bench.device.startswith(unit.variant.backend)]
    if here:
        note(
            f"{len(here)} times a variant has no rows that say which of its points are fastest; "
            "they are left out: measure the preset quick first"
        )
    if not units:
        raise UserError(f"preset {options.preset}: nothing left to measure; measure the preset quick first")
    whole, units = sum(len(unit.params) for unit in units), take_shard(units, shard)
    predictor = Predictor(rates, facts, bench.device, preset, options.preset)
    predictor.learn(published, variants)
    predictor.learn(rows)
    if preset.whole_figures:
        units = with_needed(units, groups, predictor)
    run_id = store.new_run_id(store.run_ids(folder) | {row["run"] for row in published})
    record = record_of(run_id, argv, options.preset, options.shard, facts)
    sweep = Sweep(bench, folder, run_id, record, options.preset, preset, predictor)
    quiet = quiet_us([*rows, *published])
    pending = split(units, rows, options, sweep, quiet)
    if options.dry_run:
        print(dry_run_table(units, pending, predictor, preset.problems_a_process))
        if preset.borrow:
            say_left_out(options, experiments, variants, bench.device, whole)
        return 0
    if sweep.settled(pending):
        return nothing_to_do(sweep, folder)

    expected: Counter[str] = Counter()
    everything = expand(experiments, variants, options.preset, bench.device)
    for unit in best_of(everything)[0]:
        expected[unit.experiment] += len(unit.params)
    with lock.held(folder, lock.holder(run_id, shard, selection(options))):
        store.check_writable(folder)
        store.remove_stale_temporaries(folder)
        rows = store.read_rows(folder, said)  # another sweep may have ended in the meantime
        predictor.learn(rows)
        pending = split(units, rows, options, sweep, quiet)
        if sweep.settled(pending):
            return nothing_to_do(sweep, folder)
        begin = time.monotonic()
        try:
            sweep.go([unit for unit in pending if unit.params], expected)
            sweep.finish(bench.machine())
        except KeyboardInterrupt:
            left = sum(len(unit.params) for unit in pending) - sweep.progress.measured
            print(
                f"\ninterrupted: {sweep.progress.measured} points of this run are saved in {folder}, "
                f"at most {left} are left; the same command resumes",
                file=sys.stderr,
            )
            raise
    print(summary(sweep.progress, folder, time.monotonic() - begin))
    if preset.borrow:
        say_left_out(options, experiments, variants, bench.device, whole)
    rows = store.read_rows(folder, said)
    measured.write(folder, rows)
    rows += published
    busy = slowed([row for row in rows if row["run"] == run_id], quiet_us(rows))
    if busy:
        note(
            f"a busy host slowed {len(busy)} points down, whose launches or plans took longer than "
            "they do on this machine; run the same command with --slowed and nothing beside it"
        )
    return 1 if sweep.progress.bad() else 0


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; every mistake of the user is one line."""

    def terminate(*_: Any) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    tqdm.tqdm.monitor_interval = 0  # a fork beside its thread may hang
    try:
        return command(run, argv)
    except Terminated:
        return 143
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
