"""The error contract: what a failed tool call is, and what each audience reads of it.

Standard library only, no transport, no validation library: worth importing alone.
"""

from __future__ import annotations

from toolfault.errors._classify import exception_name, exception_text, is_validation_error
from toolfault.errors._cleaning import (
    PLAIN_TYPES,
    RedactionPolicy,
    clean_name,
    configure_redaction,
    extend_redaction,
    is_secret_key,
    is_secret_value,
    redact_json,
    redact_text,
    redacted_repr,
    redaction_policy,
    safe_repr,
    secret_values,
    snippet,
    to_jsonable,
    type_and_size,
    type_name,
    without,
)
from toolfault.errors._cleaning import as_text as safe_text
from toolfault.errors._codes import (
    INTERNAL_TEXT,
    MISSING_TEXT,
    REDACTED,
    ROOT,
    UNAVAILABLE_TEXT,
    UNEXPECTED_TEXT,
    Audience,
    AvailabilityReason,
    ConfigError,
    ErrorCategory,
    InvocationKind,
    ToolErrorCode,
    ToolfaultError,
    new_event_id,
)
from toolfault.errors._error import ToolError
from toolfault.errors._foreign import wanted_types
from toolfault.errors._hints import closest, did_you_mean, example_of, listed, with_tools
from toolfault.errors._invocation import (
    ArgumentsNotObjectError,
    ToolInvocationError,
    default_adapt_error,
)
from toolfault.errors._issue import Issue
from toolfault.errors._result import ToolResult
from toolfault.errors._withhold import hide, withhold

__all__ = [
    "INTERNAL_TEXT",
    "MISSING_TEXT",
    "PLAIN_TYPES",
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
    "is_secret_value",
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
    "with_tools",
    "withhold",
    "without",
]
