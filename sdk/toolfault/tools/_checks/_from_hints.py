"""Checks compiled from type hints, once per tool.

Known: int, float, bool, str, None, list, tuple, set, frozenset, dict and their abstract forms,
Literal, Enum, Optional, Union, dataclass, TypedDict, NamedTuple, NewType, TypeVar, type aliases,
date, datetime, time, UUID, Path, Decimal, bytes, pydantic models, msgspec structs, and Annotated
with bounds that look like ``annotated_types`` (attributes gt, ge, lt, le, multiple_of, min_length,
max_length, pattern). Every other annotation accepts every value.
"""

from __future__ import annotations

import collections.abc
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any

from toolfault.coerce import Coercion
from toolfault.tools._checks._bounds import Bounds, bounds_from
from toolfault.tools._checks._choices import ChoiceCheck, LaterCheck, UnionCheck
from toolfault.tools._checks._containers import DictCheck, ListCheck, TupleCheck
from toolfault.tools._checks._findings import ABSENT, ANYTHING, Check
from toolfault.tools._checks._formats import python_format
from toolfault.tools._checks._objects import FieldCheck, ObjectCheck
from toolfault.tools._checks._repairs import RepairCheck
from toolfault.tools._checks._scalars import BoolCheck, FloatCheck, IntCheck, NullCheck, StrCheck

__all__ = ["Hints", "constraints_of", "description_of"]

_BOUNDS = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")
_SCALARS: dict[Any, tuple[Callable[[Bounds | None], Check], str]] = {
    bool: (BoolCheck, "boolean"),
    int: (IntCheck, "integer"),
    float: (FloatCheck, "number"),
    str: (StrCheck, "string"),
}
_ARRAYS: dict[Any, Callable[[list[Any]], Any] | None] = {
    list: None,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: None,
    collections.abc.MutableSequence: None,
    collections.abc.Iterable: None,
    collections.abc.Collection: None,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
}
_OBJECTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)

Constraints = tuple[tuple[str, Any], ...]


