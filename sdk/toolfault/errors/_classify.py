"""What an exception of a tool's own code means: first match wins."""

from __future__ import annotations

from toolfault.errors import _types
from toolfault.errors._cleaning import known_text, one_line, safe_repr
from toolfault.errors._codes import ConfigError, ErrorCategory, ToolErrorCode

_LONGEST_TEXT = 16_000
_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
# Names of the base classes that client libraries give their own timeouts and broken connections.
_TIMEOUT_NAMES = frozenset({"TimeoutError", "Timeout", "TimeoutException", "APITimeoutError"})
_CONNECTION_NAMES = frozenset(
    {"ConnectionError", "NetworkError", "APIConnectionError", "ClientConnectionError"}
)


def exception_text(exc: BaseException) -> str:
    """`str(exc)`, or a placeholder when the exception cannot say it.

    A built-in exception asks what it was made with for a text; values that may run code are
    represented instead.
    """
    arguments = BaseException.__dict__["args"].__get__(exc)
    if not _types.has_own(exc, "__str__") and any(type(a) not in _PLAIN for a in arguments):
        return safe_repr(arguments[0] if len(arguments) == 1 else arguments, _LONGEST_TEXT)
    try:
        text = str(exc)
    except Exception:  # noqa: BLE001 - a hostile `__str__`
        return f"<unrepresentable {_types.class_name(exc)}>"
    return text[:_LONGEST_TEXT]


def exception_name(exc: BaseException) -> str:
    """`module.Type` of *exc*, at most 200 characters; a class may be made, and named, by data."""
    return known_text(
        one_line(f"{_types.module_name(type(exc))}.{_types.class_name(exc)}")[-200:], 200
    )


def seed_code(text: str) -> str | None:
    """The code of a text that names a parameter problem."""
    lowered = text.lower()
    if "missing required parameter" in lowered:
        return "missing_field"
    return "invalid_input" if "invalid parameter" in lowered else None


def code_of(exc: BaseException) -> ToolErrorCode:
    """The code of an exception by its type and its typed status, never by its text."""
    names = {base.__name__ for base in _types.mro(type(exc))}
    if names & _TIMEOUT_NAMES:
        return ToolErrorCode.TIMEOUT
    status = _status(exc)
    if status is not None and status >= 400:
        return ToolErrorCode.RATE_LIMITED if status == 429 else ToolErrorCode.EXTERNAL_SERVICE_ERROR
    if names & _CONNECTION_NAMES:
        return ToolErrorCode.EXTERNAL_SERVICE_ERROR
    if _types.is_a(exc, OSError):
        return ToolErrorCode.IO
    if _types.is_any(exc, KeyboardInterrupt, SystemExit) or "CancelledError" in names:
        return ToolErrorCode.CANCELLED
    return ToolErrorCode.INTERNAL_ERROR


def _status(exc: BaseException) -> int | None:
    """The HTTP status an exception carries, in the attributes client libraries use."""
    for name in ("status_code", "status"):
        found = _as_status(_stored(exc, name))
        if found is not None:
            return found
    response = _stored(exc, "response")
    if type(response) is dict:
        metadata = response.get("ResponseMetadata")
        return _as_status(metadata.get("HTTPStatusCode")) if type(metadata) is dict else None
    return None if response is None else _as_status(_stored(response, "status_code"))


def _stored(value: object, name: str) -> object:
    """An attribute of *value* without its `__getattr__`; None when absent."""
    try:
        return object.__getattribute__(value, name)
    except Exception:  # noqa: BLE001 - a property may raise anything
        return None


def _as_status(value: object) -> int | None:
    if _types.is_a(value, int) and type(value) is not bool:
        number = int.__int__(value)
        return number if 100 <= number < 600 else None
    return None


def returned_code(value: object) -> tuple[ToolErrorCode, ErrorCategory | None]:
    """The code and category of the `error_code` that a tool returned; internal when it is none."""
    if _types.is_a(value, str):
        try:
            # Its text: a class derived from str may compare and hash as it likes.
            code = ToolErrorCode(str.__str__(value))
        except ConfigError:
            return ToolErrorCode.INTERNAL_ERROR, None
        if code is not ToolErrorCode.NOT_AVAILABLE:
            return code, ErrorCategory.INTERNAL if code.is_custom else None
    return ToolErrorCode.INTERNAL_ERROR, None
