"""OpenTelemetry spans and log records, whoever wrote them, and the tool calls they tell of.

Everything here is pure: no database, no HTTP, no clock. ``spans`` has the records that every
decoder and reader makes; ``dialects`` is the table that says where each instrumentation writes
each field; ``messages`` reads the calls that a model asked for out of its messages; ``failures``
decides whether a call failed and what the failure says; ``calls`` makes one call of all spans,
records and messages that tell of it. ``dumps`` reads files of spans.
"""
