"""What all senders share: the tools, the calls that their models ask for, and the exporter.

`Case.arguments` go to the tools `book` and `lookup`. Each case is a run of its own, since some
frameworks end a run over an exception; all are one conversation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

__all__ = ["CASES", "CONVERSATION", "Case", "book", "exporter", "lookup", "played", "provider"]

CONVERSATION = "trip-7"


@dataclass(frozen=True)
class Case:
    """One call that the scripted model makes before it says that it is done."""

    name: str
    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def call_id(self) -> str:
        """The id that the model gives it."""
        return f"call-{self.name}"


CASES = (
    Case("arguments", "book", {"day": "2026-11-30"}),
    Case("raises", "lookup", {"key": "boom"}),
    Case("unknown", "bok", {"day": "2026-11-30", "seats": 2}),
    Case("told", "lookup", {"key": "sold out"}),
    Case("works", "book", {"day": "2026-11-30", "seats": 2}),
)


def book(day: str, seats: int) -> str:
    """Book seats for a day."""
    return f"booked {seats} for {day}"


def lookup(key: str) -> str:
    """Look a key up."""
    if key == "boom":
        raise ConnectionError("database is unreachable")
    return "Error: no seats left"


def exporter() -> OTLPSpanExporter:
    """Make the official exporter; OTEL_EXPORTER_OTLP_* say where it sends."""
    return OTLPSpanExporter()


def provider() -> TracerProvider:
    """Make a provider that sends to the collector under test."""
    made = TracerProvider(resource=Resource.create({"service.name": "travel-bot"}))
    made.add_span_processor(BatchSpanProcessor(exporter()))
    return made


def played(run: Callable[[Case], Any]) -> None:
    """Run every case; what reaches the host is the framework's affair."""
    for case in CASES:
        try:
            run(case)
        except Exception as error:
            print(f"{case.name}: {type(error).__name__}")  # noqa: T201
