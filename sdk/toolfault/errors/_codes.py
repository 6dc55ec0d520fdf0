"""The vocabulary of a failure: its words, its exceptions, its enumerations and its codes.

```
ToolfaultError
├── ConfigError (ValueError)        a setting or declaration that cannot work
├── ToolInvocationError             how one tool call failed, for `adapt_error`
└── ToolError                       one failure, for user, model and system
```
"""

from __future__ import annotations

import time
from enum import Enum

from toolfault._uuid7 import uuid7
from toolfault.errors._types import is_a

# The fixed words of the contract, in one place.

UNAVAILABLE_TEXT = "This tool is not available"
INTERNAL_TEXT = "An unexpected error occurred while executing this tool"
MISSING_TEXT = "Missing required parameter"
UNEXPECTED_TEXT = "Unexpected parameter"
FOOTER = "Please fix all errors and retry with correct types."
ROOT = "(root)"
"""The field label of an issue that concerns the arguments as a whole."""
REDACTED = "[REDACTED]"


# The exceptions of the SDK itself.


class ToolfaultError(Exception):
    """Base of every exception that the SDK defines."""


class ConfigError(ToolfaultError, ValueError):
    """A setting or a declaration cannot work; the text says what to write instead."""


# The closed vocabularies of a failure: audience, category, reason and kind.


class Word(str, Enum):
    """A lower-case word that is its own JSON form and its own text.

    `str()` and `format()` give the word on every Python: the standard library changed both
    between 3.10 and 3.12.
    """

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(str(self.value), spec)

    @classmethod
    def _missing_(cls, value: object) -> Word | None:
        if is_a(value, str):
            return cls._value2member_map_.get(value.strip().lower())  # type: ignore[return-value]
        return None


class Audience(Word):
    """Whom a failure is for; built from any spelling of case (`User`, `LLM`)."""

    USER = "user"
    LLM = "llm"
    SYSTEM = "system"


class ErrorCategory(Word):
    """What a failure means for the model: gone, fixable by other arguments, or neither."""

    AVAILABILITY = "availability"
    PARAMETER = "parameter"
    INTERNAL = "internal"


class AvailabilityReason(Word):
    """Why a tool was not available; seen by the system audience only."""

    NOT_REGISTERED = "not_registered"
    NOT_ENABLED = "not_enabled"
    PAUSED = "paused"
    ACCESS_DENIED = "access_denied"
    POLICY_DENIED = "policy_denied"
    BLOCKED_BY_HOOK = "blocked_by_hook"
    NO_HANDLER = "no_handler"

    @property
    def phrase(self) -> str:
        """What follows the tool name in a log line: `Tool 'x' {phrase}`."""
        return _PHRASES[self.value]


_PHRASES = {
    "not_registered": "is not registered",
    "not_enabled": "is not enabled",
    "paused": "is paused",
    "access_denied": "is not permitted at this access level",
    "policy_denied": "is denied by policy",
    "blocked_by_hook": "was blocked by a hook",
    "no_handler": "has no handler",
}


class InvocationKind(Word):
    """Where in one tool call the failure arose."""

    TRANSPORT = "transport"
    DESERIALIZE = "deserialize"
    VALIDATION = "validation"
    EXEC = "exec"
    INTERNAL = "internal"


_LONGEST_CODE = 64


