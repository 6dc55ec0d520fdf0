"""One failure in the words of each audience: whole, bounded, and without what is private."""

from __future__ import annotations

import re

import pytest

from toolfault.errors import (
    INTERNAL_TEXT,
    UNAVAILABLE_TEXT,
    Audience,
    AvailabilityReason,
    Issue,
    ToolError,
)

NAMES = ("user", "llm", "system")


def texts(error: ToolError) -> tuple[str, ...]:
    """The texts of all audiences."""
    return tuple(error.render(name) for name in NAMES)


def test_user_and_model_read_the_same_whatever_the_reason() -> None:
    """[L-01][L-02][A01][A03] The reason of availability reaches the system alone."""
    for reason in AvailabilityReason:
        error = ToolError.unavailable("calculator", reason)

        assert error.render("llm") == UNAVAILABLE_TEXT == "This tool is not available"
        assert error.render("user") == "calculator: This tool is not available"
        assert error.to_llm_payload() == ToolError.unavailable("calculator").to_llm_payload()
        assert error.render("system") == (
            "tool=calculator code=not_available category=availability: "
            f"{reason.value}: Tool 'calculator' {reason.phrase}"
        )


def test_availability_never_shows_authored_text_to_the_model() -> None:
    """[L-01] llm_message, hints and fields of an unavailable tool stay inside."""
    error = ToolError.unavailable("t").with_(
        llm_message="call me tomorrow", retry_hint="enable it", field="x", received="1"
    )

    assert error.render("llm") == UNAVAILABLE_TEXT
    assert error.to_llm_payload() == ToolError.unavailable("t").to_llm_payload()


def test_an_unexpected_parameter_is_a_sentence() -> None:
    """[E5] One unexpected parameter is named; its value is only in the payload."""
    issue = Issue("expr", "unknown_field", received="'1'", received_type="str")
    error = ToolError.from_issues("calculator", [issue])

    assert error.render("llm") == "Error: Unexpected parameter: expr"
    assert error.issues[0].received == "'1'"


def test_a_bad_value_is_a_sentence_with_the_value() -> None:
    """[L-05] One bad value names the field, what is wrong and what was received."""
    issue = Issue(
        "xyz", "invalid_input", "must be a positive number", received="-1", received_type="int"
    )
    error = ToolError.from_issues("scale", [issue])

    assert texts(error) == (
        "scale: Invalid parameter value for xyz: must be a positive number",
        "Error: Invalid parameter value for xyz: must be a positive number (received int: -1)",
        (
            "tool=scale code=invalid_input category=parameter: Invalid parameter value for xyz: "
            "must be a positive number (received int: -1) — field: xyz — received: -1"
        ),
    )


def test_render_uses_the_primary_audience_and_takes_text() -> None:
    """[P-05][C23] Without argument the error's own audience reads; text names one too."""
    error = ToolError("t", "m")

    assert error.render() == error.render(Audience.LLM) == error.render("Llm") == "Error: m"
    assert error.format_for_audience("system") == error.render("system")
    assert error.renderings() == {name: error.render(name) for name in NAMES}
    with pytest.raises(ValueError, match="nobody"):
        error.render("nobody")


def test_a_field_without_a_message_is_composed() -> None:
    """[P-05] A code and a field are enough for a sentence."""
    error = ToolError("t", code="missing_field", field="x")

    assert error.render("llm") == "Error: Missing required parameter: x"
    assert ToolError("t", code="wrong_type", field="x", received=1).render("llm") == (
        "Error: Invalid parameter value for x: Wrong type (received int: 1)"
    )


def test_an_empty_message_still_says_something() -> None:
    """[P-05] Every rendering is non-empty, with no message and no issue."""
    for category in ("parameter", "internal"):
        error = ToolError("", "", "quota_gone", category=category)

        assert all(text.strip() for text in texts(error))
        assert error.message
        assert error.render("user").startswith("unknown: ")


def test_derived_hints_show_only_when_asked_for() -> None:
    """[P-13] Ruling 9: a suggestion waits; asked for, it shows where no author wrote a hint."""
    error = ToolError("t", "m", suggestion="Did you mean 'port'?")

    assert error.render("llm") == "Error: m"
    shown = error.with_(derived_hint=error.suggestion)
    assert shown.render("llm") == "Error: m\nHint: Did you mean 'port'?"
    assert "retry_hint" not in shown.render("system")
    assert (
        shown.with_(retry_hint="Read the docs.").render("llm") == "Error: m\nHint: Read the docs."
    )


def test_rendering_is_deterministic() -> None:
    """[P-05] Two renderings of one failure are equal, sets included."""
    error = ToolError("t", "m", field="f", received={"b", "a", "c"}, retry_context={"s": {2, 1}})

    assert error.renderings() == error.renderings()
    assert error.received == "{'a', 'b', 'c'}"


def test_hints_of_internal_failures_come_from_the_catalogue_or_the_author() -> None:
    """[A18][A19] Ruling 10: catalogue hints are for the payload, authored ones also for SYSTEM."""
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
    authored = ToolError("t", "m", "timeout", retry_hint="Ask for less.")
    assert authored.to_llm_payload()["retry_hint"] == "Ask for less."
    assert "retry_hint: Ask for less." in authored.render("system")


def test_a_person_addressed_by_the_author_reads_the_text() -> None:
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


def test_llm_message_replaces_the_text_for_the_model() -> None:
    """[E6][P-06] Text authored for the model is passed without prefix, and redacted."""
    error = ToolError(
        "rawfail", "quota", "rate_limited", llm_message="quota exceeded, key sk-abcdef123456"
    )

    assert error.render("llm") == "quota exceeded, key [REDACTED]"
    assert error.render("user") == f"rawfail: {INTERNAL_TEXT}"


