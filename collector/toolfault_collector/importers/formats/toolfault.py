"""The SDK's own NDJSON: one event or one envelope of protocol v1 per line, as its spool writes it.

Events keep their ids, so what the collector already has is not stored again. They are handed to the
store as they are; it checks them like any other sender's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeGuard

from toolfault_collector.importers.files import Source
from toolfault_collector.importers.items import EventBatch, Format, Json
from toolfault_collector.importers.json_values import Piece
from toolfault_collector.protocol.decode import clean_resource

__all__ = ["FORMAT", "is_export"]

BATCH: Final = 500
_EXPORTED: Final = ({"event_id", "event_type", "chain_outcome"}, {"chain_id", "round_trips"})
_CSV_HEADS: Final = ("event_id,occurred_at,", "chain_id,conversation,")


def _detect(value: object) -> tuple[str, str] | None:
    if not _is_event_line(value):
        return None
    return ('"event_id" and "type"' if "event_id" in value else '"schema_version" and "events"', "")


def is_export(head: Sequence[Piece], start: str) -> bool:
    """Tell by its first values or its beginning whether a file exports failures or chains.

    It cannot be imported: the calls that succeeded are missing, without which nothing has a rate.
    """
    return start.removeprefix("\ufeff").startswith(_CSV_HEADS) or any(
        isinstance(piece.value, dict) and any(names <= piece.value.keys() for names in _EXPORTED)
        for piece in head
    )


def _is_event_line(value: object) -> TypeGuard[dict[str, object]]:
    """Tell an event or an envelope of protocol v1 from lines of other formats."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("event_id"), str) and isinstance(value.get("type"), str):
        return True
    return "schema_version" in value and isinstance(value.get("events"), list)


def _read(source: Source) -> Iterator[EventBatch]:
    """Yield the events in batches of one resource, and report the lines that hold none."""
    resource = _resource({})
    events: list[tuple[str, Json]] = []
    for line in source.values():
        if not _is_event_line(line.value):
            source.mismatch(line.position, "not an event; skipped")
            continue
        theirs = _resource(line.value)
        if events and (theirs != resource or len(events) >= BATCH):
            yield EventBatch(*resource, tuple(events))
            events = []
        resource = theirs
        events.extend(_events(line.position, line.value))
    if events:
        yield EventBatch(*resource, tuple(events))


def _resource(line: Json) -> tuple[Mapping[str, str], Mapping[str, str]]:
    resource = line.get("resource")
    return clean_resource(resource if isinstance(resource, dict) else None)


def _events(position: str, line: Json) -> Iterator[tuple[str, Json]]:
    several = line.get("events")
    if not isinstance(several, list):
        return iter([(position, line)])
    events = ((f"{position}/events/{index}", event) for index, event in enumerate(several))
    return ((place, event) for place, event in events if isinstance(event, dict))


FORMAT: Final = Format(
    "toolfault",
    "the SDK's own events, one per line",
    "`success` of the event",
    ("event_id", "type", "occurred_at"),
    _detect,
    _read,
)
