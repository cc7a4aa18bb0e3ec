"""Figures and a table that compare machines: best times, where an FFT takes over, what each optimisation brings, and the share of
the peaks.

Without keys every published set is compared. Imported sets (`published-...`) are drawn hollow and are ranked with no other
set: nobody verified their outputs here. The same rows give the same bytes.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from tabulate import tabulate

from experiments.driver import store
from plots import style, tidy
from plots.drawing import Drawing, Omitted, Result
from plots.figures import _bars
from plots.files import FORMATS, encode
from plots.machine_figures import crossover_figure, crossovers, curves, optimisation_figure, roof_figure
from plots.machine_sets import DATA, Machine, distinct, machine
from plots.machine_table import ABOUT, cells_csv, overview, page
from plots.sets import available, loaded
from xcorr.errors import Parser, UserError, command
from xcorr.files import load_toml
from xcorr.paths import RESULTS

__all__ = ["DATA", "Machine", "crossovers", "draw", "machine", "main"]
PAGE = "machines.md"
EPILOG = """example:
  python3 -m plots.machines                                    every published set, into results/machines/
  python3 -m plots.machines nvidia-h200-132-sm-140-gib published-ampere published-volta published-ada
  python3 -m plots.machines --local KEY                        this machine beside every published set

Written: machines_best_<form>, machines_speedup_<form>, machines_optimisations_<form>, machines_crossover, machines_roofs, each as
svg, pdf and png, machines.md with the captions and the table of best times, and machines.csv with all numbers. What is a baseline
or an optimisation is said in plots/machines.toml; FFT is what the registry calls so."""


def signs(machines: Sequence[Machine]) -> list[str]:
    """What hollow marks and stars of labels mean."""
    found = ["Hollow: published elsewhere, not verified here."] if any(one.hollow for one in machines) else []
    if notes := [one.note.partition(". ")[0] for one in machines if one.note]:
        found.append(f"* {'. '.join(notes)}. No label was changed.")
    return found


def draw(machines: Sequence[Machine], data: Mapping[str, Any] | None = None) -> list[Result]:
    """All figures, those without data as Omitted. `data`: machines.toml."""
    data = load_toml(DATA) if data is None else data
    machines = distinct(machines)
    names = ", ".join(one.label for one in machines)
    tail = "".join(f" {text}" for text in signs(machines))
    made: list[tuple[str, str, str, Figure | None, str]] = []
    forms = sorted({form for one in machines for form in one.cells["form"]}, key=tidy.form_order)
    what = "best definition-based time of each machine, any variant and parameters"
    for form in forms:
        best = f"{what[0].upper()}{what[1:]}, {form}. Counts that one machine alone has are left out."
        speedup = f"Time of the baseline over the {what}, {form}. Each machine against its own baseline."
        for kind, over, unit, axis, text, missing in (
            ("best", "", "s", "Best definition-based time", best, "definition-based"),
            ("speedup", "baseline_us", "x", "Speed-up over the baseline", speedup, "baseline"),
        ):
            name = f"machines_{kind}_{form}"
            with style.context(name):
                figure = curves(machines, form, ("definition_us", over), unit, axis)
            made.append((name, f"{axis}, {form}", text, figure, missing))
        if form in data["places"]:
            name, counts = f"machines_optimisations_{form}", data["places"][form]
            with style.context(name):
                figure = optimisation_figure(machines, form, counts, list(data["optimisations"]))
            text = (
                f"Time of the baseline over that of each optimisation of the paper with its best parameters, {form} {counts}. Each "
                "machine against its own baseline, which loops over the right matrices of a batch in one thread. Optimisations and sizes "
                "that one machine alone has are left out."
            )
            made.append((name, f"Speed-up of each optimisation, {form}", text, figure, "optimisation's"))
    with style.context("machines_crossover"):
        figure = crossover_figure(machines)
    text = (
        "Size from which the best FFT is faster than the best definition-based variant, log-log interpolation between "
        "measured sizes, without and with its plan; both are the set's own (an imported one has the paper's FFT only). "
        "Arrows: beyond the sizes that were measured on that side. Counts of one machine alone are left out."
    )
    made.append(("machines_crossover", "Crossover against FFT", text, figure, "FFT and definition-based"))
    with style.context("machines_roofs"):
        figure = roof_figure(machines, data["places"])
    text = (
        "Share of the nominal peaks. Above: useful FMAs of the best definition-based variant, of the FP32 peak. Below: inputs once and "
        "outputs once in the time of the fastest variant of all, of the DRAM peak; caches let it exceed 100 %. The peaks of an imported "
        "set are those of the GPU that it was published as. CPUs, whose peaks are not known, and sizes of one machine alone are left out."
    )
    made.append(("machines_roofs", "Share of the peaks", text, figure, "peak and a"))
    return [
        Drawing(
            name, title, caption + _bars.said_of(figure, ratio="time" not in title) + tail, f"{title}: {names}.", figure
        )
        if figure is not None
        else Omitted(name, f"no machine of the list has a {missing} time at a shared problem")
        for name, title, caption, figure, missing in made
    ]


def sets_of(asked: Any) -> list[tidy.ResultSet]:
    """The sets that a command line means, a local one first."""
    own = list(loaded(asked.results, [asked.local], True)) if asked.local else []
    if asked.keys:
        return [*own, *loaded(asked.results, asked.keys)]
    published = asked.results if available(asked.results)["published"] else RESULTS
    keys = available(published)["published"]
    return [*own, *(loaded(published, keys) if keys else [])]


def compared(sets: Iterable[tidy.ResultSet], data: Mapping[str, Any]) -> list[Machine]:
    """The machines of the sets that have times to compare, each with the look of its place; the others are said."""
    machines: list[Machine] = []
    for results in sets:
        one = machine(results, len(machines), data)
        if one.cells.empty:
            print(
                f"left out: {results.key}: no time of mode {data['setting']['mode']} on the problems that are compared"
            )
        else:
            machines.append(one)
    return machines


def write(out: Path, machines: Sequence[Machine], data: Mapping[str, Any]) -> None:
    """Writes figures, page and numbers; what an earlier comparison left there goes."""
    drawn = draw(machines, data)
    said = signs(machines)
    tail = "".join(f" {one}" for one in said)  # of all captions: once on the page
    text = ["\n\n".join(["# Machines compared", ABOUT, *said]) + "\n"]
    kept = set()
    for one in drawn:
        if isinstance(one, Omitted):
            print(f"left out: {one.name.replace('_', ' ')}: {one.reason}")
            continue
        for extension, content in encode(one).items():
            store.write_atomic(out / f"{one.name}.{extension}", content)
            kept.add(f"{one.name}.{extension}")
        text.append(f"## {one.title}\n\n![{one.alt}]({one.name}.svg)\n\n{one.caption.removesuffix(tail)}\n")
        print(f"{out / one.name}.svg (also pdf and png)")
    for path in out.glob("machines_*"):
        if path.suffix[1:] in FORMATS and path.name not in kept:
            path.unlink()
    text.append(page(distinct(machines), data["places"]))
    store.write_atomic(out / PAGE, "\n".join(text).encode("utf-8"))
    store.write_atomic(out / "machines.csv", cells_csv(distinct(machines)).encode("utf-8"))
    print(f"page: {out / PAGE}, numbers: {out / 'machines.csv'}")


def run(argv: Sequence[str]) -> int:
    made = Parser(prog="python3 -m plots.machines", description=__doc__, epilog=EPILOG)
    help_keys = "sets to compare, in the order of the legend (default: every published set)"
    made.add_argument("keys", nargs="*", metavar="machine-key", help=help_keys)
    made.add_argument(
        "--local", metavar="KEY", help="a local set, first; written into its folder unless --out is given"
    )
    made.add_results()
    made.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: machines/ of the results)")
    asked = made.parse_args(argv)
    twice = next((key for key in asked.keys if asked.keys.count(key) > 1), None)
    if twice:
        raise UserError(f"machine key {twice}: is named twice; name each set once")
    data = load_toml(DATA)
    machines = compared(sets_of(asked), data)
    if not machines:
        raise UserError(f"{asked.results}: no set with times to compare; measure first (scripts/reproduce.sh)")
    own = asked.results / "local" / asked.local if asked.local else asked.results
    write(asked.out or own / "machines", machines, data)
    if machines[0].key == f"local/{asked.local}":
        lines = overview(distinct(machines), data["places"])
        print(tabulate(lines, "keys", tablefmt="simple", showindex=False, disable_numparse=True))
    for note in filter(None, (one.note for one in machines)):
        print(f"* {note}")
    return 0


main = partial(command, run)  # every mistake of the user is one line

if __name__ == "__main__":
    sys.exit(main())
