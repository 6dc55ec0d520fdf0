"""Numbers and sizes: bounded integers and numbers, lengths, token limits."""

from __future__ import annotations

from toolfault.errors._types import is_a, is_any
from toolfault.validators._raise import fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    V = TypeVar("V")

__all__ = [
    "count_tokens",
    "validate_bounded_int",
    "validate_bounded_number",
    "validate_context_limit",
    "validate_length",
]

_BYTES_PER_TOKEN = 4


def validate_bounded_int(
    *,
    tool: str,
    field: str,
    value: object,
    min: int | None = None,  # noqa: A002 - the names of the contract
    max: int | None = None,  # noqa: A002
) -> int:
    """*value*, an integer within *min* and *max* (both allowed).

    Raises:
        ToolError: `wrong_type` for anything but an integer (a boolean is none),
            `field_too_large` or `field_too_small` outside the bounds.
    """
    if not is_a(value, int) or is_a(value, bool):
        raise fail(
            tool, field, value, "wrong_type", f"{field} must be an integer", expected="integer"
        )
    _check_bounds(tool, field, value, low=min, high=max)
    return value


def validate_bounded_number(
    *,
    tool: str,
    field: str,
    value: Any,
    min: float | None = None,  # noqa: A002 - the names of the contract
    max: float | None = None,  # noqa: A002
) -> float:
    """*value*, a finite number within *min* and *max* (both allowed).

    Raises:
        ToolError: `wrong_type` for anything but a number, `invalid_format` for NaN and
            infinities, `field_too_large` or `field_too_small` outside the bounds.
    """
    if not is_any(value, int, float) or is_a(value, bool):
        raise fail(tool, field, value, "wrong_type", f"{field} must be a number", expected="number")
    if is_a(value, float) and value - value != 0:
        raise fail(
            tool,
            field,
            value,
            "invalid_format",
            f"{field} must be a finite number",
            expected="finite number",
        )
    number: float = value
    _check_bounds(tool, field, number, low=min, high=max)
    return number


def _check_bounds(
    tool: str, field: str, value: float, *, low: float | None, high: float | None
) -> None:
    if high is not None and value > high:
        bound = f"<= {high}"
        raise fail(
            tool, field, value, "field_too_large", f"{field} must be {bound}", expected=bound
        )
    if low is not None and value < low:
        bound = f">= {low}"
        raise fail(
            tool, field, value, "field_too_small", f"{field} must be {bound}", expected=bound
        )


def validate_length(
    *,
    tool: str,
    field: str,
    value: V,
    min: int | None = None,  # noqa: A002 - the names of the contract
    max: int | None = None,  # noqa: A002
) -> V:
    """*value*, a text, list or object whose length is within *min* and *max* (both allowed).

    Raises:
        ToolError: `wrong_type` for what has no length, `field_too_large` or `field_too_small`
            outside the bounds.
    """
    if not is_any(value, str, bytes, list, tuple, dict, set, frozenset):
        raise fail(
            tool,
            field,
            value,
            "wrong_type",
            f"{field} must be a string, array or object",
            expected="string, array or object",
        )
    sized: Any = value
    size = len(sized)
    if max is not None and size > max:
        raise _wrong_length(tool, field, value, "field_too_large", bound=f"<= {max}")
    if min is not None and size < min:
        raise _wrong_length(tool, field, value, "field_too_small", bound=f">= {min}")
    return value


def _wrong_length(tool: str, field: str, value: object, code: str, *, bound: str) -> Exception:
    return fail(
        tool,
        field,
        value,
        code,
        f"{field} must have a length {bound}",
        expected=f"length {bound}",
    )


def count_tokens(text: str) -> int:
    """About how many tokens *text* has: its UTF-8 bytes divided by four, rounded up."""
    size = len(text.encode("utf-8", "replace"))
    return -(-size // _BYTES_PER_TOKEN)


def validate_context_limit(
    *,
    tool: str,
    field: str,
    value: object,
    max: int,  # noqa: A002 - the names of the contract
    counter: Callable[[str], int] = count_tokens,
) -> object:
    """*value*, a number of tokens or a text of at most *max* tokens.

    Args:
        tool: The tool, for the error.
        field: The argument, for the error.
        value: A number of tokens, or the text itself.
        max: The most tokens allowed, itself included.
        counter: Counts the tokens of a text; by default UTF-8 bytes divided by four.

    Raises:
        ToolError: `field_too_large` above *max*, `wrong_type` for neither text nor integer.
    """
    if not is_a(value, str):
        return validate_bounded_int(tool=tool, field=field, value=value, max=max)
    count = counter(value)
    if count > max:
        raise fail(
            tool,
            field,
            value,
            "field_too_large",
            f"{field} must be <= {max} tokens",
            expected=f"<= {max} tokens",
            received=f"about {count} tokens",
        )
    return value
