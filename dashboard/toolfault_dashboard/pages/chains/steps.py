"""The calls of a chain as steps of a timeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated as Doc
from typing import Any, Final

from toolfault_dashboard.formats import duration
from toolfault_dashboard.glossary import OUTCOMES
from toolfault_dashboard.pages.chains.wording import word_changes
from toolfault_dashboard.pages.shared.ask import Ask
from toolfault_dashboard.queries.rows import Attempt, Beside, ChainDetail, ConversationCall

__all__ = ["after", "failure_link", "outcome_meaning", "started", "steps_of"]


@dataclass(frozen=True, slots=True)
class OtherCall:
    """A call of the same conversation that is not of the chain."""

    call: Doc[ConversationCall, "What is stored."]
    href: Doc[str, "The failure; empty for a success."]


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a chain on its timeline."""

    attempt: Doc[Attempt, "The call."]
    number: Doc[int, "Position on the timeline, from 1."]
    href: Doc[str, "The failure; empty for a success."]
    here: Doc[bool, "Whether it is the failure being looked at."]
    started: Doc[int | None, "When it started, microseconds since the epoch."]
    after: Doc[str, "How long after the end of the call before it; empty if unknown."]
    changes: Doc[tuple[tuple[str, str, str], ...], "Differences of arguments: mark, path, words."]
    between: Doc[tuple[OtherCall, ...], "What else was called since the call before it."]
    more_between: Doc[int, "How many of these are not in `between`."]
    again: Doc[bool, "Whether the model was told the very text of the failure before it."]
    told: Doc[
        tuple[tuple[str, str], ...],
        "What it was told against the failure before it: `=`, `+` or `-` and words; else empty.",
    ]


MOST_BETWEEN: Final = 5
"""Calls of others that are shown between two calls of a chain."""

_MARKS: Final = {"added": "+", "removed": "\u2212", "changed": "\u2260", "type": "\u2260"}


def steps_of(
    ask: Ask, detail: ChainDetail, beside: Beside, *, here: str = "", compared: bool = False
) -> tuple[Step, ...]:
    """Return the calls of a chain in order, each with what differs from the call before it.

    Args:
        ask: The request.
        detail: The chain.
        beside: What else its conversation called meanwhile.
        here: Event id of the failure that is being looked at.
        compared: Whether what the model was told is compared word by word.
    """
    before: Attempt | None = None
    told = ""
    steps: list[Step] = []
    for number, (attempt, others) in enumerate(
        zip(detail.attempts, beside.between, strict=True), 1
    ):
        steps.append(
            Step(
                attempt=attempt,
                number=number,
                href=failure_link(ask, attempt),
                here=attempt.event_id == here,
                started=started(attempt),
                after=after(before, attempt),
                changes=tuple(_difference(each) for each in attempt.args_diff),
                between=tuple(
                    OtherCall(each, failure_link(ask, each)) for each in others[:MOST_BETWEEN]
                ),
                more_between=max(0, len(others) - MOST_BETWEEN),
                again=bool(told) and attempt.text == told,
                told=word_changes(told, attempt.text)
                if compared and told and attempt.text and attempt.text != told
                else (),
            )
        )
        before = attempt
        told = told if attempt.success else attempt.text or ""
    return tuple(steps)


def outcome_meaning(outcome: str, beside: Beside) -> str:
    """Return what the outcome of a chain means, with the tool that the model switched to."""
    if beside.followed_by is not None:
        return f"It never succeeded; {beside.followed_by.tool} succeeded after it."
    return OUTCOMES.get(outcome, "")


def failure_link(ask: Ask, call: Attempt | ConversationCall) -> str:
    """Return the address of a failure; empty for a success."""
    return "" if call.success else ask.link(f"/failures/{call.event_id}")


def started(call: Attempt | ConversationCall) -> int | None:
    """Return when *call* started, in microseconds: calls stand in the order of their starts."""
    if call.occurred_at is None:
        return None
    return call.occurred_at - round((call.duration_ms or 0.0) * 1_000)


def after(before: Attempt | ConversationCall | None, call: Attempt | ConversationCall) -> str:
    """Say how long after the end of *before* the *call* started; empty if that is not known."""
    at = started(call)
    if before is None or before.occurred_at is None or at is None:
        return ""
    if at < before.occurred_at:
        return "before that ended"
    return f"{duration((at - before.occurred_at) / 1_000)} later"


def _difference(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    change = str(entry.get("change", "changed"))
    before, after = entry.get("from_type"), entry.get("to_type")
    words = change.replace("_", " ")
    if change == "added" and after:
        words = f"added, {after}"
    elif change == "removed" and before:
        words = f"removed, was {before}"
    elif before and after and before != after:
        words = f"{before} \u2192 {after}"
    elif before and after:
        words = f"another {after}"
    return _MARKS.get(change, "\u2260"), str(entry.get("path", "")), words