class ToolErrorCode(Word):
    """The stable snake_case name of what went wrong.

    The set is open: `ToolErrorCode("my_code")` makes a custom code, which must match
    `^[a-z][a-z0-9_]{1,63}$`. PascalCase, upper case and a few older names are accepted on input
    (`WrongType`, `internal`, `missing_required_field`); the wire form is always snake_case.
    `INTERNAL` is another name of `INTERNAL_ERROR`.

    Raises:
        ConfigError: The text is neither a known code nor a well-formed custom one.
    """

    NOT_AVAILABLE = "not_available"
    MISSING_FIELD = "missing_field"
    UNKNOWN_FIELD = "unknown_field"
    WRONG_TYPE = "wrong_type"
    INVALID_FORMAT = "invalid_format"
    INVALID_CHOICE = "invalid_choice"
    FIELD_TOO_LARGE = "field_too_large"
    FIELD_TOO_SMALL = "field_too_small"
    MALFORMED_JSON = "malformed_json"
    MALFORMED_DIFF = "malformed_diff"
    NOT_FOUND = "not_found"
    INVALID_INPUT = "invalid_input"
    IO = "io"
    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    EXTERNAL_SERVICE_ERROR = "external_service_error"
    CONFIGURATION_ERROR = "configuration_error"
    CANCELLED = "cancelled"
    INTERNAL_ERROR = "internal_error"
    INTERNAL = INTERNAL_ERROR

    def __reduce_ex__(self, protocol: object) -> tuple[type[ToolErrorCode], tuple[str]]:
        # Some Pythons pickle members by name, which a custom code does not have.
        return (type(self), (str(self.value),))

    @classmethod
    def _missing_(cls, value: object) -> ToolErrorCode:
        text = _canonical(value) if is_a(value, str) else None
        if text is None:
            raise ConfigError(
                "an error code is a known code or matches ^[a-z][a-z0-9_]{1,63}$, "
                "for example 'quota_exceeded'"
            )
        known = cls._value2member_map_.get(text)
        if known is not None:
            return known  # type: ignore[return-value]
        custom = str.__new__(cls, text)
        custom._name_ = text
        custom._value_ = text
        return custom

    @property
    def is_custom(self) -> bool:
        """Whether the code is outside the 19 known ones."""
        return self._value_ not in type(self)._value2member_map_

    @property
    def category(self) -> ErrorCategory | None:
        """The default category, or None for a custom code (which must be given one)."""
        if self.is_custom:
            return None
        if self._value_ == "not_available":
            return ErrorCategory.AVAILABILITY
        if self._value_ in _INTERNAL:
            return ErrorCategory.INTERNAL
        return ErrorCategory.PARAMETER


_INTERNAL = frozenset(
    {
        "io",
        "timeout",
        "rate_limited",
        "external_service_error",
        "configuration_error",
        "cancelled",
        "internal_error",
    }
)
# Internal codes that would tell the model about the tool's inside are shown as `internal_error`.
HIDDEN_INTERNAL = frozenset({"io", "configuration_error", "cancelled"})
RETRYABLE_INTERNAL = frozenset({"timeout", "rate_limited", "external_service_error"})

_ALIASES = {
    "internal": "internal_error",
    "missing_required_field": "missing_field",
    "unknown_tool_name": "not_available",
}

CATALOGUE_HINTS = {
    "timeout": "The tool did not finish in time. Retry with a smaller request.",
    "rate_limited": "The tool is rate limited. Wait before calling it again.",
    "external_service_error": "A service this tool depends on failed. You may retry once.",
}
"""Safe hints for internal failures: they say nothing of the tool's inside."""


def _canonical(text: str) -> str | None:
    """The wire form of *text*, or None when it cannot be a code."""
    text = text.strip()
    if not text.islower():
        text = text.lower() if text.isupper() else _snake(text)
    text = _ALIASES.get(text, text)
    shaped = 1 < len(text) <= _LONGEST_CODE and text.isascii() and "a" <= text[0] <= "z"
    if shaped and text.replace("_", "a").isalnum():
        return text
    return None


def _snake(text: str) -> str:
    """`FieldTooLarge` as `field_too_large`, `MalformedJSON` as `malformed_json`."""
    parts: list[str] = []
    before = ""
    for letter in text[: 2 * _LONGEST_CODE]:
        if letter.isupper() and before and not before.isupper() and before != "_":
            parts.append("_")
        parts.append(letter.lower())
        before = letter
    return "".join(parts)


# Ids of failures that are not reported, or not yet.


def new_event_id() -> str:
    """A new UUIDv7 in its canonical text form, sortable by time."""
    return uuid7(time.time())
