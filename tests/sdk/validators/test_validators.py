"""Shared validators: what they accept, and what their failures say."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

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


def refused(validator: Callable[..., object], **options: Any) -> ToolError:
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


def test_above_and_below_the_bounds() -> None:
    """[P-14] Bounds are inclusive; above is field_too_large, below is field_too_small."""
    for value in (1, 5, 10):
        assert validate_bounded_int(tool="t", field="f", value=value, min=1, max=10) == value
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


def test_only_integers_are_integers() -> None:
    """[P-14] A boolean is no integer, and neither is a float or a text."""
    for value in (True, 1.0, "1", None, [1]):
        error = refused(validate_bounded_int, value=value, min=0)

        assert (error.code, error.expected) == ("wrong_type", "integer")


def test_numbers_within_bounds() -> None:
    """[P-13] Integers and floats are numbers; bounds, finiteness and type are told apart."""
    for value in (0, 0.5, 1, -0.0):
        assert validate_bounded_number(tool="t", field="f", value=value, min=0, max=1) == value
    wrong: list[tuple[object, str]] = [
        (1.5, "field_too_large"),
        (-0.5, "field_too_small"),
        (float("nan"), "invalid_format"),
        (float("inf"), "invalid_format"),
        (True, "wrong_type"),
        ("0.5", "wrong_type"),
    ]
    for odd, code in wrong:
        assert refused(validate_bounded_number, value=odd, min=0, max=1).code == code


def test_the_token_limit_counts_texts() -> None:
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


def test_lengths_of_texts_lists_and_objects() -> None:
    """[P-13][C25] One pair of codes for everything that has a length."""
    values: list[Any] = ["ab", [1, 2], {"a": 1, "b": 2}, (1, 2), b"ab"]
    for value in values:
        assert validate_length(tool="t", field="f", value=value, min=2, max=2) is value
        assert refused(validate_length, value=value, max=1).expected == "length <= 1"
        assert refused(validate_length, value=value, min=3).code == "field_too_small"
    assert refused(validate_length, value=5, min=3).code == "wrong_type"


def test_choices_come_with_a_suggestion() -> None:
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


def test_choices_are_of_the_same_type() -> None:
    """[P-13] True is not 1, and 1.0 is not either."""
    cases: list[tuple[object, list[object]]] = [
        (True, [1]),
        ("1", [1]),
        (1.0, [1]),
        ([1], [1]),
        (None, []),
    ]
    for value, choices in cases:
        assert refused(validate_choice, value=value, choices=choices).code == "invalid_choice"


def test_choices_of_an_enum() -> None:
    """[P-13] An Enum class offers its values; members are values too."""
    assert validate_choice(tool="t", field="f", value="celsius", choices=Unit) == "celsius"
    assert validate_choice(tool="t", field="f", value=Unit.KELVIN, choices=Unit) is Unit.KELVIN
    assert (
        refused(validate_choice, value="CELSIUS", choices=Unit).expected == "'celsius' or 'kelvin'"
    )


def test_paths() -> None:
    """[P-13] Plain ASCII paths pass; the reason of a refusal is in the context of the failure."""
    for path in ("src/a.rs", "/etc/x", "a b/c.txt", "C:/x", "..", "a\\b"):
        assert validate_path(tool="t", field="f", path=path) == path
        assert validate_path(tool="t", field="f", value=path) == path
    reasons = {
        "": "empty",
        "   ": "empty",
        "naïve.txt": "non_ascii",
        "a\nb": "control_characters",
        "a\x7f": "control_characters",
        "a\u0085é": "non_ascii",
        **{f"a{letter}b": "invalid_characters" for letter in '<>"|?*'},
    }
    for path, reason in reasons.items():
        error = refused(validate_path, path=path)

        assert (error.code, error.retry_context) == ("invalid_format", {"reason": reason})
    assert refused(validate_path, path=5).code == "wrong_type"


def test_extensions_ignore_case_and_dot() -> None:
    """[P-13] Case and the leading dot do not matter."""
    allowed = [".rs", "tar.gz"]
    for value in ("a.rs", "A.RS", "dir/a.Rs", "a.tar.gz"):
        assert validate_extension(tool="t", field="f", value=value, allowed=allowed) == value


def test_extensions_that_are_refused() -> None:
    """[P-13] Other extensions are named; `*` and `any` allow all."""
    error = refused(validate_extension, value="a.py", allowed=["rs", "TOML"])

    assert error.message == "f must have the extension '.rs' or '.toml'"
    assert refused(validate_extension, value="rs", allowed=["rs"]).code == "invalid_choice"
    assert refused(validate_extension, value="a.rs/x", allowed=["rs"]).code == "invalid_choice"
    for everything in ("*", "any"):
        assert validate_extension(tool="t", field="f", value="x", allowed=[everything]) == "x"


def test_ascii_names() -> None:
    """[P-13] Names are ASCII letters, digits, dash, underscore and inner dots."""
    assert validate_ascii_name(tool="t", field="f", value="read_file.v2") == "read_file.v2"
    for value in ("", ".hidden", "naïve", "a b", "a/b"):
        assert refused(validate_ascii_name, value=value).code == "invalid_format"


def test_json_texts() -> None:
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


def test_urls() -> None:
    """[P-13] Absolute web addresses pass."""
    for value in [
        "http://h",
        "https://example.com:8443/p?q=1#f",
        "HTTP://h/",
        "https://[::1]/x",
        "http://u:p@h",
    ]:
        assert validate_url(tool="t", field="f", value=value) == value


def test_urls_that_are_refused() -> None:
    """[P-13] Other schemes, missing hosts, bad ports and spaces are refused."""
    for value in [
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
    ]:
        error = refused(validate_url, value=value)

        assert (error.code, error.expected) == ("invalid_format", "URL (http or https)")


def test_credentials_of_a_refused_url_are_not_echoed() -> None:
    """[C16] A URL with a password is redacted in its own failure."""
    error = refused(validate_url, value="ftp://bob:pw1@h/x")

    assert "pw1" not in str(error.to_llm_payload())
    assert validate_url(tool="t", field="f", value="ftp://h", schemes=("ftp",)) == "ftp://h"


def test_dates_and_times() -> None:
    """[P-13] ISO 8601 forms pass on every Python; others are invalid_format."""
    cases: list[tuple[Callable[..., str], list[str], list[str]]] = [
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
    ]
    for validator, good, bad in cases:
        for value in good:
            assert validator(tool="t", field="f", value=value) == value
        for value in bad:
            assert refused(validator, value=value).code == "invalid_format"
        assert refused(validator, value=5).code == "wrong_type"


def test_an_offset_can_be_required() -> None:
    """[P-13] RFC 3339 wants the offset."""
    with_offset = validate_datetime(
        tool="t", field="f", value="2024-01-31T12:30:00Z", with_offset=True
    )
    assert with_offset == "2024-01-31T12:30:00Z"
    error = refused(validate_datetime, value="2024-01-31T12:30:00", with_offset=True)
    assert error.expected == "datetime with timezone"


def test_regular_expressions() -> None:
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


def test_secret_fields_do_not_echo_their_value() -> None:
    """[C16] A validator hides the value of a secret field."""
    with pytest.raises(ToolError) as caught:
        validate_length(tool="t", field="password", value="abc", min=8)

    assert caught.value.render("llm") == (
        "Error: password must have a length >= 8 (received str: [REDACTED])"
    )
