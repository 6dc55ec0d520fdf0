"""`ToolError`: one failure, and what the user, the model and the system read of it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from toolfault.errors._classify import (
    code_of,
    exception_name,
    exception_text,
    returned_code,
    seed_code,
)
from toolfault.errors._cleaning import (
    as_text,
    clean_name,
    clean_received,
    clean_text,
    cut,
    first_line,
    known_text,
    one_line,
    plain,
    redact_text,
    redacted_repr,
    snippet,
    to_jsonable,
    type_and_size,
    type_name,
)
from toolfault.errors._codes import (
    CATALOGUE_HINTS,
    FOOTER,
    HIDDEN_INTERNAL,
    INTERNAL_TEXT,
    MISSING_TEXT,
    REDACTED,
    RETRYABLE_INTERNAL,
    ROOT,
    UNAVAILABLE_TEXT,
    UNEXPECTED_TEXT,
    Audience,
    AvailabilityReason,
    ConfigError,
    ErrorCategory,
    InvocationKind,
    ToolErrorCode,
    ToolfaultError,
    new_event_id,
)
from toolfault.errors._foreign import read_issues
from toolfault.errors._issue import Issue
from toolfault.errors._types import class_name, is_a

_LONGEST_TEXT = 100_000
_LONGEST_NAME = 256
_LONGEST_SHOWN = 500
_MOST_ISSUES = 50


class ToolError(ToolfaultError):
    """One failure of one tool call: what went wrong, and what each audience may read of it.

    Raise it inside a tool to say exactly what the model should fix; the SDK makes one from every
    other exception. It can be raised, chained, pickled, copied and hashed.

    Args:
        tool: The tool that failed; the boundary overwrites it with the resolved name. Inside a
            tool it may be left out: one text with a space in it, or nothing but one text, is the
            message (`ToolError("User 42 does not exist")`), since names of tools have no spaces.
        message: What went wrong, authored; empty to compose it from *issues*.
        code: A `ToolErrorCode`, its text, or a custom code.
        category: Needed for custom codes; else what the code says.
        field: The argument at fault.
        expected: What would have been right (`<= 65535`).
        received: A representation of what was sent; anything but text is represented.
        received_type: Its Python type name.
        snippet: The offending text itself; shown as head and tail.
        retry_hint: How to succeed next time, for the model.
        retry_context: The same for machines: a small JSON object.
        audience: The primary audience; by default the model for what it can fix or must know,
            the system for internal failures.
        issues: All issues, when there are several or when they were found by validation.
        issues_total: How many issues there were, when not all are in *issues*.
        context: What was validated: `Invalid {context}: ...`.
        llm_message: Text for the model in place of the default one; never for availability.
        reason: Why a tool is not available.
        cause: The original exception; `raise ... from exc` sets it too.
        event_id: The id under which the failure is reported; a new UUIDv7 by default.
        tool_requested: The name the caller used, when it was an alias.
        derived_hint: A hint the SDK derived; shown where *retry_hint* is not given.
        suggestion: A derived hint nobody asked for yet; `with_(derived_hint=error.suggestion)`
            shows it.
        kind: Where in the call it happened.
        phase: The same in the words of the event (`parse`, `validation`, `handler`).

    Raises:
        ConfigError: The code is malformed, or a custom code comes without a category.
    """

    # Defaults live on the class: an error keeps, and a copy of it takes, only what it was given.
    tool: str = "unknown"
    code: ToolErrorCode
    category: ErrorCategory
    field: str | None = None
    expected: str | None = None
    received: str | None = None
    received_type: str | None = None
    snippet: str | None = None
    retry_hint: str | None = None
    retry_context: dict[str, object] | None = None
    audience: Audience
    context: str = "parameters"
    llm_message: str | None = None
    reason: AvailabilityReason | None = None
    tool_requested: str | None = None
    derived_hint: str | None = None
    suggestion: str | None = None
    kind: InvocationKind | None = None
    phase: str | None = None
    adapter_failed: bool = False
    _message: str = ""
    _issues: tuple[Issue, ...] = ()
    _issues_total: int | None = None
    _event_id: str | None = None
    _exception_type: str | None = None
    quotes_exception: bool = False
    """Whether the message is the text of an exception, which nobody wrote for a reader."""
    stand_in: str | None = None
    """Type and size of what was received; see `Issue.stand_in`."""
    told: str | None = None
    """What the model was told in place of our text; the model's rendering is then this."""

    def __init__(  # noqa: PLR0913 - the attributes of the contract, all but three by name
        self,
        tool: str,
        message: str | None = None,
        code: ToolErrorCode | str = ToolErrorCode.INVALID_INPUT,
        *,
        category: ErrorCategory | str | None = None,
        field: str | None = None,
        expected: str | None = None,
        received: object = None,
        received_type: str | None = None,
        snippet: str | None = None,
        retry_hint: str | None = None,
        retry_context: Mapping[str, object] | None = None,
        audience: Audience | str | None = None,
        issues: Iterable[Issue] = (),
        issues_total: int | None = None,
        context: str = "parameters",
        llm_message: str | None = None,
        reason: AvailabilityReason | str | None = None,
        cause: BaseException | None = None,
        event_id: str | None = None,
        tool_requested: str | None = None,
        derived_hint: str | None = None,
        suggestion: str | None = None,
        kind: InvocationKind | str | None = None,
        phase: str | None = None,
    ) -> None:
        everything, given = locals(), {}
        for name in _ARGUMENTS:
            value = everything[name]
            if value is not None:
                given[name] = value
        if message is None and _is_message(tool, given):
            given["message"] = given.pop("tool")
        super().__init__(given.get("tool"), given.get("message"))
        if type(self) is not ToolError:
            self.__dict__.update(_NOTHING_GIVEN)
        self._assign(given)

    @classmethod
    def new(
        cls, tool: str, code: ToolErrorCode | str, message: str = "", **details: object
    ) -> ToolError:
        """The same with the code before the message; *details* as in the constructor."""
        return cls(tool, message, code, **details)  # type: ignore[arg-type]

    @classmethod
    def unavailable(
        cls,
        tool: str,
        reason: AvailabilityReason | str = AvailabilityReason.NOT_REGISTERED,
        *,
        tool_requested: str | None = None,
    ) -> ToolError:
        """A tool that cannot be called; user and model read the same for every *reason*."""
        reason = AvailabilityReason(reason)
        return cls(
            tool,
            f"Tool '{tool_requested or tool}' {reason.phrase}",
            ToolErrorCode.NOT_AVAILABLE,
            reason=reason,
            tool_requested=tool_requested,
        )

    @classmethod
    def from_issues(
        cls,
        tool: str,
        issues: Sequence[Issue],
        *,
        context: str = "parameters",
        total: int | None = None,
        cause: BaseException | None = None,
    ) -> ToolError:
        """All *issues* of one validation as one failure, with a composed message.

        Args:
            tool: The tool whose arguments were validated.
            issues: What is wrong, in the order found; at least one.
            context: What was validated: `Invalid {context} - 3 errors:`.
            total: How many issues there were, when *issues* is only their beginning.
            cause: The exception of the validation library.

        Raises:
            ConfigError: *issues* is empty.
        """
        if not issues:
            raise ConfigError("a failure needs at least one issue")
        count = len(issues) if total is None else max(total, len(issues))
        first = issues[0]
        code, has_hints = first.code, False
        for issue in issues:
            if issue.code is not code and issue.code != code:
                code = ToolErrorCode.INVALID_INPUT
            if issue.hint:
                has_hints = True
        error = cls._made(tool, "", code, ErrorCategory.PARAMETER, cause)
        state = error.__dict__
        if context != "parameters":
            state["context"] = _text("context", context)
        if has_hints:
            state["suggestion"] = _text("suggestion", joined_hints(i.hint for i in issues))
        ToolError._set_issues(error, issues)
        if count > len(state["_issues"]):
            state["_issues_total"] = count
        if count == 1 and first.field != ROOT:
            state["field"], state["expected"] = first.field, first.expected
            state["received"], state["received_type"] = first.received, first.received_type
            state["stand_in"] = first.stand_in
        return error

    @classmethod
    def _made(
        cls,
        tool: str,
        message: str,
        code: ToolErrorCode,
        category: ErrorCategory,
        cause: BaseException | None,
    ) -> ToolError:
        """A failure with these, set at once: most are made here.

        The constructor finds out one by one what else it was given.
        """
        error = cls.__new__(cls)
        state = error.__dict__
        if cls is not ToolError:
            state.update(_NOTHING_GIVEN)
        state["tool"], state["_message"] = _text("tool", tool), message
        state["code"], state["category"] = code, category
        state["audience"] = _default_audience(category)
        error.args = (state["tool"], message)
        if cause is not None and is_a(cause, BaseException):  # hosts may not be type-checked
            error.__cause__ = cause
        return error

    @classmethod
    def from_validation_error(
        cls,
        tool: str,
        exc: object,
        args: object = None,
        context: str = "parameters",
        *,
        parameters: Sequence[str] = (),
        secret_fields: Collection[str] = (),
    ) -> ToolError:
        """Every issue of a validation error of pydantic, msgspec or jsonschema, at once.

        Args:
            tool: The tool whose arguments were validated.
            exc: The error, or anything with `.errors()` in pydantic's form, or a sequence of
                jsonschema errors.
            args: What the model sent, before any coercion: `received` is taken from it.
            context: What was validated, in words.
            parameters: The parameter names of the function, to name positional arguments.
            secret_fields: More fields whose values must not be shown.
        """
        secret = frozenset(secret_fields)
        issues, total = read_issues(exc, args, parameters=parameters, secret=secret)
        cause = exc if is_a(exc, BaseException) else None
        return cls.from_issues(tool, issues, context=context, total=total, cause=cause)

    @classmethod
    def from_exception(cls, tool: str, exc: BaseException) -> ToolError:
        """The failure that an exception of a tool's own code means.

        A `ToolError` is returned as it is. Everything that is not about the arguments is
        internal: its text is for the system only.
        """
        if is_a(exc, ToolError):
            return exc
        text = exception_text(exc)
        seed = seed_code(text)
        if seed is not None:
            text, code = first_line(text, _LONGEST_SHOWN), ToolErrorCode(seed)
            category = ErrorCategory.PARAMETER
        else:
            text, code, category = text or class_name(exc), code_of(exc), ErrorCategory.INTERNAL
        error = cls._made(tool, plain(text, _LONGEST_TEXT), code, category, exc)
        error.quotes_exception = True
        return error

    @classmethod
    def from_returned(cls, tool: str, returned: Mapping[str, object]) -> ToolError:
        """The failure that a tool reported by returning `{"success": False, "error": ...}`."""
        authored = returned.get("error")
        text = str.strip(authored) if is_a(authored, str) else ""
        code, category = returned_code(returned.get("error_code"))
        return cls(
            tool,
            text or "the tool returned success=False",
            code,
            category=category,
            llm_message=text or None,
        )

    @classmethod
    def merge(
        cls,
        errors: Iterable[ToolError] | str,
        more: Iterable[ToolError] = (),
        *,
        tool: str | None = None,
        context: str | None = None,
    ) -> ToolError:
        """Several failures of one validation as one, so that the model can fix all at once.

        Written `merge(errors)` or `merge(tool, errors)`. One error is returned as a copy; failures
        that other arguments cannot fix are left out as long as one that they can is among them.

        Raises:
            ConfigError: There is no error to merge.
        """
        if isinstance(errors, str):
            tool, errors = errors, ()
        found = [*errors, *more]
        if not found:
            raise ConfigError("there is no error to merge")
        fixable = [error for error in found if error.category is ErrorCategory.PARAMETER]
        if len(fixable) < 2:
            only = (fixable or found)[0]
            return only.with_(**({"tool": tool} if tool else {}))
        merged = cls.from_issues(
            tool or fixable[0].tool,
            [issue for error in fixable for issue in (error.issues or (cls._root_issue(error),))],
            context=context or fixable[0].context,
            total=sum(max(error.issues_total, 1) for error in fixable),
            cause=fixable[0].__cause__,
        )
        return merged.with_(
            retry_hint=joined_hints(error.retry_hint for error in fixable),
            retry_context={k: v for e in fixable for k, v in (e.retry_context or {}).items()}
            or None,
            derived_hint=joined_hints(error.derived_hint for error in fixable),
            suggestion=joined_hints(error.suggestion for error in fixable),
            tool_requested=fixable[0].tool_requested,
        )

    def with_(self, **changes: object) -> ToolError:
        """A copy with *changes*, named like the arguments of the constructor.

        Cause, traceback, notes and event id stay: it is the same failure, better described.

        Raises:
            TypeError: A name is not an argument of the constructor.
            ConfigError: A value is not allowed there.
        """
        copy = self._copy()
        ToolError._assign(copy, changes)
        return copy

    @property
    def message(self) -> str:
        """The authored text, else the text composed from the issues; never empty, not redacted."""
        if self._message:
            return self._message
        return composed_message(self)

    @message.setter
    def message(self, value: str) -> None:
        self._assign({"message": value})

    @property
    def issues(self) -> tuple[Issue, ...]:
        """All issues; an authored failure about one field counts as one issue."""
        if self._issues or self.field is None or self.category is not ErrorCategory.PARAMETER:
            return self._issues
        return (self._own_issue(),)

    def _own_issue(self) -> Issue:
        """The one issue that an authored failure about one field stands for."""
        return Issue(
            self.field or ROOT,
            self.code,
            bare(self._message),  # `message` is composed of this very issue
            expected=self.expected,
            received=self.received,
            received_type=self.received_type,
            stand_in=self.stand_in,
        )

    def _root_issue(self) -> Issue:
        return self._own_issue().with_(received=None, received_type=None)

    @property
    def issues_total(self) -> int:
        """How many issues there were, also those beyond the ones kept in `issues`."""
        return len(self.issues) if self._issues_total is None else self._issues_total

    @property
    def is_composed(self) -> bool:
        """Whether the message is made from the issues."""
        return not self._message and bool(self.issues)

    @property
    def is_authored(self) -> bool:
        """Whether somebody wrote the message, rather than the SDK or an exception."""
        return bool(self._message) and not self.quotes_exception

    @property
    def cause(self) -> BaseException | None:
        """The original exception."""
        return self.__cause__

    @property
    def exception_type(self) -> str | None:
        """`module.Type` of the original exception."""
        if self.__cause__ is None:
            return self._exception_type
        return exception_name(self.__cause__)

    @property
    def event_id(self) -> str:
        """The UUIDv7 under which the failure is reported."""
        if self._event_id is None:
            self._event_id = new_event_id()
        return self._event_id

    @event_id.setter
    def event_id(self, value: str) -> None:
        self._event_id = value if type(value) is str and len(value) <= 64 else as_text(value, 64)

    @property
    def called(self) -> str:
        """The name the caller used."""
        return self.tool_requested or self.tool

    @property
    def retryable(self) -> bool:
        """Whether calling again, with other input or later, can help. The SDK never retries."""
        if self.category is ErrorCategory.INTERNAL:
            return self.code.value in RETRYABLE_INTERNAL
        return self.category is ErrorCategory.PARAMETER

    @property
    def llm_code(self) -> str:
        """The code as the model sees it; a fixable `io` error keeps its own.

        Who wrote text for the model chose a custom internal code, too, and it is shown.
        """
        if self.category is ErrorCategory.AVAILABILITY:
            return "not_available"
        code = self.code
        if self.category is ErrorCategory.INTERNAL and (
            code.value in HIDDEN_INTERNAL or (code.is_custom and not self.llm_message)
        ):
            return "internal_error"
        return str(code.value)

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits, equal for failures that are the same but for their values."""
        pairs = sorted({(issue.field_pattern, issue.code.value) for issue in self.issues})
        parts = [self.tool, self.code.value, *(f"{field}\x1f{code}" for field, code in pairs)]
        data = "\x1e".join([*parts, self.exception_type or ""]).encode("utf-8", "replace")
        return hashlib.blake2b(data, digest_size=8).hexdigest()

    def render(self, audience: Audience | str | None = None) -> str:
        """The failure in the words of *audience*, by default its primary one.

        Deterministic, never empty, and never raises whatever the fields hold.

        Raises:
            ValueError: *audience* is not an audience.
        """
        if type(audience) is not Audience:
            audience = self.audience if audience is None else Audience(audience)
        if audience is Audience.LLM:
            return _llm_text(self)
        return _user_text(self) if audience is Audience.USER else _system_text(self)

    format_for_audience = render

    def renderings(self) -> dict[str, str]:
        """The text of every audience, by its name."""
        return {audience.value: self.render(audience) for audience in Audience}

    def to_llm_payload(self) -> dict[str, object]:
        """The failure for the model as JSON: always the same 14 keys, at most 8 KiB."""
        payload: dict[str, object] = {
            "ok": False,
            "success": False,
            "tool": called(self),
            "code": self.llm_code,
            "category": self.category.value,
            "message": _llm_text(self),
            "field": None,
            "expected": None,
            "received": None,
            "snippet": None,
            "issues": [],
            "retryable": self.retryable,
            "retry_hint": _payload_hint(self),
            "retry_context": None,
        }
        if self.category is ErrorCategory.PARAMETER:
            payload.update(_payload_details(self))
        return _fitted(payload)

    def __str__(self) -> str:
        return f"{self.code.value} error in tool {self.tool}: {self.message}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(tool={self.tool!r}, code={self.code.value!r})"

    def __copy__(self) -> ToolError:
        return self._copy()

    def __deepcopy__(self, memo: object) -> ToolError:
        copy = self._copy()
        copy.retry_context = self._plain_context()
        return copy

    def _copy(self) -> ToolError:
        """A copy with the cause, context, traceback and notes: the same failure keeps its id."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__, _event_id=self.event_id)
        twin.args = self.args
        notes = self.__dict__.get("__notes__")
        if isinstance(notes, list):
            twin.__dict__["__notes__"] = list(notes)
        if self.retry_context is not None:
            twin.retry_context = dict(self.retry_context)
        twin.__context__ = self.__context__
        twin.__cause__ = self.__cause__
        twin.__suppress_context__ = self.__suppress_context__
        twin.__traceback__ = self.__traceback__
        return twin

    def _plain_context(self) -> dict[str, object] | None:
        plain = to_jsonable(self.retry_context)
        return plain if isinstance(plain, dict) else None

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the attributes.

        The cause goes along only when it is a built-in exception of plain arguments: any other
        one may refuse to be pickled, or worse, to be unpickled. Its type name always goes along,
        and so do defaults: who reads it may have a version that has none on the class.
        """
        state = {**_NOTHING_GIVEN, **self.__dict__}
        state["_event_id"] = self.event_id
        state["retry_context"] = self._plain_context()
        state["_exception_type"] = self.exception_type
        state["args"] = (self.tool, self._message)
        if self.__cause__ is not None and _is_plain(self.__cause__):
            state["__cause__"] = self.__cause__
        notes = self.__dict__.get("__notes__")
        if isinstance(notes, list):
            state["__notes__"] = [as_text(note, _LONGEST_TEXT) for note in notes]
        return (_empty, (type(self),), state)

    def _assign(self, given: Mapping[str, Any]) -> None:
        """Set the constructor's arguments *given*, each in its normal form.

        Raises:
            TypeError: A name is not an argument of the constructor.
            ConfigError: A value is not allowed there.
        """
        state = self.__dict__
        for name, value in given.items():
            if name in _LIMITS:
                state[name] = _text(name, value)
            elif name in _NORMAL_FORMS:
                state[name] = _NORMAL_FORMS[name](value)
            elif name not in _TOGETHER:
                raise TypeError(f"ToolError has no argument {name[:64]!r}")
        self._assign_others(given)

    def _assign_others(self, given: Mapping[str, Any]) -> None:
        """Set what is more than one text of *given*."""
        state = self.__dict__
        if "message" in given:
            message = given["message"]
            state["_message"] = "" if message is None else as_text(message, _LONGEST_TEXT)
            self.args = (self.tool, state["_message"])
        if "received" in given:
            self._set_received(given["received"])
        if "event_id" in given:
            state["_event_id"] = (
                None if given["event_id"] is None else as_text(given["event_id"], 64)
            )
        if "issues" in given:
            self._set_issues(given["issues"])
        if "issues_total" in given:
            total = given["issues_total"]
            if is_a(total, int) and total >= len(self._issues):
                self._issues_total = total
        cause = given.get("cause")
        if cause is not None and is_a(cause, BaseException) and cause is not self:
            self.__cause__ = cause
        if not given.keys().isdisjoint(_KIND_OF_FAILURE):
            self._set_kind_of_failure(given)

    def _set_received(self, value: object) -> None:
        self.stand_in = None
        if value is None or is_a(value, str):
            self.received = None if value is None else as_text(value, _LONGEST_TEXT)
            return
        self.received = redacted_repr(value, key=self.field)
        self.stand_in = type_and_size(value)
        self.received_type = self.received_type or type_name(value)

    def _set_issues(self, value: Iterable[Issue]) -> None:
        issues = tuple(value)
        for issue in issues:
            if type(issue) is not Issue and not is_a(issue, Issue):
                raise ConfigError("issues are Issue objects: Issue(field, code, message)")
        self._issues = issues
        self._issues_total = None
        if len(issues) > _MOST_ISSUES:
            self._issues, self._issues_total = issues[:_MOST_ISSUES], len(issues)

    def _set_kind_of_failure(self, given: Mapping[str, Any]) -> None:
        """Set code, category and audience; keep what was chosen, derive the rest anew."""
        old_code = getattr(self, "code", None)
        old_category = getattr(self, "category", None)
        code = given.get("code")
        if code is not None:
            self.code = code if type(code) is ToolErrorCode else ToolErrorCode(code)
        category = old_category
        chosen = given.get("category")
        if chosen is not None:
            category = chosen if type(chosen) is ErrorCategory else ErrorCategory(chosen)
        elif old_code is None or category is old_code.category:
            category = self.code.category
        if category is None:
            raise ConfigError(
                f"the custom code {self.code.value!r} needs a category: "
                "category='parameter' when other arguments can fix it, else category='internal'"
            )
        self.category = category
        if given.get("audience") is not None:
            self.audience = Audience(given["audience"])
        elif old_category is None or self.audience is _default_audience(old_category):
            self.audience = _default_audience(category)

    if not hasattr(Exception, "add_note"):  # Python 3.10

        def add_note(self, note: str) -> None:
            """Add *note* to what a traceback shows (PEP 678)."""
            self.__dict__.setdefault("__notes__", []).append(note)


_DEFAULTS = {"code": ToolErrorCode.INVALID_INPUT, "issues": (), "context": "parameters"}


def _is_message(text: object, given: Mapping[str, object]) -> bool:
    """Say whether the only text that was given by position is the message, not a tool's name."""
    if not is_a(text, str):
        return False
    if any(character.isspace() for character in str(text).strip()):
        return True
    rest = (name for name in given if name not in ("tool", "message"))
    # No comparison by a value of the host: what it calls equal may never return.
    return all(
        given[name] is _DEFAULTS.get(name)
        or (type(given[name]) is str and given[name] == _DEFAULTS.get(name))
        for name in rest
    )


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


