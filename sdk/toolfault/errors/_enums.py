"""The closed vocabularies of a failure: audience, category, reason and kind."""

from __future__ import annotations

from enum import Enum

from toolfault.errors._types import is_a

__all__ = ["Audience", "AvailabilityReason", "ErrorCategory", "InvocationKind"]


class _Word(str, Enum):
    """A lower-case word that is its own JSON form and its own text.

    `str()` and `format()` give the word on every Python: the standard library changed both
    between 3.10 and 3.12.
    """

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(str(self.value), spec)

    @classmethod
    def _missing_(cls, value: object) -> _Word | None:
        if is_a(value, str):
            return cls._value2member_map_.get(value.strip().lower())  # type: ignore[return-value]
        return None


class Audience(_Word):
    """Whom a failure is for; built from any spelling of case (`User`, `LLM`)."""

    USER = "user"
    LLM = "llm"
    SYSTEM = "system"


class ErrorCategory(_Word):
    """What a failure means for the model: gone, fixable by other arguments, or neither."""

    AVAILABILITY = "availability"
    PARAMETER = "parameter"
    INTERNAL = "internal"


class AvailabilityReason(_Word):
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


class InvocationKind(_Word):
    """Where in one tool call the failure arose."""

    TRANSPORT = "transport"
    DESERIALIZE = "deserialize"
    VALIDATION = "validation"
    EXEC = "exec"
    INTERNAL = "internal"
