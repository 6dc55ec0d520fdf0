"""`ToolResult`: what one call gave back, and the forms it takes for providers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from toolfault.errors._classify import seed_code
from toolfault.errors._cleaning import as_text, clean_text, redacted_repr, to_jsonable
from toolfault.errors._codes import INTERNAL_TEXT, UNAVAILABLE_TEXT, Audience, ToolErrorCode
from toolfault.errors._error import ToolError
from toolfault.errors._types import is_a

T = TypeVar("T")
V = TypeVar("V")

_LONGEST_MESSAGE = 8_000


class ToolResult(Generic[T]):
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
            message = error.render(Audience.LLM) if error is not None else "OK" if success else ""
        elif not success:
            message = clean_text(message, _LONGEST_MESSAGE)  # shown to the model as it is
        elif not is_a(message, str):  # of a host that is not type-checked
            message = as_text(message)
        if not success and not message:
            raise ValueError("a failure needs a message that says what went wrong")
        self.message = message
        self.value = value if success else error_value
        self.success = success
        self.error = error
        self.fields = dict(fields) if fields else {}
        self.error_defaults = dict(error_defaults) if error_defaults else {}
        self.metadata = dict(metadata) if metadata else {}
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
        return ToolResult(error, success=False, error=_error_of_text(tool, error))

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
        error = None if self.success else self.message or INTERNAL_TEXT
        shape: dict[str, object] = {"success": self.success, "error": error}
        # Echoed arguments came from the model and may hold a secret.
        _merge(shape, _plain(self.fields, redact=True))
        if not self.success:
            payload = self._failure().to_llm_payload()
            _merge(shape, _plain(self.error_defaults))
            if self.value is not None:
                data = to_jsonable(self.value, redact=True, max_depth=20, max_items=1_000)
                _add_data(shape, data)
            shape.update(error_code=payload["code"], error_details=payload)
        elif self.exclude_value_from_context:
            shape["message"] = self.message
        elif self.value is not None:
            _add_data(shape, _data(self.value))
        if self.metadata:
            shape["metadata"] = _plain(self.metadata)
        return shape

    def _failure(self) -> ToolError:
        """The failure; made from its text when the result was given none."""
        return self.error or _error_of_text("unknown", self.message)

    def to_tool_message(self, call_id: str) -> dict[str, object]:
        """The `role: "tool"` message of OpenAI-style chats, with JSON content."""
        content = self.to_dict() if self.success else self._failure().to_llm_payload()
        return {
            "role": "tool",
            "tool_call_id": call_id,
            "content": json.dumps(content, ensure_ascii=False, allow_nan=False),
        }

    def to_anthropic(self, call_id: str) -> dict[str, object]:
        """The `tool_result` content block of the Anthropic Messages API."""
        return {
            "type": "tool_result",
            "tool_use_id": call_id,
            "content": self._text(),
            "is_error": not self.success,
        }

    def to_mcp(self) -> dict[str, object]:
        """The result of `tools/call` in the Model Context Protocol."""
        return {
            "content": [{"type": "text", "text": self._text()}],
            "isError": not self.success,
        }

    def to_openai_text(self) -> str:
        """Plain text for APIs that have no error flag: a failure starts with one prefix."""
        text = self._text()
        if self.success or text[:6].lower() == "error:":
            return text
        return f"ERROR: {text}"

    def __str__(self) -> str:
        """The value as text on success, the text for the model on failure."""
        return self._text()

    def _text(self) -> str:
        # No `str(self)`: what the model reads is not for a subclass to print in another way.
        if not self.success or self.exclude_value_from_context or self.value is None:
            return self.message
        data = _data(self.value)
        if isinstance(data, str):
            return data
        return json.dumps(data, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        if self.success and self.value is not None:
            return f"ToolResult(success=True, value={redacted_repr(self.value)})"
        return f"ToolResult(success={self.success}, message={self.message[:80]!r})"


# The parts of the contract dict.

_RESERVED = frozenset({"success", "error", "error_code", "error_details", "metadata"})
_DEEPEST_DATA = 100


def _data(value: object, *, redact: bool = False) -> object:
    """The tool's own data: complete, only made fit for JSON."""
    return to_jsonable(
        value, redact=redact, max_depth=_DEEPEST_DATA, max_items=None, max_string=None
    )


def _plain(value: Mapping[str, object], *, redact: bool = False) -> dict[str, object]:
    plain = _data(dict(value), redact=redact)
    return plain if isinstance(plain, dict) else {}


def _merge(shape: dict[str, object], more: Mapping[str, object]) -> None:
    shape.update({key: value for key, value in more.items() if key not in _RESERVED})


def _add_data(shape: dict[str, object], data: object) -> None:
    """Merge a dict at the top; reserved keys of the tool move under `data`, never win."""
    if not isinstance(data, dict):
        shape["data"] = data
        return
    collided = {k: v for k, v in data.items() if k in _RESERVED and shape.get(k, data) != v}
    _merge(shape, data)
    if not collided:
        return
    own = data.get("data")
    if isinstance(own, dict):
        shape["data"] = {**own, **collided}
    else:
        shape["data"] = {"data": own, **collided} if "data" in data else collided


def _error_of_text(tool: str, text: str) -> ToolError:
    """The failure that *text* for the model stands for."""
    if text == UNAVAILABLE_TEXT:
        return ToolError.unavailable(tool)
    code = seed_code(text) or ("invalid_input" if text[:6].lower() == "error:" else None)
    return ToolError(
        tool, text, code or ToolErrorCode.INTERNAL_ERROR, llm_message=text or INTERNAL_TEXT
    )