def constraints_of(metadata: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield ``(name, limit)`` for every bound in the metadata of an Annotated type.

    Duck-typed: ``annotated_types.Ge``, ``Interval``, ``Len``, ``msgspec.Meta`` and pydantic's
    ``Field`` (which keeps its bounds in ``.metadata``) all carry the same attribute names.
    """
    for item in metadata:
        if isinstance(item, (str, bytes, type)):
            continue
        for name in _BOUNDS:
            limit = getattr(item, name, None)
            if limit is not None and not callable(limit):
                yield name, limit
        if type(item).__name__ == "Predicate" and callable(getattr(item, "func", None)):
            yield "predicate", item.func
        nested = getattr(item, "metadata", None)
        if isinstance(nested, (list, tuple)):
            yield from constraints_of(nested)


def description_of(annotation: Any) -> str | None:
    """Return the text that describes a parameter: ``Annotated[int, "the port"]`` and alike."""
    for item in getattr(annotation, "__metadata__", ()):
        if isinstance(item, str):
            return item
        for name in ("description", "documentation"):
            text = getattr(item, name, None)
            if isinstance(text, str):
                return text
    return None


class Hints:
    """Compiles annotations; remembers the classes it is inside of, so that recursion ends.

    Attributes:
        model_check: Makes the check of a class with its own validation (pydantic, msgspec), or
            returns None for other classes.
    """

    def __init__(self, model_check: Callable[[type], Check | None]) -> None:
        self.model_check = model_check
        self._open: dict[Any, LaterCheck] = {}
        self._done: dict[Any, Check] = {}

    def compile(self, annotation: Any, constraints: Constraints = ()) -> Check:
        """Return the check of ``annotation`` with ``constraints`` from around it."""
        annotation, constraints, coercers = _unwrapped(annotation, constraints)
        check = self._plain(annotation, constraints)
        for coercer in coercers:
            check = RepairCheck(check, coercer)
        return check

    def _plain(self, annotation: Any, constraints: Constraints) -> Check:
        if annotation is Any or annotation is object:
            return ANYTHING
        if annotation is None or annotation is type(None):
            return NullCheck()
        if isinstance(annotation, type) and annotation in _SCALARS:
            make, kind = _SCALARS[annotation]
            return make(bounds_from(constraints, kind=kind))
        origin = typing.get_origin(annotation)
        if origin is not None:
            return self._generic(origin, typing.get_args(annotation), constraints)
        if isinstance(annotation, type):
            return self._class(annotation, constraints)
        return ANYTHING

    def _generic(self, origin: Any, args: tuple[Any, ...], constraints: Constraints) -> Check:
        if origin is typing.Union or origin is types.UnionType:
            return UnionCheck([self.compile(arg, constraints) for arg in args])
        if origin is typing.Literal:
            return ChoiceCheck([_literal_choice(value) for value in args])
        if origin is tuple:
            return self._tuple(args, constraints)
        if origin in _ARRAYS:
            item = self.compile(args[0]) if args else ANYTHING
            return self._array(origin, item, constraints)
        if origin in _OBJECTS:
            key, value = (self.compile(arg) for arg in (args or (Any, Any)))
            return DictCheck(key, value, bounds=bounds_from(constraints, kind="object"))
        return self._class(origin, constraints) if isinstance(origin, type) else ANYTHING

    def _array(self, origin: Any, item: Check, constraints: Constraints) -> Check:
        bounds = bounds_from(constraints, kind="array")
        return ListCheck(item, bounds=bounds, build=_ARRAYS[origin])

    def _tuple(self, args: tuple[Any, ...], constraints: Constraints) -> Check:
        if not args or args[-1] is Ellipsis:
            item = self.compile(args[0]) if args else ANYTHING
            bounds = bounds_from(constraints, kind="array")
            return ListCheck(item, bounds=bounds, build=tuple)
        return TupleCheck(tuple(self.compile(arg) for arg in args))

    def _class(self, kind: type, constraints: Constraints) -> Check:
        if kind in _ARRAYS:
            return self._array(kind, ANYTHING, constraints)
        if kind is tuple:
            return self._tuple((), constraints)
        if kind in _OBJECTS:
            return DictCheck(bounds=bounds_from(constraints, kind="object"))
        if issubclass(kind, Enum):
            return ChoiceCheck(_enum_choices(kind))
        own = self.model_check(kind)
        if own is not None:
            return own
        fields = _FIELDS_OF.get(_family(kind))
        if fields is not None:
            return self._object(kind, fields)
        return python_format(kind) or ANYTHING

    def _object(self, kind: type, fields: Callable[[type], _FieldList]) -> Check:
        if kind in self._done:
            return self._done[kind]
        if kind in self._open:
            return self._open[kind]
        self._open[kind] = LaterCheck(kind.__name__, lambda: self._done[kind])
        typed_dict = _family(kind) == "typed_dict"
        self._done[kind] = ObjectCheck(
            {
                name: FieldCheck(
                    name,
                    self.compile(annotation),
                    required=required,
                    default=default,
                    description=description_of(annotation),
                )
                for name, annotation, required, default in fields(kind)
            },
            build=None if typed_dict else kind,
        )
        del self._open[kind]
        return self._done[kind]


def _unwrapped(
    annotation: Any, constraints: Constraints
) -> tuple[Any, Constraints, list[Callable[[Any], Any]]]:
    """Peel off Annotated, NewType, type aliases, TypeVar and Required/NotRequired.

    Returns:
        The annotation inside, the bounds around it, and the coercers around it, innermost first.
    """
    coercers: list[Callable[[Any], Any]] = []
    for _ in range(32):  # an alias cycle is the author's error, not a reason to hang
        metadata = getattr(annotation, "__metadata__", None)
        if metadata is not None:
            constraints = (*constraints, *constraints_of(metadata))
            coercers[:0] = [item.coerce for item in metadata if isinstance(item, Coercion)]
            annotation = annotation.__origin__
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        elif isinstance(annotation, typing.TypeVar):
            limits = annotation.__constraints__
            annotation = typing.Union[limits] if limits else (annotation.__bound__ or Any)  # noqa: UP007
        elif _is_qualifier(typing.get_origin(annotation)):
            annotation = typing.get_args(annotation)[0]
        else:
            break
    return annotation, constraints, coercers


def _is_qualifier(origin: Any) -> bool:
    return getattr(origin, "_name", None) in ("Required", "NotRequired", "ReadOnly", "Final")


def _literal_choice(value: Any) -> tuple[Any, Any]:
    """Return what a model writes for one value of a Literal; Enum members go by their value."""
    return (value.value, value) if isinstance(value, Enum) else (value, value)


def _enum_choices(kind: type[Enum]) -> list[tuple[Any, Any]]:
    """Return what a model writes for every member: its value where JSON can, else its name."""
    members = list(kind)
    plain = all(type(member.value) in (str, int, float, bool) for member in members)
    return [(member.value if plain else member.name, member) for member in members]


_FieldList = list[tuple[str, Any, bool, object]]


def _family(kind: type) -> str:
    if hasattr(kind, "__dataclass_fields__"):
        return "dataclass"
    if hasattr(kind, "__required_keys__") and hasattr(kind, "__total__"):
        return "typed_dict"
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return "named_tuple"
    return ""


def _annotations(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except Exception:  # noqa: BLE001 - a name nobody can resolve: those fields accept everything
        return {}


def _dataclass_fields(kind: Any) -> _FieldList:
    import dataclasses

    hints = _annotations(kind)
    listed: _FieldList = []
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        no_default = field.default is dataclasses.MISSING
        required = no_default and field.default_factory is dataclasses.MISSING
        default = ABSENT if no_default else field.default
        listed.append((field.name, hints.get(field.name, Any), required, default))
    return listed


def _typed_dict_fields(kind: Any) -> _FieldList:
    hints = _annotations(kind) or dict.fromkeys(
        (*kind.__required_keys__, *kind.__optional_keys__), Any
    )
    return [
        (name, annotation, name in kind.__required_keys__, ABSENT)
        for name, annotation in hints.items()
    ]


def _named_tuple_fields(kind: Any) -> _FieldList:
    hints = _annotations(kind)
    defaults = kind._field_defaults
    return [
        (name, hints.get(name, Any), name not in defaults, defaults.get(name, ABSENT))
        for name in kind._fields
    ]


_FIELDS_OF: dict[str, Callable[[type], _FieldList]] = {
    "dataclass": _dataclass_fields,
    "typed_dict": _typed_dict_fields,
    "named_tuple": _named_tuple_fields,
}
