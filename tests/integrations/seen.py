"""What an observer's record of a call is worth: one rule for all observers, toolfault among them.

Standard library only: it is imported in the environment of each framework.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass
class Record:
    """What an observer recorded as one tool call.

    Attributes:
        tool: Name of the tool; None for an error that names no call.
        failed: Whether it is recorded as a failure.
        text: What the record says of the outcome.
        asked: What it says of the question: arguments and schema.
    """

    tool: str | None
    failed: bool
    text: str
    asked: str = ""


def judged(seen: dict[str, Any]) -> list[str]:
    """Return one line for each call of a scenario: how it is recorded, and what the record says.

    Args:
        seen: What ``observe`` printed for the scenario.
    """
    left = [Record(**each) for each in seen["records"]]
    if not seen["expected"]:  # the call has not ended
        own = [each for each in left if each.tool is not None]
        return ["**failed**" if any(each.failed for each in own) else "nothing"]
    lines = [_line(call, _record_of(call, left), seen) for call in seen["expected"]]
    return lines + [f"**one more: {_how(each)}**" for each in left if each.tool is not None]


def _record_of(call: dict[str, Any], left: list[Record]) -> Record | None:
    """Take the record of a call: by its id, its outcome or its tool; a failure also has an error.

    Where more than one would do, the one counts that is right.
    """
    of_tool = [each for each in left if each.tool == call["tool"]]
    by_id = [each for each in of_tool if f'"{call["call_id"]}"' in each.text]
    by_outcome = [each for each in of_tool if each.failed == bool(call["code"])]
    loose = [each for each in left if each.tool is None]
    errors = loose if call["code"] else []
    for found in (by_id, by_outcome, errors, of_tool):
        if found:
            taken = found[0]
            left.remove(taken)
            if taken.failed and taken.tool is not None and loose:
                left.remove(loose[0])
                taken.text += loose[0].text
            return taken
    return None


def _how(record: Record | None) -> str:
    return "nothing" if record is None else "failed" if record.failed else "succeeded"


def _line(call: dict[str, Any], record: Record | None, seen: dict[str, Any]) -> str:
    how = _how(record)
    if how != ("failed" if call["code"] else "succeeded"):
        how = f"**{how}**"
    return how if record is None else ", ".join([how, *_details(call, record, seen)])


def _details(call: dict[str, Any], record: Record, seen: dict[str, Any]) -> list[str]:
    said = []
    faults = [field for field, _ in call["issues"]]
    if faults:
        words = set(re.findall(r"\w+", re.sub(r"\\+[nt]", " ", record.text)))
        named = len(words.intersection(faults))
        said.append(f"{named} of {len(faults)} faults")
    told, secret = seen["told"].get(call["call_id"]), seen["secret"]
    if call["code"] and told:
        parts = told.split(secret) if secret else [told]
        if all(_squeezed(part) in _squeezed(record.text) for part in parts):
            said.append("text")
    if secret and secret in record.text + record.asked:
        said.append("**secret**")
    return said


def _squeezed(text: str) -> str:
    """Return a text without what encoding it as JSON, once or more often, changes."""
    return re.sub(r"\\+[nt]|[\s\\\"']", "", text)
