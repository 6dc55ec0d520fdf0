"""Spans and log records as plain data, the same whatever encoding or file they came in.

Names follow OpenTelemetry's data model (opentelemetry-proto 1.x: ``Span``, ``Span.Event``,
``LogRecord``). Ids are lower-case hexadecimal; times are in microseconds since the Unix epoch, 0
where there is none; attribute values are what JSON can hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

__all__ = [
    "JSON",
    "MAX_NESTING",
    "Attributes",
    "LogRecord",
    "Span",
    "SpanEvent",
    "SpanStatus",
    "is_too_deep",
]

# Python has 1,000 calls for what walks a value, writes it, and all that called these.
MAX_NESTING: Final = 300

JSON: TypeAlias = Any  # None, bool, int, float, str, or lists and objects of these
Attributes: TypeAlias = Mapping[str, JSON]
SpanStatus: TypeAlias = Literal["unset", "ok", "error"]


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """Something that happened at one moment of a span, such as ``exception``."""

    name: str
    time_us: int = 0
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Span:
    """One span of a trace.

    Args:
        trace_id: 32 hexadecimal digits, lower case.
        span_id: 16 hexadecimal digits, lower case; unique in its trace.
        parent_id: Id of the span it is part of, or None for a root.
        kind: ``internal``, ``client``, ``server``, ``producer``, ``consumer``, or empty.
        end_us: When it ended; 0 where it had not ended yet.
        status_text: What the sender says of an error.
        resource: Attributes of the process that sent it.
        scope: Name of the instrumentation that made it.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    kind: str = ""
    start_us: int = 0
    end_us: int = 0
    status: SpanStatus = "unset"
    status_text: str = ""
    attributes: Attributes = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    resource: Attributes = field(default_factory=dict)
    scope: str = ""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One log record; ``event_name`` is empty where the record is no event.

    Args:
        trace_id: Trace it was written in, or None.
        span_id: Span it was written in, or None.
        severity: Severity number of OpenTelemetry, 1 to 24; 0 where there is none.
    """

    trace_id: str | None
    span_id: str | None
    event_name: str
    time_us: int = 0
    severity: int = 0
    body: JSON = None
    attributes: Attributes = field(default_factory=dict)
    resource: Attributes = field(default_factory=dict)
    scope: str = ""


def is_too_deep(*values: JSON) -> bool:
    """Say whether one of these values is nested too deeply to be read and written safely."""
    level: list[JSON] = [*values]
    for _ in range(MAX_NESTING):
        level = [inner for each in level for inner in _members(each) if _is_nested(inner)]
        if not level:
            return False
    return True


def _members(value: JSON) -> Iterable[JSON]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def _is_nested(value: JSON) -> bool:
    return isinstance(value, list | Mapping)
