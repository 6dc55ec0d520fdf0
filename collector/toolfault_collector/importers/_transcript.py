"""What an importer understands of a transcript, before anything of it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

__all__ = ["Call", "Conversation", "EventBatch", "Item", "Problem", "Severity", "Status"]

Status: TypeAlias = Literal["ok", "failed", "missing"]
Severity: TypeAlias = Literal["error", "note"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something of a file that was not imported, or not as it stands.

    Args:
        path: The file.
        position: Where in the file: ``line 12``, a JSON pointer such as ``/3/traj/7``, or empty for
            the whole file.
        message: What is wrong and what was done; never carries text of the file.
        severity: ``error`` where data is missing, ``note`` where nothing was lost.
    """

    path: Path
    position: str
    message: str
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of a transcript.

    Args:
        identity: Names the call within its conversation, the same on every import.
        position: Place among the calls of the conversation in the transcript, from 0; decides the
            order of calls that started at the same time.
        call_id: The source's own id of the call.
        tool: Name under which the model called.
        turn: Names the model turn; calls of one turn are parallel.
        status: ``missing`` where the transcript holds no result.
        text: What the model saw of a failure, capped; empty for a success.
        soft: Rule by which a success looks like a failure.
        rule: Classification rule of a failure, where the format tells more than its text.
        started_at: Microseconds since the Unix epoch, or None where the source has no times.
        ended_at: Same, the time of the result.
        args_fingerprint: Keyed hash of the canonical arguments.
        args_diff: Differences to the previous attempt of the chain: paths and kinds, no values.
    """

    identity: str
    position: int
    call_id: str | None
    tool: str
    turn: str | None
    status: Status
    text: str = ""
    soft: str | None = None
    rule: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    model: str | None = None
    release: str | None = None
    run_id: str | None = None
    args_fingerprint: str | None = None
    args_diff: tuple[Mapping[str, str], ...] | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation of a transcript with its calls in the order the model issued them.

    Args:
        format: Name of the format it was read as.
        key: Identity of the conversation; equal wherever the same conversation is met again.
        label: What a person recognises it by, without claim to be unique.
        position: Where in the file it stands.
        timed: Whether the calls carry the source's own times.
        pending: Calls left out because their results may still come.
    """

    format: str
    key: bytes
    label: str
    position: str
    calls: tuple[Call, ...]
    timed: bool
    agent: str | None = None
    provider: str | None = None
    pending: int = 0

    @property
    def failures(self) -> int:
        """Number of calls that the format itself marks as failed."""
        return sum(call.status == "failed" for call in self.calls)


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events that are already in the wire's own form (protocol v1), with their resource."""

    resource: Mapping[str, str]
    events: tuple[Mapping[str, object], ...]
    positions: tuple[str, ...]


Item: TypeAlias = Conversation | EventBatch | Problem
