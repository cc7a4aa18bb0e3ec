"""Tables as text: Markdown, CSV, and what LaTeX prints as it is."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from experiments.compare.markdown import cells


def markdown(shown: pd.DataFrame) -> str:
    """A frame of text cells as a Markdown table."""
    head, *rows = cells([shown.columns, *shown.to_numpy()])
    return "".join(line_of(line) for line in [head, ["---"] * len(head), *rows])


def line_of(line: Sequence[str]) -> str:
    """A line of a Markdown table; what is not Markdown in it has been through `cell`."""
    return "| " + " | ".join(line) + " |\n"


def csv(frame: pd.DataFrame) -> str:
    """All columns; six significant digits."""
    return frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")


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
