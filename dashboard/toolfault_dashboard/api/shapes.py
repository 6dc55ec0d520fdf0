"""Rows as JSON: RFC 3339 times, and the schema of every answer derived from its dataclass."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, create_model

from toolfault_collector.clock import format_time

__all__ = ["answer", "model_of"]

_TIMES: Final = frozenset({"starts"})


def _is_time(name: str) -> bool:
    return name.endswith("_at") or name in _TIMES


def answer(value: Any, *, time: bool = False) -> Any:
    """Return *value* (dataclasses, tuples, mappings) as JSON values.

    Fields whose name ends in ``_at`` are microseconds and become RFC 3339 text.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: answer(getattr(value, field.name), time=_is_time(field.name))
            for field in fields(value)
        }
    if isinstance(value, Mapping):
        return {str(key): answer(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [answer(each, time=time) for each in value]
    if time and isinstance(value, int):
        return format_time(value)
    return value


@cache
def model_of(kind: type) -> type[BaseModel]:
    """Return the schema of dataclass *kind* as `answer` writes it."""
    hints = get_type_hints(kind)
    members: dict[str, Any] = {
        field.name: (_shape(hints[field.name], time=_is_time(field.name)), ...)
        for field in fields(kind)
    }
    return create_model(kind.__name__, __doc__=kind.__doc__, **members)


def _shape(hint: Any, *, time: bool) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return model_of(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(_shape(each, time=time) for each in args)]  # noqa: UP007 - made at run time
    if origin is tuple:
        items = [each for each in args if each is not Ellipsis]
        shapes = {_shape(each, time=time) for each in items}
        return list[Union[tuple(shapes)]]  # type: ignore[misc]  # noqa: UP007
    if origin in (Mapping, dict) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return dict[str, _shape(args[1], time=False)]  # type: ignore[misc]
    if origin is not None and isinstance(origin, type) and issubclass(origin, Sequence):
        return list[_shape(args[0], time=time)]  # type: ignore[misc]
    return datetime if time and hint is int else hint