def _text(name: str, value: object) -> str | None:
    """*value* as the argument *name* keeps it: plain, and within its limit."""
    limit = _LIMITS[name]
    if type(value) is str and 0 < len(value) <= limit and value.isascii() and value.isprintable():
        return value
    if value is None:
        return _NEVER_NONE.get(name)
    return as_text(value, limit) or _NEVER_NONE.get(name) or ""


def _retry_context(value: object) -> dict[str, object] | None:
    if value is None or is_a(value, dict):
        return None if value is None else dict(value)
    plain = to_jsonable(value)
    return plain if isinstance(plain, dict) else {"value": plain}


_NORMAL_FORMS: dict[str, Callable[[Any], object]] = {
    "retry_context": _retry_context,
    "reason": lambda value: None if value is None else AvailabilityReason(value),
    "kind": lambda value: None if value is None else InvocationKind(value),
}
# Arguments that are set together with others, or under another name.
_TOGETHER = frozenset(
    {
        "audience",
        "category",
        "cause",
        "code",
        "event_id",
        "issues",
        "issues_total",
        "message",
        "received",
    }
)


# Kept by an error of a subclass, whose own attributes and methods may have any of these names.
_NOTHING_GIVEN: dict[str, Any] = {
    name: ToolError.__dict__[name]
    for name in (
        *(*_LIMITS, *_NORMAL_FORMS, "received", "stand_in", "adapter_failed"),
        *("_message", "_issues", "_issues_total", "_event_id", "_exception_type"),
    )
}

