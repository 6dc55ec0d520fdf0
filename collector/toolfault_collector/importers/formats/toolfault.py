"""The SDK's own NDJSON: one event or one envelope of protocol v1 per line, as its spool writes it.

Events keep their ids, so what the collector already has is not stored again. They are handed to the
store as they are; it checks them like any other sender's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeGuard

from toolfault_collector.importers.files import Source
from toolfault_collector.importers.items import EventBatch, Format
from toolfault_collector.protocol.decode import clean_resource

__all__ = ["FORMAT"]

BATCH: Final = 500

_Event = Mapping[str, object]


def _detect(head: list[object]) -> bool:
    return any(_is_event_line(value) for value in head)


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
    events: list[tuple[str, _Event]] = []
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


def _resource(line: _Event) -> tuple[Mapping[str, str], Mapping[str, str]]:
    resource = line.get("resource")
    return clean_resource(resource if isinstance(resource, dict) else None)


def _events(position: str, line: _Event) -> Iterator[tuple[str, _Event]]:
    several = line.get("events")
    if not isinstance(several, list):
        return iter([(position, line)])
    events = ((f"{position}/events/{index}", event) for index, event in enumerate(several))
    return ((place, event) for place, event in events if isinstance(event, dict))


FORMAT: Final = Format("toolfault", "the SDK's own events, one per line", _detect, _read)
