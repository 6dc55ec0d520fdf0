"""The bounds of a client, for tests to change."""

from __future__ import annotations

from typing import NamedTuple


class Bounds(NamedTuple):
    """What a client reads of its ``limits``: the bounds of today, which tests tighten."""

    queue_events: int = 10_000
    queue_bytes: int = 16 * 1024 * 1024
    batch_events: int = 200
    batch_bytes: int = 1024 * 1024
    event_bytes: int = 256 * 1024
    batch_seconds: float = 1.0
    request_seconds: float = 10.0
    backoff_base: float = 1.0
    backoff_cap: float = 60.0
    flush_seconds: float = 5.0
    exit_seconds: float = 2.0
    fold_seconds: float = 60.0
    fold_rows: int = 500
    adopt_seconds: float = 60.0
    idle_seconds: float = 1_800.0
    spool_bytes: int = 64 * 1024 * 1024
    segment_bytes: int = 1024 * 1024
    largest_segment: int = 4 * 1024 * 1024
    conversations: int = 2_000
    conversation_lanes: int = 20_000