_ARGUMENTS = (*(name for name in _LIMITS if name != "told"), *_NORMAL_FORMS, *_TOGETHER)
_KIND_OF_FAILURE = ("code", "category", "audience")


def _default_audience(category: ErrorCategory) -> Audience:
    """The model for what it can fix or must know, the system for the rest."""
    return Audience.SYSTEM if category is ErrorCategory.INTERNAL else Audience.LLM


def _empty(cls: type[ToolError]) -> ToolError:
    """An error without attributes, which unpickling sets afterwards."""
    return cls.__new__(cls)


def _is_plain(cause: BaseException) -> bool:
    if type(cause).__module__ != "builtins" or cause.__dict__:
        return False
    return all(type(arg) in (str, int, float, bool, type(None)) for arg in cause.args)


def joined_hints(hints: Iterable[str | None]) -> str | None:
    return " ".join(dict.fromkeys(hint for hint in hints if hint)) or None


# The sentences of a failure. Parts are cleaned first, then composed.

MOST_BULLETS = 20

_CODE_WORDS = {
    "missing_field": "missing",
    "unknown_field": "not a parameter of this tool",
    "wrong_type": "wrong type",
    "invalid_format": "wrong format",
    "invalid_choice": "not one of the allowed values",
    "field_too_large": "too large",
    "field_too_small": "too small",
    "malformed_json": "not valid JSON",
    "malformed_diff": "not a valid diff",
    "not_found": "not found",
    "invalid_input": "not valid",
}


