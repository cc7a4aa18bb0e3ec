"""What the first screen of the report says: what was measured, where, what is fastest, how far from the floor, how it was
checked."""

import pandas as pd

from plots import ceilings, imported, style
from plots.figures import floor
from plots.metrics import geometric_mean
from plots.tables import beyond, outcomes
from plots.tidy import USUAL, ResultSet, form_order, passed, select

NAMED = 3  # winners that the sentence on the fastest names


def lines(results: ResultSet, table: pd.DataFrame, machine: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """(question, answer) of each; `table` is best_table's, `machine` the facts of the machine. A set without a verified
    time has none."""
    verified = passed(results.points)
    if verified.empty or imported.record(results):
        return []
    found = [("What was measured", _measured(verified)), ("On which machine", _machine(results, machine))]
    own = select(table, accounting="compute", **USUAL)
    if len(own):
        found.append(("What is fastest", _fastest(results, own)))
        found.append(("How far from the floor", _floor(results)))
    return [*found, ("How it was checked", _checked(results))]


def _measured(passed: pd.DataFrame) -> str:
    forms = sorted(passed["form"].unique(), key=form_order)
    sides = passed.sort_values("side")["size"]
    problems = len(passed.drop_duplicates(["form", "size", "counts", "window"]))
    return (
        f"The time of {_many(passed['variant'].nunique(), 'variant')} on {_many(problems, 'problem')}: "
        f"{', '.join(forms)}, matrices from {sides.iloc[0]} to {sides.iloc[-1]} (left:right where the sizes differ). "
        "A variant either computes the sums of products directly or uses fast Fourier transforms (FFT)."
    )


def _machine(results: ResultSet, machine: list[tuple[str, str]]) -> str:
    facts = dict(machine)
    named = [f"{name.lower()} {facts[name]}" for name in ("Memory", "Driver") if name in facts]
    named += [f"CUDA {facts['CUDA']}"] if "CUDA" in facts else []
    return f"{facts.get('Device', results.key)}{': ' if named else ''}{', '.join(named)}."


def _fastest(results: ResultSet, own: pd.DataFrame) -> str:
    wins = own["best"].value_counts()
    order = sorted(wins.index, key=lambda name: (-wins[name], name))
    names = ", ".join(f"{style.label(name)} on {wins[name]}" for name in order[:NAMED])
    rest = f", {_many(len(order) - NAMED, 'other variant')} on the others" if len(order) > NAMED else ""
    text = (
        f"Fastest variant on the {_many(len(own), 'problem')} with all shifts (fp32, calls launched back to back, plans kept "
        f"between calls): {names}{rest}."
    )
    found = beyond.of_set(results)
    return f"{text} {beyond.speedup_sentence(found)}".strip()


def _floor(results: ResultSet) -> str:
    measured = ceilings.load(results.folder)
    if isinstance(measured, str):
        if not (results.points["backend"] == "cuda").any():
            return "Not known: the floor exists only for GPUs."
        return f"Not known: {measured}."
    distances = floor.distances(results.feeding("floor"), measured)
    if distances.empty:
        return "Not known: no verified time in the usual conditions."
    mean = geometric_mean(distances["factor"])
    return (
        f"On the {_many(len(distances), 'problem')} of the figure “Best time over the floor”, the fastest time is "
        f"{mean:.2f} times the floor (geometric mean), and {distances['factor'].max():.1f} times at most. The floor is the "
        "shortest time that the measured limits of this machine (empty launch, memory, arithmetic, exchange between threads) allow for a call that "
        "starts after the previous one has ended. Calls that overlap can be faster."
    )


def _checked(results: ResultSet) -> str:
    numbers = outcomes.counts(results.rows)
    by = {name: int(numbers[name].sum()) if name in numbers else 0 for name in ("passed", "incorrect", "failed")}
    return (
        "Before and after the timed calls the whole output was compared with a float64 reference. "
        f"{by['passed']} points (variant, parameters and problem) passed. Incorrect: {by['incorrect']}. "
        f"Failed: {by['failed']}. Only points that passed are in figures and tables."
    )


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
