"""Shared validators: what they accept, and what their failures say."""

from __future__ import annotations

import enum

import pytest

from toolfault.errors import ToolError
from toolfault.validators import (
    count_tokens,
    validate_ascii_name,
    validate_bounded_int,
    validate_bounded_number,
    validate_choice,
    validate_context_limit,
    validate_date,
    validate_datetime,
    validate_extension,
    validate_json,
    validate_length,
    validate_path,
    validate_pattern,
    validate_regex,
    validate_time,
    validate_url,
)


class Unit(enum.Enum):
    CELSIUS = "celsius"
    KELVIN = "kelvin"


def refused(validator, **options):
    """The failure of *validator*, whose parts are all filled."""
    with pytest.raises(ToolError) as caught:
        validator(**{"tool": "t", "field": "f", **options})
    error = caught.value
    assert error.tool == "t"
    assert error.field == "f"
    assert error.expected
    assert error.received is not None or error.snippet is not None
    assert error.category == "parameter"
    return error


@pytest.mark.parametrize("value", [1, 5, 10])
def test_bounds_are_inclusive(value):
    """[P-14] Both bounds are allowed."""
    assert validate_bounded_int(tool="t", field="f", value=value, min=1, max=10) == value


def test_above_and_below_the_bounds():
    """[P-14] Above is field_too_large, below field_too_small, with the seed's sentences."""
    above = refused(validate_bounded_int, value=11, min=1, max=10)
    below = refused(validate_bounded_int, value=0, min=1, max=10)

    assert (above.code, above.message, above.expected, above.received) == (
        "field_too_large",
        "f must be <= 10",
        "<= 10",
        "11",
    )
    assert (below.code, below.message, below.expected, below.received_type) == (
        "field_too_small",
        "f must be >= 1",
        ">= 1",
        "int",
    )


@pytest.mark.parametrize("value", [True, 1.0, "1", None, [1]])
def test_only_integers_are_integers(value):
    """[P-14] A boolean is no integer, and neither is a float or a text."""
    error = refused(validate_bounded_int, value=value, min=0)

    assert (error.code, error.expected) == ("wrong_type", "integer")


@pytest.mark.parametrize("value", [0, 0.5, 1, -0.0])
def test_numbers_within_bounds(value):
    """[P-13] Integers and floats are numbers."""
    assert validate_bounded_number(tool="t", field="f", value=value, min=0, max=1) == value


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (1.5, "field_too_large"),
        (-0.5, "field_too_small"),
        (float("nan"), "invalid_format"),
        (float("inf"), "invalid_format"),
        (True, "wrong_type"),
        ("0.5", "wrong_type"),
    ],
)
def test_numbers_out_of_bounds(value, code):
    """[P-13] Bounds, finiteness and type are told apart."""
    assert refused(validate_bounded_number, value=value, min=0, max=1).code == code


def test_the_token_limit_of_the_contract():
    """[A16][P-13] A number of tokens above the limit; the value is not redacted."""
    error = refused(validate_context_limit, tool="t", value=9_000, max=4_096)

    assert error.render("llm") == "Error: f must be <= 4096 (received int: 9000)"
    named = refused_field("max_tokens")
    assert named.to_llm_payload()["received"] == "9000"
    assert validate_context_limit(tool="t", field="f", value=4_096, max=4_096) == 4_096


def refused_field(field):
    with pytest.raises(ToolError) as caught:
        validate_context_limit(tool="ask_model", field=field, value=9_000, max=4_096)
    return caught.value


def test_the_token_limit_counts_texts():
    """[P-13] A text is counted, by bytes over four or by the caller's counter."""
    assert count_tokens("abcde") == 2
    assert count_tokens("é" * 4) == 2
    assert validate_context_limit(tool="t", field="f", value="x" * 16, max=4) == "x" * 16
    error = refused(validate_context_limit, value="x" * 17, max=4)
    assert (error.code, error.message, error.received) == (
        "field_too_large",
        "f must be <= 4 tokens",
        "about 5 tokens",
    )
    words = refused(validate_context_limit, value="a b c", max=2, counter=lambda t: len(t.split()))
    assert words.received == "about 3 tokens"
    assert refused(validate_context_limit, value=1.5, max=2).code == "wrong_type"


