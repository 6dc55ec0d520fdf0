"""Filling, copying and pickling a `ToolError`: one table normalises every attribute."""

from __future__ import annotations

from toolfault.errors._codes import ToolErrorCode
from toolfault.errors._enums import Audience, AvailabilityReason, ErrorCategory, InvocationKind
from toolfault.errors._exceptions import ConfigError
from toolfault.errors._issue import Issue
from toolfault.errors._text import as_text
from toolfault.errors._types import is_a

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from toolfault.errors._error import ToolError

__all__ = ["assign", "copied", "restored", "state_of"]

_LONGEST_TEXT = 100_000
_LONGEST_NAME = 256
_MOST_ISSUES = 50
_LIMITS = {
    "tool": _LONGEST_NAME,
    "tool_requested": _LONGEST_NAME,
    "field": _LONGEST_NAME,
    "received_type": 64,
    "phase": 64,
    "context": _LONGEST_NAME,
    "expected": _LONGEST_TEXT,
    "snippet": _LONGEST_TEXT,
    "retry_hint": _LONGEST_TEXT,
    "derived_hint": _LONGEST_TEXT,
    "suggestion": _LONGEST_TEXT,
    "llm_message": _LONGEST_TEXT,
    "told": _LONGEST_TEXT,
}
_NEVER_NONE = {"tool": "unknown", "context": "parameters"}
_SIMPLE_CAUSES = frozenset({"builtins"})


def assign(error: ToolError, given: Mapping[str, object]) -> None:
    """Set the constructor's arguments *given* on *error*, each in its normal form.

    Raises:
        TypeError: A name is not an argument of the constructor.
        ConfigError: A value is not allowed there.
    """
    for name, value in given.items():
        if name in _LIMITS:
            setattr(error, name, _text(name, value))
        elif name not in _SPECIAL:
            raise TypeError(f"ToolError has no argument {name[:64]!r}")
    for name, setter in _SPECIAL.items():
        if name in given:
            setter(error, given[name])
    _set_kind_of_failure(error, given)


def _text(name: str, value: object) -> str | None:
    if value is None:
        return _NEVER_NONE.get(name)
    return as_text(value, _LIMITS[name]) or _NEVER_NONE.get(name) or ""


def _set_message(error: ToolError, value: object) -> None:
    error._message = "" if value is None else as_text(value, _LONGEST_TEXT)  # noqa: SLF001
    error.args = (error.tool, error._message)  # noqa: SLF001


def _set_received(error: ToolError, value: object) -> None:
    error._stand_in = None  # noqa: SLF001
    if value is None or is_a(value, str):
        error.received = None if value is None else as_text(value, _LONGEST_TEXT)
        return
    from toolfault.errors._repr import redacted_repr, type_and_size, type_name

    error.received = redacted_repr(value, key=error.field)
    error._stand_in = type_and_size(value)  # noqa: SLF001
    error.received_type = error.received_type or type_name(value)


def _set_retry_context(error: ToolError, value: object) -> None:
    if value is None or is_a(value, dict):
        error.retry_context = None if value is None else dict(value)
        return
    from toolfault.errors._json import to_jsonable

    plain = to_jsonable(value)
    error.retry_context = plain if isinstance(plain, dict) else {"value": plain}


def _set_issues(error: ToolError, value: Any) -> None:
    issues = tuple(value)
    if not all(is_a(issue, Issue) for issue in issues):
        raise ConfigError("issues are Issue objects: Issue(field, code, message)")
    error._issues = issues[:_MOST_ISSUES]  # noqa: SLF001
    error._issues_total = len(issues) if len(issues) > _MOST_ISSUES else None  # noqa: SLF001


def _set_issues_total(error: ToolError, value: object) -> None:
    if is_a(value, int) and value >= len(error._issues):  # noqa: SLF001
        error._issues_total = value  # noqa: SLF001


def _set_reason(error: ToolError, value: object) -> None:
    error.reason = None if value is None else AvailabilityReason(value)


def _set_invocation_kind(error: ToolError, value: object) -> None:
    error.kind = None if value is None else InvocationKind(value)


