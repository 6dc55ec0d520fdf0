"""Looking at untrusted objects without running any of their code.

An argument may be an object whose `__repr__`, `__getattr__`, `__eq__` or `__class__` raises,
sleeps or never returns. Everything here reads the type and its method resolution order through
the descriptors of `type` itself, so no overridden method is ever called.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from types import FunctionType
from typing import Any, TypeGuard, TypeVar

T = TypeVar("T")


class _Absent:
    """The type of ABSENT."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()
"""Stands for "no value": a missing parameter has received nothing, not None."""

_mro_of = type.__dict__["__mro__"].__get__
name_of = type.__dict__["__name__"].__get__
_dict_of = type.__dict__["__dict__"].__get__
_module_of = type.__dict__["__module__"].__get__

# Modules of the standard library whose classes print themselves quickly and without surprises.
_TRUSTED_MODULES = frozenset(
    {"datetime", "decimal", "fractions", "ipaddress", "pathlib", "pathlib._local", "uuid"}
)
_FIELD_TABLES = (
    "__dataclass_fields__",
    "__pydantic_fields__",
    "model_fields",
    "__fields__",
    "__struct_fields__",
)


def mro(cls: type) -> tuple[type, ...]:
    """The method resolution order of *cls*, whatever its metaclass says."""
    return _mro_of(cls)  # type: ignore[no-any-return]


def class_name(value: object) -> str:
    """The bare name of the class of *value*, at most 64 characters."""
    name = name_of(type(value))
    return name[:64] if name.isprintable() else "object"


def module_name(cls: type) -> str:
    """The module of *cls* as text, empty when it is not known."""
    try:
        module = _module_of(cls)
    except AttributeError:
        return ""
    return module if type(module) is str else ""


def is_a(value: object, base: type[T]) -> TypeGuard[T]:
    """Whether *value* really is a *base*, whatever its `__class__` claims.

    `isinstance` asks the object itself when its type says no; that may raise or never return.
    """
    return base in _mro_of(type(value))


def is_any(value: object, *bases: type) -> bool:
    """Whether *value* really is one of *bases*."""
    for base in _mro_of(type(value)):  # noqa: SIM110 - a generator would cost a call for each
        if base in bases:
            return True
    return False


def items_of(value: object, most: int | None = None) -> list[Any]:
    """The first items of a list or tuple, whatever its own iterator does; else none."""
    base: Any
    for base in (list, tuple):
        if is_a(value, base):
            return list(islice(base.__iter__(value), most))
    return []


def defines(cls: type, name: str) -> bool:
    """Whether *cls* itself, not a base of it, has the attribute *name*."""
    return name in _dict_of(cls)


def has(value: object, name: str) -> bool:
    """Whether *value* has the attribute *name* by its class or in itself, not by `__getattr__`."""
    for base in _mro_of(type(value)):
        if name in _dict_of(base):
            return True
    try:
        return name in object.__getattribute__(value, "__dict__")
    except AttributeError:
        return False


def trusted(value: object) -> bool:
    """Whether *value* is of a standard library class that may print itself."""
    cls = type(value)
    module = module_name(cls)
    if module not in _TRUSTED_MODULES:
        return False
    home = sys.modules.get(module)
    return home is not None and vars(home).get(name_of(cls)) is cls


def has_own(value: object, method: str) -> bool:
    """Whether the class of *value* defines *method* in Python, not in C."""
    for base in _mro_of(type(value)):
        found = _dict_of(base).get(method)
        if found is not None:
            return type(found) is FunctionType
    return False


def field_values(value: object) -> Iterator[tuple[str, object]] | None:
    """The declared fields of a dataclass, pydantic model or msgspec struct, or None.

    Values are read from the instance dictionary or the slots, never through `__getattr__`.
    """
    for base in _mro_of(type(value)):
        for table in _FIELD_TABLES:
            names = _dict_of(base).get(table)
            if names is not None and type(names) in (dict, tuple):
                return _stored(value, [n for n in names if type(n) is str])
    return None


def _stored(value: object, names: list[str]) -> Iterator[tuple[str, object]]:
    for name in names:
        try:
            stored = object.__getattribute__(value, name)
        except Exception:  # noqa: BLE001, S112 - a field that was never set
            continue
        yield name, stored
