"""The SDK's own NDJSON: one event or one envelope of protocol v1 per line, as its spool writes it.

Events keep their ids, so what the collector already has is not stored again. They are handed to the
store as they are; it checks them like any other sender's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from toolfault_collector.importers._reading import Broken
from toolfault_collector.importers._source import Source
from toolfault_collector.importers._transcript import EventBatch, Item

__all__ = ["NAME", "is_event_line", "read_events"]

NAME: Final = "toolfault"
BATCH: Final = 500

_Event = Mapping[str, object]


def is_event_line(value: object) -> bool:
    """Tell an event or an envelope of protocol v1 from lines of other formats."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("event_id"), str) and isinstance(value.get("type"), str):
        return True
    return "schema_version" in value and isinstance(value.get("events"), list)


def read_events(source: Source) -> Iterator[Item]:
    """Yield the events in batches, and the lines that hold none."""
    resource: Mapping[str, str] = {}
    events: list[tuple[str, _Event]] = []
    for read in source.values():
        if isinstance(read, Broken):
            yield source.problem(read)
            continue
        if not is_event_line(read.value):
            yield source.mismatch(read.position, "not an event; skipped")
            continue
        assert isinstance(read.value, dict)
        theirs = _resource(read.value)
        if events and (theirs != resource or len(events) >= BATCH):
            yield _batch(resource, events)
            events = []
        resource = theirs
        events.extend(_events(read.position, read.value))
    if events:
        yield _batch(resource, events)


def _resource(line: _Event) -> Mapping[str, str]:
    resource = line.get("resource")
    if not isinstance(resource, dict):
        return {}
    return {name: value for name, value in resource.items() if isinstance(value, str)}


def _events(position: str, line: _Event) -> Iterator[tuple[str, _Event]]:
    several = line.get("events")
    if not isinstance(several, list):
        yield position, line
        return
    for index, event in enumerate(several):
        if isinstance(event, dict):
            yield f"{position}/events/{index}", event


def _batch(resource: Mapping[str, str], events: list[tuple[str, _Event]]) -> EventBatch:
    return EventBatch(
        resource, tuple(event for _, event in events), tuple(place for place, _ in events)
    )
