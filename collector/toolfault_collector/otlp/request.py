"""A request of OTLP, from its bytes to what the writer stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from toolfault_collector.otlp.calls.calls import calls_of
from toolfault_collector.otlp.calls.spans import LogRecord, Span
from toolfault_collector.otlp.encoding import json_body, protobuf
from toolfault_collector.otlp.encoding.items import Encoding, Items
from toolfault_collector.otlp.events import call_event
from toolfault_collector.otlp.points import Point
from toolfault_collector.otlp.submission import (
    Request,
    Signal,
    TraceSubmission,
    by_trace,
)
from toolfault_collector.protocol.records import Context
from toolfault_collector.protocol.steps import Steps
from toolfault_collector.protocol.submission import read_events

__all__ = ["read_request"]


class _Decoder(Protocol):
    """A module of `encoding`, which leaves off after each item."""

    def read_spans(self, body: bytes) -> Steps[Items[Span]]: ...
    def read_logs(self, body: bytes) -> Steps[Items[LogRecord]]: ...
    def read_metrics(self, body: bytes) -> Steps[Items[Sequence[Point]]]: ...


_DECODERS: Final[Mapping[Encoding, _Decoder]] = {"json": json_body, "protobuf": protobuf}


def read_request(
    body: bytes,
    signal: Signal,
    encoding: Encoding,
    *,
    project_id: int,
    received_at: int,
    key_id: int | None = None,
    sender: str | None = None,
) -> Steps[TraceSubmission]:
    """Return what the body of a request says, ready for the writer; leave off after each item.

    Args:
        body: The decompressed body.
        signal: Which of the three endpoints it was sent to.
        encoding: Of the body.
        project_id: Whose it is.
        received_at: Now, in microseconds since the epoch.
        key_id: The key that it came with.
        sender: Its User-Agent.

    Raises:
        BadBody: It is no such request, or too long.
    """
    spans, logs, points = [], [], []
    decoder = _DECODERS[encoding]
    if signal == "traces":
        of_spans = yield from decoder.read_spans(body)
        count, refused, spans = of_spans.count, of_spans.refused, of_spans.read
    elif signal == "logs":
        of_logs = yield from decoder.read_logs(body)
        count, refused, logs = of_logs.count, of_logs.refused, of_logs.read
    else:
        of_metrics = yield from decoder.read_metrics(body)
        count, refused = of_metrics.count, of_metrics.refused
        points = [point for metric in of_metrics.read for point in metric]
    # A record outside any trace says all there will ever be to say.
    alone = [log for log in logs if log.trace_id is None]
    made = calls_of([], alone) if alone else None
    events = [] if made is None else [call_event(each) for each in made.calls]
    context = Context(project_id, received_at, time_policy="import")
    read = read_events(events, context)
    return TraceSubmission(
        project_id,
        received_at,
        read.records,
        read.rejected,
        key_id=key_id,
        traces=by_trace(spans, logs),
        points=points,
        alone=made,
        alone_logs=alone,
        request=Request(signal, encoding, sender, count, refused),
    )
