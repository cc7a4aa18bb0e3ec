"""Measures every point of the selected experiments that has no rows yet."""

import json
import signal
import sys
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

import tqdm

from experiments.driver import lock, measured, single_stage, store
from experiments.driver.best import rows_near
from experiments.driver.evaluation import Evaluation, deadline_of
from experiments.driver.points import Unit, expand, series_of, take_shard
from experiments.driver.predict import Predictor
from experiments.driver.request import Request, parser
from experiments.driver.schema import SELECT, load_rates
from experiments.driver.shown import shown
from experiments.driver.told import summary
from xcorr.errors import UserError, command, warn

LEFT = 3


class Terminated(KeyboardInterrupt):
    """SIGTERM, which batch systems send, ends the command like Ctrl-C."""


def evaluation_of(request: Request, units: Sequence[Unit], rows: Sequence[store.Row]) -> Evaluation:
    """The evaluation of a shard of `units`, which predicts by `rows` and by those of machines that are near."""
    options, bench, facts = request.options, request.bench, request.facts
    if options.slowed:
        raise UserError(f"preset {options.preset}: takes no --slowed; --force measures again")
    rates = load_rates(options.folder)
    near = rows_near(options.results / "published", bench.device, facts)
    presets = request.presets
    predictors = {name: Predictor(rates, facts, bench.device, presets[name], name) for name in (SELECT, options.preset)}
    for one in predictors.values():
        one.learn(near, request.variants)
        one.learn(rows)
    return Evaluation(
        bench,
        request.folder,
        facts,
        presets,
        options.preset,
        request.experiments,
        take_shard(units, request.shard, series_of),
        shown(options.folder),
        predictors,
        request.record,
        deadline_of(options.for_minutes),
        store.new_run_id(store.run_ids(request.folder)) if options.force else "",
    )


def run_stages(evaluation: Evaluation, request: Request) -> int:
    """An evaluation; returns the exit code."""
    options = request.options
    print(evaluation.estimate(), flush=True)
    if options.dry_run:
        return 0
    folder = evaluation.folder
    begin = time.monotonic()
    with lock.held(folder, lock.holder(store.new_run_id(store.run_ids(folder)), request.shard, request.selection())):
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
    options = parser(__doc__).parse_args(argv)
    request = Request.of(options, argv)
    if options.machine_facts:
        print(json.dumps(request.facts, indent=1, sort_keys=True))
        return 0
    # A dry run writes nothing and renames no damaged file.
    said = cache(warn)  # the set is read several times, and each warning is printed once
    rows = store.read_rows(request.folder, said, set_aside=not options.dry_run)
    published = store.read_rows(options.results / "published" / request.folder.name, said)
    units = expand(request.experiments, request.variants, options.preset, request.bench.device, request.filters)
    if request.preset.block_s is not None:
        return run_stages(evaluation_of(request, units, rows), request)
    return single_stage.measure(request, units, rows, published, said)


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
