"""Phantom arguments: what a model sent, the tool does not have, and nobody refused.

The tool ran without them, so no failure tells of it. Only their names are kept, never a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolfault.errors import clean_name

Loc = tuple["str | int", ...]
Parents = tuple[tuple[type, str], ...]
"""The models around a value, the outermost first, and the field of each."""

LEFT_OUT = "…"
"""Stands for the names of a call that are not kept."""

_MOST = 20  # names of one call: a model can invent them without end
_LONGEST = 128  # characters of a name, and twice as many of a path
# Words by which a schema may say more of an object's names than its own ``properties`` do.
_SAYS_MORE = (
    *("$dynamicRef", "$recursiveRef", "$ref", "allOf", "anyOf", "dependencies"),
    *("dependentSchemas", "if", "oneOf", "patternProperties", "propertyNames"),
)
_FIELDS = (
    "__pydantic_fields__",
    "model_fields",  # pydantic 2 before 2.10, where ``__fields__`` only warns
    "__struct_fields__",
    "__dataclass_fields__",
    "__fields__",
    "_fields",
)


class Phantoms:
    """The phantom arguments of one call: each name once, at most 20 and `LEFT_OUT`."""

    __slots__ = ("_accepted", "_more", "_paths")

    def __init__(self) -> None:
        self._accepted: dict[Any, frozenset[str] | None] = {}
        self._more = False
        self._paths: dict[Loc, None] = {}

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys(map(pattern, self._paths))
        if self._more:
            yield LEFT_OUT

    def add(self, names: Iterable[Any], loc: Sequence[str | int] = ()) -> None:
        """Add names of what was sent at ``loc``; those that are no text are passed over."""
        above = tuple("*" if type(part) is int else part for part in loc)
        for name in names:
            path = (*above, name)
            if type(name) is not str or path in self._paths:
                continue
            if len(self._paths) == _MOST:  # a list may hold a million objects with such names
                self._more = True
                return
            self._paths[path] = None

    def any_key(self, at: Loc) -> None:
        """Write ``*`` for the last part of ``at``, a key that is data, in all names below it."""
        place = len(at) - 1
        above = tuple("*" if type(part) is int else part for part in at)
        self._paths = dict.fromkeys(
            (*path[:place], "*", *path[place + 1 :]) if path[: place + 1] == above else path
            for path in self._paths
        )

    def absorb(self, other: Phantoms) -> None:
        """Add what ``other`` has."""
        for *above, name in other._paths:
            self.add((name,), above)
        self._more |= other._more

    def add_dropped(self, sent: Mapping[Any, Any], kind: Any, loc: Loc, parents: Parents) -> None:
        """Add what was sent at ``loc`` to a model of class ``kind`` and is none of its fields.

        Inside of the arguments nothing is said of a value of which the model knows no name at all,
        or that a validator of the host may have read first: it made something else of it.
        """
        if self._more:
            return
        if kind not in self._accepted:
            self._accepted[kind] = accepted_names(kind)
        accepted = self._accepted[kind]
        if accepted is None or sent.keys() <= accepted or (loc and accepted.isdisjoint(sent)):
            return
        if not any(_reads_first(model, field) for model, field in parents):
            self.add((name for name in sent if name not in accepted), loc)


def pattern(loc: Loc) -> str:
    """Return a path with ``*`` for indexes: what happens to arguments is counted by field.

    Keys that are data (``dict[str, Guest]``) stand as indexes in what is given.
    """
    parts = ("*" if type(part) is int else clean_name(str(part), _LONGEST) for part in loc)
    path = ".".join(parts)
    return path if len(path) <= 2 * _LONGEST else f"{path[: 2 * _LONGEST - 1]}…"


def undeclared(schema: Any, arguments: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the names in ``arguments`` that a JSON schema does not have, bounded.

    A schema that says nothing of other names does not declare them, although JSON Schema allows
    them (2020-12, 10.3.2.3): that is how libraries write a model that drops what it does not know.
    Empty where the schema asks for other names, or may have them elsewhere.
    """
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or arguments.keys() <= properties.keys():
        return ()
    for word in ("additionalProperties", "unevaluatedProperties"):
        if schema.get(word, False) is not False:
            return ()
    if any(word in schema for word in _SAYS_MORE):
        return ()
    required = schema.get("required")
    known = {*properties, *(required if isinstance(required, list) else ())}
    found = Phantoms()
    found.add(name for name in arguments if name not in known)
    return tuple(found)


