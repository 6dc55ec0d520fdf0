"""What the collector answers, as part of an OpenAPI 3.1 document: made of the types it decodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from toolfault_collector.protocol import wire

__all__ = ["describe", "json_schema"]

_PREFIX: Final = "Sent"  # the answers of the API have names of their own
_PROBLEM: Final = {
    "application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}
}
_RECEIPT: Final = {
    "type": "object",
    "required": ["accepted", "duplicate", "rejected"],
    "properties": {
        "accepted": {"type": "integer", "minimum": 0},
        "duplicate": {"type": "integer", "minimum": 0},
        "rejected": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["index", "event_id", "code", "pointer"],
                "properties": {
                    "index": {"type": "integer", "minimum": 0},
                    "event_id": {"type": ["string", "null"]},
                    "code": {"type": "string"},
                    "pointer": {"type": "string", "description": "JSON pointer (RFC 6901)."},
                },
            },
        },
    },
}
# google.rpc.Status, which answers what OTLP does not take.
_RPC_STATUS: Final = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
}
# By path: what is sent, the list that holds it, what the answer calls that which was left out.
_OTLP: Final = {
    "/v1/traces": ("spans", "resourceSpans", "rejectedSpans"),
    "/v1/logs": ("log records", "resourceLogs", "rejectedLogRecords"),
    "/v1/metrics": ("metrics", "resourceMetrics", "rejectedDataPoints"),
}
_OTLP_REFUSALS: Final = {
    400: "No request of OTLP, no complete gzip stream.",
    401: "No key, an unknown or revoked key.",
    403: "A key of another kind.",
    405: "Any method but POST.",
    408: "The body took too long.",
    413: "Too many bytes, decompressed bytes or items.",
    415: "Another media type than protobuf and JSON, another coding than gzip.",
    431: "The headers are too large.",
    503: "Busy, stopping, or over the project's quota: nothing was stored; see Retry-After.",
}
_REFUSALS: Final = {
    400: "Not one JSON document in UTF-8, not one gzip stream, a head that contradicts itself.",
    401: "No key, an unknown or revoked key, a key in the URL.",
    403: "A key of another kind.",
    405: "Any method but POST.",
    408: "The body took too long.",
    413: "Too many bytes, decompressed bytes or events: split the batch.",
    415: "Another media type than JSON, another coding than gzip.",
    422: "JSON, but no batch.",
    429: "Over the project's quota; see Retry-After.",
    431: "The headers are too large.",
    503: "Nothing was stored; see Retry-After.",
    507: "The disk is full; see Retry-After.",
}


def describe() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the paths, schemas and security schemes of the collector.

    The schema ``ProblemDocument`` is left to the document that these become part of.
    """
    (event,), found = msgspec.json.schema_components(
        [wire.Event], ref_template=f"#/components/schemas/{_PREFIX}{{name}}"
    )
    schemas = {f"{_PREFIX}{name}": schema for name, schema in found.items()}
    schemas["Event"] = event
    schemas["Batch"] = _batch()
    schemas["Receipt"] = _RECEIPT
    schemes = {"ingest_key": {"type": "http", "scheme": "bearer"}}
    schemas["RpcStatus"] = _RPC_STATUS
    paths = {"/v1/events": _events(), **_otlp(), "/v1/schema": _schema(), **_health()}
    return paths, schemas, schemes


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a batch of events, for senders in other languages.

    It is of draft 2020-12. An event that fits is stored as it is. Of one that does not, the
    collector repairs what it can without a guess, so a sender may well be taken that this refuses.
    """
    (event,), found = msgspec.json.schema_components([wire.Event], ref_template="#/$defs/{name}")
    batch = _batch()
    batch["properties"]["events"]["items"] = {"$ref": "#/$defs/Event"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A batch of events for POST /v1/events",
        **batch,
        "$defs": {**found, "Event": event},
    }


def _batch() -> dict[str, Any]:
    text_or_null = {"type": ["string", "null"]}
    object_or_null = {"type": ["object", "null"]}
    return {
        "type": "object",
        "required": ["events"],
        "properties": {
            "events": {
                "type": "array",
                "description": "At most 1,000, unless set otherwise; more are 413.",
                "items": {
                    "description": "What is no event is rejected by itself, never the batch.",
                    "anyOf": [{"$ref": "#/components/schemas/Event"}, {}],
                },
            },
            "schema_version": {"type": "integer", "default": wire.SCHEMA_VERSION},
            "sent_at": text_or_null,
            "sdk": object_or_null,
            "resource": object_or_null,
            "dropped": {"description": "Events the sender could not keep, by reason."},
        },
    }


def _path(
    method: str,
    name: str,
    summary: str,
    answers: Mapping[int, tuple[str, dict[str, Any]]],
    *,
    tag: str = "health",
    sent: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a path with one operation.

    Args:
        method: How it is asked for.
        name: Of the operation.
        summary: One sentence.
        answers: By status, what it says and its content.
        tag: The group of operations.
        sent: The content of a request, which then needs a key.
    """
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "tags": [tag],
        "security": [] if sent is None else [{"ingest_key": []}],
        "responses": {
            str(status): {"description": text, "content": content}
            for status, (text, content) in answers.items()
        },
    }
    if sent is not None:
        operation["requestBody"] = {"required": True, "content": sent}
    # The rest of the document has another base.
    return {"servers": [{"url": "/"}], method: operation}


