"""A request of OTLP on its way to the writer: its spans by trace, packed as they are kept."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import msgspec

from toolfault_collector.otlp.calls.calls import TraceCalls
from toolfault_collector.otlp.calls.spans import LogRecord, Span
from toolfault_collector.otlp.encoding.items import Refusal
from toolfault_collector.otlp.points import Point
from toolfault_collector.protocol.refused import Rejection
from toolfault_collector.protocol.submission import Submission

__all__ = ["Request", "Signal", "TraceBatch", "TraceSubmission", "by_trace", "pack", "unpack"]

Signal = Literal["traces", "logs", "metrics"]


# Bytes; to begin a stream of zlib costs 60 us, as much as it saves of a single span.
PACKED_FROM: Final = 2_048
_ZLIB: Final = b"\x78"  # (RFC 1950); MessagePack begins an object of two members with 0x82


@dataclass(frozen=True, slots=True)
class _Packed:
    spans: list[Span] = field(default_factory=list)
    logs: list[LogRecord] = field(default_factory=list)


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Packed)


@dataclass(frozen=True, slots=True)
class TraceBatch:
    """What one request brings of one trace.

    Attributes:
        trace_id: Lower-case hexadecimal digits.
        spans: Its spans.
        logs: Its log records.
        body: Both, packed.
        weight: Bytes of them before they were packed: what reading them again takes.
    """

    trace_id: str
    spans: Sequence[Span]
    logs: Sequence[LogRecord]
    body: bytes
    weight: int

    @property
    def size(self) -> int:
        """How many spans and log records."""
        return len(self.spans) + len(self.logs)


def pack(trace_id: str, spans: Sequence[Span], logs: Sequence[LogRecord]) -> TraceBatch:
    """Return the batch of one trace; the same spans in the same order are the same bytes."""
    plain = _ENCODER.encode(_Packed(list(spans), list(logs)))
    body = zlib.compress(plain, 1) if len(plain) > PACKED_FROM else plain
    return TraceBatch(trace_id, spans, logs, body, len(plain))


def unpack(body: bytes) -> tuple[list[Span], list[LogRecord]]:
    """Return the spans and log records of a packed batch."""
    packed = _DECODER.decode(zlib.decompress(body) if body.startswith(_ZLIB) else body)
    return packed.spans, packed.logs


@dataclass(frozen=True, slots=True)
class Request:
    """What is shown of a request: why is my failure not here?

    Attributes:
        signal: ``traces``, ``logs`` or ``metrics``.
        encoding: ``protobuf`` or ``json``.
        sender: Its User-Agent.
        items: How many spans, log records or metrics it held.
        refused: Those that could not be read.
    """

    signal: Signal
    encoding: str
    sender: str | None
    items: int
    refused: Sequence[Refusal]


@dataclass(frozen=True, slots=True)
class TraceSubmission(Submission):
    """One request of OTLP: what calls it makes is known only beside what is stored of its traces.

    Attributes:
        traces: Its spans and log records.
        points: Its points of metrics that count calls.
        alone: What its log records outside any trace came to, if all soft rules count.
        alone_logs: These records.
        request: What is shown of it.
    """

    traces: Sequence[TraceBatch] = ()
    points: Sequence[Point] = ()
    alone: TraceCalls | None = None
    alone_logs: Sequence[LogRecord] = ()
    request: Request | None = None

    @property
    def refused(self) -> Sequence[Refusal]:
        """What of it could not be read."""
        return () if self.request is None else self.request.refused

    @property
    def size(self) -> int:
        """How many spans, log records or metrics were sent."""
        return 0 if self.request is None else self.request.items

    @property
    def units(self) -> Sequence[Any]:
        """What can be stored without the rest."""
        return [*self.traces, *self.records]

    def of_units(self, units: Sequence[Any], rejected: Sequence[Rejection]) -> TraceSubmission:
        """Return the part of this request that has these traces and records."""
        return replace(
            self,
            traces=[each for each in units if isinstance(each, TraceBatch)],
            records=[each for each in units if not isinstance(each, TraceBatch)],
            rejected=rejected,
            key_id=None,
            # Once, with the part that has nothing else.
            points=() if units else self.points,
            request=None if units else self.request,
        )

    def unstorable(self, unit: Any) -> Rejection:
        """Return the refusal of one trace that the database does not take."""
        if not isinstance(unit, TraceBatch):
            return super(TraceSubmission, self).unstorable(unit)
        return Rejection(0, None, "unstorable", f"/traces/{unit.trace_id}", {})


def by_trace(spans: Iterable[Span], logs: Iterable[LogRecord]) -> list[TraceBatch]:
    """Return the batches of all traces, in the order of their ids."""
    found: dict[str, tuple[list[Span], list[LogRecord]]] = {}
    for span in spans:
        found.setdefault(span.trace_id, ([], []))[0].append(span)
    for log in logs:
        if log.trace_id is not None:
            found.setdefault(log.trace_id, ([], []))[1].append(log)
    return [pack(trace_id, *found[trace_id]) for trace_id in sorted(found)]
