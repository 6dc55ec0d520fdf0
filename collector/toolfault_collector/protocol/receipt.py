"""What became of a batch: the answer to its sender."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolfault_collector.protocol.refused import Rejection

__all__ = ["Receipt"]


@dataclass(slots=True)
class Receipt:
    """What became of a batch: accepted + duplicate + len(rejected) = events sent.

    Attributes:
        conflicts: Duplicates that differ from what was stored first under their id.
        dropped: What the sender says it lost, by reason.
    """

    accepted: int = 0
    duplicate: int = 0
    rejected: Sequence[Rejection] = ()
    conflicts: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)

    def add(self, other: Receipt) -> None:
        """Add what became of another part of the same batch."""
        self.accepted += other.accepted
        self.duplicate += other.duplicate
        self.conflicts += other.conflicts
        self.rejected = sorted([*self.rejected, *other.rejected], key=lambda each: each.index)
