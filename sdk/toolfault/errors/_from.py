"""Building a `ToolError` from issues, from a validation error, or from several failures."""

from __future__ import annotations

from toolfault.errors._codes import ToolErrorCode
from toolfault.errors._enums import ErrorCategory
from toolfault.errors._exceptions import ConfigError
from toolfault.errors._issue import Issue
from toolfault.errors._types import is_a
from toolfault.errors._words import ROOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from toolfault.errors._error import ToolError

__all__ = ["from_issues", "from_validation_error", "merge", "own_issue"]


def from_issues(
    cls: type[ToolError],
    tool: str,
    issues: Sequence[Issue],
    *,
    context: str,
    total: int | None,
    cause: BaseException | None,
) -> ToolError:
    """See `ToolError.from_issues`."""
    if not issues:
        raise ConfigError("a failure needs at least one issue")
    count = len(issues) if total is None else max(total, len(issues))
    codes = {issue.code for issue in issues}
    shared = codes.pop() if len(codes) == 1 else ToolErrorCode.INVALID_INPUT
    only = issues[0] if count == 1 and not issues[0].is_root else None
    error = cls(
        tool,
        "",
        shared,
        category=ErrorCategory.PARAMETER,
        field=only.field if only else None,
        expected=only.expected if only else None,
        received=only.received if only else None,
        received_type=only.received_type if only else None,
        issues=issues,
        issues_total=count,
        context=context,
        cause=cause,
        suggestion=_joined(issue.hint for issue in issues),
    )
    if only:
        error._stand_in = only.stand_in
    return error


def from_validation_error(
    cls: type[ToolError],
    tool: str,
    exc: object,
    *,
    args: object,
    context: str,
    parameters: Sequence[str],
    secret: Collection[str],
) -> ToolError:
    """See `ToolError.from_validation_error`."""
    from toolfault.errors._validation import read_issues

    issues, total = read_issues(exc, args, parameters=parameters, secret=secret)
    cause = exc if is_a(exc, BaseException) else None
    return from_issues(cls, tool, issues, context=context, total=total, cause=cause)


def own_issue(error: ToolError) -> Issue:
    """The one issue that an authored failure about one field stands for."""
    from toolfault.errors._render import bare

    return Issue(
        error.field or ROOT,
        error.code,
        bare(error._message),  # noqa: SLF001 - `message` is composed of this very issue
        expected=error.expected,
        received=error.received,
        received_type=error.received_type,
        stand_in=error._stand_in,  # noqa: SLF001
    )


def merge(
    cls: type[ToolError],
    errors: Sequence[ToolError],
    *,
    tool: str | None,
    context: str | None,
) -> ToolError:
    """See `ToolError.merge`."""
    if not errors:
        raise ConfigError("there is no error to merge")
    fixable = [error for error in errors if error.category is ErrorCategory.PARAMETER]
    if len(fixable) < 2:
        only = (fixable or errors)[0]
        return only.with_(**({"tool": tool} if tool else {}))
    issues = [issue for error in fixable for issue in (error.issues or (_root_issue(error),))]
    merged = from_issues(
        cls,
        tool or fixable[0].tool,
        issues,
        context=context or fixable[0].context,
        total=sum(max(error.issues_total, 1) for error in fixable),
        cause=fixable[0].__cause__,
    )
    return merged.with_(
        retry_hint=_joined(error.retry_hint for error in fixable),
        retry_context=_contexts(fixable),
        derived_hint=_joined(error.derived_hint for error in fixable),
        suggestion=_joined(error.suggestion for error in fixable),
        tool_requested=fixable[0].tool_requested,
    )


def _root_issue(error: ToolError) -> Issue:
    return own_issue(error).with_(received=None, received_type=None)


def _joined(hints) -> str | None:  # type: ignore[no-untyped-def] # noqa: ANN001
    return " ".join(dict.fromkeys(hint for hint in hints if hint)) or None


def _contexts(errors: Sequence[ToolError]) -> dict[str, object] | None:
    found: dict[str, object] = {}
    for error in errors:
        found.update(error.retry_context or {})
    return found or None
