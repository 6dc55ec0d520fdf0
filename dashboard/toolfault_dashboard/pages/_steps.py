"""The calls of a chain as steps of a timeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolfault_dashboard.contexts import Step
from toolfault_dashboard.formats import duration
from toolfault_dashboard.pages._ask import Ask
from toolfault_dashboard.pages._wording import word_changes
from toolfault_dashboard.queries.rows import Attempt, ChainDetail

__all__ = ["steps_of"]

_MARKS: Final = {"added": "+", "removed": "\u2212", "changed": "\u2260", "type": "\u2260"}


def steps_of(
    ask: Ask, detail: ChainDetail, *, here: str = "", compared: bool = False
) -> tuple[Step, ...]:
    """Return the calls of a chain in order, each with what differs from the call before it.

    Args:
        ask: The request.
        detail: The chain.
        here: Event id of the failure that is being looked at.
        compared: Whether what the model was told is compared word by word.
    """
    before: int | None = None
    told = ""
    steps: list[Step] = []
    for number, attempt in enumerate(detail.attempts, 1):
        steps.append(
            Step(
                attempt=attempt,
                number=number,
                href="" if attempt.success else ask.link(f"/failures/{attempt.event_id}"),
                here=attempt.event_id == here,
                after=_gap(before, attempt),
                changes=tuple(_difference(each) for each in attempt.args_diff),
                again=bool(told) and attempt.text == told,
                told=word_changes(told, attempt.text)
                if compared and told and attempt.text and attempt.text != told
                else (),
            )
        )
        before = attempt.occurred_at
        told = told if attempt.success else attempt.text or ""
    return tuple(steps)


def _gap(before: int | None, attempt: Attempt) -> str:
    if before is None or attempt.occurred_at is None or attempt.occurred_at < before:
        return ""
    return duration((attempt.occurred_at - before) / 1_000)


def _difference(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    change = str(entry.get("change", "changed"))
    before, after = entry.get("from_type"), entry.get("to_type")
    words = change
    if change == "added" and after:
        words = f"added, {after}"
    elif change == "removed" and before:
        words = f"removed, was {before}"
    elif before and after and before != after:
        words = f"{before} \u2192 {after}"
    elif before and after:
        words = f"another {after}"
    return _MARKS.get(change, "\u2260"), str(entry.get("path", "")), words