def received_suffix(received: str | None, received_type: str | None) -> str:
    """` (received int: 9000)`, or nothing when nothing was received."""
    if received is None:
        return ""
    if len(received) > LONGEST_RECEIVED:
        received = cut(received, LONGEST_RECEIVED)
    if (
        received_type
        and received.startswith(received_type)
        and is_stand_in(received, received_type)
    ):
        return f" (received {received})"
    return (
        f" (received {received_type}: {received})" if received_type else f" (received: {received})"
    )


def is_stand_in(received: str, received_type: str | None) -> bool:
    """Whether *received* is not a value but what stands in for one: `str, 18 characters`."""
    if received_type is None:
        return False
    return received == received_type or received.startswith(f"{received_type}, ")


def sentence(issue: Issue, context: str, *, with_received: bool = True) -> str:
    """What is wrong, for a failure with this one *issue* (cleaned before)."""
    if issue.message in (MISSING_TEXT, UNEXPECTED_TEXT) and not issue.is_root:
        return f"{issue.message}: {issue.field}"
    suffix = received_suffix(issue.received, issue.received_type) if with_received else ""
    if issue.field == ROOT:
        return f"Invalid {context}: {issue.message}{suffix}"
    return f"Invalid parameter value for {issue.field}: {issue.message}{suffix}"


