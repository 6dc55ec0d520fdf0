"""Texts of a failure whose message somebody wrote, and of an exception nobody expected."""

from __future__ import annotations

import pytest

from toolfault.errors import (
    INTERNAL_TEXT,
    ToolError,
)

NAMES = ("user", "llm", "system")


def texts(error):
    return tuple(error.render(name) for name in NAMES)


def test_authored_text_is_used_as_written_with_the_value_after_it():
    """[A16][E4] An authored message stays verbatim; only the model reads the value."""
    error = ToolError(
        "ask_model",
        "max_tokens must be <= 4096",
        "field_too_large",
        field="max_tokens",
        expected="<= 4096",
        received=9000,
    )

    assert texts(error) == (
        "ask_model: max_tokens must be <= 4096",
        "Error: max_tokens must be <= 4096 (received int: 9000)",
        (
            "tool=ask_model code=field_too_large category=parameter: max_tokens must be <= 4096"
            " — field: max_tokens — expected: <= 4096 — received: 9000"
        ),
    )


def test_every_audience_of_an_authored_failure_with_a_cause():
    """[A22][P-06] Hint and exception stand where their audience looks for them."""
    hint = "Use a workspace-root-relative path; directories are not valid for read_file."
    error = ToolError(
        "read_file",
        "no such file: nope.rs",
        "io",
        category="parameter",
        field="file",
        retry_hint=hint,
        cause=FileNotFoundError(2, "No such file or directory", "nope.rs"),
    )

    assert texts(error) == (
        "read_file: no such file: nope.rs",
        f"Error: no such file: nope.rs\nHint: {hint}",
        (
            "tool=read_file code=io category=parameter: no such file: nope.rs — field: file"
            f" — retry_hint: {hint} — exception: builtins.FileNotFoundError"
        ),
    )


@pytest.mark.parametrize(
    "message",
    ["Missing required parameter: xyz", "Error: Missing required parameter: xyz"],
)
def test_the_prefix_is_added_once(message):
    """[E8][C11] A message that brings its own prefix gets no second one."""
    error = ToolError("t", message)

    assert error.render("llm") == "Error: Missing required parameter: xyz"
    assert error.render("user") == "t: Missing required parameter: xyz"


def test_an_internal_failure_is_a_fixed_sentence_for_all_but_the_system():
    """[L-06][A05] Nothing of an unexpected exception reaches user or model."""
    error = ToolError.from_exception(
        "failing_tool", RuntimeError("db password=hunter2 at 10.0.0.5:5432 /srv/app/x.py")
    )

    assert texts(error) == (
        f"failing_tool: {INTERNAL_TEXT}",
        "An unexpected error occurred while executing this tool",
        (
            "tool=failing_tool code=internal_error category=internal: "
            "db [REDACTED] at 10.0.0.5:5432 /srv/app/x.py — exception: builtins.RuntimeError"
        ),
    )
    for word in ("hunter2", "10.0.0.5", "RuntimeError", "/srv/app"):
        assert word not in str(error.to_llm_payload())


def test_hints_of_internal_failures_come_from_the_catalogue_or_the_author():
    """[A18][A19] Ruling 10: catalogue hints are for the payload, authored ones also for SYSTEM."""
    error = ToolError.from_exception("slow", TimeoutError("read timed out on https://u:p@h/x"))

    assert error.render("llm") == INTERNAL_TEXT
    assert error.render("system") == (
        "tool=slow code=timeout category=internal: read timed out on https://[REDACTED]@h/x"
        " — exception: builtins.TimeoutError"
    )
    hints = {
        code: ToolError("t", "m", code).to_llm_payload()["retry_hint"]
        for code in ("timeout", "rate_limited", "external_service_error", "io", "internal_error")
    }
    assert hints == {
        "timeout": "The tool did not finish in time. Retry with a smaller request.",
        "rate_limited": "The tool is rate limited. Wait before calling it again.",
        "external_service_error": "A service this tool depends on failed. You may retry once.",
        "io": None,
        "internal_error": None,
    }
    authored = error.with_(retry_hint="Ask for less.")
    assert authored.to_llm_payload()["retry_hint"] == "Ask for less."
    assert "retry_hint: Ask for less." in authored.render("system")


def test_a_person_addressed_by_the_author_reads_the_text():
    """[P-06] audience=user explains even an internal failure to the person, not to the model."""
    error = ToolError(
        "mail",
        "Your session ended. Log in again.",
        "auth_ended",
        category="internal",
        audience="user",
    )

    assert error.render() == "mail: Your session ended. Log in again."
    assert error.render("llm") == INTERNAL_TEXT


def test_llm_message_replaces_the_text_for_the_model():
    """[E6][P-06] Text authored for the model is passed without prefix, and redacted."""
    error = ToolError(
        "rawfail", "quota", "rate_limited", llm_message="quota exceeded, key sk-abcdef123456"
    )

    assert error.render("llm") == "quota exceeded, key [REDACTED]"
    assert error.render("user") == f"rawfail: {INTERNAL_TEXT}"


def test_snippet_and_context_are_for_model_and_system():
    """[A17] Ruling 10: the context stands in the system text where nobody wrote a hint."""
    error = ToolError(
        "apply_patch",
        "expected unified diff",
        "malformed_diff",
        field="diff",
        snippet="not a diff",
        retry_context={"patch_index": 0, "field": "diff"},
    )

    assert error.render("system") == (
        "tool=apply_patch code=malformed_diff category=parameter: expected unified diff"
        ' — field: diff — snippet: not a diff — retry_context: {"patch_index": 0, "field": "diff"}'
    )
    hinted = error.with_(retry_hint="Provide a diff.")
    assert "retry_context" not in hinted.render("system")
    assert "not a diff" not in error.render("user")
    assert "patch_index" not in error.render("llm")