def _events() -> dict[str, Any]:
    receipt = {"application/json": {"schema": {"$ref": "#/components/schemas/Receipt"}}}
    return _path(
        "post",
        "send_events",
        "Store a batch of events; 2xx means committed.",
        {
            200: ("Everything was stored, was stored before, or is rejected.", receipt),
            **{status: (text, _PROBLEM) for status, text in _REFUSALS.items()},
        },
        tag="ingest",
        sent={"application/json": {"schema": {"$ref": "#/components/schemas/Batch"}}},
    )


def _otlp() -> dict[str, Any]:
    return {path: _otlp_path(path, *of) for path, of in _OTLP.items()}


def _otlp_path(path: str, items: str, members: str, left_out: str) -> dict[str, Any]:
    list_of = {"description": "A list, as OTLP 1.x has it. What is no such item is left out."}
    packed = {"application/x-protobuf": {"schema": {"type": "string", "format": "binary"}}}
    # What is not known is ignored, and a bad item never costs the request.
    sent = {"application/json": {"schema": {"type": "object", "properties": {members: list_of}}}}
    partly = {"type": "object", "properties": {left_out: {"type": ["string", "integer"]}}}
    stored = {"schema": {"type": "object", "properties": {"partialSuccess": partly}}}
    refused = {"schema": {"$ref": "#/components/schemas/RpcStatus"}}
    return _path(
        "post",
        f"send_{path.rpartition('/')[2]}",
        f"Take {items} of OpenTelemetry (OTLP over HTTP); 2xx means committed.",
        {
            200: (
                "Stored; what was left out is in partialSuccess.",
                {"application/json": stored, **packed},
            ),
            **{
                status: (text, {"application/json": refused, **packed})
                for status, text in _OTLP_REFUSALS.items()
            },
        },
        tag="opentelemetry",
        sent={**sent, **packed},
    )


def _schema() -> dict[str, Any]:
    content = {"application/schema+json": {"schema": {"type": "object"}}}
    summary = "Return the JSON schema of what /v1/events takes."
    return _path("get", "get_schema", summary, {200: ("Draft 2020-12.", content)})


def _health() -> dict[str, Any]:
    status = {
        "type": "object",
        "required": ["status"],
        "properties": {"status": {"type": "string"}, "reason": {"type": "string"}},
    }
    as_json = {"application/json": {"schema": status}}
    as_text = {"text/plain": {"schema": {"type": "string"}}}
    ready = {
        200: ("They can.", as_json),
        503: ("They cannot; see Retry-After.", as_json),
    }
    counters = "The counters of this process, for Prometheus."
    return {
        "/healthz": _path(
            "get", "get_health", "Say that the process answers.", {200: ("It does.", as_json)}
        ),
        "/readyz": _path("get", "get_readiness", "Say whether events can be stored.", ready),
        "/metrics": _path(
            "get", "get_metrics", counters, {200: ("Text format of Prometheus.", as_text)}
        ),
    }
