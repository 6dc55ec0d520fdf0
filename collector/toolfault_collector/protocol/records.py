"""Events as records: one frozen record for each event, from its bytes to the database.

A record has the members of its event, repaired and redacted, and all that can be computed from
them without a database: times settled, failures classified, texts normalised, JSON written. Its
members carry the names of their columns. Nothing changes a record later: what the store finds out
(ids, chain, attempt) stands in rows of its own, so whatever is tried again starts from the same.

Records hold no cycles, so the collector of garbage need not look at them (``gc=False``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from toolfault_collector.clock import DAY_US, MILLISECOND_US, MINUTE_US, parse_time
from toolfault_collector.protocol import wire
from toolfault_collector.protocol.codes import (
    AUDIENCES,
    CATEGORIES,
    SIDES,
    canonical_code,
    default_category,
)
from toolfault_collector.protocol.fingerprint import (
    field_places,
    message_digest,
    normalize_message,
    signature_fields,
    signature_fingerprint,
)
from toolfault_collector.protocol.redaction.apply import Search, scrub, scrub_label
from toolfault_collector.protocol.repair import Refused

__all__ = [
    "CallRecord",
    "ChangeRecord",
    "Context",
    "CountsRecord",
    "EndRecord",
    "FailureRecord",
    "IssueRecord",
    "Raw",
    "Record",
    "TimePolicy",
    "make_record",
    "signed",
]

TimePolicy = Literal["client", "import"]
Raw = bytes | Mapping[str, Any]

# A client's clock is believed this far; Sentry's Relay uses the same bounds.
MAX_PAST_US: Final = 30 * DAY_US
MAX_FUTURE_US: Final = MINUTE_US

_EVENT_ID: Final = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-7][0-9A-HJKMNP-TV-Z]{25}", re.ASCII
)
# What is kept as it was sent.
_SENT_OF_CALL: Final = (
    "event_id",
    "seq",
    "call_id",
    "run_id",
    "trace_id",
    "span_id",
    "framework",
    "conversation_rung",
    "counted_by",
    "tool",
    "tool_requested",
    "duration_ms",
    "sample_rate",
    "args_recorded",
    "idempotent",
    "repeated",
    "schema_hash",
    "tokens",
)
_SENT_OF_FAILURE: Final = (
    "reason",
    "kind",
    "phase",
    "field",
    "expected",
    "received",
    "received_type",
    "snippet",
    "retryable",
    "retry_hint",
    "adapter_failed",
)
_OF_TRACE: Final = ("dialect", "span_ids", "reached")
_sent_of_call: Final = attrgetter(*_SENT_OF_CALL)
_sent_of_failure: Final = attrgetter(*_SENT_OF_FAILURE)
_OF_COUNTS: Final = ("agent", "model", "environment", "release", "variant")
_NO_TEXTS: Final = wire.Renderings()
_NO_EXCEPTION: Final = wire.RaisedException()
_NO_VALIDATION: Final = wire.Validation()
_NO_DURATION: Final = wire.Duration()


@dataclass(frozen=True, slots=True)
class Context:
    """What holds for every event of a batch. ``received_at`` is in microseconds.

    Attributes:
        resource: What an event inherits where it has none.
        resource_flags: By name, the flag of a member of the resource that was changed.
        source: Who recorded a change.
        search: The search of the batch for secrets.
    """

    project_id: int
    received_at: int
    time_policy: TimePolicy = "client"
    resource: Mapping[str, str] = field(default_factory=dict)
    source: str = "sdk"
    resource_flags: Mapping[str, str] = field(default_factory=dict)
    search: Search = field(default_factory=Search)


class _Event(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What every event has.

    Attributes:
        time_source: Whose its time is.
        counted_by: Of a server of tools: where its client says that it counts the same.
        flags: What was changed on the way in.
        index: Where it stood in its batch.
        raw: What arrived.
    """

    project_id: int
    event_id: str
    received_at: int
    time_source: str
    flags: tuple[str, ...]
    index: int
    raw: Raw
    counted_by: str | None = None


class IssueRecord(msgspec.Struct, frozen=True, gc=False):
    """One thing wrong with one argument; its members are columns of ``issue``."""

    position: int
    field: str
    field_pattern: str
    root_field: str
    code: str
    type: str | None = None
    message: str | None = None
    expected: str | None = None
    received: str | None = None
    received_type: str | None = None
    near_miss: str | None = None