@pytest.mark.parametrize("value", ["ab", [1, 2], {"a": 1, "b": 2}, (1, 2), b"ab"])
def test_lengths_of_texts_lists_and_objects(value):
    """[P-13][C25] One pair of codes for everything that has a length."""
    assert validate_length(tool="t", field="f", value=value, min=2, max=2) is value
    assert refused(validate_length, value=value, max=1).expected == "length <= 1"
    assert refused(validate_length, value=value, min=3).code == "field_too_small"
    assert refused(validate_length, value=5, min=3).code == "wrong_type"


def test_choices_come_with_a_suggestion():
    """[P-13] The failure lists the choices; the suggestion waits unless it is asked for."""
    choices = ["celsius", "kelvin"]
    assert validate_choice(tool="t", field="f", value="kelvin", choices=choices) == "kelvin"

    error = refused(validate_choice, value="kelvn", choices=choices)
    assert (error.code, error.expected) == ("invalid_choice", "'celsius' or 'kelvin'")
    assert error.render("llm") == (
        "Error: f must be one of 'celsius' or 'kelvin' (received str: 'kelvn')"
    )
    assert error.suggestion == "Did you mean 'kelvin'?"
    asked = refused(validate_choice, value="kelvn", choices=choices, suggest=True)
    assert asked.render("llm").endswith("\nHint: Did you mean 'kelvin'?")


@pytest.mark.parametrize(
    ("value", "choices"), [(True, [1]), ("1", [1]), (1.0, [1]), ([1], [1]), (None, [])]
)
def test_choices_are_of_the_same_type(value, choices):
    """[P-13] True is not 1, and 1.0 is not either."""
    assert refused(validate_choice, value=value, choices=choices).code == "invalid_choice"


def test_choices_of_an_enum():
    """[P-13] An Enum class offers its values; members are values too."""
    assert validate_choice(tool="t", field="f", value="celsius", choices=Unit) == "celsius"
    assert validate_choice(tool="t", field="f", value=Unit.KELVIN, choices=Unit) is Unit.KELVIN
    assert (
        refused(validate_choice, value="CELSIUS", choices=Unit).expected == "'celsius' or 'kelvin'"
    )


@pytest.mark.parametrize("path", ["src/a.rs", "/etc/x", "a b/c.txt", "C:/x", "..", "a\\b"])
def test_ordinary_paths(path):
    """[P-13] Plain ASCII paths pass."""
    assert validate_path(tool="t", field="f", path=path) == path
    assert validate_path(tool="t", field="f", value=path) == path


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("naïve.txt", "non_ascii"),
        ("a\nb", "control_characters"),
        ("a\x7f", "control_characters"),
        ("a\u0085é", "non_ascii"),
        *[(f"a{c}b", "invalid_characters") for c in '<>"|?*'],
    ],
)
def test_paths_that_are_refused(path, reason):
    """[P-13] The reason is in the context of the failure."""
    error = refused(validate_path, path=path)

    assert (error.code, error.retry_context) == ("invalid_format", {"reason": reason})
    assert refused(validate_path, path=5).code == "wrong_type"


@pytest.mark.parametrize("value", ["a.rs", "A.RS", "dir/a.Rs", "a.tar.gz"])
def test_extensions_ignore_case_and_dot(value):
    """[P-13] Case and the leading dot do not matter."""
    allowed = [".rs", "tar.gz"]
    assert validate_extension(tool="t", field="f", value=value, allowed=allowed) == value


def test_extensions_that_are_refused():
    """[P-13] Other extensions are named; `*` and `any` allow all."""
    error = refused(validate_extension, value="a.py", allowed=["rs", "TOML"])

    assert error.message == "f must have the extension '.rs' or '.toml'"
    assert refused(validate_extension, value="rs", allowed=["rs"]).code == "invalid_choice"
    assert refused(validate_extension, value="a.rs/x", allowed=["rs"]).code == "invalid_choice"
    for everything in ("*", "any"):
        assert validate_extension(tool="t", field="f", value="x", allowed=[everything]) == "x"


def test_ascii_names():
    """[P-13] Names are ASCII letters, digits, dash, underscore and inner dots."""
    assert validate_ascii_name(tool="t", field="f", value="read_file.v2") == "read_file.v2"
    for value in ("", ".hidden", "naïve", "a b", "a/b"):
        assert refused(validate_ascii_name, value=value).code == "invalid_format"


