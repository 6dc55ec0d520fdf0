"""The vocabularies: audiences, categories, codes."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from toolfault.errors import (
    Audience,
    AvailabilityReason,
    ConfigError,
    ErrorCategory,
    InvocationKind,
    ToolError,
    ToolErrorCode,
)

CATEGORIES = {
    "availability": {"not_available"},
    "parameter": {
        "missing_field",
        "unknown_field",
        "wrong_type",
        "invalid_format",
        "invalid_choice",
        "field_too_large",
        "field_too_small",
        "malformed_json",
        "malformed_diff",
        "not_found",
        "invalid_input",
    },
    "internal": {
        "io",
        "timeout",
        "rate_limited",
        "external_service_error",
        "configuration_error",
        "cancelled",
        "internal_error",
    },
}


def test_audiences_are_three_lower_case_words() -> None:
    """[P-01] Exactly three audiences, built from any case, lower-case in JSON; no other passes."""
    assert [a.name for a in Audience] == ["USER", "LLM", "SYSTEM"]
    assert json.dumps(list(Audience)) == '["user", "llm", "system"]'
    assert f"{Audience('Llm')}" == str(Audience.LLM) == "llm"
    for text in ("user", "User", "USER", " user "):
        assert Audience(text) is Audience.USER
    for value in ("developer", "", 1, None):
        with pytest.raises(ValueError, match="Audience"):
            Audience(value)


def test_there_are_nineteen_codes_with_their_categories() -> None:
    """[P-02][K-08] The 19 codes exist, snake_case on the wire, each in its category."""
    assert {c.value: str(c.category) for c in ToolErrorCode} == {
        code: category for category, codes in CATEGORIES.items() for code in codes
    }
    assert len(ToolErrorCode) == 19
    assert ToolErrorCode["INTERNAL"] is ToolErrorCode.INTERNAL_ERROR
    assert ToolError("t", "m", ToolErrorCode.INTERNAL).code == "internal_error"
    assert {
        "external_service_error",
        "rate_limited",
        "timeout",
        "not_found",
        "invalid_input",
        "internal_error",
    } <= {c.value for c in ToolErrorCode}


def test_codes_are_read_in_every_spelling_of_the_founding_documents() -> None:
    """[P-02] PascalCase, snake_case and older names are accepted on input."""
    for given, code in (
        ("WrongType", "wrong_type"),
        ("wrong_type", "wrong_type"),
        ("WRONG_TYPE", "wrong_type"),
        ("FieldTooLarge", "field_too_large"),
        ("MalformedDiff", "malformed_diff"),
        ("MalformedJSON", "malformed_json"),
        ("Io", "io"),
        ("IO", "io"),
        ("Internal", "internal_error"),
        ("internal", "internal_error"),
        ("missing_required_field", "missing_field"),
        ("UNKNOWN_TOOL_NAME", "not_available"),
    ):
        assert ToolErrorCode(given) is ToolErrorCode[code.upper()]
        assert ToolErrorCode(given).value == code


def test_the_set_of_codes_is_open() -> None:
    """[P-02] A custom code of the right form is a code, survives pickling, and stays custom."""
    code = ToolErrorCode("quota_exceeded")

    assert code == "quota_exceeded"
    assert code.is_custom
    assert code.category is None
    assert pickle.loads(pickle.dumps(code)) == code == copy.deepcopy(code)
    assert json.dumps(code) == '"quota_exceeded"'
    assert len(ToolErrorCode) == 19


def test_a_malformed_code_is_refused() -> None:
    """[P-02] What matches neither a code nor the form of one raises a ValueError that helps."""
    for value in ("", "a", "no spaces", "9lives", "x" * 65, "é_code", 7, None):
        with pytest.raises(ConfigError, match=r"\^\[a-z\]\[a-z0-9_\]\{1,63\}\$"):
            ToolErrorCode(value)


def test_a_custom_code_must_name_its_category() -> None:
    """[P-02] A custom code without a category is refused; with one it is used."""
    with pytest.raises(ConfigError, match="category='parameter'"):
        ToolError("t", "m", "quota_exceeded")

    error = ToolError("t", "m", "quota_exceeded", category="parameter")
    assert error.to_llm_payload()["code"] == "quota_exceeded"
    assert error.retryable


def test_internal_codes_that_reveal_the_inside_are_collapsed_for_the_model() -> None:
    """[C4] io, configuration_error and unexplained custom codes read internal_error."""
    shown = {
        code: ToolError("t", "m", code, category="internal").to_llm_payload()["code"]
        for code in ("io", "configuration_error", "cancelled", "timeout", "db_pool_gone")
    }

    assert shown == {
        "io": "internal_error",
        "configuration_error": "internal_error",
        "cancelled": "internal_error",
        "timeout": "timeout",
        "db_pool_gone": "internal_error",
    }
    told = ToolError("t", "m", "quota_gone", category="internal", llm_message="Quota is used up")
    assert told.to_llm_payload()["code"] == "quota_gone"


def test_retryable_says_whether_calling_again_can_help() -> None:
    """[W-12] `retryable` is advice by code and category; nothing is retried."""
    cases = [
        ("not_available", None, False),
        ("missing_field", None, True),
        ("not_found", None, True),
        ("io", None, False),
        ("io", "parameter", True),
        ("timeout", None, True),
        ("rate_limited", None, True),
        ("external_service_error", None, True),
        ("internal_error", None, False),
        ("configuration_error", None, False),
        ("cancelled", None, False),
    ]
    for code, category, retryable in cases:
        assert ToolError("t", "m", code, category=category).retryable is retryable, code


def test_reasons_and_kinds_are_complete() -> None:
    """[P-11] The reasons of availability and the kinds of invocation are those of the contract."""
    assert [r.value for r in AvailabilityReason] == [
        "not_registered",
        "not_enabled",
        "paused",
        "access_denied",
        "policy_denied",
        "blocked_by_hook",
        "no_handler",
    ]
    assert [k.value for k in InvocationKind] == [
        "transport",
        "deserialize",
        "validation",
        "exec",
        "internal",
    ]
    assert [c.value for c in ErrorCategory] == ["availability", "parameter", "internal"]
