"""A planned call: what host plans and device plans have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from xcorr.call.question import SIDES, Options, Question
from xcorr.errors import UserError


class Plan(ABC):
    """One problem with one variant on one device, planned once and called many times with arrays of the same kind, shapes and types.

    A plan has one workspace: its calls may be in one stream at a time, and threads that call at the same time need a `clone()` each.
    """

    question: Question
    options: Options
    variant: str  # id of the variant that computes
    params: str  # its parameters, "" for the first point
    device: str  # "cpu" or "cuda:N"

    @abstractmethod
    def __call__(
        self,
        left: Any,
        right: Any = None,
        out: Any = None,
        stream: Any = None,
        *,
        mask_left: Any = None,
        mask_right: Any = None,
    ) -> Any:
        """The result, in `out` if given. On a device the call only enqueues, and with `out` it allocates nothing."""

    @abstractmethod
    def check(self) -> None:
        """Waits for the last call. LibraryError if it found more detections than the capacity of result `above`, or if the device
        failed."""

    @abstractmethod
    def clone(self) -> Plan:
        """Another plan of the same call, with a workspace of its own: for another thread or stream."""

    @abstractmethod
    def close(self) -> None:
        """Frees the plan and its memory, after its calls have ended. A closed plan refuses calls."""

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        params = f" {self.params}" if self.params else ""
        return f"<xcorr plan {self.question.problem.id} {self.question.precision} by {self.variant}{params} on {self.device}>"


def check_masks(planned: tuple[str, ...], given: tuple[Any, Any]) -> None:
    """UserError unless exactly the planned sides have a mask."""
    for side, mask in zip(SIDES, given):
        if (mask is not None) != (side in planned):
            what = "missing; give it as the plan was made" if mask is None else "the plan has none; make another plan"
            raise UserError(f"mask_{side}: {what}")
