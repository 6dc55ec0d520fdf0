"""The book of what became of every record."""

from __future__ import annotations

from toolfault.telemetry._record import Record

__all__ = ["Book", "Stats"]


class Stats(Record):
    """What became of everything captured so far; a snapshot.

    ``captured = acked + rejected + sum(dropped.values()) + pending``, always and exactly; a record
    that Ctrl-C tears off is dropped as ``interrupted``. The unit is the record: a call, an error or
    a change the host handed over, or one of the SDK's own records about a conversation that ended.
    A folded success is one record until the counter that holds it is settled.

    Attributes:
        captured: Records handed over, those found in the spool of a dead process included.
        acked: Records the collector stored, or had already.
        rejected: Records the collector refused one by one.
        dropped: Records given up, by reason.
        pending: Records waiting in memory or on disk, or being sent.
    """

    captured: int
    acked: int
    rejected: int
    dropped: dict[str, int]
    pending: int


class Book:
    """Counters; the outbox's lock guards them."""

    def __init__(self) -> None:
        self.captured = 0
        self.acked = 0
        self.rejected = 0
        self.dropped: dict[str, int] = {}
        self._untold: dict[str, int] = {}

    def drop(self, weight: int, reason: str) -> None:
        """Count records that are given up."""
        if weight:
            self.dropped[reason] = self.dropped.get(reason, 0) + weight
            self._untold[reason] = self._untold.get(reason, 0) + weight

    @property
    def lost(self) -> int:
        """Records rejected or dropped so far."""
        return self.rejected + sum(self.dropped.values())

    def untold(self) -> dict[str, int]:
        """Return the drops that no acknowledged batch has told the collector about."""
        return dict(self._untold)

    def told(self, drops: dict[str, int]) -> None:
        """Take ``drops`` off what the collector does not know about."""
        for reason, count in drops.items():
            left = self._untold.get(reason, 0) - count
            if left > 0:
                self._untold[reason] = left
            else:
                self._untold.pop(reason, None)

    def stats(self, pending: int) -> Stats:
        """Return a snapshot with what was counted as pending."""
        return Stats(self.captured, self.acked, self.rejected, dict(self.dropped), pending)
