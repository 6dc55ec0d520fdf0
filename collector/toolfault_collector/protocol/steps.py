"""Long work in steps, so that who does it can do something else in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Final, TypeVar

__all__ = ["SLICE_SECONDS", "Steps", "finish", "in_slices"]

# Twice what the largest batch of an SDK takes, so that those are never cut.
SLICE_SECONDS: Final = 0.05

Result = TypeVar("Result")
Steps = Generator[None, None, Result]
"""Work that leaves off now and then; what it returns is its result."""


def finish(steps: Steps[Result]) -> Result:
    """Return the result of *steps*, done at once."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]


def in_slices(
    steps: Steps[Result], *, seconds: float = SLICE_SECONDS
) -> Callable[[], Result | None]:
    """Return what does a slice of *steps* whenever it is called: None, or in the end the result."""

    def do_a_slice() -> Result | None:
        until = time.perf_counter() + seconds
        try:
            while True:
                next(steps)
                if time.perf_counter() >= until:
                    return None
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    return do_a_slice
