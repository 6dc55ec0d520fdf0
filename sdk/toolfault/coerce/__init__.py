"""Repairs for what models commonly send: as functions, as annotations, and as near misses.

`LLMBool`, `LLMInt`, `LLMFloat`, `LLMJson`, `LLMStr`, `LLMDate` and `LLMList[T]` are `Annotated`
types for pydantic models, dataclasses and plain functions; they are built when first used.
"""

from __future__ import annotations

from toolfault.coerce._json import InvalidJSONError
from toolfault.coerce._types import Coercion
from toolfault.coerce._values import (
    COERCERS,
    coerce_bool,
    coerce_date,
    coerce_enum,
    coerce_float,
    coerce_int,
    coerce_json,
    coerce_list,
    coerce_strip,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date
    from typing import Annotated, Any, TypeVar

    from toolfault.coerce._remedies import REMEDIES, near_misses

    _Item = TypeVar("_Item")

    LLMBool = Annotated[bool, Coercion("boolean", coerce_bool)]
    LLMInt = Annotated[int, Coercion("integer", coerce_int)]
    LLMFloat = Annotated[float, Coercion("number", coerce_float)]
    LLMStr = Annotated[str, Coercion("string", coerce_strip)]
    LLMDate = Annotated[date, Coercion("date", coerce_date)]
    LLMJson = Annotated[dict[str, Any] | list[Any], Coercion("object", coerce_json)]
    LLMList = Annotated[list[_Item], Coercion("array", coerce_list)]

__all__ = [
    "COERCERS",
    "REMEDIES",
    "Coercion",
    "InvalidJSONError",
    "LLMBool",
    "LLMDate",
    "LLMFloat",
    "LLMInt",
    "LLMJson",
    "LLMList",
    "LLMStr",
    "coerce_bool",
    "coerce_date",
    "coerce_enum",
    "coerce_float",
    "coerce_int",
    "coerce_json",
    "coerce_list",
    "coerce_strip",
    "near_misses",
]


def __getattr__(name: str) -> object:
    if name in {"near_misses", "REMEDIES"}:
        from toolfault.coerce import _remedies

        return getattr(_remedies, name)
    if name.startswith("LLM") and name in __all__:
        from toolfault.coerce import _annotated

        value = getattr(_annotated, name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