def _set_cause(error: ToolError, value: object) -> None:
    if is_a(value, BaseException) and value is not error:
        error.__cause__ = value


def _set_event_id(error: ToolError, value: object) -> None:
    error._event_id = None if value is None else as_text(value, 64)  # noqa: SLF001


def _later(error: ToolError, value: object) -> None:
    """Code, category and audience depend on each other: `_set_kind_of_failure` sets them."""


_SPECIAL = {
    "message": _set_message,
    "received": _set_received,
    "retry_context": _set_retry_context,
    "issues": _set_issues,
    "issues_total": _set_issues_total,
    "reason": _set_reason,
    "kind": _set_invocation_kind,
    "cause": _set_cause,
    "event_id": _set_event_id,
    "code": _later,
    "category": _later,
    "audience": _later,
}


def _set_kind_of_failure(error: ToolError, given: Mapping[str, object]) -> None:
    """Set code, category and audience; what was chosen stays, what followed from a part goes."""
    old_code = getattr(error, "code", None)
    old_category = getattr(error, "category", None)
    if given.get("code") is not None:
        error.code = ToolErrorCode(given["code"])
    category = old_category
    if old_code is None or category is old_code.category:
        category = error.code.category
    if given.get("category") is not None:
        category = ErrorCategory(given["category"])
    if category is None:
        raise ConfigError(
            f"the custom code {error.code.value!r} needs a category: "
            "category='parameter' when other arguments can fix it, else category='internal'"
        )
    error.category = category
    if given.get("audience") is not None:
        error.audience = Audience(given["audience"])
    elif old_category is None or error.audience is default_audience(old_category):
        error.audience = default_audience(category)


def default_audience(category: ErrorCategory) -> Audience:
    """The model for what it can fix or must know, the system for the rest."""
    return Audience.SYSTEM if category is ErrorCategory.INTERNAL else Audience.LLM


def copied(error: ToolError, *, deep: bool = False) -> ToolError:
    """A copy of *error* with its cause, context, traceback and notes."""
    twin = type(error).__new__(type(error))
    twin.__dict__.update(error.__dict__)
    twin.args = error.args
    twin._event_id = error.event_id  # noqa: SLF001 - the same failure keeps its id
    notes = error.__dict__.get("__notes__")
    if isinstance(notes, list):
        twin.__dict__["__notes__"] = list(notes)
    if error.retry_context is not None:
        twin.retry_context = _plain_context(error) if deep else dict(error.retry_context)
    twin.__context__ = error.__context__
    twin.__cause__ = error.__cause__
    twin.__suppress_context__ = error.__suppress_context__
    twin.__traceback__ = error.__traceback__
    return twin


def _plain_context(error: ToolError) -> dict[str, object] | None:
    from toolfault.errors._json import to_jsonable

    plain = to_jsonable(error.retry_context)
    return plain if isinstance(plain, dict) else None


def restored(cls: type[ToolError]) -> ToolError:
    """An empty error for unpickling, which sets the state afterwards."""
    return cls.__new__(cls)


def state_of(error: ToolError) -> dict[str, object]:
    """The attributes of *error* for pickling.

    The cause goes along only when it is a built-in exception of plain arguments: any other one
    may refuse to be pickled, or worse, to be unpickled. Its type name always goes along.
    """
    state = dict(error.__dict__)
    state["_event_id"] = error.event_id
    state["retry_context"] = _plain_context(error)
    state["_exception_type"] = error.exception_type
    state["args"] = (error.tool, error._message)  # noqa: SLF001
    cause = error.__cause__
    if cause is not None and _is_plain(cause):
        state["__cause__"] = cause
    notes = error.__dict__.get("__notes__")
    if isinstance(notes, list):
        state["__notes__"] = [as_text(note, _LONGEST_TEXT) for note in notes]
    return state


def _is_plain(cause: BaseException) -> bool:
    if type(cause).__module__ not in _SIMPLE_CAUSES or cause.__dict__:
        return False
    return all(type(arg) in (str, int, float, bool, type(None)) for arg in cause.args)
