"""Several arguments at once, validators in types, and validators of one's own."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import BaseModel, ValidationError

from toolfault.errors import ConfigError, ToolError
from toolfault.validators import (
    Check,
    collect,
    exactly_one,
    mutually_exclusive,
    register_validator,
    registered_validators,
    validate,
    validate_bounded_int,
    validate_choice,
    validate_path,
    validate_unified_diff,
    validate_url,
    validator_named,
)


def test_mutually_exclusive() -> None:
    """[P-13] At most one is given; None and False do not count."""
    assert mutually_exclusive(tool="t", values={"a": None, "b": False, "c": 0}) == "c"
    assert mutually_exclusive(tool="t", values={"a": None}) is None
    with pytest.raises(ToolError) as caught:
        mutually_exclusive(tool="t", values={"all": True, "ids": [1], "q": None})
    assert caught.value.render("llm") == (
        "Error: only one of all, ids, q may be given, not all, ids"
    )
    assert caught.value.retry_context == {"fields": ["all", "ids", "q"]}


def test_exactly_one() -> None:
    """[P-13] One must be given, and only one."""
    assert exactly_one(tool="t", values={"a": None, "b": "x"}) == "b"
    with pytest.raises(ToolError) as caught:
        exactly_one(tool="t", values={"patch": None, "patches": None})
    assert (caught.value.code, caught.value.message) == (
        "missing_field",
        "exactly one of patch, patches must be given",
    )
    with pytest.raises(ToolError, match="only one of"):
        exactly_one(tool="t", values={"patch": "x", "patches": "y"})


def test_collect_reports_all_failures_at_once() -> None:
    """[H-01][C27][P-13] Every validator runs; the block raises one failure with all issues."""

    def request():
        with collect("http", context="HTTP request") as check:
            assert check(validate_bounded_int, field="port", value=0, min=1) is None
            assert check(validate_url, field="url", value="http://h") == "http://h"
            assert check(validate_choice, field="verb", value="GIT", choices=["GET"]) is None
            check(mutually_exclusive, values={"a": 1, "b": 2})

    with pytest.raises(ToolError) as caught:
        request()

    assert caught.value.render("llm") == (
        "Error: Invalid HTTP request - 3 errors:\n"
        "  • port: port must be >= 1 (received int: 0)\n"
        "  • verb: verb must be 'GET' (received str: 'GIT')\n"
        "  • (root): only one of a, b may be given, not a, b\n"
        "\n"
        "Please fix all errors and retry with correct types."
    )
    assert caught.value.tool == "http"


def test_collect_without_failures_is_silent() -> None:
    """[C27] Nothing failed, nothing is raised."""
    with collect("t") as check:
        assert check(validate_bounded_int, field="n", value=5, max=5) == 5


def test_collect_takes_failures_raised_in_the_block() -> None:
    """[C27] A failure raised or added by hand joins the others."""

    def request():
        with collect("t") as check:
            check(validate_bounded_int, field="n", value=9, max=5)
            check.add(ToolError("t", "odd", field="o"))
            raise ToolError("t", "last", field="l")

    with pytest.raises(ToolError) as caught:
        request()

    assert [issue.field for issue in caught.value.issues] == ["n", "o", "l"]


def test_collect_does_not_hide_other_exceptions() -> None:
    """[C27] A bug in the block is not turned into a failure of the arguments."""

    def request():
        with collect("t") as check:
            check(validate_bounded_int, field="n", value=9, max=5)
            raise KeyError("bug")

    with pytest.raises(KeyError):
        request()


class Patch(BaseModel):
    port: Annotated[int, Check(validate_bounded_int, min=1, max=10)]
    path: Annotated[str, Check("path")]
    diff: Annotated[str, Check(validate_unified_diff)] = "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n"


def test_validators_in_a_pydantic_model() -> None:
    """[P-13][P-17] A failure of a validator is an error of its field, with its code."""
    assert Patch(port=5, path="a").port == 5
    args = {"port": 99, "path": "a?b", "diff": "no"}
    with pytest.raises(ValidationError) as caught:
        Patch.model_validate(args)
    error = ToolError.from_validation_error("t", caught.value, args)

    assert [(i.field, i.code, i.message, i.expected) for i in error.issues] == [
        ("port", "field_too_large", "must be <= 10", "<= 10"),
        ("path", "invalid_format", 'must not contain any of < > " | ? *', "path"),
        (
            "diff",
            "malformed_diff",
            "expected unified diff with ---/+++ headers and @@ hunks",
            "unified diff with ---/+++ and @@",
        ),
    ]


def test_validators_in_a_model_meet_other_errors() -> None:
    """[H-01] Errors of pydantic and of validators are reported together."""
    with pytest.raises(ValidationError) as caught:
        Patch.model_validate({"port": "x", "path": ""})

    assert [e["type"] for e in caught.value.errors()] == ["int_parsing", "invalid_format"]


def test_a_message_with_braces_is_text() -> None:
    """[P-17] Words of a validator are never read as a template."""

    def braces(*, tool, field, value):
        raise ToolError(tool, "{value} {0}", field=field)

    class Model(BaseModel):
        n: Annotated[int, Check(braces)]

    with pytest.raises(ValidationError) as caught:
        Model(n=1)
    assert caught.value.errors()[0]["msg"] == "{value} {0}"


def test_a_check_works_without_pydantic() -> None:
    """[P-13] The same annotation can be asked directly."""
    check = Check("bounded_int", max=5)

    assert check.validate(tool="t", field="n", value=5) == 5
    with pytest.raises(ToolError, match="n must be <= 5"):
        check.validate(tool="t", field="n", value=6)
    assert repr(check) == "Check(validate_bounded_int)"


def test_the_set_of_validators_is_open(request) -> None:
    """[P-17] A project registers its own and gets the same error surface."""
    name = f"even_{request.node.name}"

    def validate_even(*, tool, field, value):
        if value % 2:
            raise ToolError(
                tool,
                f"{field} must be even",
                "odd_number",
                category="parameter",
                field=field,
                expected="even number",
                received=value,
            )
        return value

    assert register_validator(name, validate_even) is validate_even
    assert register_validator(name, validate_even) is validate_even
    assert registered_validators()[name] is validate_even
    assert validate(name, tool="t", field="n", value=2) == 2
    with pytest.raises(ToolError) as caught:
        validate(name, tool="t", field="n", value=3)
    assert caught.value.render("llm") == "Error: n must be even (received int: 3)"
    assert caught.value.to_llm_payload()["code"] == "odd_number"


def test_built_in_validators_are_registered_by_name() -> None:
    """[P-17] Every built-in validator can be used by its name."""
    assert validator_named("path") is validate_path
    assert {"bounded_int", "unified_diff", "context_limit", "url", "json"} <= set(
        registered_validators()
    )


def test_registering_badly_says_what_to_do() -> None:
    """[P-17] A taken name, an unknown name and a value that is no function are refused."""
    with pytest.raises(ConfigError, match="choose another name"):
        register_validator("path", validate_url)
    with pytest.raises(ConfigError, match="Did you mean 'path'"):
        validator_named("pth")
    with pytest.raises(ConfigError, match="function"):
        register_validator("x", 5)  # type: ignore[type-var]
    with pytest.raises(ConfigError, match="function"):
        Check(5)  # type: ignore[arg-type]
