"""Failures: as a list shows them, and everything about one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolfault_dashboard.queries.rows.chains import ChainDetail, Outcome
from toolfault_dashboard.queries.rows.issues import IssueRow

__all__ = ["FailureDetail", "FailurePage", "FailureRow", "SignatureRow"]


@dataclass(frozen=True, slots=True)
class FailureRow:
    """One failed call, as a list shows it."""

    event_id: str
    occurred_at: int | None
    time_source: str  # client | server | import | none
    tool: str
    code: str
    category: str | None
    audience: str | None
    field: str | None
    issues_total: int
    agent: str | None
    model: str | None
    release: str | None
    environment: str | None
    variant: str | None
    framework: str | None  # whose integration saw the call
    conversation: str | None
    chain_id: str | None
    attempt: int | None  # position in its chain from 1; 65 for every call after the 64th
    chain_outcome: Outcome | None  # None for a failure outside every conversation
    duration_ms: float | None
    detection: str  # explicit | soft:<rule>
    text: str | None  # what the model saw; for a viewer what the user saw


@dataclass(frozen=True, slots=True)
class FailurePage:
    """A page of failures, newest first, with the total of the whole filtered list."""

    rows: tuple[FailureRow, ...]
    total: int
    next_cursor: str | None
    previous_cursor: str | None


@dataclass(frozen=True, slots=True)
class SignatureRow:
    """The group of failures that are "the same", over all time."""

    fingerprint: str
    tool: str
    code: str
    fields: tuple[tuple[str, str], ...]  # (field pattern, issue code)
    exception_type: str | None
    first_at: int | None
    last_at: int | None
    failures: int
    state: str  # new, open, acknowledged, fixed, ignored or regressed
    owner: str
    note: str
    fixed_at: int | None
    fixed_by: str  # label of the change that fixed it; "" where none was named
    fixed_release: str
    ignore_ends_at: int | None
    ignore_ends_after: int | None  # further failures


@dataclass(frozen=True, slots=True)
class FailureDetail:
    """Everything about one failure that the reader's audience may see; hidden parts are None."""

    row: FailureRow
    event_type: str  # tool_call | tool_error
    text_user: str | None
    text_llm: str | None
    text_system: str | None
    reason: str | None
    derived_by: str | None  # rule by which code, category and all texts but the llm's were made
    kind: str | None
    phase: str | None
    expected: str | None
    received: str | None
    received_type: str | None
    snippet: str | None
    retryable: bool | None
    retry_hint: str | None
    retry_context: Any
    exception_type: str | None
    exception_module: str | None
    exception_message: str | None
    traceback: str | None
    adapter_failed: bool | None
    tool_requested: str | None
    call_id: str | None
    run_id: str | None
    trace_id: str | None
    span_id: str | None
    turn: str | None
    provider: str | None
    user: str | None
    side: str | None  # agent | server of tools
    conversation_rung: str  # what named the conversation; none: nothing did
    validation_mode: str | None
    validation_version: str | None
    schema_hash: str | None
    tokens: int | None
    tags: Mapping[str, Any]
    extra: Mapping[str, Any]
    flags: tuple[str, ...]
    received_at: int
    issues: tuple[IssueRow, ...]
    signature: SignatureRow | None
    message: str | None  # the normalised message
    chain: ChainDetail | None  # None for a failure outside every conversation
    newer: str | None  # event id of the next newer failure of the scope
    older: str | None  # event id of the next older failure of the scope
