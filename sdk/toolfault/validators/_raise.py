"""Making the `ToolError` of a validator, always with the same parts filled."""

from __future__ import annotations

from toolfault.errors import ToolError

__all__ = ["fail"]

_LONGEST_RECEIVED = 2_000


def fail(
    tool: str,
    field: str,
    value: object,
    code: str,
    message: str,
    *,
    expected: str | None = None,
    received: str | None = None,
    snippet: str | None = None,
    **details: object,
) -> ToolError:
    """The error of one argument.

    Args:
        tool: The tool whose argument it is.
        field: The argument.
        value: What was sent; represented and redacted unless *received* or *snippet* is given.
        code: What is wrong.
        message: The same in words, starting with the field.
        expected: What would have been right.
        received: The representation to show in place of the value's own.
        snippet: The text itself, for long values; then no representation is shown.
        details: Anything else `ToolError` takes.
    """
    from toolfault.errors import redacted_repr, type_and_size, type_name

    if received is not None:
        details.update(received=received)
    elif snippet is None:
        details.update(
            received=redacted_repr(value, key=field, limit=_LONGEST_RECEIVED),
            received_type=type_name(value),
        )
    error = ToolError(
        tool,
        message,
        code,
        field=field,
        expected=expected,
        snippet=snippet,
        **details,  # type: ignore[arg-type]
    )
    error._stand_in = type_and_size(value)  # noqa: SLF001
    return error
