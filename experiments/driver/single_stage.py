"""The presets with one stage: every point of the selection, in its order."""

import argparse
import dataclasses
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

from experiments.driver import lock, measured, store
from experiments.driver.best import elsewhere, keep_best, ranking
from experiments.driver.launches import quiet_us, slowed
from experiments.driver.points import Unit, expand, take_shard
from experiments.driver.predict import Predictor
from experiments.driver.request import Request
from experiments.driver.schema import load_rates
from experiments.driver.shown import shown
from experiments.driver.stages import with_needed
from experiments.driver.sweep import Sweep
from experiments.driver.told import dry_run_table, note, nothing_to_do, say_left_out, summary
from xcorr.errors import UserError
from xcorr.paths import ROOT


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


def measure(
    request: Request,
    units: Sequence[Unit],
    rows: Sequence[store.Row],
    published: Sequence[store.Row],
    said: Callable[[str], None],
) -> int:
    """Measures the points of `units` that have no rows; returns the exit code. `rows`: of this machine; `published`: of its
    published set; `said` prints a warning of the set."""
    options, preset, bench, facts = request.options, request.preset, request.bench, request.facts
    experiments, variants, folder, shard = request.experiments, request.variants, request.folder, request.shard
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
    predictor = Predictor(load_rates(options.folder), facts, bench.device, preset, options.preset)
    predictor.learn(published, variants)
    predictor.learn(rows)
    if preset.whole_figures:
        units = with_needed(units, shown(options.folder), predictor)
    run_id = store.new_run_id(store.run_ids(folder) | {row["run"] for row in published})
    record = request.record(run_id, options.preset)
    sweep = Sweep(bench, folder, run_id, record, options.preset, preset, predictor)
    quiet = quiet_us([*rows, *published])
    pending = split(units, rows, options, sweep, quiet)
    if options.dry_run:
        print(dry_run_table(units, pending, predictor, preset.problems_a_process))
        if preset.borrow:
            say_left_out(options.preset, request.filters, experiments, variants, bench.device, whole)
        return 0
    if sweep.settled(pending):
        return nothing_to_do(sweep, folder)

    expected: Counter[str] = Counter()
    everything = expand(experiments, variants, options.preset, bench.device)
    for unit in best_of(everything)[0]:
        expected[unit.experiment] += len(unit.params)
    with lock.held(folder, lock.holder(run_id, shard, request.selection())):
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
        say_left_out(options.preset, request.filters, experiments, variants, bench.device, whole)
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
