"""`ToolResult`: what one call gave back, with one stored `success`."""

from __future__ import annotations

from types import GenericAlias

from toolfault.errors._error import ToolError
from toolfault.errors._types import is_a

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Generic, TypeVar

    T = TypeVar("T")
    V = TypeVar("V")

    class _Generic(Generic[T]):
        """The type parameter, for type checkers."""

else:

    class _Generic:
        """The type parameter at run time: `typing` costs more to import than this module."""

        __slots__ = ()
        __class_getitem__ = classmethod(GenericAlias)


__all__ = ["ToolResult"]

_LONGEST_MESSAGE = 8_000


class ToolResult(_Generic["T"]):
    """The outcome of one tool call; `success` alone says whether it worked.

    Args:
        message: Text for people and models; on failure, what the model reads.
        value: What the tool returned; None on failure unless *error_value* is given.
        success: Whether the call worked. Never guessed from the text.
        error: The failure, only when *success* is False.
        error_value: A structured value that a failed tool supplies itself.
        fields: Arguments to echo in the contract dict.
        error_defaults: Keys the contract dict has on failure too, with empty values.
        metadata: More for the contract dict; left out when empty.
        exclude_value_from_context: Keep the value local and send only *message*. This saves
            tokens; it is not a security boundary.
        coercions: What was repaired before the call, for the event.

    Raises:
        ValueError: The parts contradict each other (a success with an error, a failure without
            a message or with a value).
        TypeError: *success* is not a real `bool`.
    """

    __slots__ = (
        "coercions",
        "error",
        "error_defaults",
        "exclude_value_from_context",
        "fields",
        "message",
        "metadata",
        "success",
        "value",
    )

    message: str
    value: T | None
    success: bool
    error: ToolError | None

    def __init__(  # noqa: PLR0913 - the attributes of the contract, all but three by name
        self,
        message: str | None = None,
        value: T | None = None,
        success: bool = True,
        *,
        error: ToolError | None = None,
        error_value: T | None = None,
        fields: Mapping[str, object] | None = None,
        error_defaults: Mapping[str, object] | None = None,
        metadata: Mapping[str, object] | None = None,
        exclude_value_from_context: bool = False,
        coercions: Iterable[object] = (),
    ) -> None:
        if type(success) is not bool:
            raise TypeError("success must be True or False")
        if success and (error is not None or error_value is not None):
            raise ValueError("a success has no error: pass success=False or leave error out")
        if not success and value is not None:
            raise ValueError("a failure has no value: pass error_value= for a structured one")
        if message is None:
            message = error.render("llm") if error is not None else "OK" if success else ""
        elif not success:
            message = _fit_for_the_model(message)
        if not success and not message:
            raise ValueError("a failure needs a message that says what went wrong")
        self.message = message
        self.value = value if success else error_value
        self.success = success
        self.error = error
        self.fields = dict(fields or {})
        self.error_defaults = dict(error_defaults or {})
        self.metadata = dict(metadata or {})
        self.exclude_value_from_context = exclude_value_from_context
        self.coercions = tuple(coercions)

    # What a constructor makes is typed by its own arguments: the type variable of a class that is
    # named without brackets is unknown to type checkers.

    @classmethod
    def ok(cls, value: V = None, message: str = "OK") -> ToolResult[V]:  # type: ignore[assignment]
        """A success."""
        return ToolResult(message, value)

    @classmethod
    def from_success(cls, value: V = None) -> ToolResult[V]:  # type: ignore[assignment]
        """A success, by its older name."""
        return ToolResult(value=value)

    @classmethod
    def failure(cls, error: ToolError, **details: Any) -> ToolResult[Any]:
        """A failure; *details* as in the constructor. It has no value, so it fits any type."""
        return ToolResult(success=False, error=error, **details)

    @classmethod
    def from_error(cls, error: str | BaseException, *, tool: str = "unknown") -> ToolResult[Any]:
        """A failure from the text for the model, a `ToolError`, or any exception."""
        if not is_a(error, str):
            exc = error if is_a(error, BaseException) else TypeError("no text and no exception")
            return cls.failure(ToolError.from_exception(tool, exc))
        from toolfault.errors._shapes import error_of_text

        return ToolResult(error, success=False, error=error_of_text(tool, error))

    @classmethod
    def ensure(cls, value: object) -> ToolResult[object]:
        """*value* itself when it is a result, else a success that holds it."""
        if is_a(value, ToolResult):
            return value
        return ToolResult(value=value)

    @property
    def is_error(self) -> bool:
        """The opposite of `success`."""
        return not self.success

    @property
    def content(self) -> object:
        """The value on success, the text for the model on failure."""
        return self.value if self.success else self.message

    def to_dict(self) -> dict[str, object]:
        """The contract dict: plain JSON values, `success` and `error` always present."""
        from toolfault.errors._shapes import contract_dict

        return contract_dict(self)

    def to_tool_message(self, call_id: str) -> dict[str, object]:
        """The `role: "tool"` message of OpenAI-style chats, with JSON content."""
        from toolfault.errors._shapes import tool_message

        return tool_message(self, call_id)

    def to_anthropic(self, call_id: str) -> dict[str, object]:
        """The `tool_result` content block of the Anthropic Messages API."""
        from toolfault.errors._shapes import text_content

        return {
            "type": "tool_result",
            "tool_use_id": call_id,
            "content": text_content(self),
            "is_error": not self.success,
        }

    def to_mcp(self) -> dict[str, object]:
        """The result of `tools/call` in the Model Context Protocol."""
        from toolfault.errors._shapes import text_content

        return {
            "content": [{"type": "text", "text": text_content(self)}],
            "isError": not self.success,
        }

    def to_openai_text(self) -> str:
        """Plain text for APIs that have no error flag: a failure starts with one prefix."""
        from toolfault.errors._shapes import text_content

        text = text_content(self)
        if self.success or text[:6].lower() == "error:":
            return text
        return f"ERROR: {text}"

    def __str__(self) -> str:
        """The value as text on success, the text for the model on failure."""
        from toolfault.errors._shapes import text_content

        return text_content(self)

    def __repr__(self) -> str:
        if self.success and self.value is not None:
            from toolfault.errors._repr import redacted_repr

            return f"ToolResult(success=True, value={redacted_repr(self.value)})"
        return f"ToolResult(success={self.success}, message={self.message[:80]!r})"


def _fit_for_the_model(message: str) -> str:
    """The text of a failure, redacted and bounded: it is shown to the model as it is."""
    from toolfault.errors._grammar import clean_text

    return clean_text(message, _LONGEST_MESSAGE)
