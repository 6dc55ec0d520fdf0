"""`ToolError`: one failure, addressed to the user, the model and the system."""

from __future__ import annotations

from toolfault.errors._build import assign, copied, restored, state_of
from toolfault.errors._codes import ToolErrorCode, is_retryable, visible_code
from toolfault.errors._enums import Audience, AvailabilityReason, ErrorCategory, InvocationKind
from toolfault.errors._exceptions import ToolfaultError
from toolfault.errors._issue import Issue
from toolfault.errors._types import is_a

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

__all__ = ["ToolError"]


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

    tool: str
    code: ToolErrorCode
    category: ErrorCategory
    field: str | None
    expected: str | None
    received: str | None
    received_type: str | None
    snippet: str | None
    retry_hint: str | None
    retry_context: dict[str, object] | None
    audience: Audience
    context: str
    llm_message: str | None
    reason: AvailabilityReason | None
    tool_requested: str | None
    derived_hint: str | None
    suggestion: str | None
    kind: InvocationKind | None
    phase: str | None
    adapter_failed: bool
    _message: str
    _issues: tuple[Issue, ...]
    _issues_total: int | None
    _event_id: str | None
    _exception_type: str | None
    _from_exception: bool
    _stand_in: str | None = None  # see `Issue.stand_in`
    told: str | None
    """What a framework told the model in place of our text; the model's rendering is then this."""

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
        given = dict(locals())
        del given["self"], given["__class__"]
        if message is None and _is_message(tool, given):
            given["tool"], given["message"] = None, tool
        super().__init__(given["tool"], given["message"])
        self.adapter_failed = False
        self.told = None
        self._exception_type = None
        self._from_exception = False
        assign(self, given)

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
        from toolfault.errors._from import from_issues

        return from_issues(cls, tool, issues, context=context, total=total, cause=cause)

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
        from toolfault.errors._from import from_validation_error

        return from_validation_error(
            cls, tool, exc, args=args, context=context, parameters=parameters, secret=secret_fields
        )

    @classmethod
    def from_exception(cls, tool: str, exc: BaseException) -> ToolError:
        """The failure that an exception of a tool's own code means (contract.md 3.4).

        A `ToolError` is returned as it is. Everything that is not about the arguments is
        internal: its text is for the system only.
        """
        from toolfault.errors._classify import from_exception

        return from_exception(cls, tool, exc)

    @classmethod
    def from_returned(cls, tool: str, returned: Mapping[str, object]) -> ToolError:
        """The failure that a tool reported by returning `{"success": False, "error": ...}`."""
        from toolfault.errors._classify import from_returned

        return from_returned(cls, tool, returned)

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
        from toolfault.errors._from import merge

        if isinstance(errors, str):
            return merge(cls, list(more), tool=errors, context=context)
        return merge(cls, [*errors, *more], tool=tool, context=context)

    def with_(self, **changes: object) -> ToolError:
        """A copy with *changes*, named like the arguments of the constructor.

        Cause, traceback, notes and event id stay: it is the same failure, better described.

        Raises:
            TypeError: A name is not an argument of the constructor.
            ConfigError: A value is not allowed there.
        """
        copy = copied(self)
        assign(copy, changes)
        return copy

    @property
    def message(self) -> str:
        """The authored text, else the text composed from the issues; never empty, not redacted."""
        if self._message:
            return self._message
        from toolfault.errors._render import composed_message

        return composed_message(self)

    @message.setter
    def message(self, value: str) -> None:
        assign(self, {"message": value})

    @property
    def issues(self) -> tuple[Issue, ...]:
        """All issues; an authored failure about one field counts as one issue."""
        if self._issues or self.field is None or self.category is not ErrorCategory.PARAMETER:
            return self._issues
        from toolfault.errors._from import own_issue

        return (own_issue(self),)

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
        return bool(self._message) and not self._from_exception

    @property
    def cause(self) -> BaseException | None:
        """The original exception."""
        return self.__cause__

    @property
    def exception_type(self) -> str | None:
        """`module.Type` of the original exception."""
        if self.__cause__ is None:
            return self._exception_type
        from toolfault.errors._classify import exception_name

        return exception_name(self.__cause__)

    @property
    def event_id(self) -> str:
        """The UUIDv7 under which the failure is reported."""
        if self._event_id is None:
            from toolfault.errors._ids import new_event_id

            self._event_id = new_event_id()
        return self._event_id

    @property
    def called(self) -> str:
        """The name the caller used."""
        return self.tool_requested or self.tool

    @property
    def retryable(self) -> bool:
        """Whether calling again, with other input or later, can help. The SDK never retries."""
        return is_retryable(self.code, self.category)

    @property
    def llm_code(self) -> str:
        """The code as the model sees it."""
        return visible_code(self.code, self.category, authored=bool(self.llm_message))

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits, equal for failures that are the same but for their values."""
        from toolfault.errors._classify import fingerprint

        return fingerprint(self)

    def render(self, audience: Audience | str | None = None) -> str:
        """The failure in the words of *audience*, by default its primary one.

        Deterministic, never empty, and never raises whatever the fields hold.

        Raises:
            ValueError: *audience* is not an audience.
        """
        from toolfault.errors._render import rendered

        return rendered(self, self.audience if audience is None else Audience(audience))

    format_for_audience = render

    def renderings(self) -> dict[str, str]:
        """The text of every audience, by its name."""
        return {audience.value: self.render(audience) for audience in Audience}

    def to_llm_payload(self) -> dict[str, object]:
        """The failure for the model as JSON: always the same 14 keys, at most 8 KiB."""
        from toolfault.errors._payload import llm_payload

        return llm_payload(self)

    def __str__(self) -> str:
        return f"{self.code.value} error in tool {self.tool}: {self.message}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(tool={self.tool!r}, code={self.code.value!r})"

    def __copy__(self) -> ToolError:
        return copied(self)

    def __deepcopy__(self, memo: object) -> ToolError:
        return copied(self, deep=True)

    def __reduce__(self) -> tuple[object, ...]:
        return (restored, (type(self),), state_of(self))

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
    return all(given[name] == _DEFAULTS.get(name) for name in rest)
