"""Telemetry: conversations, the client, its queue and its transports."""

from toolfault.telemetry._api import (
    capture_failure,
    client,
    close,
    conversation,
    flush,
    init,
    record_change,
    set_tags,
    stats,
)
from toolfault.telemetry._book import Stats
from toolfault.telemetry._client import Client
from toolfault.telemetry._context import Conversation
from toolfault.telemetry._trials import variant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolfault.telemetry._transport import Response, Transport

__all__ = [
    "Client",
    "Conversation",
    "Response",
    "Stats",
    "Transport",
    "capture_failure",
    "client",
    "close",
    "conversation",
    "flush",
    "init",
    "record_change",
    "set_tags",
    "stats",
    "variant",
]


def __getattr__(name: str) -> object:
    """Load what only transports need, and with it ``typing``, on first use (PEP 562)."""
    if name in ("Response", "Transport"):
        from toolfault.telemetry import _transport

        return getattr(_transport, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
