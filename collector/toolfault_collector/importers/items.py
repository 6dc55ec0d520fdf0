"""The protocol between the formats and the import: what a format is, and what it yields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from toolfault_collector.importers.files import Source

__all__ = [
    "Call",
    "Conversation",
    "Dialect",
    "EventBatch",
    "Format",
    "Item",
    "Json",
    "Outcome",
    "Recognition",
    "Status",
]

Json: TypeAlias = Mapping[str, object]
Status: TypeAlias = Literal["ok", "failed", "missing"]


@dataclass(slots=True)
class Call:
    """One tool call of a transcript.

    A format says what the transcript tells of it when it is issued; :class:`Assembly` takes the
    arguments away and fills in the rest.

    Args:
        identity: Names the call within its conversation, the same on every import.
        tool: Name under which the model called.
        arguments: As the model wrote them: any JSON value, or a string that holds one.
        call_id: The source's own id of the call.
        turn: Names the model turn; calls of one turn are parallel.
        started_at: Microseconds since the Unix epoch, or None where the source has no times.
        members: Members of its event that the format knows better, such as ``event_id``.
        position: Place among the calls of the conversation in the transcript, from 0; decides the
            order of calls that started at the same time.
        status: ``missing`` where the transcript holds no result.
        text: What the model saw of a failure, capped; empty for a success.
        soft: Rule by which a success looks like a failure.
        rule: Classification rule of a failure, where the format tells more than its text.
        ended_at: Time of the result, in microseconds since the Unix epoch.
        args_fingerprint: Keyed hash of the arguments; None where they were not recorded.
        args_diff: Differences to the previous attempt of the chain: paths and kinds, no values.
    """

    identity: str
    tool: str
    arguments: object = None
    call_id: str | None = None
    turn: str | None = None
    started_at: int | None = None
    model: str | None = None
    release: str | None = None
    run_id: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    members: Json = field(default_factory=dict)

    position: int = 0
    status: Status = "missing"
    text: str = ""
    soft: str | None = None
    rule: str | None = None
    ended_at: int | None = None
    args_fingerprint: str | None = None
    args_diff: tuple[Mapping[str, str], ...] | None = None


@dataclass(slots=True)
class Outcome:
    """A result as the transcript gives it back to the model.

    Args:
        call_id: Id of the call that it answers.
        failed: Whether the format marks it as a failure.
        tool: Name of the function, which stands in for the id in OpenAI's legacy shape.
        at: Microseconds since the Unix epoch.
        soft: Rule by which the format itself doubts a success.
        rule: Name of the classification rule, where the format tells more than the text.
    """

    call_id: str | None
    text: str
    failed: bool
    tool: str | None = None
    at: int | None = None
    soft: str | None = None
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation of a transcript with its calls in the order the model issued them.

    Args:
        format: Name of the format it was read as.
        key: Identity of the conversation; equal wherever the same conversation is met again.
        label: What a person recognises it by, without claim to be unique.
        position: Where in the file it stands.
        pending: Number of calls left out because their results may still come.
    """

    format: str
    key: bytes
    label: str
    position: str
    calls: tuple[Call, ...]
    agent: str | None = None
    provider: str | None = None
    pending: int = 0

    @property
    def timed(self) -> bool:
        """Whether the calls carry the source's own times; all do, or none."""
        return bool(self.calls) and self.calls[0].started_at is not None

    @property
    def failures(self) -> int:
        """Number of calls that the format itself marks as failed."""
        return sum(call.status == "failed" for call in self.calls)


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events that are already in the wire's own form (protocol v1), with their resource.

    Args:
        resource: What the events inherit.
        resource_flags: By name, the flag of a member of the resource that was changed.
        events: Each with its position in the file.
    """

    resource: Mapping[str, str]
    resource_flags: Mapping[str, str]
    events: tuple[tuple[str, Mapping[str, object]], ...]


Item: TypeAlias = Conversation | EventBatch


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """One shape of the messages of a chat.

    Args:
        name: Name of its format.
        title: What it is, for people.
        failure: What marks a failure in it, for people.
        members: Names of members by which its values are known, the first of them the surest.
        sign: Gives what shows that a message is of it, as it stands in the file, or nothing.
        entries: Yields the calls and results of a message; its number names the turn.
    """

    name: str
    title: str
    failure: str
    members: tuple[str, ...]
    sign: Callable[[Json], str]
    entries: Callable[[Json, int], Iterator[Call | Outcome]]


@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """One format of transcripts.

    Args:
        name: Name on the command line, and of the conversations.
        title: What it is, for people.
        failure: What marks a failure in it, for people.
        members: Names of members by which its values are known: what an unknown file lacks of them
            is told.
        detect: Gives what shows that a value of a file is of this format, and where within the
            value, or nothing. The value is a line, an element of the array, or the whole document.
        read: Yields the conversations of a file, or events that it holds ready-made. It pairs calls
            and results by :class:`Assembly`, reports what is wrong to the source, and never raises
            for what a file contains.
    """

    name: str
    title: str
    failure: str
    members: tuple[str, ...]
    detect: Callable[[object], tuple[str, str] | None]
    read: Callable[[Source], Iterator[Item]]


@dataclass(slots=True)
class Recognition:
    """As what a file was read, why, and what it held.

    Args:
        path: What the file is called in reports.
        title: Title of the format.
        why: What showed it, and where; or that the caller said so.
        calls: Tool calls in the file.
        failures: Failed calls among these.
    """

    path: Path
    title: str
    why: str
    calls: int = 0
    failures: int = 0
