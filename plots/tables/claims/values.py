"""What a claim's computation finds, and whether that bears the claim out."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from xcorr.errors import UserError, choose

HOLDS, DIFFERS, UNKNOWN = "holds", "differs here", "not measured"
# Where the rows of the source itself fail the test; where ours do and its program on the same machine does not; where no number decides.
CONTRADICTED, OTHERWISE, NOT_COMPARABLE = (
    "contradicted by the source's own data",
    "differs by implementation",
    "not comparable",
)
# All that there are, in the order of the tables.
VERDICTS = (HOLDS, DIFFERS, CONTRADICTED, OTHERWISE, NOT_COMPARABLE, UNKNOWN)
SAID = (CONTRADICTED, OTHERWISE, NOT_COMPARABLE)  # what the data of a claim may say, whatever its rows give
JUDGES = ("all", "any", "mean")
SLACK = 0.01  # two neighbours of a trend that differ by less are equal (as plots.best_table's ties)
SHOWN = 6
UNDECIDED = "undecided"  # a word that neither confirms nor contradicts


Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Value:
    """A number within [low, high] (equal when it is known) or a word. `group` ties the values of
    one trend together; `label` says of which cell it is."""

    label: str
    low: float = math.nan
    high: float = math.nan
    group: str = ""
    word: str = ""

    @property
    def text(self) -> str:
        """The value for people: three digits, `>256` and `<16` where only a bound is known."""
        if self.word:
            return self.word
        if self.low == self.high:
            return f"{self.low:.3g}"
        return f">{self.low:.3g}" if math.isinf(self.high) else f"<{self.high:.3g}"


def known(label: str, number: float, group: str = "") -> Value:
    return Value(label, float(number), float(number), group)


@dataclass(frozen=True)
class Found:
    """Values in the order of their cells, and what rows were missing, one line each. `hints` are rows
    that would narrow a bound down."""

    values: list[Value]
    missing: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)

    def text(self) -> str:
        return "; ".join(f"{one.label}: {one.text}" if one.label else one.text for one in self.values)

    def short(self) -> str:
        """As text, or the range of the values when there are many."""
        numbers = [one for one in self.values if not one.word]
        if len(self.values) <= SHOWN:
            return self.text()
        if not numbers:
            words = Counter(one.word for one in self.values)
            return ", ".join(f"{word} ({times} of {len(self.values)})" for word, times in words.most_common())
        low, high = min(numbers, key=lambda v: v.low), max(numbers, key=lambda v: v.high)
        return f"{low.text} ({low.label}) to {high.text} ({high.label}), {len(self.values)} values"


def named(*computations: Callable[..., Found]) -> dict[str, Callable[..., Found]]:
    """The computations by their names."""
    return {one.__name__: one for one in computations}


def quotient(
    number: Callable[[Arguments], float | None], describe: Callable[[Arguments], str], args: Arguments
) -> Found:
    """`number` of the side `of` over that of the side `to`; `describe` names the rows of a side without a number."""
    sides = [args["of"], args["to"]]
    of, to = map(number, sides)
    if of is None or to is None:
        return Found([], [describe(side) for side, one in zip(sides, (of, to)) if one is None])
    return Found([known("", of / to)])


def _within(value: Value, low: float, high: float) -> bool | None:
    """Three-valued: whether the value lies in [low, high], None when its bounds leave that open."""
    if low <= value.low and value.high <= high:
        return True
    apart = value.high < low or value.low > high
    touching = value.low != value.high and (value.high <= low or value.low >= high)
    return False if apart or touching else None


# Bounds of a number by the name of the criterion and the criterion's value.
BOUNDS: dict[str, Callable[[Any], tuple[float, float]]] = {
    "between": lambda wanted: (float(wanted[0]), float(wanted[1])),
    "at_least": lambda wanted: (float(wanted), math.inf),
    "at_most": lambda wanted: (-math.inf, float(wanted)),
}
JUDGED = {"all": "", "any": ", somewhere", "mean": ", in the mean"}  # what a judge adds to the limits, in words
CRITERIA = (*BOUNDS, "near", "decreasing", "is")
KEYS = (*CRITERIA, "tolerance", "judge")


def check(test: Mapping[str, Any], where: str) -> None:
    """UserError when a test is not one criterion with legal keys."""
    choose(f"{where}: key", test, KEYS)
    if sum(name in test for name in CRITERIA) != 1:
        raise UserError(f"{where}: needs exactly one criterion; give one of {', '.join(CRITERIA)}")
    if "near" in test and "tolerance" not in test:
        raise UserError(f"{where}: near has no tolerance; give it as a part of the value, as 0.1")
    choose(f"{where}: judge", [test.get("judge", "all")], JUDGES)


def limits(test: Mapping[str, Any]) -> tuple[float, float]:
    """The smallest and the largest number that a test with such limits allows."""
    if "near" in test:
        wanted, share = float(test["near"]), float(test["tolerance"])
        return wanted * (1 - share), wanted * (1 + share)
    name = next(name for name in BOUNDS if name in test)
    return BOUNDS[name](test[name])


def stated(test: Mapping[str, Any]) -> str:
    """What a test allows, for people; empty without a test."""
    if not test:
        return ""
    if "is" in test:
        text = str(test["is"])
    elif "decreasing" in test:
        text = f"{'falls' if test['decreasing'] else 'rises'}; {SLACK:.0%} counts as equal"
    else:
        low, high = limits(test)
        text = f"{low:.3g} to {high:.3g}"
        if math.isinf(low) or math.isinf(high):
            text = f"at most {high:.3g}" if math.isinf(low) else f"at least {low:.3g}"
    return text + JUDGED[test.get("judge", "all")]


def verdict(found: Found, test: Mapping[str, Any]) -> str:
    """What rows alone give: HOLDS, DIFFERS or UNKNOWN. Missing rows leave a verdict open unless the rows that are there settle it: one
    contradiction settles `judge = "all"`, one confirmation `judge = "any"`, nothing a mean."""
    judge = test.get("judge", "all")
    values = found.values
    if judge == "mean" and values:
        mean = known("mean", sum(one.low for one in values) / len(values))
        return UNKNOWN if found.missing else _said(_criterion(mean, test))
    results = _falling(values, test) if "decreasing" in test else [_criterion(v, test) for v in values]
    decisive = judge == "any"
    if decisive in results:
        return _said(decisive)
    if found.missing or None in results or not results:
        return UNKNOWN
    return _said(not decisive)


def _said(result: bool | None) -> str:
    return UNKNOWN if result is None else HOLDS if result else DIFFERS


def _criterion(value: Value, test: Mapping[str, Any]) -> bool | None:
    if "is" in test:
        if value.word == UNDECIDED:
            return None
        return str(test["is"]) in value.word.split(" = ")
    return _within(value, *limits(test))


def _falling(values: Iterable[Value], test: Mapping[str, Any]) -> list[bool | None]:
    """Per pair of neighbours of a group whether the later is not larger (test: `decreasing = false`: not smaller)."""
    groups: dict[str, list[Value]] = {}
    for value in values:
        groups.setdefault(value.group, []).append(value)
    results: list[bool | None] = []
    for group in groups.values():
        for one, other in zip(group, group[1:]):
            first, second = (one, other) if test["decreasing"] else (other, one)
            if second.high <= first.low * (1 + SLACK):
                results.append(True)
            else:
                results.append(False if second.low > first.high * (1 + SLACK) else None)
    return results