def block(issues: Sequence[Issue], context: str, total: int) -> str:
    """All issues at once, one line each (cleaned before); *total* counts the unlisted too."""
    lines = [f"Invalid {context} - {total} errors:"]
    for issue in issues[:MOST_BULLETS]:
        suffix = received_suffix(issue.received, issue.received_type)
        lines.append(f"  • {issue.field}: {issue.message}{suffix}")
    hidden = total - min(len(issues), MOST_BULLETS)
    if hidden > 0:
        lines.append(f"  … and {hidden} more errors")
    return "\n".join([*lines, "", FOOTER])


def code_sentence(code: str, field: str | None, context: str) -> str:
    """A sentence made from the code alone, for readers who may see no value."""
    words = _CODE_WORDS.get(code, code.replace("_", " "))
    if field is None or field == ROOT:
        return f"Invalid {context}: {words}"
    if code == "missing_field":
        return f"{MISSING_TEXT}: {field}"
    if code == "unknown_field":
        return f"{UNEXPECTED_TEXT}: {field}"
    return f"Invalid parameter value for {field}: {words}"


# Whether a text repeats a value: the person never reads what the model sent.

# Text and numbers inside a representation; text before a colon is a key of the schema.
_TEXT = re.compile(r"(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")(:?)")
_NUMBER = re.compile(r"(?<![\w.'\"])-?\d+(?:\.\d+)?(?![\w'\"])")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_WORD = re.compile(r"[A-Za-z]+")
_MOST_VALUES = 50

