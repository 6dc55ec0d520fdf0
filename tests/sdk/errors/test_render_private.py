"""What no text of a failure may show: secrets, and to the user any value."""

from __future__ import annotations

import re

import pytest

from toolfault.errors import (
    Issue,
    ToolError,
)

NAMES = ("user", "llm", "system")


def texts(error):
    return tuple(error.render(name) for name in NAMES)


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
