"""Tables as text: Markdown, CSV, and what LaTeX prints as it is."""

from __future__ import annotations

import pandas as pd


def markdown(shown: pd.DataFrame) -> str:
    """A frame of text cells as a Markdown table."""
    lines = [list(map(str, shown.columns)), ["---"] * len(shown.columns)]
    lines += [[str(cell).replace("|", "\\|") for cell in row] for row in shown.to_numpy()]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


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
