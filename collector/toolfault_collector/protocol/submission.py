"""Batches as records: everything about them that needs no database.

One event never spoils its neighbours: each is decoded and made a record alone, and what cannot be
is refused alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from toolfault_collector.protocol.decode import (
    MAX_EVENT_BYTES,
    MAX_EVENTS,
    decode_event,
    open_batch,
)
from toolfault_collector.protocol.records import Context, Record, make_record
from toolfault_collector.protocol.refused import Rejection, event_id_of, with_bodies
from toolfault_collector.protocol.repair import Refused
from toolfault_collector.protocol.steps import Steps, finish

__all__ = ["Submission", "read_batch", "read_events"]


@dataclass(frozen=True, slots=True)
class Submission:
    """One batch ready to be stored; ``records`` and ``rejected`` together are all that was sent.

    Attributes:
        project_id: Whose it is.
        received_at: When it came, in microseconds since the epoch.
        records: What can be stored.
        rejected: What cannot, in the order of the batch.
        resource: What the batch says of its sender.
        key_id: The key that it came with, if any.
        dropped: What its sender says it lost, by reason.
        withdrawn: Ids of stored calls that are not what they were stored as.
    """

    project_id: int
    received_at: int
    records: Sequence[Record]
    rejected: Sequence[Rejection]
    resource: Mapping[str, str] = field(default_factory=dict)
    key_id: int | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    withdrawn: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """How many events were sent."""
        return len(self.records) + len(self.rejected)

    @property
    def units(self) -> Sequence[Any]:
        """What can be stored without the rest."""
        return self.records

    def of_units(self, units: Sequence[Any], rejected: Sequence[Rejection]) -> Submission:
        """Return the part of this batch that has these *units* and *rejected*."""
        return replace(self, records=units, rejected=rejected, key_id=None, dropped={})

    def unstorable(self, unit: Any) -> Rejection:
        """Return the refusal of one unit that the database does not take."""
        pointer = f"/events/{unit.index}"
        return Rejection(unit.index, unit.event_id, "unstorable", pointer, unit.raw)


def read_batch(
    body: bytes,
    *,
    project_id: int,
    received_at: int,
    key_id: int | None = None,
    max_events: int = MAX_EVENTS,
    max_event_bytes: int = MAX_EVENT_BYTES,
) -> Steps[Submission]:
    """Return what the *body* of a request says, ready to be stored; leave off after each event.

    Args:
        body: The decompressed body.
        project_id: Whose it is.
        received_at: Now, in microseconds since the epoch.
        key_id: The key that it came with.
        max_events: Events it may have.
        max_event_bytes: Bytes one event may have.

    Raises:
        BadBatch: It is not JSON, not a batch, or too long.
    """
    batch = open_batch(body, max_events=max_events)
    context = Context(
        project_id, received_at, resource=batch.resource, resource_flags=batch.resource_flags
    )
    found = yield from _read(batch.events, context, max_event_bytes, too_new=batch.too_new)
    return replace(found, key_id=key_id, dropped=batch.dropped)


def read_events(sources: Iterable[bytes | Mapping[str, Any]], context: Context) -> Submission:
    """Return *sources*, each a JSON object as bytes or as a mapping, ready to be stored.

    Args:
        sources: What arrived, in order.
        context: What holds for all of them. Of an import, members are accepted that only importers
            may set.
    """
    return finish(_read(sources, context, MAX_EVENT_BYTES, too_new=False))


def _read(
    sources: Iterable[Any], context: Context, max_event_bytes: int, *, too_new: bool
) -> Steps[Submission]:
    imported = context.time_policy == "import"
    records: list[Record] = []
    rejected: list[Rejection] = []
    for index, given in enumerate(sources):
        source = bytes(given) if isinstance(given, msgspec.Raw) else given
        code, pointer, decoded = "schema_too_new", "/schema_version", None
        try:
            decoded = decode_event(source, imported=imported, max_bytes=max_event_bytes)
            event, flags, extra = decoded
            records.append(
                make_record(event, source, context, index=index, flags=flags, extra=extra)
            )
        except Refused as refused:
            # What a newer sender means by a member this version misreads is unknown.
            if decoded is not None or not too_new:
                code, pointer = refused.code, f"/events/{index}{refused.pointer}"[:256]
            rejected.append(Rejection(index, event_id_of(source), code, pointer, source))
        yield
    if rejected:
        rejected = with_bodies(rejected, context.resource)
    return Submission(context.project_id, context.received_at, records, rejected, context.resource)
