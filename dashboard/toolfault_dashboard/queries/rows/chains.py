"""Chains and round trips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.queries.rows.issues import IssueRow

__all__ = [
    "OUTCOMES",
    "Attempt",
    "Beside",
    "CalledFirst",
    "ChainDetail",
    "ChainGroup",
    "ChainPage",
    "ChainRow",
    "ConversationCall",
    "ConversationDetail",
    "Funnel",
    "Outcome",
    "RoundTripBin",
    "RoundTrips",
]

Outcome = Literal["recovered", "switched", "abandoned", "open"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("recovered", "switched", "abandoned", "open")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of a chain, or the call that ended it."""

    event_id: str
    attempt: int | None
    occurred_at: int | None
    duration_ms: float | None
    success: bool
    parallel: bool  # issued before the model had seen the error: neither round trip nor recovery
    code: str | None
    field: str | None
    text: str | None
    args_fingerprint: str | None
    identical: bool  # repeats arguments that had failed in its chain
    args_diff: tuple[Mapping[str, Any], ...]  # [{path, change, from_type, to_type}, ...]
    issues: tuple[IssueRow, ...]


@dataclass(frozen=True, slots=True)
class ChainRow:
    """One chain: a first failure, its retries, and how it ended."""

    chain_id: str  # event id of the first failure
    conversation: str
    tool: str
    outcome: Outcome
    failures: int
    round_trips: int
    other_calls: int  # of other tools that it cost, at most 20
    calls_spent: int  # round trips and other calls
    calls: int
    first_code: str
    first_category: str | None
    first_field: str | None
    agent: str | None
    model: str | None
    release: str | None
    environment: str | None
    variant: str | None
    started_at: int | None
    last_at: int | None
    recovered_at: int | None
    time_source: str
    first_retry_fix: bool
    identical_repeats: int
    serial_discovery: bool
    repeat_confusion: bool
    time_lost_ms: float
    tokens_lost: int | None


@dataclass(frozen=True, slots=True)
class ChainPage:
    """A page of chains, newest first, with the total of the whole filtered list."""

    rows: tuple[ChainRow, ...]
    total: int
    next_cursor: str | None
    previous_cursor: str | None


@dataclass(frozen=True, slots=True)
class ChainDetail:
    """A chain with its calls in order."""

    chain: ChainRow
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class ConversationCall:
    """One call of a conversation, of whatever tool."""

    event_id: str
    tool: str
    success: bool
    occurred_at: int | None
    duration_ms: float | None
    code: str | None
    field: str | None
    chain_id: str | None
    text: str | None  # what the model was told of a failure


@dataclass(frozen=True, slots=True)
class ConversationDetail:
    """A conversation with one page of the calls of it that are stored."""

    name: str
    ended: bool  # its sender has said so
    imported: bool  # from a transcript, which has every call
    calls: int
    failures: int
    chains: int
    only_counted: int  # successes that its ends tell of and that were not sent one by one
    rows: tuple[ConversationCall, ...]
    pages: int


@dataclass(frozen=True, slots=True)
class Beside:
    """What a conversation called beside a chain."""

    between: tuple[tuple[ConversationCall, ...], ...]  # before each call of the chain
    followed_by: ConversationCall | None  # the success by which an unresolved chain is switched


@dataclass(frozen=True, slots=True)
class CalledFirst:
    """The tool that was called before most chains of one tool and code recovered."""

    tool: str
    chains: int  # before these
    recovered: int  # of these


@dataclass(frozen=True, slots=True)
class RoundTripBin:
    """Chains that took exactly this many round trips, by outcome."""

    round_trips: int
    chains: int
    recovered: int
    switched: int
    abandoned: int
    open: int


@dataclass(frozen=True, slots=True)
class Funnel:
    """Where chains end: failed, retried, fixed at the first retry, recovered."""

    chains: int
    retried: int
    first_retry_fix: int
    recovered: int
    switched: int
    abandoned: int
    open: int


@dataclass(frozen=True, slots=True)
class ChainGroup:
    """The chains of one tool, code, field, model or release."""

    name: str  # "" where the chains carry none
    chains: int
    recovered: int
    switched: int
    abandoned: int
    open: int
    calls_spent: int  # round trips, and calls of other tools that the chains cost
    round_trips: int
    failures: int
    first_retry_fix: int
    identical_repeats: int
    serial_discovery: int
    repeat_confusion: int
    time_lost_ms: float
    tokens_lost: int | None
    recovery_rate: Rate  # recovered of chains that are no longer open


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """Everything the Round trips page shows."""

    funnel: Funnel
    recovery_rate: Rate  # recovered of the closed chains
    first_retry_rate: Rate  # fixed by the first retry, of the chains that were retried
    round_trips: int
    calls_spent: int
    distribution: tuple[RoundTripBin, ...]  # by round trips, ascending, without gaps
    by_tool: tuple[ChainGroup, ...]
    by_code: tuple[ChainGroup, ...]
    by_model: tuple[ChainGroup, ...]
