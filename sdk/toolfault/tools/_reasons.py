"""Why an available call left no result."""

from __future__ import annotations

from enum import Enum

__all__ = ["PASSTHROUGH", "PassReason"]


class PassReason(str, Enum):
    """Why a failure carries a reason although its tool was available."""

    PASSTHROUGH = "passthrough"

    def __str__(self) -> str:
        return str(self.value)


PASSTHROUGH = PassReason.PASSTHROUGH
