"""OpenTelemetry spans and log records, whoever wrote them, and the tool calls they tell of.

What spans mean is pure: no database, no HTTP, no clock. ``spans`` has the records that every
decoder and reader makes; ``dialects`` is the table that says where each instrumentation writes
each field; ``messages`` reads the calls that a model asked for out of its messages; ``failures``
decides whether a call failed and what the failure says; ``calls`` makes one call of all spans,
records and messages that tell of it. ``dumps`` reads files of spans.

Around it lies the way of a request: ``request`` makes a ``submission`` of a body by ``protobuf`` or
``json_body`` (the limits of both are in ``items``), ``traces`` keeps its spans and makes calls of
all that is kept, ``events`` writes these as events, ``request_log`` keeps what is shown of it, and
``points`` and ``metric_calls`` count what metrics say.
"""
