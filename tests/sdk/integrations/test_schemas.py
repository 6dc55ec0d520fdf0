"""Schemas of tools, read from what a framework keeps of them."""

from __future__ import annotations

import pydantic

from toolfault.integrations.seen import schema_of


class Context:
    """What only the framework knows."""


class Asked(pydantic.BaseModel):
    """Arguments of a tool."""

    question: str


class Filled(pydantic.BaseModel, arbitrary_types_allowed=True):
    """Arguments of a tool, of which the framework fills one in."""

    question: str
    context: Context


def test_a_class_without_a_schema_costs_the_schema_alone() -> None:
    """A class that pydantic describes has its schema; another one, and none, have none."""
    described = schema_of(Asked)

    assert described is not None
    assert described["required"] == ["question"]
    assert schema_of(Filled) is None
    assert schema_of(None) is None