def test_snippet_and_context_are_for_model_and_system() -> None:
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


def test_the_system_text_cuts_a_long_context() -> None:
    """[P-06] Ruling 10: the context takes at most 520 characters of the system text."""
    error = ToolError("t", "m", retry_context={"k": "x" * 400, "l": "y" * 400})

    context = error.render("system").split("retry_context: ")[1]
    assert len(context) == 520
    assert context.endswith("…")


def test_long_texts_keep_their_first_line_and_their_footer() -> None:
    """[L-16][H-16] The model's text is bounded and ends with what to do."""
    issues = [Issue(f"field_{n}", "wrong_type", "x" * 480) for n in range(50)]
    text = ToolError.from_issues("t", issues, total=1_000).render("llm")

    assert len(text) <= 8_000
    assert text.startswith("Error: Invalid parameters - 1000 errors:\n")
    assert text.endswith("\nPlease fix all errors and retry with correct types.")


def test_twenty_bullets_then_a_count() -> None:
    """[H-16] More than twenty issues are counted, not listed."""
    issues = [Issue(f"f{n}", "missing_field") for n in range(50)]
    lines = ToolError.from_issues("t", issues, total=1_000).render("llm").split("\n")

    assert lines[0] == "Error: Invalid parameters - 1000 errors:"
    assert lines[20] == "  • f19: Missing required parameter"
    assert lines[21] == "  … and 980 more errors"
    assert lines[22:] == ["", "Please fix all errors and retry with correct types."]


def test_a_received_value_is_hidden_by_the_name_of_its_field() -> None:
    """[C16][A11] A secret field hides its value from all; numbers are never hidden by name."""
    secret = ToolError(
        "t", "too short", field="user.password", received="'abc'", received_type="str"
    )
    number = ToolError("t", "too large", field="auth_token", received=5)

    assert secret.render("llm") == "Error: too short (received str: [REDACTED])"
    assert number.render("llm") == "Error: too large (received int: 5)"


def test_the_user_never_reads_a_received_value() -> None:
    """[P-06][C26] Ruling 5: where the text would repeat the value, the code makes the sentence."""
    cases = [
        (
            Issue(
                "pet",
                "invalid_choice",
                "Input tag 'bird' does not match 'cat', 'dog'",
                received="{'kind': 'bird'}",
                received_type="dict",
            ),
            "t: Invalid parameter value for pet: not one of the allowed values",
        ),
        (
            Issue("n", "invalid_input", "7 is odd", received="7", received_type="int"),
            "t: Invalid parameter value for n: not valid",
        ),
        (
            Issue("n", "field_too_small", "must be >= 10", received="1", received_type="int"),
            "t: Invalid parameter value for n: must be >= 10",
        ),
        (
            Issue(
                "c",
                "invalid_choice",
                "Input should be 'red' or 'green'",
                received="'purple'",
                received_type="str",
            ),
            "t: Invalid parameter value for c: Input should be 'red' or 'green'",
        ),
        (
            Issue(
                "a",
                "wrong_type",
                "Input should be a valid integer",
                received="'a'",
                received_type="str",
            ),
            "t: Invalid parameter value for a: Input should be a valid integer",
        ),
        (
            Issue(
                "n",
                "wrong_type",
                "Input should be a valid integer",
                received="['integer', {'a': 'Valid'}]",
                received_type="list",
            ),
            "t: Invalid parameter value for n: Input should be a valid integer",
        ),
        (
            Issue(
                "n",
                "invalid_choice",
                "Input tag 'a' is not valid",
                received="{'kind': 'a'}",
                received_type="dict",
            ),
            "t: Invalid parameter value for n: not one of the allowed values",
        ),
        (
            Issue("n", "not_found", "city a is unknown", received="'a'", received_type="str"),
            "t: Invalid parameter value for n: not found",
        ),
    ]
    for issue, user in cases:
        assert ToolError.from_issues("t", [issue]).render("user") == user


def test_the_words_of_validation_libraries_are_known() -> None:
    """[P-06] Every word of pydantic's templates counts as said in any case, whatever was sent."""
    from pydantic_core._pydantic_core import list_all_errors

    templates = [error["message_template_python"] for error in list_all_errors()]
    kept = [re.sub(r"\{[^}]*\}|'[^']*'|\"[^\"]*\"|`[^`]*`", " ", text) for text in templates]
    words = {word.lower() for text in kept for word in re.findall("[A-Za-z]+", text)}
    sent = [Issue("n", "wrong_type", word, received=repr(word)) for word in sorted(words)]
    texts_of = {issue.message: ToolError.from_issues("t", [issue]).render("user") for issue in sent}

    assert len(words) > 100
    assert [word for word, text in texts_of.items() if not text.endswith(f": {word}")] == []


def test_the_user_reads_what_an_author_wrote() -> None:
    """[C1] Ruling 19: as it was written, also where it names the value."""
    error = ToolError(
        "get_user",
        "User 42 does not exist",
        "not_found",
        field="user_id",
        received="42",
        received_type="int",
    )

    assert error.render("llm") == "Error: User 42 does not exist (received int: 42)"
    assert error.render("user") == "get_user: User 42 does not exist"


def test_nobody_reads_a_secret_in_what_an_author_wrote() -> None:
    """[C1][C16] By its form, or because it is the value of a secret field."""
    for error in (
        ToolError("login", "kitten7 is too short", field="password", received="'kitten7'"),
        ToolError("login", "password=kitten7 is too short", field="user"),
    ):
        for text in error.renderings().values():
            assert "[REDACTED] is too short" in text
            assert "kitten7" not in text
