"""Side experiments measure points of other experiments again, to study a mode, energy, `auto` or the input."""

from collections.abc import Collection, Iterable

from experiments.driver.schema import studies
from experiments.driver.store import KEY, Key, Row

POINT = tuple(name for name in KEY if name not in ("input", "preset", "source_hash"))


def without_studies(rows: Iterable[Row], side: Collection[str] | None = None) -> list[Row]:
    """The rows that count as times of points. Rows of side experiments (`side`, by default those with `study = true`)
    count only where no other experiment has a time of the point (resume key without input, preset and source hash)."""
    rows, side = list(rows), studies() if side is None else side

    def point(row: Row) -> Key:
        return tuple(row[name] for name in POINT)

    main = {point(row) for row in rows if row["outcome"] == "passed" and row["experiment"] not in side}
    return [row for row in rows if row["experiment"] not in side or point(row) not in main]
