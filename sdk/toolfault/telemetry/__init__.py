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
from toolfault.telemetry._client import Client
from toolfault.telemetry._config import Limits
from toolfault.telemetry._conversations import Conversation
from toolfault.telemetry._queue import Stats
from toolfault.telemetry._transport import Response, Transport
from toolfault.telemetry._trials import variant

__all__ = [
    "Client",
    "Conversation",
    "Limits",
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
