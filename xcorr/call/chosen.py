"""The library of this process, and the variant that computes a question on a device."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from xcorr.call.question import Question
from xcorr.native.library import Library
from xcorr.paths import build_directory

if TYPE_CHECKING:
    from xcorr.choice.auto import Auto

AUTO = "auto"


@lru_cache(maxsize=4)
def _loaded(path: str) -> Library:
    return Library(path)


def library() -> Library:
    """The built library, loaded with the first call. LibraryError where it is not built."""
    return _loaded(str(build_directory() / "libxcorr.so"))


@lru_cache(maxsize=16)
def _auto(path: str, device: str, refused: tuple[str, ...]) -> Auto:
    # Imported with the first choice: its modules need SciPy, which takes most of the time of an import.
    from xcorr.choice.auto import Auto

    known: Any = _loaded(path)
    return Auto(_Without(known, refused) if refused else known, device)


class _Without:
    """A library without some variants."""

    def __init__(self, library: Library, refused: tuple[str, ...]) -> None:
        self._library, self._refused = library, refused

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def supports(self, problem: Any, *, variant: str, **how: str) -> str:
        if variant in self._refused:
            return "it takes no arrays of a device"
        return self._library.supports(problem, variant=variant, **how)


def named(variant: str) -> tuple[str, str]:
    """Id and parameters of `cpu_fft:threads=all`; no parameters are the first point of the variant."""
    name, _, params = variant.partition(":")
    return name, params


def choice_by_sizes(question: Question, variant: str, device: str, refused: tuple[str, ...] = ()) -> tuple[str, str]:
    """Id and parameters of a variant, by sizes alone. UserError where no variant computes it. `refused`: ids that auto skips."""
    if variant != AUTO:
        return named(variant)
    auto = _auto(str(build_directory() / "libxcorr.so"), device, refused)
    choice = auto.choose(question.problem, question.precision)
    return choice.variant, choice.params


def choice_by_data(
    question: Question, variant: str, left: Any, right: Any, masks: Mapping[str, Any]
) -> tuple[str, str]:
    """The same on the CPU for these NumPy arrays: also by their numbers, and with a RuntimeWarning of what the user must know."""
    if variant != AUTO:
        return named(variant)
    auto = _auto(str(build_directory() / "libxcorr.so"), "cpu", ())
    choice = auto.choose_for(question.problem, left, right, **masks, precision=question.precision)
    if choice.warning:
        warnings.warn(choice.warning, RuntimeWarning, stacklevel=4)
    return choice.variant, choice.params
