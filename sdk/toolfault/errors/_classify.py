"""What an exception of a tool's own code means: first match wins."""

from __future__ import annotations

from typing import Any, NamedTuple

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


_LIBRARIES = frozenset({"pydantic", "pydantic_core", "msgspec", "jsonschema", "toolfault"})
_STATUS = ("status_code", "status", "response")  # where client libraries keep an HTTP status
_MOST_KINDS = 500
_args_of: Any = BaseException.__dict__["args"].__get__
_qualified: Any = type.__dict__["__qualname__"].__get__
_attributes_of: Any = BaseException.__dict__["__dict__"].__get__  # whatever its class says


class ExceptionKind(NamedTuple):
    """What is the same for all exceptions of a class; worked out once.

    What becomes of the class after its first failure (a status that it is given, say) is not seen.

    Attributes:
        cls: The class, which lives as long as this.
        name: Qualified name of the class.
        module: Its module.
        full_name: See `exception_name`.
        code: What such an exception means where it carries no HTTP status.
        has_status: Whether the class itself may say one.
        has_own_text: Whether it prints itself by code of its own.
        quotes_values: Whether it is of a library of validation that can be read here, whose texts
            quote values.
    """

    cls: type
    name: str
    module: str
    full_name: str
    code: ToolErrorCode
    has_status: bool
    has_own_text: bool
    quotes_values: bool


# By the id of the class: its metaclass may hash and compare as it likes, or not at all.
_kinds: dict[int, ExceptionKind] = {}


def kind_of(exc: BaseException) -> ExceptionKind:
    """The kind of *exc*."""
    cls = type(exc)
    kind = _kinds.get(id(cls))
    if kind is None:
        if len(_kinds) >= _MOST_KINDS:
            _kinds.clear()
        bases = _types.mro(cls)
        kind = _kinds[id(cls)] = ExceptionKind(
            cls,
            _qualified(cls),
            _types.module_name(cls),
            exception_name(exc),
            _code_of_class(exc, {_types.name_of(base) for base in bases}),
            any(_types.defines(base, name) for base in bases for name in _STATUS),
            _types.has_own(exc, "__str__"),
            any(_is_of_validation(base) for base in bases),
        )
    return kind


def _is_of_validation(cls: type) -> bool:
    root = _types.module_name(cls).partition(".")[0]
    return root in _LIBRARIES and _types.name_of(cls) in {"ValidationError", "DecodeError"}


def is_validation_error(exc: object) -> bool:
    """Whether *exc* is an error of a validation library that can be read here."""
    return _types.is_a(exc, BaseException) and kind_of(exc).quotes_values


def exception_text(exc: BaseException) -> str:
    """`str(exc)`, or a placeholder when the exception cannot say it.

    A built-in exception asks what it was made with for a text; values that may run code are
    represented instead.
    """
    if not kind_of(exc).has_own_text:
        arguments = _args_of(exc)
        for argument in arguments:
            if type(argument) not in _PLAIN:
                shown = arguments[0] if len(arguments) == 1 else arguments
                return safe_repr(shown, _LONGEST_TEXT)
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
    kind = kind_of(exc)
    if kind.code is not ToolErrorCode.TIMEOUT and (kind.has_status or _attributes_of(exc)):
        status = _status(exc)
        if status is not None and status >= 400:
            limited = status == 429
            return ToolErrorCode.RATE_LIMITED if limited else ToolErrorCode.EXTERNAL_SERVICE_ERROR
    return kind.code


def _code_of_class(exc: BaseException, names: set[str]) -> ToolErrorCode:
    if names & _TIMEOUT_NAMES:
        return ToolErrorCode.TIMEOUT
    if names & _CONNECTION_NAMES:
        return ToolErrorCode.EXTERNAL_SERVICE_ERROR
    if _types.is_a(exc, OSError):
        return ToolErrorCode.IO
    if _types.is_any(exc, KeyboardInterrupt, SystemExit) or "CancelledError" in names:
        return ToolErrorCode.CANCELLED
    return ToolErrorCode.INTERNAL_ERROR


def _status(exc: BaseException) -> int | None:
    """The HTTP status an exception carries, in the attributes client libraries use."""
    for name in _STATUS[:2]:
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
