"""Helpers for the tests of agents: no collector, no network."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from toolfault.integrations.contract_check import ContractReport, check_contract
from toolfault.telemetry import Client, Response, _api

__all__ = ["ContractReport", "MemoryTransport", "capture_events", "check_contract"]


class MemoryTransport:
    """A collector in memory: acknowledges every batch and keeps what it got.

    Attributes:
        batches: Envelopes as the collector would read them, in the order they came.
    """

    def __init__(self) -> None:
        self.batches: list[dict[str, Any]] = []

    @property
    def events(self) -> list[dict[str, Any]]:
        """All events so far, in the order they came."""
        return [event for batch in self.batches for event in batch["events"]]

    def send(self, body: bytes, *, headers: Mapping[str, str], timeout: float) -> Response:
        """Keep a batch and acknowledge it."""
        batch = json.loads(gzip.decompress(body))
        self.batches.append(batch)
        answer = {"accepted": len(batch["events"]), "duplicate": 0, "rejected": []}
        return Response(200, {"content-type": "application/json"}, json.dumps(answer).encode())

    def close(self) -> None:
        """Do nothing: there is no connection."""


class CapturedEvents(list[dict[str, Any]]):
    """Events of a ``capture_events`` block; complete after ``flush()`` or the block's end."""

    def __init__(self, client: Client, transport: MemoryTransport) -> None:
        super().__init__()
        self._client = client
        self._transport = transport

    def flush(self) -> CapturedEvents:
        """Wait for the sender and bring the list up to date."""
        self._client.flush()
        self[:] = self._transport.events
        return self

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The failed calls and errors among the events."""
        self.flush()
        return [event for event in self if event.get("error")]


@contextmanager
def capture_events(**settings: Any) -> Iterator[CapturedEvents]:
    """Capture into memory what the block reports, sent one by one.

    Args:
        settings: Settings as for ``toolfault.init``; ``successes`` is ``"all"`` unless given.

    Yields:
        The events as the collector would read them. The client that ran before and its settings
        are replaced and put back afterwards.
    """
    transport = MemoryTransport()
    put_back = _api.put_aside()
    settings.setdefault("successes", "all")
    try:
        started = _api.init(**{**settings, "transport": transport})
        assert started is not None
        captured = CapturedEvents(started, transport)
        yield captured
        captured.flush()
    finally:
        put_back()
