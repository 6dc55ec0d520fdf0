"""The error contract: what a failed tool call is, and what each audience reads of it.

Standard library only, no transport, no validation library: worth importing alone. What is needed
only once a failure happens is loaded then.
"""

from __future__ import annotations

from toolfault.errors._codes import ToolErrorCode
from toolfault.errors._enums import Audience, AvailabilityReason, ErrorCategory, InvocationKind
from toolfault.errors._error import ToolError
from toolfault.errors._exceptions import ConfigError, ToolfaultError
from toolfault.errors._ids import new_event_id
from toolfault.errors._invocation import (
    ArgumentsNotObjectError,
    ToolInvocationError,
    default_adapt_error,
)
from toolfault.errors._issue import Issue
from toolfault.errors._result import ToolResult
from toolfault.errors._text import as_text as safe_text
from toolfault.errors._text import snippet
from toolfault.errors._words import (
    INTERNAL_TEXT,
    MISSING_TEXT,
    REDACTED,
    ROOT,
    UNAVAILABLE_TEXT,
    UNEXPECTED_TEXT,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolfault.errors._classify import exception_name, exception_text
    from toolfault.errors._grammar import clean_name
    from toolfault.errors._hints import closest, did_you_mean, example_of, listed
    from toolfault.errors._json import to_jsonable
    from toolfault.errors._policy import (
        RedactionPolicy,
        configure_redaction,
        extend_redaction,
        hide,
        is_secret_key,
        redaction_policy,
        secret_values,
        without,
    )
    from toolfault.errors._redact import redact_text
    from toolfault.errors._redact_value import redact_json
    from toolfault.errors._repr import redacted_repr, safe_repr, type_and_size, type_name
    from toolfault.errors._validation import is_validation_error, wanted_types
    from toolfault.errors._withhold import withhold

__all__ = [
    "INTERNAL_TEXT",
    "MISSING_TEXT",
    "REDACTED",
    "ROOT",
    "UNAVAILABLE_TEXT",
    "UNEXPECTED_TEXT",
    "ArgumentsNotObjectError",
    "Audience",
    "AvailabilityReason",
    "ConfigError",
    "ErrorCategory",
    "InvocationKind",
    "Issue",
    "RedactionPolicy",
    "ToolError",
    "ToolErrorCode",
    "ToolInvocationError",
    "ToolResult",
    "ToolfaultError",
    "clean_name",
    "closest",
    "configure_redaction",
    "default_adapt_error",
    "did_you_mean",
    "example_of",
    "exception_name",
    "exception_text",
    "extend_redaction",
    "hide",
    "is_secret_key",
    "is_validation_error",
    "listed",
    "new_event_id",
    "redact_json",
    "redact_text",
    "redacted_repr",
    "redaction_policy",
    "safe_repr",
    "safe_text",
    "secret_values",
    "snippet",
    "to_jsonable",
    "type_and_size",
    "type_name",
    "wanted_types",
    "withhold",
    "without",
]

_LATE = {
    "clean_name": "_grammar",
    "closest": "_hints",
    "did_you_mean": "_hints",
    "example_of": "_hints",
    "listed": "_hints",
    "RedactionPolicy": "_policy",
    "configure_redaction": "_policy",
    "extend_redaction": "_policy",
    "hide": "_policy",
    "is_secret_key": "_policy",
    "redact_json": "_redact_value",
    "redact_text": "_redact",
    "redaction_policy": "_policy",
    "exception_name": "_classify",
    "exception_text": "_classify",
    "is_validation_error": "_validation",
    "redacted_repr": "_repr",
    "safe_repr": "_repr",
    "secret_values": "_policy",
    "to_jsonable": "_json",
    "type_and_size": "_repr",
    "type_name": "_repr",
    "wanted_types": "_validation",
    "withhold": "_withhold",
    "without": "_policy",
}


def __getattr__(name: str) -> object:
    module = _LATE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
