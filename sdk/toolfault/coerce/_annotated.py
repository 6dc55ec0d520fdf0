"""The `Annotated` types; imported when one is first used, because `typing` is slow to import."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, TypeVar, Union

from toolfault.coerce._types import Coercion
from toolfault.coerce._values import (
    coerce_bool,
    coerce_date,
    coerce_float,
    coerce_int,
    coerce_json,
    coerce_list,
    coerce_strip,
)

__all__ = ["LLMBool", "LLMDate", "LLMFloat", "LLMInt", "LLMJson", "LLMList", "LLMStr"]

_Item = TypeVar("_Item")

LLMBool = Annotated[bool, Coercion("boolean", coerce_bool)]
LLMInt = Annotated[int, Coercion("integer", coerce_int)]
LLMFloat = Annotated[float, Coercion("number", coerce_float)]
LLMStr = Annotated[str, Coercion("string", coerce_strip)]
LLMDate = Annotated[date, Coercion("date", coerce_date)]
LLMJson = Annotated[Union[dict[str, Any], list[Any]], Coercion("object", coerce_json)]  # noqa: UP007
LLMList = Annotated[list[_Item], Coercion("array", coerce_list)]
