"""Batches ready to be stored: everything about them that needs no database."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolfault_collector.clean import Refused
from toolfault_collector.decode import Batch, Rejection, decode_in_steps, event_id_of
from toolfault_collector.prepared import Context, Prepared, prepare
from toolfault_collector.refused import with_bodies
from toolfault_collector.steps import Steps, finish

__all__ = ["Submission", "prepare_batch", "read_batch"]


@dataclass(slots=True)
class Submission:
    """One batch ready to be stored. ``dropped`` is what its sender says it lost, by reason."""

    project_id: int
    received_at: int
    events: list[Prepared]
    rejected: list[Rejection]
    size: int
    key_id: int | None = None
    dropped: dict[str, int] = field(default_factory=dict)

    def part(self, events: list[Prepared], rejected: list[Rejection]) -> Submission:
        """Return the part of this batch that has *events* and *rejected*."""
        size = len(events) + len(rejected)
        return Submission(self.project_id, self.received_at, events, rejected, size)


def read_batch(
    body: bytes, *, project_id: int, received_at: int, max_events: int, max_event_bytes: int
) -> Steps[Submission]:
    """Return what the *body* of a request says, ready to be stored; leave off after each event.

    Args:
        body: The decompressed body.
        project_id: Whose it is.
        received_at: Now, in microseconds since the epoch.
        max_events: Events it may have.
        max_event_bytes: Bytes one event may have.

    Raises:
        BadBatch: It is no batch.
    """
    batch = yield from decode_in_steps(body, max_events=max_events, max_event_bytes=max_event_bytes)
    return (yield from _prepare(batch, Context(project_id, received_at, resource=batch.resource)))


def prepare_batch(batch: Batch, context: Context) -> Submission:
    """Return *batch* ready to be stored; what cannot be is among its rejections."""
    return finish(_prepare(batch, context))


def _prepare(batch: Batch, context: Context) -> Steps[Submission]:
    events: list[Prepared] = []
    rejected = list(batch.rejected)
    for decoded in batch.events:
        try:
            events.append(prepare(decoded, context))
        except Refused as refused:
            pointer = f"/events/{decoded.index}{refused.pointer}"
            rejected.append(
                Rejection(
                    decoded.index,
                    event_id_of(decoded.source),
                    refused.code,
                    pointer,
                    decoded.source,
                )
            )
        yield
    rejected.sort(key=lambda rejection: rejection.index)
    return Submission(
        context.project_id,
        context.received_at,
        events,
        with_bodies(rejected, context.resource),
        batch.size,
        dropped=batch.dropped,
    )
