"""Exceptions to codes, and failed invocations to failures."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import urllib.error

import pytest

from toolfault.errors import (
    INTERNAL_TEXT,
    ArgumentsNotObjectError,
    InvocationKind,
    ToolError,
    ToolInvocationError,
    default_adapt_error,
    is_validation_error,
)


class Status(Exception):
    """An exception of a client library with a status."""

    def __init__(self, status_code):
        super().__init__(f"{status_code} from api.example.com key sk-abcdef123456")
        self.status_code = status_code


class Response:
    """A response as client libraries attach it."""

    def __init__(self, status_code):
        self.status_code = status_code


class WithResponse(Exception):
    """An exception that carries its response."""

    def __init__(self, response):
        super().__init__("failed")
        self.response = response


class Timeout(Exception):
    """What requests calls a timeout."""


class Hostile(Exception):
    """An exception that cannot be printed or looked at."""

    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __str__

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(name)


@pytest.mark.parametrize(
    ("exc", "code"),
    [
        (TimeoutError("t"), "timeout"),
        (TimeoutError(), "timeout"),
        (concurrent.futures.TimeoutError(), "timeout"),
        (Timeout(), "timeout"),
        (Status(429), "rate_limited"),
        (Status(500), "external_service_error"),
        (Status(404), "external_service_error"),
        (Status(200), "internal_error"),
        (WithResponse(Response(429)), "rate_limited"),
        (WithResponse(Response(503)), "external_service_error"),
        (WithResponse({"ResponseMetadata": {"HTTPStatusCode": 429}}), "rate_limited"),
        (WithResponse(None), "internal_error"),
        (urllib.error.HTTPError("http://h", 429, "m", None, None), "rate_limited"),
        (ConnectionError("c"), "external_service_error"),
        (ConnectionRefusedError(111, "refused"), "external_service_error"),
        (PermissionError(13, "denied", "/etc/shadow"), "io"),
        (FileNotFoundError(2, "no", "x"), "io"),
        (RuntimeError("status_code: 429 in prose"), "internal_error"),
        (ValueError("plain"), "internal_error"),
        (TypeError("unsupported operand"), "internal_error"),
        (KeyError("k"), "internal_error"),
        (RecursionError(), "internal_error"),
        (Hostile(), "internal_error"),
        (asyncio.CancelledError(), "cancelled"),
        (KeyboardInterrupt(), "cancelled"),
    ],
)
def test_exceptions_are_classified_by_type_and_status(exc, code):
    """[E3][A19][W-05] The first matching rule decides; a number in prose changes nothing."""
    error = ToolError.from_exception("t", exc)

    assert error.code == code
    assert error.category == "internal"
    assert error.render("llm") == INTERNAL_TEXT
    assert error.cause is exc
    assert error.render("system").endswith(f"{type(exc).__module__}.{type(exc).__name__}")


@pytest.mark.parametrize(
    ("text", "code", "shown"),
    [
        (
            "Invalid parameter value for xyz: must be a positive number",
            "invalid_input",
            "Invalid parameter value for xyz: must be a positive number",
        ),
        (
            "boom: Missing required parameter: abc\nTraceback …",
            "missing_field",
            "boom: Missing required parameter: abc",
        ),
        ("INVALID PARAMETER x", "invalid_input", "INVALID PARAMETER x"),
        (
            "invalid parameter: password=hunter2 at x",
            "invalid_input",
            "invalid parameter: [REDACTED] at x",
        ),
    ],
)
def test_the_phrases_of_the_founding_guideline_are_parameter_errors(text, code, shown):
    """[L-07][A06][C15] A phrase shows its first line, redacted; the rest stays inside."""
    error = ToolError.from_exception("scale", RuntimeError(text))

    assert (error.code, error.category) == (code, "parameter")
    assert error.render("llm") == f"Error: {shown}"
    assert error.to_llm_payload()["field"] is None
    assert error.to_llm_payload()["issues"] == []


def test_a_phrase_is_shown_up_to_500_characters():
    """[L-07][L-16] A very long first line is cut."""
    text = ToolError.from_exception("t", ValueError("invalid parameter " + "x" * 5_000)).message

    assert len(text) == 500


def test_a_tool_error_is_taken_as_it_is():
    """[E4][H-12] An authored failure passes through unchanged."""
    error = ToolError("get_user", "User 42 does not exist", "not_found")

    assert ToolError.from_exception("other", error) is error


def test_an_exception_without_text_is_named_for_the_system():
    """[P-05] An empty text is replaced by the name of the exception."""
    system = ToolError.from_exception("t", KeyError()).render("system")

    assert system == (
        "tool=t code=internal_error category=internal: KeyError — exception: builtins.KeyError"
    )


def test_an_unprintable_exception_is_still_a_failure():
    """[P-05] An exception whose __str__ raises is described by its class."""
    assert "<unrepresentable Hostile>" in ToolError.from_exception("t", Hostile()).render("system")


def test_broken_json_arguments_show_where_and_what():
    """[A14][P-11][P-12][C10] The model reads why, and gets the text as snippet."""
    raw = '{"expression": "1+1"'
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads(raw)
    invocation = ToolInvocationError.deserialize(caught.value, raw, tool="calculator")
    error = default_adapt_error(invocation)

    shown = "failed to parse tool arguments: Expecting ',' delimiter: line 1 column 21 (char 20)"
    assert error.render("llm") == f"Error: {shown}"
    assert error.render("user") == f"calculator: {shown}"
    assert error.render("system") == (
        f"tool=calculator code=malformed_json category=parameter: {shown}"
        f" — snippet: {raw} — exception: json.decoder.JSONDecodeError"
    )
    payload = error.to_llm_payload()
    assert (payload["code"], payload["snippet"], payload["issues"], payload["field"]) == (
        "malformed_json",
        raw,
        [],
        None,
    )
    assert error.kind is InvocationKind.DESERIALIZE


def test_arguments_that_are_no_object():
    """[A15] Ruling 13: top-level code, expected and received are set, without issues."""
    invocation = ToolInvocationError(
        "deserialize", ArgumentsNotObjectError([1, 2]), "[1,2]", tool="calculator"
    )
    error = default_adapt_error(invocation)

    shown = "failed to parse tool arguments: expected a JSON object"
    assert error.render("llm") == f"Error: {shown} (received list: [1, 2])"
    assert error.render("user") == f"calculator: {shown}"
    assert error.render("system") == (
        f"tool=calculator code=wrong_type category=parameter: {shown}"
        " — expected: object — received: [1, 2]"
    )
    assert str(error) == f"wrong_type error in tool calculator: {shown}"
    assert error.to_llm_payload()["issues"] == []


def test_a_failed_validation_passes_through_unchanged():
    """[P-11] A ToolError of validation is what the default adapter returns."""
    error = ToolError("t", "m", field="f")
    adapted = default_adapt_error(ToolInvocationError.validation(error))

    assert adapted.renderings() == error.renderings()
    assert adapted.kind is InvocationKind.VALIDATION
    assert error.kind is None


@pytest.mark.parametrize(
    ("invocation", "code", "category"),
    [
        (ToolInvocationError.exec(RuntimeError("x"), tool="t"), "internal_error", "internal"),
        (ToolInvocationError.exec(ValueError("invalid parameter x")), "invalid_input", "parameter"),
        (ToolInvocationError.transport(TimeoutError()), "timeout", "internal"),
        (ToolInvocationError.transport(OSError("x")), "io", "internal"),
        (
            ToolInvocationError.transport(RuntimeError("invalid parameter")),
            "internal_error",
            "internal",
        ),
        (ToolInvocationError.internal("queue gone"), "internal_error", "internal"),
        (ToolInvocationError("internal"), "internal_error", "internal"),
        (
            ToolInvocationError("validation", ValueError("end < start")),
            "invalid_input",
            "parameter",
        ),
        (ToolInvocationError("deserialize", None, "{"), "malformed_json", "parameter"),
    ],
)
def test_each_kind_of_invocation_has_a_default(invocation, code, category):
    """[P-10][P-11] The default adapter turns every kind into a failure."""
    error = default_adapt_error(invocation)

    assert (error.code, error.category) == (code, category)
    assert error.kind is invocation.kind


def test_a_type_error_inside_a_validator_is_internal():
    """[C15] Trap 3, ruling 6: a bug of a validator is not the model's fault."""
    error = default_adapt_error(ToolInvocationError("validation", TypeError("1 + 'a'"), tool="t"))

    assert (error.code, error.category) == ("internal_error", "internal")
    assert error.kind is InvocationKind.VALIDATION


def test_an_invocation_is_itself_an_exception():
    """[P-11] It can be raised, and says where it failed without saying what."""
    invocation = ToolInvocationError.exec(ValueError("secret"), tool="t")

    assert isinstance(invocation, Exception)
    assert invocation.__cause__ is invocation.exc
    assert str(invocation) == "exec failure in tool t: ValueError"


def test_only_errors_of_validation_libraries_are_validation_errors():
    """[W-05] A plain ValueError is none, whatever its name in another package."""
    from pydantic import BaseModel, ValidationError

    class ValidationErrorOfOurs(ValueError):
        pass

    class Model(BaseModel):
        a: int

    with pytest.raises(ValidationError) as caught:
        Model(a="x")
    assert is_validation_error(caught.value)
    assert not is_validation_error(ValidationErrorOfOurs())
    assert not is_validation_error(ValueError("x"))
    assert not is_validation_error("x")