# The words that validation libraries and our own checks say in any case ("Input should be a valid
# integer"): standing there unquoted they tell nobody that the model sent `a` or `integer`. Taken
# from the message templates of pydantic-core; a test compares.
_STANDARD_TEXT = """
    a after an any are argument arguments array as ascii assertion at attribute be before boolean
    but byte bytearray bytes callable cannot character characters check complex contain counter
    cyclic data date dates datetime datetimes dd decimal default depth deque detected dictionary
    digit digits discriminator docs does duration e equal error exact exceeded expected extra
    extract extracting factory failed field fields finite float following for format found
    fraction fractional from frozen frozendict frozenset functions future g got greater has
    hashable have html https in info input inputs instance instead integer interpret invalid is
    item items iterable iterating json jsonorpython keys keyword least length less library list
    literal mapping match maximum missing mm more most multiple must no none not null number
    object occurred of offset one only or ordereddict org over parameter parse part past pattern
    permitted place point positional provided python raw recursion reference required rules scheme
    sentinel set should size str strict string strings subclass syntax tag tags than the time
    timedelta timezone to tokens total tuple unable unexpected unicode url use uses using uuid
    valid validated validating validation validator value values version violated when with yyyy
    zero
"""
STANDARD_WORDS = frozenset(_STANDARD_TEXT.split())


def values_in_repr(received: str) -> list[str]:
    """The plain values in the representation *received*, itself included."""
    values = [received]
    values += [first or second for first, second, colon in _TEXT.findall(received) if not colon]
    values += _NUMBER.findall(received)
    return [value for value in values[:_MOST_VALUES] if value.strip()]


def says_value(text: str, issue: Issue) -> bool:
    """Whether *text* repeats what was received for *issue*."""
    received = issue.received
    if not received or received == REDACTED:
        return False
    if is_stand_in(received, issue.received_type):
        return f"<{received}>" in text
    spoken = _told_values(text)
    return any(
        occurs(value, spoken if value.isalpha() else text) for value in values_in_repr(received)
    )


def _told_values(text: str) -> str:
    """*text*, or only what it quotes where all its other words are standard ones."""
    around = _QUOTED.sub(" ", text)
    if all(word.lower() in STANDARD_WORDS for word in _WORD.findall(around)):
        return " ".join(_QUOTED.findall(text))
    return text


def occurs(value: str, text: str) -> bool:
    """Whether *value* stands in *text* by itself, not inside a longer word or number."""
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        if stands_alone(text[start - 1 : start], value, text[end : end + 1]):
            return True
        start = text.find(value, start + 1)
    return False


def stands_alone(before: str, value: str, after: str) -> bool:
    """Whether *value*, between these characters, is no part of a longer word or number."""
    return not (wordish(before) and wordish(value[:1])) and not (
        wordish(after) and wordish(value[-1:])
    )


def wordish(character: str) -> bool:
    return character.isalnum() or character == "_"


LONGEST_USER = 1_000
LONGEST_USER_LINE = 300
LONGEST_LLM = 8_000
LONGEST_SYSTEM = 8_000
LONGEST_HINT = 1_000
LONGEST_SNIPPET = 512
LONGEST_RECEIVED = 200
LONGEST_SYSTEM_CONTEXT = 520
_LONGEST_TOOL = 128
_LONGEST_CONTEXT = 100
_MOST_FIELDS = 20


