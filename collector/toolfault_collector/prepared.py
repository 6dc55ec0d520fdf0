"""Decoded events made ready for their tables: times settled, failures classified, texts normalised.

Pure: no database, so it runs before a transaction begins and is as long as it needs to be. The
results hold no cycles (``gc=False``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec

from toolfault_collector import wire
from toolfault_collector.clean import Refused
from toolfault_collector.clock import DAY_US, MILLISECOND_US, MINUTE_US, parse_time
from toolfault_collector.codes import AUDIENCES, CATEGORIES, canonical_code, default_category
from toolfault_collector.decode import Decoded
from toolfault_collector.normalize import (
    field_pattern,
    message_digest,
    normalize_message,
    root_field,
    signature_fields,
    signature_fingerprint,
)
from toolfault_collector.scrub import Search, scrub

__all__ = [
    "Context",
    "Prepared",
    "PreparedCall",
    "PreparedChange",
    "PreparedCounts",
    "PreparedEnd",
    "TimePolicy",
    "prepare",
    "sign",
]

TimePolicy = Literal["client", "import"]

# A client's clock is believed this far; Sentry's Relay uses the same bounds.
MAX_PAST_US: Final = 30 * DAY_US
MAX_FUTURE_US: Final = MINUTE_US

_EVENT_ID: Final = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-7][0-9A-HJKMNP-TV-Z]{25}", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Context:
    """What holds for every event of a batch. ``received_at`` is in microseconds."""

    project_id: int
    received_at: int
    time_policy: TimePolicy = "client"
    resource: Mapping[str, str] = field(default_factory=dict)
    source: str = "sdk"
    search: Search = field(default_factory=Search)


class PreparedCall(msgspec.Struct, gc=False):
    """One call, failed or not; the last members are filled in by the store."""

    index: int
    event_id: str
    project_id: int
    event: wire.ToolCall | wire.ToolError
    resource: Mapping[str, str]
    session_id: str | None
    success: bool
    received_at: int
    occurred_at: int
    started_at: int
    time_source: str
    detection: str
    flags: list[str]
    extra: dict[str, Any]
    source: bytes | Mapping[str, Any]
    code: str | None = None
    category: str | None = None
    audience: str | None = None
    issues: list[tuple[Any, ...]] = []
    fields: tuple[tuple[str, str], ...] = ()
    fields_json: str = "[]"
    fingerprint: str | None = None
    message_text: str | None = None
    message_digest: str | None = None
    exception_type: str | None = None
    id: int = 0
    chain_id: str | None = None
    attempt: int | None = None
    chain_marks: int | None = None
    lost_us: int | None = None
    signature_id: int | None = None
    message_id: int | None = None


class PreparedCounts(msgspec.Struct, gc=False):
    """Folded successes of one minute; ``minute`` is its first microsecond."""

    index: int
    event_id: str
    project_id: int
    event: wire.CallCounts
    resource: Mapping[str, str]
    received_at: int
    minute: int
    time_source: str
    source: bytes | Mapping[str, Any]
    flags: list[str]


class PreparedEnd(msgspec.Struct, gc=False):
    """The end of one conversation."""

    index: int
    event_id: str
    project_id: int
    event: wire.ConversationEnd
    received_at: int
    occurred_at: int
    time_source: str
    source: bytes | Mapping[str, Any]
    flags: list[str]

    @property
    def session_id(self) -> str:
        """The conversation that ended."""
        return self.event.session_id


class PreparedChange(msgspec.Struct, gc=False):
    """A marker in time."""

    index: int
    event_id: str
    project_id: int
    event: wire.Change
    received_at: int
    occurred_at: int
    time_source: str
    recorded_by: str
    source: bytes | Mapping[str, Any]
    flags: list[str]


Prepared = PreparedCall | PreparedCounts | PreparedEnd | PreparedChange


def prepare(decoded: Decoded, context: Context) -> Prepared:
    """Return *decoded* ready to be stored in the project of *context*.

    Raises:
        Refused: The event contradicts itself or names no time or id.
    """
    event = decoded.event
    event_id = _event_id(event.event_id)
    if isinstance(event, wire.ToolCall | wire.ToolError):
        return _prepare_call(decoded, event, event_id=event_id, context=context)
    if isinstance(event, wire.CallCounts):
        return _prepare_counts(decoded, event, event_id=event_id, context=context)
    occurred_at, time_source = _settle_time(event.occurred_at, context, pointer="/occurred_at")
    if isinstance(event, wire.ConversationEnd):
        return PreparedEnd(
            decoded.index,
            event_id,
            context.project_id,
            event,
            context.received_at,
            occurred_at,
            time_source,
            decoded.source,
            _flags(decoded, time_source),
        )
    return PreparedChange(
        decoded.index,
        event_id,
        context.project_id,
        event,
        context.received_at,
        occurred_at,
        time_source,
        context.source,
        decoded.source,
        _flags(decoded, time_source),
    )


def _prepare_counts(
    decoded: Decoded, event: wire.CallCounts, *, event_id: str, context: Context
) -> PreparedCounts:
    minute, time_source = _settle_time(event.minute, context, pointer="/minute")
    return PreparedCounts(
        decoded.index,
        event_id,
        context.project_id,
        event,
        context.resource,
        context.received_at,
        minute - minute % MINUTE_US,
        time_source,
        decoded.source,
        _flags(decoded, time_source),
    )


def _flags(decoded: Decoded, time_source: str) -> list[str]:
    """Return what was changed of an event that has no room for members nobody knows."""
    found = [*decoded.flags]
    if time_source == "server":
        found.append("clock_skew")
    if decoded.extra:
        found.append("extra_dropped")
    return found


def _prepare_call(
    decoded: Decoded,
    event: wire.ToolCall | wire.ToolError,
    *,
    event_id: str,
    context: Context,
) -> PreparedCall:
    imported = event if isinstance(event, wire.ImportedCall | wire.ImportedError) else None
    occurred_at, time_source = _settle_time(event.occurred_at, context, pointer="/occurred_at")
    if imported is not None and imported.time_source == "none":
        occurred_at, time_source = context.received_at, "none"
    # A moment that stands for the whole batch is no end to count back from: a longer call would
    # come before a shorter one. The calls of the batch are in the order of their `seq`.
    lasted = (event.duration_ms or 0.0) if time_source in ("client", "import") else 0.0
    event.turn, event.args_fingerprint = event.turn or None, event.args_fingerprint or None
    call = PreparedCall(
        decoded.index,
        event_id,
        context.project_id,
        event,
        context.resource,
        event.session_id or event.run_id,
        event.success and isinstance(event, wire.ToolCall),
        context.received_at,
        occurred_at,
        occurred_at - round(lasted * MILLISECOND_US),
        time_source,
        "explicit" if imported is None else imported.detection,
        decoded.flags,
        decoded.extra,
        decoded.source,
    )
    if time_source == "server":
        call.flags.append("clock_skew")
        call.extra["occurred_at"] = event.occurred_at
    if event.success and isinstance(event, wire.ToolError):
        call.flags.append("success_ignored")
    if event.request_id is not None:
        call.extra["request_id"] = event.request_id
    # Nobody waits for an import, which is searched whole.
    search = context.search if context.time_policy == "client" else Search(math.inf)
    call.flags += scrub(event, call.extra, call.source, search)
    _classify(call, event.error)
    return call


def _classify(call: PreparedCall, error: wire.Failure | None) -> None:
    if call.success:
        if error is not None:
            call.flags.append("error_ignored")
        return
    if error is None:
        raise Refused("missing_field", "/error")
    code = call.code = canonical_code(error.code)
    if error.category in CATEGORIES:
        call.category = error.category
    else:
        call.category = default_category(code)
        if error.category is not None:
            call.flags.append("category")
    if error.audience in AUDIENCES:
        call.audience = error.audience
    else:
        # Whom it is for is unknown, so only those who may see everything see it.
        call.audience = "system"
        call.flags.append("audience")
    if error.exception is not None:
        call.exception_type = error.exception.type
    call.issues = [
        _issue_row(position, issue) for position, issue in enumerate(error.issues)
    ] or _only_issue(error, code)
    call.fields = tuple((row[2], row[4]) for row in call.issues)
    sign(call)
    if error.renderings is not None and error.renderings.llm:
        call.message_text, call.message_digest = _message(error.renderings.llm)


def sign(call: PreparedCall) -> None:
    """Set the signature of *call*, if it failed."""
    if call.code is not None:
        call.fields_json, call.fingerprint = _signature(
            call.event.tool, call.code, call.fields, call.exception_type
        )


def _issue_row(position: int, issue: wire.Issue) -> tuple[Any, ...]:
    name = issue.field
    return (
        position,
        name,
        issue.field_pattern if issue.field_pattern is not None else field_pattern(name),
        issue.root_field if issue.root_field is not None else root_field(name),
        canonical_code(issue.code),
        issue.type,
        issue.message,
        issue.expected,
        issue.received,
        issue.received_type,
        _json(issue.near_miss) if issue.near_miss else None,
    )


def _only_issue(error: wire.Failure, code: str) -> list[tuple[Any, ...]]:
    """Return the one issue of a failure that names its field at the top only."""
    if not error.field:
        return []
    name = error.field
    return [
        (
            0,
            name,
            field_pattern(name),
            root_field(name),
            code,
            None,
            None,
            error.expected,
            error.received,
            error.received_type,
            None,
        )
    ]


def _signature(
    tool: str, code: str, fields: tuple[tuple[str, str], ...], exception_type: str | None
) -> tuple[str, str]:
    # What is remembered is bounded in bytes, not in entries alone: odd failures are long ones.
    make = _remembered_signature if len(fields) <= 4 else _remembered_signature.__wrapped__
    return make(tool, code, fields, exception_type)


@lru_cache(maxsize=8_192)
def _remembered_signature(
    tool: str, code: str, fields: tuple[tuple[str, str], ...], exception_type: str | None
) -> tuple[str, str]:
    text = signature_fields(fields)
    return text, signature_fingerprint(tool, code, fields=text, exception_type=exception_type)


def _message(text: str) -> tuple[str, str]:
    return (_remembered_message if len(text) <= 1_024 else _remembered_message.__wrapped__)(text)


@lru_cache(maxsize=4_096)
def _remembered_message(text: str) -> tuple[str, str]:
    normalized = normalize_message(text)
    return normalized, message_digest(normalized)


def _event_id(text: str) -> str:
    # Nothing else is accepted, since ids end up in URLs, file names of exports and logs.
    if _EVENT_ID.fullmatch(text) is None:
        raise Refused("invalid_event_id", "/event_id")
    return text.lower() if len(text) == 36 else text


def _settle_time(text: str, context: Context, *, pointer: str) -> tuple[int, str]:
    """Return the time of an event in microseconds and whose it is."""
    try:
        claimed = parse_time(text)
    except ValueError as error:
        raise Refused("invalid_time", pointer) from error
    if context.time_policy == "import" and claimed >= 0:
        return claimed, "import"
    age = context.received_at - claimed
    if -MAX_FUTURE_US <= age <= MAX_PAST_US:
        return claimed, "client"
    return context.received_at, "server"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
