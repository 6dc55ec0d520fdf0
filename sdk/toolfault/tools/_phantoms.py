"""Phantom arguments: what a model sent, the tool does not have, and nobody refused.

The tool ran without them, so no failure tells of it. Only their names are kept, never a value.
This module loads nothing of the validators: integrations ask it at every call of a framework.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from toolfault.errors import clean_name

__all__ = ["accepted_names", "declared", "left_out", "named", "pattern", "undeclared"]

Loc = tuple["str | int", ...]

_MOST = 20  # names of one call: a model can invent them without end
# Words by which a schema may say more of an object's names than its own ``properties`` do.
_SAYS_MORE = ("$ref", "allOf", "anyOf", "dependentSchemas", "if", "oneOf", "patternProperties")
_FIELDS = (
    "__pydantic_fields__",
    "model_fields",  # pydantic 2 before 2.10, where ``__fields__`` only warns
    "__struct_fields__",
    "__dataclass_fields__",
    "__fields__",
    "_fields",
)


def named(locs: Iterable[Loc]) -> tuple[str, ...]:
    """Return the paths as names: each once, without secrets, at most 20."""
    return tuple(dict.fromkeys(pattern(loc) for loc in islice(locs, _MOST)))


def pattern(loc: Loc) -> str:
    """Return a path with ``*`` for indexes: what happens to arguments is counted by field."""
    return ".".join("*" if type(part) is int else clean_name(str(part), 128) for part in loc)


def undeclared(schema: Any, arguments: Mapping[Any, Any]) -> tuple[Loc, ...]:
    """Return the names in ``arguments`` that the properties of a JSON schema do not have.

    A schema that says nothing of other names does not declare them, although JSON Schema allows
    them (2020-12, 10.3.2.3): that is how libraries write a model that drops what it does not know.
    Empty where the schema asks for other names, or may have them elsewhere.
    """
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or arguments.keys() <= properties.keys():
        return ()
    if schema.get("additionalProperties", False) is not False:
        return ()
    if any(word in schema for word in _SAYS_MORE):
        return ()
    return tuple((name,) for name in arguments if type(name) is str and name not in properties)


def left_out(sent: Mapping[Any, Any], kind: Any, loc: Loc) -> tuple[Loc, ...]:
    """Return the paths of what was sent to a model of class ``kind`` and is none of its fields.

    Inside of the arguments nothing is said of a value of which the model knows no name at all: a
    validator of the host has made something else of it.
    """
    accepted = accepted_names(kind)
    if accepted is None or sent.keys() <= accepted:
        return ()
    names = [name for name in sent if type(name) is str and name not in accepted]
    return () if loc and len(names) == len(sent) else tuple((*loc, name) for name in names)


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
