"""Tables as text: Markdown, CSV, and what LaTeX prints as it is."""

from collections.abc import Collection, Sequence

import pandas as pd

from experiments.compare.markdown import cells


def markdown(shown: pd.DataFrame) -> str:
    """A frame of text cells as a Markdown table."""
    head, *rows = cells([shown.columns, *shown.to_numpy()])
    return "".join(line_of(line) for line in [head, ["---"] * len(head), *rows])


def line_of(line: Sequence[str]) -> str:
    """A line of a Markdown table; what is not Markdown in it has been through `cell`."""
    return "| " + " | ".join(line) + " |\n"


def csv(frame: pd.DataFrame, digits: int = 6) -> str:
    """All columns; numbers with so many significant digits."""
    return frame.to_csv(index=False, float_format=f"%.{digits}g", lineterminator="\n")


_TEX = {
    "\\": r"\textbackslash{}",
    "_": r"\_",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "µ": r"$\mu$",
    "∞": r"$\infty$",
    "→": r"$\rightarrow$",
    "–": "--",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "“": "``",
    "”": "''",
    "=": "=",
    "<": r"$<$",
    ">": r"$>$",
}


def tex_escape(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(_TEX.get(letter, letter) for letter in str(text))


def tabular(shown: pd.DataFrame, right: Collection[str] = ()) -> str:
    """A frame of text cells as a complete LaTeX tabular, no package needed; the columns `right` are aligned there."""
    aligned = "".join("r" if name in right else "l" for name in shown.columns)
    lines = [" & ".join(map(tex_escape, row)) + r" \\" for row in [shown.columns, *shown.to_numpy()]]
    body = "\n".join([r"\hline", lines[0], r"\hline", *lines[1:], r"\hline"])
    return f"\\begin{{tabular}}{{{aligned}}}\n{body}\n\\end{{tabular}}"
