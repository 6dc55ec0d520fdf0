"""Tables of what came by OTLP: traces that may still grow, what metrics counted, last requests."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
)

from toolfault_collector.storage.tables.common import id_column, metadata, project_column

__all__ = ["metric_calls", "metric_series", "otlp_request", "trace", "trace_batch"]

# A trace whose spans may come in further requests; kept until it has been quiet for a while.
trace = Table(
    "trace",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
    Column("trace_id", String(32), primary_key=True),
    Column("received_at", BigInteger, nullable=False),  # when the last of its spans came
    Column("spans", Integer, nullable=False),  # spans and log records, of all its batches
    Column("size", Integer, nullable=False),  # bytes of these, before they were packed
    Column("reads", Integer, nullable=False),  # how many were read so far, again and again
    # The calls that were made of it: {event id: digest of the event}.
    Column("calls", JSON),
    Index(None, "project_id", "received_at"),
)

# The spans and log records of one trace in one request, packed (`otlp.packing`).
trace_batch = Table(
    "trace_batch",
    metadata,
    id_column(),
    project_column(),
    Column("trace_id", String(32), nullable=False),
    Column("spans", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index(None, "project_id", "trace_id"),
)

# The last requests of each project: why is my failure not here?
otlp_request = Table(
    "otlp_request",
    metadata,
    id_column(),
    project_column(),
    Column("received_at", BigInteger, nullable=False),
    Column("signal", String(8), nullable=False),  # traces | logs | metrics
    Column("encoding", String(8), nullable=False),  # protobuf | json
    Column("sender", String(128)),  # its User-Agent
    Column("items", Integer, nullable=False),  # spans, log records or data points
    Column("calls", Integer, nullable=False),  # calls that were new or changed by it
    Column("rejected", Integer, nullable=False),
    Column("detail", JSON),  # [[name, what became of it, why], ...], the first of them
    Index(None, "project_id", "id"),
)

# Calls as metrics count them: exact where traces are sampled.
metric_calls = Table(
    "metric_calls",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
    Column("day", BigInteger, primary_key=True),  # its first microsecond, UTC
    Column("source", String(16), primary_key=True),  # execute_tool | mcp.client | mcp.server
    Column("tool", String(256), primary_key=True),
    Column("error_type", String(256), primary_key=True),  # empty: no error
    Column("calls", BigInteger, nullable=False),
)

# What was last heard of a series of cumulative points, of which the next one is a difference.
metric_series = Table(
    "metric_series",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
    Column("digest", String(32), primary_key=True),
    Column("started_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger, nullable=False),
    Column("calls", BigInteger, nullable=False),
    Index(None, "ended_at"),
)
