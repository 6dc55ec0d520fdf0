"""Bodies of OTLP to spans, log records and points, in either encoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from toolfault_collector.otlp.calls.spans import LogRecord, Span
from toolfault_collector.otlp.encoding import json_body, protobuf
from toolfault_collector.otlp.encoding.items import BadBody, Items, Reading, Refusal
from toolfault_collector.otlp.points import Point

__all__ = [
    "BadBody",
    "Encoding",
    "Items",
    "Refusal",
    "decode_logs",
    "decode_metrics",
    "decode_traces",
]

Encoding = Literal["protobuf", "json"]


def decode_traces(body: bytes, encoding: Encoding) -> Reading[Span]:
    """Return the reading of the body of ``/v1/traces``.

    Raises:
        BadBody: It is no such request, or too long.
    """
    return json_body.read_spans(body) if encoding == "json" else protobuf.read_spans(body)


def decode_logs(body: bytes, encoding: Encoding) -> Reading[LogRecord]:
    """Return the reading of the body of ``/v1/logs``; for the rest see `decode_traces`."""
    return json_body.read_logs(body) if encoding == "json" else protobuf.read_logs(body)


def decode_metrics(body: bytes, encoding: Encoding) -> Reading[Sequence[Point]]:
    """Return the reading of ``/v1/metrics``, metric by metric; for the rest see `decode_traces`."""
    return json_body.read_metrics(body) if encoding == "json" else protobuf.read_metrics(body)
