"""What a model provider is told of a tool."""

from __future__ import annotations

from typing import Any

import pytest

import toolfault
from toolfault.errors import ConfigError


@toolfault.tool
def book(restaurant: str, people: int = 2) -> None:
    """Book a table.

    For tonight only.

    Args:
        restaurant: Its name,
            as on the sign.
        people (int): How many come.

    Returns:
        Nothing.
    """


PARAMETERS = {
    "type": "object",
    "properties": {
        "restaurant": {"type": "string", "description": "Its name, as on the sign."},
        "people": {"type": "integer", "default": 2, "description": "How many come."},
    },
    "required": ["restaurant"],
    "additionalProperties": False,
}
NAMED = {"name": "book", "description": "Book a table.\n\nFor tonight only."}


@pytest.mark.parametrize(
    ("provider", "spec"),
    [
        ("openai", {"type": "function", "function": {**NAMED, "parameters": PARAMETERS}}),
        ("openai-responses", {"type": "function", **NAMED, "parameters": PARAMETERS}),
        ("anthropic", {**NAMED, "input_schema": PARAMETERS}),
        ("mcp", {**NAMED, "inputSchema": PARAMETERS}),
    ],
)
def test_a_tool_is_told_in_the_form_of_each_provider(provider: str, spec: dict[str, Any]) -> None:
    """The description is the docstring without sections, which describe the parameters."""
    assert book.spec(provider) == spec


def test_another_provider_is_refused_by_name() -> None:
    """The message names the providers that are known."""
    with pytest.raises(ConfigError, match="openai, openai-responses, anthropic, mcp"):
        book.spec("cohere")


def test_a_registry_tells_of_its_tools_by_their_registered_names() -> None:
    """Tools without a handler here are left out."""
    registry = toolfault.ToolRegistry([book])
    registry.register(book, name="reserve")
    registry.declare("elsewhere")
    assert [spec["name"] for spec in registry.specs("anthropic")] == ["book", "reserve"]


def numpy_style(a: int, b: int) -> None:
    """Add."""


numpy_style.__doc__ = """Add.

Parameters
----------
a : int
    The first.
b
    The second,
    or last.

Returns
-------
int
"""


def field_style(a: int, b: int) -> None:
    """Add.

    :param int a: The first.
    :param b: The second,
        or last.
    :returns: The sum.
    """


@pytest.mark.parametrize("function", [numpy_style, field_style])
def test_docstrings_of_other_styles_are_understood(function: Any) -> None:
    """NumPy sections and reStructuredText fields describe parameters, too."""
    spec = toolfault.tool(function).spec("anthropic")
    told = {name: part["description"] for name, part in spec["input_schema"]["properties"].items()}
    assert spec["description"] == "Add."
    assert told == {"a": "The first.", "b": "The second, or last."}
