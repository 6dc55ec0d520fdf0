"""One failure in the words of each audience."""

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


def texts(error):
    return tuple(error.render(name) for name in NAMES)


@pytest.mark.parametrize("reason", list(AvailabilityReason))
def test_user_and_model_read_the_same_whatever_the_reason(reason):
    """[L-01][L-02][A01][A03] The reason of availability reaches the system alone."""
    error = ToolError.unavailable("calculator", reason)

    assert error.render("llm") == UNAVAILABLE_TEXT == "This tool is not available"
    assert error.render("user") == "calculator: This tool is not available"
    assert error.to_llm_payload() == ToolError.unavailable("calculator").to_llm_payload()
    assert error.render("system") == (
        "tool=calculator code=not_available category=availability: "
        f"{reason.value}: Tool 'calculator' {reason.phrase}"
    )


def test_the_resolved_name_is_for_the_system_alone():
    """[A02][L-11] An alias is what user and model see; the system sees what it resolved to."""
    error = ToolError.unavailable("calculator", "not_enabled", tool_requested="calc")

    assert texts(error) == (
        "calc: This tool is not available",
        "This tool is not available",
        (
            "tool=calc (resolved to 'calculator') code=not_available category=availability: "
            "not_enabled: Tool 'calc' is not enabled"
        ),
    )
    assert error.to_llm_payload()["tool"] == "calc"


def test_availability_never_shows_authored_text_to_the_model():
    """[L-01] llm_message, hints and fields of an unavailable tool stay inside."""
    error = ToolError.unavailable("t").with_(
        llm_message="call me tomorrow", retry_hint="enable it", field="x", received="1"
    )

    assert error.render("llm") == UNAVAILABLE_TEXT
    assert error.to_llm_payload() == ToolError.unavailable("t").to_llm_payload()


def test_a_missing_parameter_is_a_sentence():
    """[L-04][A04] One missing parameter reads as the founding guideline wants."""
    error = ToolError.from_issues("calculator", [Issue("expression", "missing_field")])

    assert texts(error) == (
        "calculator: Missing required parameter: expression",
        "Error: Missing required parameter: expression",
        (
            "tool=calculator code=missing_field category=parameter: "
            "Missing required parameter: expression — field: expression"
        ),
    )


def test_an_unexpected_parameter_is_a_sentence():
    """[E5] One unexpected parameter is named; its value is only in the payload."""
    issue = Issue("expr", "unknown_field", received="'1'", received_type="str")
    error = ToolError.from_issues("calculator", [issue])

    assert error.render("llm") == "Error: Unexpected parameter: expr"
    assert error.to_llm_payload()["issues"][0]["received"] == "'1'"


def test_a_bad_value_is_a_sentence_with_the_value():
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


def test_several_issues_are_a_block():
    """[E5][H-04] Several issues are one block; the user reads only the names of the fields."""
    error = ToolError.from_issues(
        "calculator",
        [
            Issue("expression", "missing_field"),
            Issue("expr", "unknown_field", received="'1'", received_type="str"),
        ],
    )

    assert error.render("llm") == (
        "Error: Invalid parameters - 2 errors:\n"
        "  • expression: Missing required parameter\n"
        "  • expr: Unexpected parameter (received str: '1')\n"
        "\n"
        "Please fix all errors and retry with correct types."
    )
    assert error.render("user") == "calculator: Invalid parameters - 2 errors (expression, expr)"
    assert error.code == "invalid_input"
    assert error.field is None


def test_the_system_reads_one_line():
    """[P-06][A07] Line breaks of the message are escaped for the system."""
    error = ToolError.from_issues("t", [Issue("a", "missing_field"), Issue("b", "missing_field")])

    assert error.render("system") == (
        "tool=t code=missing_field category=parameter: Invalid parameters - 2 errors:\\n"
        "  • a: Missing required parameter\\n  • b: Missing required parameter\\n\\n"
        "Please fix all errors and retry with correct types."
    )


def test_a_root_issue_speaks_of_the_context():
    """[A13] An issue of the whole model names no field and shows no value."""
    error = ToolError.from_issues("range_tool", [Issue("(root)", "invalid_input", "end too early")])

    assert texts(error) == (
        "range_tool: Invalid parameters: end too early",
        "Error: Invalid parameters: end too early",
        "tool=range_tool code=invalid_input category=parameter: Invalid parameters: end too early",
    )
    assert error.to_llm_payload()["field"] is None
    assert error.to_llm_payload()["issues"][0]["field"] == "(root)"


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


def test_secrets_in_authored_text_are_redacted_everywhere():
    """[E2] The same redaction holds in the text, the issue and the payload."""
    error = ToolError(
        "t",
        "bad header Authorization: Bearer abc.def.ghi for url https://bob:pw1@h/x",
        field="header",
    )

    shown = "bad header Authorization: [REDACTED] for url https://[REDACTED]@h/x"
    assert error.render("llm") == f"Error: {shown}"
    assert error.issues[0].message == shown
    assert error.to_llm_payload()["issues"][0]["message"] == shown
    assert error.to_llm_payload()["message"] == f"Error: {shown}"
    assert "pw1" not in error.render("system")


def test_a_received_value_is_hidden_by_the_name_of_its_field():
    """[C16][A11] A secret field hides its value from all; numbers are never hidden by name."""
    secret = ToolError(
        "t", "too short", field="user.password", received="'abc'", received_type="str"
    )
    number = ToolError("t", "too large", field="auth_token", received=5)

    assert secret.render("llm") == "Error: too short (received str: [REDACTED])"
    assert number.render("llm") == "Error: too large (received int: 5)"


