"""Fixed bounds of the client.

They are not configuration: a host that has to tune them has found a defect. Tests shorten the
times through the ``limits`` seam of ``Client``.
"""

from __future__ import annotations

from toolfault.telemetry._record import Record

__all__ = ["Limits"]


class Limits(Record):
    """Bounds on memory, batches and time; the numbers are those of the wire protocol.

    Attributes:
        queue_events: Events kept in memory; the oldest is dropped beyond it. A replayed history
            comes in bursts of thousands, and the bound that protects the host is the next one.
        queue_bytes: Estimated bytes kept in memory.
        batch_events: Events in one request; well under the collector's 1,000.
        batch_bytes: Uncompressed bytes in one request; well under the collector's 20 MiB, so
            that a slow link is given up on rarely and a retry repeats little.
        event_bytes: Encoded bytes of one event; the collector refuses more.
        batch_seconds: How long the first event of a batch waits for company.
        request_seconds: Whole duration of one request, connecting included.
        backoff_base: First upper bound of the random wait after a failed request, seconds.
        backoff_cap: Largest upper bound of that wait, seconds.
        flush_seconds: How long ``flush()`` waits when it is given no timeout.
        exit_seconds: How long the process may be held at exit.
        fold_seconds: How long folded successes are collected before they are queued.
        fold_rows: Rows of counters kept before they are queued early.
        adopt_seconds: How often the spool is searched for what dead processes left.
        idle_seconds: A conversation without a call for so long has ended.
        spool_bytes: Bytes of all segments in the spool directory.
        segment_bytes: A segment is ended at this size; it bounds what a crash sends again.
        largest_segment: Bytes read of a segment found on disk.
        conversations: Conversations followed at a time; the one idle longest is ended beyond it.
        conversation_lanes: Kinds of calls (tool, agent, model, variant) followed in all of them;
            some 450 bytes each, where a model invents long names.
    """

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