def called(error: ToolError) -> str:
    """The name the caller used, fit to be shown."""
    return clean_name(error.tool_requested or error.tool, _LONGEST_TOOL) or "unknown"


def clean_context(error: ToolError) -> str:
    """What was validated (`parameters`, `HTTP request`), fit to be shown."""
    return one_line(known_text(error.context, _LONGEST_CONTEXT)) or "parameters"


def bare(text: str) -> str:
    """*text* without an `Error: ` of its own; a prefix is added once, at the end."""
    start = text.lstrip()
    return start[6:].lstrip() if start[:6].lower() == "error:" else text


# The model


def _llm_text(error: ToolError) -> str:
    """The text of the tool result: corrective for arguments, a fixed sentence otherwise."""
    if error.told:
        return clean_text(error.told, LONGEST_LLM)
    if error.category is ErrorCategory.AVAILABILITY:
        return UNAVAILABLE_TEXT
    authored = clean_text(error.llm_message, LONGEST_LLM) if error.llm_message else ""
    if error.category is ErrorCategory.INTERNAL:
        return authored or INTERNAL_TEXT
    text = authored or f"Error: {_corrective(error)}"
    hint = shown_hint(error) if error.retry_hint or error.derived_hint else None
    if hint:
        text = f"{text}\nHint: {hint}"
    return text if len(text) <= LONGEST_LLM else fit_lines(text, LONGEST_LLM)


def _corrective(error: ToolError) -> str:
    if not error._message:  # noqa: SLF001 - what `is_composed` says, less a call
        issues = error.issues
        if issues:
            return _composed(error, issues)
    text = bare(_authored(error, LONGEST_LLM))
    received = _received(error)
    return text + received_suffix(received, error.received_type)


def _received(error: ToolError) -> str | None:
    return clean_received(
        error.received,
        field=error.field,
        received_type=error.received_type,
        limit=LONGEST_RECEIVED,
    )


def _authored(error: ToolError, limit: int) -> str:
    """The message of *error* without secrets, the value of a secret field among them."""
    text = error.message
    if error.received is not None and _received(error) == REDACTED:
        for value in values_in_repr(error.received):
            text = text.replace(value, REDACTED)
    return clean_text(text, limit)


def composed_message(error: ToolError) -> str:
    """The text made from the issues of *error*, or what its category always says."""
    issues = error.issues
    if issues:
        return _composed(error, issues)
    if error.category is ErrorCategory.PARAMETER:
        return code_sentence(error.code.value, None, clean_context(error))
    return UNAVAILABLE_TEXT if error.category is ErrorCategory.AVAILABILITY else INTERNAL_TEXT


def _composed(error: ToolError, found: tuple[Issue, ...]) -> str:
    context = clean_context(error)
    total = error.issues_total
    return sentence(found[0], context) if total == 1 else block(found, context, total)


def shown_hint(error: ToolError) -> str | None:
    """The authored hint, else the derived one, fit for the model."""
    hint = error.retry_hint or error.derived_hint
    return clean_text(hint, LONGEST_HINT) if hint else None


def fit_lines(text: str, limit: int) -> str:
    """*text* within *limit* characters: lines go from the middle, the first and last stay."""
    if len(text) <= limit:
        return text
    lines = text.split("\n")
    footer = lines[-1] if len(lines) > 1 else ""
    if lines[-1].startswith("Hint: ") and len(lines) > 2 and lines[-2] == FOOTER:
        footer = f"{FOOTER}\n{lines[-1]}"
    if len(lines) < 3 or len(lines[0]) + len(footer) + 8 > limit:
        return snippet(text, max(limit - 8, 8))[:limit]
    left = limit - len(footer) - 3
    kept = [lines[0]]
    left -= len(lines[0]) + 1
    for line in lines[1:-1]:
        if len(line) + 1 > left:
            break
        kept.append(line)
        left -= len(line) + 1
    return "\n".join([*kept, "…", footer])


# The person


def _user_text(error: ToolError) -> str:
    if error.category is ErrorCategory.AVAILABILITY:
        text = UNAVAILABLE_TEXT
    elif error.category is ErrorCategory.INTERNAL:
        text = _for_the_person(error) or INTERNAL_TEXT
    elif error.is_composed:
        text = _user_composed(error)
    else:
        text = _user_authored(error)
    return cut(f"{called(error)}: {text}", LONGEST_USER)


def _for_the_person(error: ToolError) -> str:
    """An internal failure is explained to the person only when its author addressed them."""
    if error.audience is not Audience.USER or not error.is_authored:
        return ""
    return first_line(bare(clean_text(error.message, LONGEST_USER_LINE * 2)), LONGEST_USER_LINE)


def _user_composed(error: ToolError) -> str:
    issues = error.issues
    context = clean_context(error)
    if error.issues_total == 1:
        issue = issues[0]
        text = sentence(issue, context, with_received=False)
        # The field is told anyway; only the message could repeat the value.
        if says_value(issue.message, issue) or issue.type == "union_tag_invalid":
            return code_sentence(issue.code.value, issue.field, context)
        return cut(text, LONGEST_USER_LINE * 2)
    fields = list(dict.fromkeys(issue.field for issue in issues))
    names = ", ".join(fields[:_MOST_FIELDS])
    more = ", …" if len(fields) > _MOST_FIELDS or error.issues_total > len(issues) else ""
    return f"Invalid {context} - {error.issues_total} errors ({names}{more})"


