"""Hints for the model, and near misses for the developer."""

from __future__ import annotations

import pickle
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from toolfault import Issue, ToolError, tool
from toolfault.tools import set_defaults
from toolfault.validators import validate_choice


class Between:
    """Bounds of a port."""

    ge = 1
    le = 65535


def fetch(
    url: str,
    port: Annotated[int, Between()] = 80,
    method: Literal["GET", "POST"] = "GET",
    verify: bool = True,
    headers: dict[str, str] | None = None,
    ids: list[int] | None = None,
) -> None:
    """Take one of everything."""


def near_misses(function: Any, arguments: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Remedies by field."""
    error = function.call(arguments).error
    assert error is not None
    return {issue.field: issue.near_miss for issue in error.issues if issue.near_miss}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"url": "a", "verify": "true"}, {"verify": ("bool_from_string",)}),
        ({"url": "a", "port": "80"}, {"port": ("int_from_string",)}),
        ({"url": "a", "port": 99999}, {"port": ("clamp",)}),
        ({"url": "a", "method": "get"}, {"method": ("fold_case",)}),
        ({"url": "a", "ids": "[1]"}, {"ids": ("json_from_string",)}),
        ({"url": "a", "ids": 3}, {"ids": ("wrap_in_list",)}),
        ({"urls": "a"}, {"urls": ("alias",)}),
        ({"url": "a", "verify": "maybe"}, {}),
        ({}, {}),
    ],
)
def test_near_misses_are_named_without_values(
    arguments: dict[str, Any], expected: dict[str, tuple[str, ...]]
) -> None:
    """A rejected value that a known remedy would have accepted names the remedy."""
    assert near_misses(tool(fetch), arguments) == expected


def test_a_branch_called_like_a_key_is_no_key() -> None:
    """Ruling 4: what a branch of a union happens to address is not what the issue is about."""

    class Range(BaseModel, strict=True):
        first: int

    class Query(BaseModel, strict=True):
        at: int | Range
        tags: list[int] | dict[str, list[int]]

    @tool(model=Query)
    def query(**fields: Any) -> None: ...

    sent = {"at": {"int": "5", "first": 1, "Range": {}}, "tags": {"list[int]": {"a": [1]}}}
    error = query.call(sent).error
    assert error is not None
    assert near_misses(query, {"at": {"int": "5"}, "tags": [1]}) == {}
    assert not any("int_from_string" in issue.near_miss for issue in error.issues)


def test_near_misses_of_a_pydantic_model() -> None:
    """They are judged on what the model sent, also in lists and unions."""

    class Item(BaseModel, strict=True):
        port: int

    class Batch(BaseModel, strict=True):
        items: list[Item]
        limit: int | None

    @tool(model=Batch)
    def batch(**fields: Any) -> None: ...

    assert near_misses(batch, {"items": [{"port": 1}, {"port": "80"}], "limit": "5"}) == {
        "items.1.port": ("int_from_string",),
        "limit": ("int_from_string",),
    }


def test_near_misses_of_issues_that_an_author_found() -> None:
    """An issue without its value finds it in the arguments, by its path and its type."""

    @tool
    def send(to: str, copies: Any = 1) -> None:
        names = {"copies": "str", "to": "int"}
        raise ToolError.from_issues(
            "send",
            [
                Issue(name, "wrong_type", expected="integer", received_type=kind)
                for name, kind in names.items()
            ],
        )

    assert near_misses(send, {"to": "7", "copies": "2"}) == {"copies": ("int_from_string",)}


def test_what_was_sent_stays_in_the_process() -> None:
    """An issue keeps a value for its near misses alone: it is neither printed nor pickled."""

    @tool
    def login(password: int) -> None:
        """Take a secret."""

    error = login.call({"password": "canary-1"}).error
    assert error is not None
    assert b"canary" not in pickle.dumps(error)
    assert b"canary" not in pickle.dumps(error.issues[0])
    assert "canary" not in repr(error.issues) + str(error) + str(error.to_llm_payload())


def test_hints_are_off_unless_asked_for() -> None:
    """Derived hints cost tokens; the exact texts of the contract are without them."""
    assert "Hint" not in tool(fetch).call(urls="a").message


@pytest.mark.parametrize("by_default", [True, False])
def test_derived_hints(by_default: bool) -> None:
    """Did-you-mean for names and choices, and an example of the form, for the model alone."""
    set_defaults(hints="derived" if by_default else "off")
    function = tool(hints=None if by_default else "derived")(fetch)

    error = function.call(urls="a", method="GETS", port="x").error

    assert error is not None
    hint = error.render("llm").splitlines()[-1]
    assert hint.startswith("Hint: ")
    assert "Did you mean 'url'?" in hint
    assert "Did you mean 'GET'?" in hint
    assert 'Example: {"port": 1}' in hint
    assert "Did you mean" not in error.render("system")
    assert "Hint" not in error.render("user")


def test_a_tool_can_refuse_derived_hints() -> None:
    """``hints="off"`` holds against the default."""
    set_defaults(hints="derived")

    assert "Hint" not in tool(hints="off")(fetch).call(urls="a").message


def test_a_suggestion_of_a_validator() -> None:
    """What a validator would suggest is shown where derived hints are asked for."""

    @tool(hints="derived")
    def paint(color: str) -> None:
        validate_choice(tool="paint", field="color", value=color, choices=["red", "blue"])

    assert "Hint: Did you mean 'blue'?" in paint.call(color="bleu").message


def test_authored_hints() -> None:
    """The author's hint for the fields at fault, else the one for the tool."""
    hints = {"port": "Ports are numbers.", "ids.*": "Ids are numbers.", "*": "See the manual."}
    function = tool(hints=hints)(fetch)

    assert function.call(url="a", port="x").message.endswith("\nHint: Ports are numbers.")
    assert function.call(url="a", ids=["x", "y"]).message.endswith("\nHint: Ids are numbers.")
    assert function.call(url="a", verify=1).message.endswith("\nHint: See the manual.")
    both = function.call(url="a", port="x", ids=["y"]).error
    assert both is not None
    assert both.retry_hint == "Ports are numbers. Ids are numbers."
    assert "retry_hint: Ports are numbers." in both.render("system")
    assert "Ports" not in both.render("user")


def test_a_hint_for_the_whole_tool() -> None:
    """One text serves every parameter failure, and no other."""

    @tool(hints="Read the manual.")
    def manual(n: int) -> None:
        raise RuntimeError("a bug")

    assert manual.call(n="x").message.endswith("\nHint: Read the manual.")
    internal = manual.call(n=1)
    assert internal.message == "An unexpected error occurred while executing this tool"
    assert internal.error is not None
    assert internal.error.to_llm_payload()["retry_hint"] is None


def test_a_hint_that_was_raised_wins() -> None:
    """What the tool says about this failure is better than what it says about all."""

    @tool(hints="Read the manual.")
    def manual() -> None:
        raise ToolError("manual", "page missing", "not_found", retry_hint="Try page 2.")

    assert manual.call().message == "Error: page missing\nHint: Try page 2."


def test_settings_that_cannot_work() -> None:
    """A wrong setting is refused, and changes nothing."""
    with pytest.raises(ValueError, match="hints must be"):
        set_defaults(hints="on", coerce=True)

    assert not tool(fetch).call(url="a", port="80").success


def test_coercion_by_default() -> None:
    """A process-wide default holds for tools that do not decide for themselves."""
    function = tool(fetch)
    refusing = tool(coerce=False)(fetch)
    set_defaults(coerce=True)

    assert function.call(url="a", port="80", verify="no").success
    assert not refusing.call(url="a", port="80").success
