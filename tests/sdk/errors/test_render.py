"""One failure in the words of each audience."""

from __future__ import annotations

import pytest

from toolfault.errors import (
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


def test_rendering_is_deterministic():
    """[P-05] Two renderings of one failure are equal, sets included."""
    error = ToolError("t", "m", field="f", received={"b", "a", "c"}, retry_context={"s": {2, 1}})

    assert error.renderings() == error.renderings()
    assert error.received == "{'a', 'b', 'c'}"
