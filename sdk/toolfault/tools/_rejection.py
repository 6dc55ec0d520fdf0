"""Turning what a validation found into one failure with all its issues."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from toolfault.errors import (
    PLAIN_TYPES,
    REDACTED,
    InvocationKind,
    Issue,
    ToolError,
    clean_name,
    is_secret_value,
    redacted_repr,
    shown_value,
    type_name,
)
from toolfault.tools._checks import ABSENT, Finding, Findings, Loc
from toolfault.tools._observe import Repair

__all__ = ["raw_value", "rejected_by_checks", "rejected_by_model", "repairs_of"]

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
        Repair(_pattern(loc), type_name(before), type_name(after))
        for loc, before, after in findings.repairs
    )


def _pattern(loc: Loc) -> str:
    """Return the path with ``*`` for indexes: repairs are counted by field."""
    return ".".join("*" if type(part) is int else clean_name(str(part), 128) for part in loc)


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