def dropped(arguments: Mapping[Any, Any], kind: Any) -> tuple[str, ...]:
    """Return the names in ``arguments`` that a model of class ``kind`` does not read, bounded."""
    found = Phantoms()
    found.add_dropped(arguments, kind, (), ())
    return tuple(found)


def accepted_names(kind: Any) -> frozenset[str] | None:
    """Return the names under which a model class reads values: its fields' and their aliases.

    None where it takes any name, or code of the host looks at the values before: nobody can say
    then what was left out.
    """
    fields = declared(kind)
    if fields is None or tuple(fields) == ("root",) or _reads_all(kind):
        return None
    names = {*fields, *getattr(kind, "__struct_encode_fields__", ())}
    tag = getattr(getattr(kind, "__struct_config__", None), "tag_field", None)
    if tag is not None:
        names.add(tag)
    for field in fields.values() if isinstance(fields, Mapping) else ():
        for alias in (getattr(field, "alias", None), getattr(field, "validation_alias", None)):
            for choice in getattr(alias, "choices", None) or (alias,):  # pydantic's AliasChoices
                first = next(iter(getattr(choice, "path", ())), choice)  # pydantic's AliasPath
                if isinstance(first, str):
                    names.add(first)
    return frozenset(names)


def declared(kind: Any) -> Any:
    """Return the declared fields of a model class, by name where the library keeps them so."""
    for name in _FIELDS:  # no generator: this is asked for each field that was left to its default
        fields = getattr(kind, name, None)
        if fields is not None:
            return fields
    return None


def _reads_all(kind: Any) -> bool:
    """Whether a model keeps names that it does not declare, or looks at the values itself."""
    if getattr(kind, "__pydantic_custom_init__", False) or _validates_itself(kind):
        return True
    config = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", None)
    if isinstance(config, Mapping) and config.get("extra") == "allow":
        return True
    extra = getattr(getattr(kind, "__config__", None), "extra", None)  # pydantic 1
    if getattr(extra, "value", extra) == "allow" or getattr(kind, "__pre_root_validators__", None):
        return True
    decorators = getattr(kind, "__pydantic_decorators__", None)
    validators = getattr(decorators, "model_validators", None) or {}
    return any(
        getattr(each.info, "mode", None) in ("before", "wrap") for each in validators.values()
    )


def _validates_itself(kind: Any) -> bool:
    """Whether a pydantic model has a way of its own to be made of values."""
    return any(
        name in vars(each)
        for each in getattr(kind, "__mro__", ())
        if not each.__module__.startswith("pydantic.")
        for name in ("__get_pydantic_core_schema__", "model_validate", "parse_obj")
    )


def _reads_first(kind: Any, name: str) -> bool:
    """Whether code of the host sees the value of a model's field before it is validated."""
    decorators = getattr(kind, "__pydantic_decorators__", None)
    for each in (getattr(decorators, "field_validators", None) or {}).values():
        fields = getattr(each.info, "fields", ())
        if getattr(each.info, "mode", None) != "after" and (name in fields or "*" in fields):
            return True
    fields = declared(kind)
    field = fields.get(name) if isinstance(fields, Mapping) else None
    if getattr(field, "pre_validators", None):  # pydantic 1
        return True
    annotated = getattr(field, "metadata", None) or ()
    return any(type(each).__name__ in _FIRST for each in annotated)


_FIRST = ("BeforeValidator", "PlainValidator", "WrapValidator")  # of pydantic