def test_json_texts():
    """[P-13] JSON is accepted as it is, and refused with the place of the mistake."""
    assert validate_json(tool="t", field="f", value='{"a": 1}') == '{"a": 1}'
    error = refused(validate_json, value="{bad")
    assert (error.code, error.snippet) == ("malformed_json", "{bad")
    assert error.message == (
        "f must be valid JSON: Expecting property name enclosed in double quotes: "
        "line 1 column 2 (char 1)"
    )
    for value in ("NaN", "[" * 100_000, ""):
        assert refused(validate_json, value=value).code == "malformed_json"


@pytest.mark.parametrize(
    "value",
    [
        "http://h",
        "https://example.com:8443/p?q=1#f",
        "HTTP://h/",
        "https://[::1]/x",
        "http://u:p@h",
    ],
)
def test_urls(value):
    """[P-13] Absolute web addresses pass."""
    assert validate_url(tool="t", field="f", value=value) == value


@pytest.mark.parametrize(
    "value",
    [
        "",
        "example.com",
        "ftp://h",
        "http://",
        "http:///p",
        "http://h:99999",
        "http://h:x",
        "http://[::1",
        "http://a b",
        "http://h/\n",
        "javascript:alert(1)",
        "//h/p",
        "http://h:0",
    ],
)
def test_urls_that_are_refused(value):
    """[P-13] Other schemes, missing hosts, bad ports and spaces are refused."""
    error = refused(validate_url, value=value)

    assert (error.code, error.expected) == ("invalid_format", "URL (http or https)")


def test_credentials_of_a_refused_url_are_not_echoed():
    """[C16] A URL with a password is redacted in its own failure."""
    error = refused(validate_url, value="ftp://bob:pw1@h/x")

    assert "pw1" not in str(error.to_llm_payload())
    assert validate_url(tool="t", field="f", value="ftp://h", schemes=("ftp",)) == "ftp://h"


@pytest.mark.parametrize(
    ("validator", "good", "bad"),
    [
        (
            validate_date,
            ["2024-01-31", "2024-02-29"],
            ["2023-02-29", "31.01.2024", "2024-1-1", "2024-01-31T00:00:00", "", "20240131"],
        ),
        (
            validate_time,
            ["12:30", "12:30:00", "12:30:00.5", "12:30:00Z", "12:30:00+02:00"],
            ["25:00", "12", "12:60", "noon", "12:30:00+2"],
        ),
        (
            validate_datetime,
            ["2024-01-31T12:30:00Z", "2024-01-31 12:30", "2024-01-31T12:30:00.123456+02:00"],
            ["2024-01-31", "2024-01-32T00:00:00", "now", "2024-01-31T25:00:00Z"],
        ),
    ],
)
def test_dates_and_times(validator, good, bad):
    """[P-13] ISO 8601 forms pass on every Python; others are invalid_format."""
    for value in good:
        assert validator(tool="t", field="f", value=value) == value
    for value in bad:
        assert refused(validator, value=value).code == "invalid_format"
    assert refused(validator, value=5).code == "wrong_type"


def test_an_offset_can_be_required():
    """[P-13] RFC 3339 wants the offset."""
    with_offset = validate_datetime(
        tool="t", field="f", value="2024-01-31T12:30:00Z", with_offset=True
    )
    assert with_offset == "2024-01-31T12:30:00Z"
    error = refused(validate_datetime, value="2024-01-31T12:30:00", with_offset=True)
    assert error.expected == "datetime with timezone"


def test_regular_expressions():
    """[P-13] A text that is a regular expression, and a text that matches one."""
    assert validate_regex(tool="t", field="f", value="^a+$") == "^a+$"
    for value, code in (
        ("(", "invalid_format"),
        ("x" * 1_001, "field_too_large"),
        (5, "wrong_type"),
    ):
        assert refused(validate_regex, value=value).code == code
    assert validate_pattern(tool="t", field="f", value="aa", pattern="^a+$") == "aa"
    assert refused(validate_pattern, value="b", pattern="^a+$").expected == "pattern ^a+$"


def test_secret_fields_do_not_echo_their_value():
    """[C16] A validator hides the value of a secret field."""
    with pytest.raises(ToolError) as caught:
        validate_length(tool="t", field="password", value="abc", min=8)

    assert caught.value.render("llm") == (
        "Error: password must have a length >= 8 (received str: [REDACTED])"
    )