@pytest.mark.parametrize(
    ("issue", "user"),
    [
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
    ],
)
def test_the_user_never_reads_a_received_value(issue, user):
    """[P-06][C26] Ruling 5: where the text would repeat the value, the code makes the sentence."""
    assert ToolError.from_issues("t", [issue]).render("user") == user


def test_the_words_of_validation_libraries_are_known():
    """[P-06] Every word of pydantic's templates counts as said in any case, whatever was sent."""
    from pydantic_core._pydantic_core import list_all_errors

    templates = [error["message_template_python"] for error in list_all_errors()]
    kept = [re.sub(r"\{[^}]*\}|'[^']*'|\"[^\"]*\"|`[^`]*`", " ", text) for text in templates]
    words = {word.lower() for text in kept for word in re.findall("[A-Za-z]+", text)}
    sent = [Issue("n", "wrong_type", word, received=repr(word)) for word in sorted(words)]
    texts_of = {issue.message: ToolError.from_issues("t", [issue]).render("user") for issue in sent}

    assert len(words) > 100
    assert [word for word, text in texts_of.items() if not text.endswith(f": {word}")] == []


def test_the_user_never_reads_a_value_in_authored_text_either():
    """[P-06][C26] Ruling 5 holds for authored text whose value is declared as received."""
    error = ToolError(
        "get_user",
        "User 42 does not exist",
        "not_found",
        field="user_id",
        received="42",
        received_type="int",
    )

    assert error.render("llm") == "Error: User 42 does not exist (received int: 42)"
    assert error.render("user") == "get_user: Invalid parameter value for user_id: not found"


def test_render_uses_the_primary_audience_and_takes_text():
    """[P-05][C23] Without argument the error's own audience reads; text names one too."""
    error = ToolError("t", "m")

    assert error.render() == error.render(Audience.LLM) == error.render("Llm") == "Error: m"
    assert error.format_for_audience("system") == error.render("system")
    assert error.renderings() == {name: error.render(name) for name in NAMES}
    with pytest.raises(ValueError, match="nobody"):
        error.render("nobody")


def test_a_field_without_a_message_is_composed():
    """[P-05] A code and a field are enough for a sentence."""
    error = ToolError("t", code="missing_field", field="x")

    assert error.render("llm") == "Error: Missing required parameter: x"
    assert ToolError("t", code="wrong_type", field="x", received=1).render("llm") == (
        "Error: Invalid parameter value for x: Wrong type (received int: 1)"
    )


@pytest.mark.parametrize("category", ["parameter", "internal"])
def test_an_empty_message_still_says_something(category):
    """[P-05] Every rendering is non-empty, with no message and no issue."""
    error = ToolError("", "", "quota_gone", category=category)

    assert all(text.strip() for text in texts(error))
    assert error.message
    assert error.render("user").startswith("unknown: ")


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


def test_the_system_text_cuts_a_long_context():
    """[P-06] Ruling 10: the context takes at most 520 characters of the system text."""
    error = ToolError("t", "m", retry_context={"k": "x" * 400, "l": "y" * 400})

    context = error.render("system").split("retry_context: ")[1]
    assert len(context) == 520
    assert context.endswith("…")


def test_derived_hints_show_only_when_asked_for():
    """[P-13] Ruling 9: a suggestion waits; asked for, it shows where no author wrote a hint."""
    error = ToolError("t", "m", suggestion="Did you mean 'port'?")

    assert error.render("llm") == "Error: m"
    shown = error.with_(derived_hint=error.suggestion)
    assert shown.render("llm") == "Error: m\nHint: Did you mean 'port'?"
    assert "retry_hint" not in shown.render("system")
    assert (
        shown.with_(retry_hint="Read the docs.").render("llm") == "Error: m\nHint: Read the docs."
    )


def test_names_from_the_model_cannot_forge_lines_or_grow():
    """[L-16] Trap 11: tool and field names are one bounded line."""
    forged = "x\nERROR forged\x1b[2J\u202e" + "y" * 1_000
    error = ToolError.from_issues(forged, [Issue(forged, "unknown_field")])

    for text in texts(error):
        assert "\n" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert len(text) < 1_000
    assert len(error.issues[0].field) <= 256


def test_markup_in_names_stays_data():
    """[A11] Trap 11: an invented name is kept as text; escaping is the reader's."""
    error = ToolError.from_issues("t", [Issue('{"<img src=x>": 1}', "unknown_field")])

    assert error.issues[0].field == '{"<img src=x>": 1}'


def test_long_texts_keep_their_first_line_and_their_footer():
    """[L-16][H-16] The model's text is bounded and ends with what to do."""
    issues = [Issue(f"field_{n}", "wrong_type", "x" * 480) for n in range(50)]
    text = ToolError.from_issues("t", issues, total=1_000).render("llm")

    assert len(text) <= 8_000
    assert text.startswith("Error: Invalid parameters - 1000 errors:\n")
    assert text.endswith("\nPlease fix all errors and retry with correct types.")


def test_twenty_bullets_then_a_count():
    """[H-16] More than twenty issues are counted, not listed."""
    issues = [Issue(f"f{n}", "missing_field") for n in range(50)]
    lines = ToolError.from_issues("t", issues, total=1_000).render("llm").split("\n")

    assert lines[0] == "Error: Invalid parameters - 1000 errors:"
    assert lines[20] == "  • f19: Missing required parameter"
    assert lines[21] == "  … and 980 more errors"
    assert lines[22:] == ["", "Please fix all errors and retry with correct types."]


def test_rendering_is_deterministic():
    """[P-05] Two renderings of one failure are equal, sets included."""
    error = ToolError("t", "m", field="f", received={"b", "a", "c"}, retry_context={"s": {2, 1}})

    assert error.renderings() == error.renderings()
    assert error.received == "{'a', 'b', 'c'}"
