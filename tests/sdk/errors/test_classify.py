"""Exceptions to codes, and failed invocations to failures."""

from __future__ import annotations

import asyncio
import concurrent.futures
import urllib.error
from email.message import Message

import pytest

from toolfault.errors import (
    INTERNAL_TEXT,
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


def test_exceptions_are_classified_by_type_and_status() -> None:
    """[E3][A19][W-05] The first matching rule decides; a number in prose changes nothing."""
    cases: list[tuple[BaseException, str]] = [
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
        (urllib.error.HTTPError("http://h", 429, "m", Message(), None), "rate_limited"),
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
    ]
    for exc, code in cases:
        error = ToolError.from_exception("t", exc)

        assert (error.code, error.category) == (code, "internal"), exc.__class__
        assert error.render("llm") == INTERNAL_TEXT
        assert error.cause is exc
        assert error.render("system").endswith(f"{type(exc).__module__}.{type(exc).__name__}")


def test_an_exception_that_says_nothing_is_named_for_the_system() -> None:
    """[P-05] The name of its class stands for an empty text, and for one that cannot be had."""
    assert ToolError.from_exception("t", KeyError()).render("system") == (
        "tool=t code=internal_error category=internal: KeyError — exception: builtins.KeyError"
    )
    assert "<unrepresentable Hostile>" in ToolError.from_exception("t", Hostile()).render("system")


def test_a_phrase_of_the_guideline_is_read_in_any_case_and_shown_redacted() -> None:
    """[L-07][A06][C15] A phrase makes a parameter error of any exception; secrets stay inside."""
    for text, shown in (
        ("INVALID PARAMETER x", "INVALID PARAMETER x"),
        ("invalid parameter: password=hunter2 at x", "invalid parameter: [REDACTED] at x"),
    ):
        error = ToolError.from_exception("scale", RuntimeError(text))

        assert (error.code, error.category) == ("invalid_input", "parameter")
        assert error.render("llm") == f"Error: {shown}"
        assert (error.to_llm_payload()["field"], error.to_llm_payload()["issues"]) == (None, [])


def test_a_phrase_is_shown_up_to_500_characters() -> None:
    """[L-07][L-16] A very long first line is cut."""
    text = ToolError.from_exception("t", ValueError("invalid parameter " + "x" * 5_000)).message

    assert len(text) == 500


def test_a_failed_validation_passes_through_unchanged() -> None:
    """[P-11] A ToolError of validation is what the default adapter returns."""
    error = ToolError("t", "m", field="f")
    adapted = default_adapt_error(ToolInvocationError.validation(error))

    assert adapted.renderings() == error.renderings()
    assert adapted.kind is InvocationKind.VALIDATION
    assert error.kind is None


def test_each_kind_of_invocation_has_a_default() -> None:
    """[P-10][P-11] The default adapter turns every kind into a failure."""
    cases = [
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
    ]
    for invocation, code, category in cases:
        error = default_adapt_error(invocation)

        assert (error.code, error.category) == (code, category)
        assert error.kind is invocation.kind


def test_an_invocation_is_itself_an_exception() -> None:
    """[P-11] It can be raised, and says where it failed without saying what."""
    invocation = ToolInvocationError.exec(ValueError("secret"), tool="t")

    assert isinstance(invocation, Exception)
    assert invocation.__cause__ is invocation.exc
    assert str(invocation) == "exec failure in tool t: ValueError"


def test_only_errors_of_validation_libraries_are_validation_errors() -> None:
    """[W-05] A plain ValueError is none, whatever its name in another package."""
    from pydantic import BaseModel, ValidationError

    class ValidationErrorOfOurs(ValueError):
        pass

    class Model(BaseModel):
        a: int

    with pytest.raises(ValidationError) as caught:
        Model.model_validate({"a": "x"})
    assert is_validation_error(caught.value)
    assert not is_validation_error(ValidationErrorOfOurs())
    assert not is_validation_error(ValueError("x"))
    assert not is_validation_error("x")


class Unhashable(type):
    """A metaclass that compares classes, and so forgot how to hash them."""

    def __eq__(cls, other: object) -> bool:
        return cls is other

    __hash__ = None  # type: ignore[assignment]


class UnhashableError(ValueError, metaclass=Unhashable):
    """An exception whose class is in no dict."""


class NoAttributesError(Exception):
    """An exception that says its attributes by code of its own."""

    @property
    def __dict__(self):  # type: ignore[override]
        raise SystemExit(3)


@pytest.mark.parametrize("error", [UnhashableError("boom"), NoAttributesError("boom")])
def test_no_code_of_a_class_or_its_metaclass_runs(error: Exception) -> None:
    """[S1] What is known of a class is found whatever the class, or its own class, does."""
    failure = ToolError.from_exception("t", error)

    assert failure.code.value == "internal_error"
    assert "internal: boom — exception: " in failure.render("system")
    assert not is_validation_error(error)


def test_classes_of_one_name_are_told_apart() -> None:
    """What is known of a class is that class's own, also after thousands of others."""
    codes = {0: "rate_limited", 1: "timeout", 2: "internal_error"}
    for number in range(3_000):
        kind = number % 3
        bases = (TimeoutError,) if kind == 1 else (ValueError,)
        made = type("Made", bases, {"status_code": 429} if kind == 0 else {})
        assert ToolError.from_exception("t", made("m")).code.value == codes[kind]