class FailureRecord(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What went wrong in a failed call; most members are columns of ``tool_call``.

    Attributes:
        issues: In their order.
        fields: (field pattern, issue code) of each issue.
        arguments: Those in which an issue lies.
        signature: These, sorted, as JSON.
        fingerprint: Of tool, code, signature and exception type: what failures are grouped by.
        message: The normalised text for the model, if there was one, and its digest.
    """

    code: str
    category: str
    audience: str
    reason: str | None
    kind: str | None
    phase: str | None
    field: str | None
    expected: str | None
    received: str | None
    received_type: str | None
    snippet: str | None
    retryable: bool | None
    retry_hint: str | None
    retry_context: str | None
    issues_total: int
    text_user: str | None
    text_llm: str | None
    text_system: str | None
    exception_type: str | None
    exception_module: str | None
    exception_message: str | None
    traceback: str | None
    adapter_failed: bool | None
    issues: tuple[IssueRecord, ...]
    fields: tuple[tuple[str, str], ...]
    arguments: frozenset[str]
    signature: str
    fingerprint: str
    message: str | None
    message_digest: str | None


class CallRecord(_Event, frozen=True, gc=False, kw_only=True):
    """One call; most members are columns of ``tool_call``.

    Attributes:
        conversation_rung: What named the conversation, as it was told (`ladder.rung_of`).
        extra: Members that no column holds.
        failure: What went wrong, if it failed.
    """

    event_type: str
    session_id: str | None
    turn: str | None
    seq: int
    call_id: str | None
    run_id: str | None
    trace_id: str | None
    span_id: str | None
    tool: str
    tool_requested: str | None
    agent: str | None
    model: str | None
    provider: str | None
    environment: str | None
    release: str | None
    variant: str | None
    user: str | None
    framework: str | None
    side: str | None
    conversation_rung: str | None
    started_at: int
    occurred_at: int
    duration_ms: float | None
    success: bool
    sample_rate: float
    detection: str
    derived_by: str | None
    args_fingerprint: str | None
    args_recorded: bool | None
    args_diff: str | None
    coercions: str | None
    phantom_arguments: str | None
    idempotent: bool | None
    repeated: bool | None
    validation_mode: str | None
    validation_version: str | None
    schema_hash: str | None
    tokens: int | None
    tags: str | None
    extra: Mapping[str, Any]
    failure: FailureRecord | None


class CountsRecord(_Event, frozen=True, gc=False, kw_only=True):
    """Folded successes of one minute; ``minute`` is its first microsecond."""

    minute: int
    tool: str | None
    agent: str | None
    model: str | None
    environment: str | None
    release: str | None
    variant: str | None
    calls: int
    duration_sum_ms: float | None
    duration_max_ms: float | None
    duration_buckets: str | None
    repairs: str | None
    phantom_arguments: str | None
    repeated: int | None
    conversations: int
    calls_squared: int


class EndRecord(_Event, frozen=True, gc=False, kw_only=True):
    """The end of one conversation, with its calls per tool."""

    session_id: str
    occurred_at: int
    calls: Mapping[str, int]


class ChangeRecord(_Event, frozen=True, gc=False, kw_only=True):
    """A marker in time; ``source`` is who recorded it."""

    occurred_at: int
    label: str
    tool: str | None
    kind: str
    source: str


Record = CallRecord | CountsRecord | EndRecord | ChangeRecord


def make_record(
    event: wire.Event | wire.ImportedEvent,
    raw: Raw,
    context: Context,
    *,
    index: int,
    flags: list[str],
    extra: dict[str, Any],
) -> Record:
    """Return the record of *event*.

    Args:
        event: As it was decoded; its texts are redacted in place.
        raw: What it was decoded from.
        context: What holds for its batch.
        index: Its place in the batch.
        flags: What was changed while it was decoded; may be added to.
        extra: Members that this version does not know; may be added to.

    Raises:
        Refused: The event contradicts itself or names no time or id.
    """
    # Nothing else is accepted, since ids end up in URLs, file names of exports and logs.
    if _EVENT_ID.fullmatch(event.event_id) is None:
        raise Refused("invalid_event_id", "/event_id")
    if len(event.event_id) == 36:
        event.event_id = event.event_id.lower()
    for name, flag in context.resource_flags.items():
        # An event without such a member inherits none.
        if not getattr(event, name, "-"):
            flags.append(flag)
    if isinstance(event, wire.ToolCall | wire.ToolError):
        return _call(event, raw, context, index=index, flags=flags, extra=extra)
    member = "minute" if isinstance(event, wire.CallCounts) else "occurred_at"
    at, time_source = _settle_time(getattr(event, member), context, pointer=f"/{member}")
    if time_source == "server":
        flags.append("clock_skew")
    if extra:  # there is no room for members that nobody knows
        flags.append("extra_dropped")
    of_all: dict[str, Any] = {
        "project_id": context.project_id,
        "event_id": event.event_id,
        "received_at": context.received_at,
        "flags": tuple(flags),
        "time_source": time_source,
        "index": index,
        "raw": raw,
        "counted_by": getattr(event, "counted_by", None),
    }
    if isinstance(event, wire.CallCounts):
        return _counts(event, at - at % MINUTE_US, context.resource, of_all)
    if isinstance(event, wire.ConversationEnd):
        return EndRecord(session_id=event.session_id, occurred_at=at, calls=event.calls, **of_all)
    label, of_label = scrub_label(event.label, context.search)
    of_all["flags"] += of_label
    return ChangeRecord(
        occurred_at=at,
        label=label,
        tool=event.tool,
        kind=event.kind,
        source=context.source,
        **of_all,
    )


def _call(
    event: wire.ToolCall | wire.ToolError,
    raw: Raw,
    context: Context,
    *,
    index: int,
    flags: list[str],
    extra: dict[str, Any],
) -> CallRecord:
    default = context.resource.get
    occurred_at, time_source = _settle_time(event.occurred_at, context, pointer="/occurred_at")
    detection, derived_by = "explicit", None
    if isinstance(event, wire.ImportedCall | wire.ImportedError):
        detection, derived_by = event.detection, event.derived_by
        if isinstance(event, wire.ImportedCall):
            extra.update(_of_trace(event))
        if event.time_source == "none":
            occurred_at, time_source = context.received_at, "none"
    # A moment that stands for the whole batch is no end to count back from: a longer call would
    # come before a shorter one. The calls of the batch are in the order of their `seq`.
    lasted = (event.duration_ms or 0.0) if time_source in ("client", "import") else 0.0
    if time_source == "server":
        flags.append("clock_skew")
        extra["occurred_at"] = event.occurred_at
    is_call = isinstance(event, wire.ToolCall)
    success = is_call and event.success
    if event.success and not is_call:
        flags.append("success_ignored")
    if event.request_id is not None:
        extra["request_id"] = event.request_id
    # Nobody waits for an import, which is searched whole.
    search = context.search if context.time_policy == "client" else Search(math.inf)
    flags += scrub(event, extra, raw, search)
    if success and event.error is not None:
        flags.append("error_ignored")
    failure = None if success else _failure(event, flags)
    validation = event.validation or _NO_VALIDATION
    side = event.side or None
    if side is not None and side not in SIDES:
        side = None
        flags.append("side")
    return CallRecord(
        **dict(zip(_SENT_OF_CALL, _sent_of_call(event), strict=True)),
        project_id=context.project_id,
        event_type="tool_call" if is_call else "tool_error",
        session_id=event.session_id or event.run_id,
        turn=event.turn or None,
        side=side,
        agent=event.agent or default("agent"),
        model=event.model or default("model"),
        provider=event.provider or default("provider"),
        environment=event.environment or default("environment"),
        release=event.release or default("release"),
        variant=event.variant or default("variant"),
        user=event.user or default("user"),
        started_at=occurred_at - round(lasted * MILLISECOND_US),
        occurred_at=occurred_at,
        received_at=context.received_at,
        time_source=time_source,
        success=success,
        detection=detection,
        derived_by=derived_by,
        args_fingerprint=event.args_fingerprint or None,
        args_diff=_json(event.args_diff) if event.args_diff else None,
        coercions=_json(event.coercions) if event.coercions else None,
        phantom_arguments=_json(event.phantom_arguments) if event.phantom_arguments else None,
        validation_mode=validation.mode,
        validation_version=validation.version,
        tags=_json(event.tags) if event.tags else None,
        extra=extra,
        flags=tuple(flags),
        failure=failure,
        index=index,
        raw=raw,
    )


def _of_trace(event: wire.ImportedCall) -> dict[str, Any]:
    """Return what a trace tells of a call beside what every event does."""
    told = ((name, getattr(event, name)) for name in _OF_TRACE)
    return {name: value for name, value in told if value is not None}


def _failure(event: wire.ToolCall | wire.ToolError, flags: list[str]) -> FailureRecord:
    error = event.error
    if error is None:
        raise Refused("missing_field", "/error")
    code, category, audience = canonical_code(error.code), error.category, error.audience
    if category is None or category not in CATEGORIES:
        if category is not None:
            flags.append("category")
        category = default_category(code)
    if audience is None or audience not in AUDIENCES:
        # Whom it is for is unknown, so only those who may see everything see it.
        audience = "system"
        flags.append("audience")
    issues = _issues(error)
    fields = tuple([(each.field_pattern, each.code) for each in issues])
    texts = error.renderings or _NO_TEXTS
    raised = error.exception or _NO_EXCEPTION
    signature, fingerprint = _signature(event.tool, code, fields, raised.type)
    message, digest = _message(texts.llm) if texts.llm else (None, None)
    return FailureRecord(
        **dict(zip(_SENT_OF_FAILURE, _sent_of_failure(error), strict=True)),
        code=code,
        category=category,
        audience=audience,
        retry_context=_json(error.retry_context) if error.retry_context else None,
        issues_total=len(issues) if error.issues_total is None else error.issues_total,
        text_user=texts.user,
        text_llm=texts.llm,
        text_system=texts.system,
        exception_type=raised.type,
        exception_module=raised.module,
        exception_message=raised.message,
        traceback=raised.traceback,
        issues=issues,
        fields=fields,
        arguments=frozenset([each.root_field for each in issues if each.root_field]),
        signature=signature,
        fingerprint=fingerprint,
        message=message,
        message_digest=digest,
    )


def signed(
    failure: FailureRecord, *, tool: str, code: str, issues: tuple[IssueRecord, ...]
) -> FailureRecord:
    """Return *failure* of *tool* with another code and other issues, and the signature of these."""
    fields = tuple([(each.field_pattern, each.code) for each in issues])
    signature, fingerprint = _signature(tool, code, fields, failure.exception_type)
    return replace(
        failure,
        code=code,
        issues=issues,
        fields=fields,
        arguments=frozenset([each.root_field for each in issues if each.root_field]),
        signature=signature,
        fingerprint=fingerprint,
    )


def _issues(error: wire.Failure) -> tuple[IssueRecord, ...]:
    """Return the issues of *error*; one that names its field at the top only has one of it."""
    issues = error.issues
    if not issues and error.field:
        issues = [
            wire.Issue(
                error.code,
                error.field,
                expected=error.expected,
                received=error.received,
                received_type=error.received_type,
            )
        ]
    return tuple([_issue(position, issue) for position, issue in enumerate(issues)])


def _issue(position: int, issue: wire.Issue) -> IssueRecord:
    pattern, root = field_places(issue.field)
    return IssueRecord(
        position,
        issue.field,
        pattern if issue.field_pattern is None else issue.field_pattern,
        root if issue.root_field is None else issue.root_field,
        canonical_code(issue.code),
        issue.type,
        issue.message,
        issue.expected,
        issue.received,
        issue.received_type,
        _json(issue.near_miss) if issue.near_miss else None,
    )


def _counts(
    event: wire.CallCounts, minute: int, resource: Mapping[str, str], of_all: dict[str, Any]
) -> CountsRecord:
    duration = event.duration_ms or _NO_DURATION
    for name in _OF_COUNTS:
        of_all[name] = getattr(event, name) or resource.get(name)
    return CountsRecord(
        minute=minute,
        tool=event.tool,
        calls=event.calls,
        duration_sum_ms=duration.sum,
        duration_max_ms=duration.max,
        duration_buckets=_json(duration.buckets) if duration.buckets else None,
        repairs=_json(event.repairs) if event.repairs else None,
        phantom_arguments=_json(event.phantom_arguments) if event.phantom_arguments else None,
        repeated=event.repeated or None,
        conversations=event.conversations,
        calls_squared=event.calls_squared,
        **of_all,
    )


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
