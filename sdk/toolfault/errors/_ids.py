"""Ids of failures that are not reported, or not yet."""

from __future__ import annotations

import time

from toolfault._uuid7 import uuid7

__all__ = ["new_event_id"]


def new_event_id() -> str:
    """A new UUIDv7 in its canonical text form, sortable by time."""
    return uuid7(time.time())
