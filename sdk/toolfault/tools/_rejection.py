"""One failure with all that a validation found, and advice so that the next attempt succeeds.

Hints are for the model; near misses are for the developer, who learns what a remedy would have
saved. Neither carries a value out of the process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from toolfault.coerce import near_misses
from toolfault.errors import (
    PLAIN_TYPES,
    REDACTED,
    InvocationKind,
    Issue,
    NearMissLookup,
    ToolError,
    ToolErrorCode,
    did_you_mean,
    example_of,
    is_secret_value,
    redacted_repr,
    shown_value,
    type_name,
)
from toolfault.tools._call import Repair
from toolfault.tools._checks import ABSENT, Finding, Findings, Loc
from toolfault.tools._phantoms import pattern
from toolfault.tools._settings import DEFAULTS

if TYPE_CHECKING:
    from toolfault.tools._tool import Tool

__all__ = ["advised", "raw_value", "rejected_by_checks", "rejected_by_model", "repairs_of"]

# The failure.

_MAX_ISSUES = 50  # kept on one failure; issues_total says how many there were


def rejected_by_checks(
    tool: str, findings: Findings, label: str, *, secret: frozenset[str] = frozenset()
) -> ToolError:
    """Return the failure that says everything the checks found.

    Args:
        tool: The tool's name.
        findings: At least one finding.
        label: What was validated: ``parameters``, ``HTTP request``.
        secret: Names of fields whose values must not be shown.
    """
    found = findings.found
    issues = []
    for finding in found[:_MAX_ISSUES]:
        issues.append(_issue(finding, secret))  # noqa: PERF401 - a comprehension is a call more
    error = ToolError.from_issues(tool, issues, context=label, total=len(found))
    error.kind = InvocationKind.VALIDATION
    return error


def _issue(finding: Finding, secret: frozenset[str]) -> Issue:
    loc = _plain_loc(finding.loc)
    hidden = not secret.isdisjoint(loc)
    if finding.issue is not None:
        field = ".".join(str(part) for part in loc)
        issue = finding.issue.with_(field=field, loc=loc)
        return issue.with_(received=REDACTED) if hidden and issue.received is not None else issue
    received = kind = stand_in = None
    if finding.value is not ABSENT and loc:
        hidden = hidden or is_secret_value(loc, type_name(finding.value))
        received, kind, stand_in = shown_value(finding.value, hidden=hidden)
    return Issue.of_value(
        loc,
        finding.code,
        finding.message,
        expected=finding.expected or None,
        received=received,
        received_type=kind,
        stand_in=stand_in,
        type=finding.type,
    )


def _plain_loc(loc: Loc) -> tuple[str | int, ...]:
    """Return the path as text and indexes; a key that is neither goes by its representation."""
    for part in loc:
        if type(part) is not str and type(part) is not int:
            break
    else:
        return loc
    return tuple(
        part if type(part) in (str, int) else redacted_repr(part, limit=64) for part in loc
    )


def rejected_by_model(
    tool: str,
    error: Exception,
    arguments: object,
    *,
    label: str,
    findings: Findings,
    parameters: Iterable[str],
    secret: Collection[str] = (),
) -> ToolError:
    """Return the failure that a model's validation error means.

    Broken JSON in a string that a coercer tried to read is said as such: the model itself saw a
    string and can only complain about its type.
    """
    failure = ToolError.from_validation_error(
        tool, error, arguments, label, parameters=tuple(parameters), secret_fields=secret
    )
    failure.kind = InvocationKind.VALIDATION
    issues = [_broken_json(i, arguments) for i in failure.issues] if findings.coerce else []
    if tuple(issues) == failure.issues or not issues:
        return failure
    return ToolError.from_issues(
        tool, issues, context=label, total=failure.issues_total, cause=error
    )


def _broken_json(issue: Issue, arguments: object) -> Issue:
    """Return an issue about a string that was meant as JSON, with what the parser says of it."""
    value = raw_value(arguments, issue) if issue.expected in ("array", "object") else None
    if type(value) is not str or not value.lstrip().startswith(("{", "[")):
        return issue
    from toolfault.coerce import coerce_json

    try:
        coerce_json(value)
    except ValueError as error:
        return issue.with_(code="malformed_json", message=str(error), expected=None)
    return issue


def repairs_of(findings: Findings) -> tuple[Repair, ...]:
    """Return the repairs as field and types, without values."""
    return tuple(
        Repair(pattern(loc), type_name(before), type_name(after))
        for loc, before, after in findings.repairs
    )


def raw_value(arguments: Any, issue: Issue) -> object:
    """Return the value the model sent that ``issue`` is about, or ABSENT.

    The path of an issue may name branches of a union, and a branch may be called like a key of the
    value itself (``{"int": ...}``). Of the values along the path it is the one the issue says it
    received (contract.md section 0, ruling 4).
    """
    if type(arguments) is dict and len(issue.loc) == 1:
        sent = arguments.get(issue.loc[0], ABSENT)
        if PLAIN_TYPES.get(type(sent)) == issue.received_type is not None:
            return sent  # what it nearly always is
    along = list(_along(arguments, issue.loc))
    if issue.received_type is not None:
        along = [value for value in along if type_name(value) == issue.received_type]
    if len(along) > 1:
        said = [value for value in along if _as_received(value, issue) == issue.received]
        along = said or along
    return along[-1] if along else ABSENT


def _along(arguments: Any, loc: Loc) -> Iterator[object]:
    """Yield the values at the real keys and indexes in ``loc``."""
    inside = arguments
    for part in loc:
        if _has(inside, part):
            inside = inside[part]
            yield inside


def _as_received(value: object, issue: Issue) -> str | None:
    """Return how the issue would show ``value``."""
    return issue.with_(received=redacted_repr(value)).received


def _has(inside: Any, part: object) -> bool:
    if type(inside) is dict:
        return part in inside
    return type(inside) is list and type(part) is int and 0 <= part < len(inside)


# What is added so that the next attempt succeeds: hints, and near misses.

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
