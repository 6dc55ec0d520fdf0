"""Pairs the calls of one conversation with their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from toolfault_collector.clean import clean_text
from toolfault_collector.importers._arguments import Arguments, changes, read_arguments
from toolfault_collector.importers._soft import soft_rule
from toolfault_collector.importers._text import cut
from toolfault_collector.importers._transcript import Call, Status

__all__ = ["Assembly", "Issued", "Outcome"]

MAX_TEXT: Final = 8_000  # the wire's limit for a rendering
MAX_EARLY: Final = 1_000


@dataclass(frozen=True, slots=True)
class Issued:
    """A call as the model issued it; ``arguments`` are an object or a JSON string."""

    identity: str
    tool: str
    arguments: object
    call_id: str | None = None
    turn: str | None = None
    at: int | None = None
    model: str | None = None
    release: str | None = None
    run_id: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A result as the transcript gives it back to the model.

    Args:
        tool: Name of the function, which stands in for the id in the legacy shape.
        rule: Name of the classification rule, where the format tells more than the text.
    """

    call_id: str | None
    text: str
    failed: bool
    tool: str | None = None
    at: int | None = None
    soft: str | None = None
    rule: str | None = None


@dataclass(slots=True, eq=False)
class _Record:
    issued: Issued
    arguments: Arguments
    status: Status = "missing"
    text: str = ""
    soft: str | None = None
    rule: str | None = None
    ended_at: int | None = None


class Assembly:
    """Collects what a parser finds in one conversation, in the order of the transcript.

    A result belongs to the latest turn that holds an unanswered call of its id (ids repeat within
    a conversation in real files), within that turn to the first. A second result of a call is a
    copy and ignored.

    Args:
        key: Keys the argument hashes of this conversation.
        early_results: Whether a result may stand before its call; only where ids are unique.
    """

    def __init__(self, *, key: bytes, early_results: bool = False) -> None:
        self._key = key
        self._records: list[_Record] = []
        self._unanswered: dict[str | None, list[_Record]] = {}
        self._early: dict[str, Outcome] | None = {} if early_results else None
        self.orphans = 0

    def __len__(self) -> int:
        return len(self._records)

    def issue(self, issued: Issued) -> None:
        """Add a call."""
        arguments = read_arguments(issued.arguments, key=self._key)
        record = _Record(issued, arguments)
        self._records.append(record)
        early = self._early.pop(issued.call_id, None) if self._early and issued.call_id else None
        waiting = self._unanswered.setdefault(issued.call_id, [])
        if early is None:
            waiting.append(record)
        else:
            self.orphans -= 1
            _settle(record, early)

    def answer(self, outcome: Outcome) -> None:
        """Add a result."""
        record = self._find(outcome)
        if record is not None:
            _settle(record, outcome)
            return
        if outcome.call_id in self._unanswered:
            return
        self.orphans += 1
        if self._early is not None and outcome.call_id and len(self._early) < MAX_EARLY:
            self._early.setdefault(outcome.call_id, outcome)

    def _find(self, outcome: Outcome) -> _Record | None:
        waiting = self._unanswered.get(outcome.call_id) or []
        if outcome.call_id is None:
            # The legacy shape names the function instead of the call.
            matching = [r for r in waiting if outcome.tool in (None, r.issued.tool)]
        else:
            matching = waiting
        if not matching:
            return None
        turn = matching[-1].issued.turn
        record = next(r for r in matching if r.issued.turn == turn)
        waiting.remove(record)
        return record

    def finish(self, *, timed: bool) -> tuple[Call, ...]:
        """Give the calls in the order in which they were issued.

        Args:
            timed: Whether the source's times are kept; the order is theirs then, with the place in
                the file deciding between equals.
        """
        order = list(range(len(self._records)))
        if timed:
            order.sort(key=lambda place: self._records[place].issued.at or 0)
        attempts = _Attempts()
        return tuple(_call(self._records[place], place, attempts, timed=timed) for place in order)


class _Attempts:
    """Remembers per tool the last call of a run of failures, to compare the next one with it."""

    def __init__(self) -> None:
        self._last: dict[str, _Record] = {}

    def differences(self, record: _Record) -> tuple[Mapping[str, str], ...] | None:
        tool, previous = record.issued.tool, self._last.get(record.issued.tool)
        turn = record.issued.turn
        parallel = previous is not None and turn is not None and previous.issued.turn == turn
        if record.status == "failed":
            self._last[tool] = record
        elif record.status == "ok" and not parallel:
            self._last.pop(tool, None)
        if previous is None or parallel:
            return None
        return changes(previous.arguments, record.arguments)


def _settle(record: _Record, outcome: Outcome) -> None:
    record.status = "failed" if outcome.failed else "ok"
    record.ended_at = outcome.at
    if outcome.failed:
        record.text = cut(clean_text(outcome.text), MAX_TEXT)
        record.rule = outcome.rule
    else:
        record.soft = outcome.soft or soft_rule(outcome.text)


def _call(record: _Record, position: int, attempts: _Attempts, *, timed: bool) -> Call:
    issued = record.issued
    started = issued.at if timed else None
    ended = record.ended_at if timed else None
    if started is not None and (ended is None or ended < started):
        ended = started
    return Call(
        identity=issued.identity,
        position=position,
        # Names are as long as they are: the store keeps cut ones apart and marks them.
        call_id=clean_text(issued.call_id) if issued.call_id else None,
        tool=clean_text(issued.tool),
        turn=clean_text(issued.turn) if issued.turn else None,
        status=record.status,
        text=record.text,
        soft=record.soft,
        rule=record.rule,
        started_at=started,
        ended_at=ended,
        model=issued.model,
        release=issued.release,
        run_id=issued.run_id,
        args_fingerprint=record.arguments.fingerprint,
        args_diff=attempts.differences(record),
        tags=issued.tags,
    )
