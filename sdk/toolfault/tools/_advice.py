"""What is added to a failure so that the next attempt succeeds: hints, and near misses.

Hints are for the model; near misses are for the developer, who learns what a remedy would have
saved. Neither carries a value out of the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolfault.coerce import near_misses
from toolfault.errors import (
    Issue,
    NearMissLookup,
    ToolError,
    ToolErrorCode,
    did_you_mean,
    example_of,
)
from toolfault.tools._checks import ABSENT
from toolfault.tools._rejection import raw_value
from toolfault.tools._settings import DEFAULTS

if TYPE_CHECKING:
    from toolfault.tools._tool import Tool

__all__ = ["advised"]

_MAX_ADVISED = 20  # issues of one failure that are looked at; the model reads no more either
_LONGEST_TEXT = 10_000
_UNUSED = ("derived", "off")


def advised(error: ToolError, arguments: Any, tool: Tool | None, *, ours: bool) -> ToolError:
    """Add hints and near misses to a parameter failure that is in nobody else's hands.

    Args:
        error: The failure; changed in place.
        arguments: What the model sent, parsed; None when it could not be.
        tool: The tool, or None where only its name is known.
        ours: Whether its issues are in nobody else's hands either.
    """
    hints = None if tool is None else tool.hints
    derive = _derives(hints)
    if arguments is not None and error.is_composed:
        issues = error.issues
        if not ours:
            issues = tuple(issue.copy() for issue in issues)
            error = error.with_(issues=issues, issues_total=error.issues_total)
        _judge(issues, arguments, tool, derive=derive)
        if derive:
            error.derived_hint = _joined(issue.hint for issue in issues)
    elif derive and error.suggestion:
        error.derived_hint = error.suggestion
    if error.retry_hint is None and hints is not None:
        error.retry_hint = _authored(error, hints)
    return error


def _derives(hints: str | Mapping[str, str] | None) -> bool:
    if isinstance(hints, str) and hints in _UNUSED:
        return hints == "derived"
    return DEFAULTS.hints == "derived"


def _authored(error: ToolError, hints: str | Mapping[str, str] | None) -> str | None:
    """Return the author's hints for the fields at fault, else the one for the tool."""
    if hints is None or (isinstance(hints, str) and hints in _UNUSED):
        return None
    if isinstance(hints, str):
        return hints
    found = [
        hints.get(issue.field) or hints.get(issue.field_pattern) or hints.get(issue.root_field)
        for issue in error.issues
    ]
    return _joined(found) or hints.get("*")


def _joined(hints: Any) -> str | None:
    return " ".join(dict.fromkeys(hint for hint in hints if hint)) or None


def _judge(issues: tuple[Issue, ...], arguments: Any, tool: Tool | None, *, derive: bool) -> None:
    """Note near misses on the issues, and derived hints where they are asked for."""
    known = list(tool.compiled.names) if derive and tool is not None else []
    missing: list[str] = []
    for issue in issues:
        if issue.code is ToolErrorCode.MISSING_FIELD:
            missing.append(issue.field)  # noqa: PERF401 - a comprehension is a call more
    for issue in issues[:_MAX_ADVISED]:
        absent = issue.code is ToolErrorCode.MISSING_FIELD
        value = ABSENT if absent else raw_value(arguments, issue)
        if value is not ABSENT and issue.needs_near_miss:
            unknown = issue.code is ToolErrorCode.UNKNOWN_FIELD
            issue.near_miss = _judgement(value, issue, missing if unknown else None)
        if derive:
            issue.hint = _derived(issue, value, known)


def _judgement(
    value: object, issue: Issue, choices: list[str] | None
) -> NearMissLookup | tuple[str, ...]:
    """Return what will name the near misses when they are asked for, of a value that may change.

    Of a container only the kind counts, and of a long text nothing does.
    """
    kind = type(value)
    if kind is str and len(value) > _LONGEST_TEXT:  # type: ignore[arg-type]
        return ()
    if kind in _UNCHANGING:
        return NearMissLookup(near_misses, value, choices)
    if kind in _CONTAINERS:
        return NearMissLookup(near_misses, kind(), choices)
    return near_misses(value, issue, choices=choices)


_UNCHANGING = frozenset({str, int, float, bool, type(None)})
_CONTAINERS = frozenset({dict, list, tuple, set, frozenset})


def _derived(issue: Issue, value: object, known: list[str]) -> str | None:
    """Return did-you-mean for names and choices, else an example of the expected form."""
    if issue.code.value == "unknown_field":
        return did_you_mean(str(issue.loc[-1]) if issue.loc else issue.field, known)
    if issue.code.value == "invalid_choice" and type(value) is str:
        return did_you_mean(value[:_LONGEST_TEXT], _quoted(issue.expected or ""))
    return example_of(issue)


def _quoted(text: str) -> list[str]:
    """Return the quoted choices of ``'a', 'b' or 'c'``."""
    return text.split("'")[1::2]
