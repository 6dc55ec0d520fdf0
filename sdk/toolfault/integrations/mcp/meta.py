"""What both sides tell each other of a call in ``_meta``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolfault.telemetry import client

__all__ = ["KEY", "PARTS", "mapping", "sink", "told"]

KEY = "toolfault"
"""The member of ``_meta`` by which both sides tell each other of a call."""
PARTS = ("field", "code", "message", "expected", "received_type")
"""Of an issue, what a client is told."""


def sink() -> str | None:
    """Return where the events of this process go; None where it has no client."""
    running = client()
    return None if running is None else running.sink


def told(result: Any) -> dict[str, Any]:
    """Return what the server says of the failure in the metadata of its result."""
    return mapping(mapping(getattr(result, "meta", None)).get(KEY))


def mapping(value: object) -> dict[str, Any]:
    """Return a mapping that a peer may have sent, else an empty one."""
    return dict(value) if isinstance(value, Mapping) else {}