def _user_authored(error: ToolError) -> str:
    """The author's own words; only a secret is taken out."""
    text = first_line(bare(_authored(error, LONGEST_USER_LINE * 4)), LONGEST_USER_LINE)
    if text:
        return text
    field = clean_name(error.field) if error.field else None
    return code_sentence(error.code.value, field, clean_context(error))


# The developer


def _system_text(error: ToolError) -> str:
    name = called(error)
    tool = clean_name(error.tool, _LONGEST_TOOL)
    resolved = f" (resolved to '{tool}')" if error.tool_requested and tool != name else ""
    head = f"tool={name}{resolved} code={error.code.value} category={error.category.value}: "
    reason = f"{error.reason.value}: " if error.reason is not None else ""
    parts = [head + reason + one_line(_system_message(error))]
    parts += [f"{label}: {text}" for label, text in _system_details(error) if text]
    return cut(" — ".join(parts), LONGEST_SYSTEM)


def _system_message(error: ToolError) -> str:
    if error.is_composed:
        return _composed(error, error.issues)
    return bare(_authored(error, LONGEST_SYSTEM // 2))


def _system_details(error: ToolError) -> list[tuple[str, str | None]]:
    hint = error.retry_hint
    return [
        ("field", clean_name(error.field) if error.field else None),
        ("expected", _line(error.expected, LONGEST_RECEIVED)),
        ("received", _received(error)),
        ("snippet", _line(shown_snippet(error), LONGEST_SNIPPET + 8)),
        ("retry_hint", _line(hint, LONGEST_HINT)),
        # The context is the machine form of the hint: shown where nobody wrote one.
        ("retry_context", None if hint else _context_line(error)),
        ("exception", error.exception_type),
    ]


def shown_snippet(error: ToolError) -> str | None:
    """Head and tail of the offending text, redacted, at most 520 characters."""
    if error.snippet is None:
        return None
    return plain(snippet(redact_text(error.snippet), LONGEST_SNIPPET))


def _line(text: str | None, limit: int) -> str | None:
    return None if text is None else one_line(clean_text(text, limit))


def _context_line(error: ToolError) -> str | None:
    if not error.retry_context:
        return None
    return cut(json.dumps(bounded_context(error), ensure_ascii=False), LONGEST_SYSTEM_CONTEXT)


# The machine form of a failure for the model: 14 keys, always all of them, at most 8 KiB.

MOST_PAYLOAD_BYTES = 8_192
MOST_CONTEXT_BYTES = 4_096
_MOST_ISSUES_SHOWN = 20
_SHORTEST_MESSAGE = 256
_LONGEST_CONTEXT_TEXT = 520


def _payload_hint(error: ToolError) -> str | None:
    if error.category is ErrorCategory.AVAILABILITY:
        return None
    if error.category is ErrorCategory.PARAMETER or error.retry_hint:
        return shown_hint(error)
    return CATALOGUE_HINTS.get(error.code.value)


def _payload_details(error: ToolError) -> dict[str, object]:
    return {
        "field": clean_name(error.field) if error.field else None,
        "expected": None if error.expected is None else cut(redact_text(error.expected), 500),
        "received": _received(error),
        "snippet": shown_snippet(error),
        "issues": [_payload_issue(issue) for issue in error.issues[:_MOST_ISSUES_SHOWN]],
        "retry_context": bounded_context(error),
    }


def _payload_issue(issue: Issue) -> dict[str, str | None]:
    return {
        "field": issue.field,
        "code": issue.code.value,
        "message": issue.message,
        "expected": issue.expected,
        "received": None if issue.received is None else cut(issue.received, LONGEST_RECEIVED),
        "received_type": issue.received_type,
    }


def bounded_context(error: ToolError) -> dict[str, object] | None:
    """The retry context as JSON values, redacted, at most 4 KiB; its last keys go first."""
    if not error.retry_context:
        return None
    cleaned = to_jsonable(
        error.retry_context, redact=True, max_items=50, max_string=_LONGEST_CONTEXT_TEXT
    )
    if type(cleaned) is not dict:
        return None
    while cleaned and _json_size(cleaned) > MOST_CONTEXT_BYTES:
        cleaned.popitem()
    return cleaned or None


def _json_size(value: object) -> int:
    """Bytes of *value* as ASCII JSON, the longest form a caller may choose."""
    return len(json.dumps(value, allow_nan=False))


def _fitted(payload: dict[str, object]) -> dict[str, object]:
    """*payload* within 8 KiB: snippet, context and issues go before the message is cut."""
    if _json_size(payload) <= MOST_PAYLOAD_BYTES:
        return payload
    for key in ("snippet", "retry_context"):
        payload[key] = None
        if _json_size(payload) <= MOST_PAYLOAD_BYTES:
            return payload
    issues = payload["issues"]
    while type(issues) is list and issues:
        issues.pop()
        if _json_size(payload) <= MOST_PAYLOAD_BYTES:
            return payload
    return _with_short_texts(payload)


def _with_short_texts(payload: dict[str, object]) -> dict[str, object]:
    message = str(payload["message"])
    limit = len(message)
    while _json_size(payload) > MOST_PAYLOAD_BYTES and limit > _SHORTEST_MESSAGE:
        limit = max(limit * 3 // 4, _SHORTEST_MESSAGE)
        payload["message"] = fit_lines(message, limit)
    for key in ("retry_hint", "expected", "received", "field", "tool"):
        text = payload[key]
        if _json_size(payload) > MOST_PAYLOAD_BYTES and type(text) is str:
            payload[key] = plain(text, 64)
    return payload
