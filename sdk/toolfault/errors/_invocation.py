"""How one call failed, before it is a `ToolError`: the argument of every `adapt_error` hook."""

from __future__ import annotations

from collections.abc import Sequence

from toolfault.errors._classify import code_of, exception_text, is_validation_error
from toolfault.errors._cleaning import as_text, redacted_repr, type_and_size, type_name
from toolfault.errors._codes import InvocationKind, ToolfaultError
from toolfault.errors._error import ToolError
from toolfault.errors._types import class_name, is_a


class ArgumentsNotObjectError(ToolfaultError, TypeError):
    """The arguments of a call are JSON, but not an object.

    Args:
        value: What they are instead.
    """

    def __init__(self, value: object) -> None:
        super().__init__("expected a JSON object")
        self.value = value


class ToolInvocationError(ToolfaultError):
    """One failed invocation: where it failed, with what exception, on what raw input.

    Args:
        kind: `transport`, `deserialize`, `validation`, `exec` or `internal`.
        exc: The exception; a finished `ToolError` where a validator or the tool made one.
        raw: The raw argument text for `deserialize`, else the arguments as the model sent them.
        tool: The tool, by its resolved name.
        context: What was validated, in words.
        parameters: The parameter names of the tool's function.
    """

    def __init__(
        self,
        kind: InvocationKind | str,
        exc: BaseException | None = None,
        raw: object = None,
        *,
        tool: str = "unknown",
        context: str = "parameters",
        parameters: Sequence[str] = (),
    ) -> None:
        super().__init__(kind, exc)
        self.kind = InvocationKind(kind)
        self.exc = exc
        self.raw = raw
        self.tool = tool
        self.context = context
        self.parameters = tuple(parameters)
        self.__cause__ = exc

    @classmethod
    def transport(cls, exc: BaseException, *, tool: str = "unknown") -> ToolInvocationError:
        """The call never reached the tool, or its answer never came back."""
        return cls(InvocationKind.TRANSPORT, exc, tool=tool)

    @classmethod
    def deserialize(
        cls, source: BaseException, raw: object, *, tool: str = "unknown"
    ) -> ToolInvocationError:
        """The argument text *raw* could not be read because of *source*."""
        return cls(InvocationKind.DESERIALIZE, source, raw, tool=tool)

    @classmethod
    def validation(cls, error: ToolError) -> ToolInvocationError:
        """The arguments were read and found wrong; *error* says why."""
        return cls(InvocationKind.VALIDATION, error, tool=error.tool)

    # `exec` shadows nothing here: it is an attribute of the class.
    @classmethod
    def exec(cls, exc: BaseException, *, tool: str = "unknown") -> ToolInvocationError:
        """The tool ran and raised *exc*."""
        return cls(InvocationKind.EXEC, exc, tool=tool)

    @classmethod
    def internal(cls, message: str, *, tool: str = "unknown") -> ToolInvocationError:
        """The SDK or the host failed around the tool."""
        return cls(InvocationKind.INTERNAL, RuntimeError(message), tool=tool)

    def __str__(self) -> str:
        return f"{self.kind.value} failure in tool {self.tool}: {type(self.exc).__name__}"


def default_adapt_error(invocation: ToolInvocationError) -> ToolError:
    """The `ToolError` that a failed invocation means when the tool does not say otherwise."""
    exc = invocation.exc
    if is_a(exc, ToolError):
        error = exc
    elif invocation.kind is InvocationKind.DESERIALIZE:
        error = _unreadable(invocation)
    elif invocation.kind is InvocationKind.VALIDATION:
        error = _invalid(invocation)
    elif invocation.kind is InvocationKind.EXEC and exc is not None:
        error = ToolError.from_exception(invocation.tool, exc)
    else:
        error = _internal(invocation)
    return error if error.kind is not None else error.with_(kind=invocation.kind)


def _unreadable(invocation: ToolInvocationError) -> ToolError:
    exc = invocation.exc
    if is_a(exc, ArgumentsNotObjectError):
        error = ToolError(
            invocation.tool,
            "failed to parse tool arguments: expected a JSON object",
            "wrong_type",
            expected="object",
            received=redacted_repr(exc.value),
            received_type=type_name(exc.value),
        )
        error.stand_in = type_and_size(exc.value)
        return error
    reason = exception_text(exc) if exc is not None else "not valid JSON"
    raw = invocation.raw
    return ToolError(
        invocation.tool,
        f"failed to parse tool arguments: {reason}",
        "malformed_json",
        snippet=None if raw is None else as_text(raw, 100_000),
        cause=exc,
    )


def _invalid(invocation: ToolInvocationError) -> ToolError:
    exc = invocation.exc
    if exc is None or not (is_a(exc, ValueError) or is_validation_error(exc)):
        # A `TypeError` inside a validator is a bug of the validator, not of the arguments.
        return _internal(invocation)
    return ToolError.from_validation_error(
        invocation.tool,
        exc,
        invocation.raw,
        invocation.context,
        parameters=invocation.parameters,
    )


def _internal(invocation: ToolInvocationError) -> ToolError:
    """An internal failure classified by type only: its text is never about the arguments."""
    exc = invocation.exc
    if exc is None:
        return ToolError(invocation.tool, "unknown failure", "internal_error")
    error = ToolError(
        invocation.tool, exception_text(exc) or class_name(exc), code_of(exc), cause=exc
    )
    error.quotes_exception = True
    return error
