"""Any value as plain JSON values: no exception, no cycle, nothing that `json.dumps` refuses."""

from __future__ import annotations

from enum import Enum
from itertools import islice
from math import isfinite

from toolfault.errors import _types
from toolfault.errors._policy import is_secret_key, names_a_secret, shown_anyway
from toolfault.errors._redact import redact_text
from toolfault.errors._repr import redacted_repr, safe_repr
from toolfault.errors._text import plain, whole_characters
from toolfault.errors._words import REDACTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["to_jsonable"]

CUT = "…"
_WIDEST_INT = 4_096


def to_jsonable(
    value: object,
    *,
    redact: bool = False,
    max_depth: int = 6,
    max_items: int | None = 200,
    max_string: int | None = 2_000,
) -> object:
    """*value* as plain dicts, lists, strings, numbers, booleans and None.

    NaN and infinities become text, bytes `<bytes len=N>`, dates ISO text, enums their value;
    dataclasses, models and structs become objects; what is cyclic or too deep becomes an
    ellipsis. The original is never changed, and no method of an unknown class is called.

    Args:
        value: Anything.
        redact: Whether secrets are taken out, by key and by text.
        max_depth: How deep containers may nest.
        max_items: The most items of one container; None for all.
        max_string: The most characters of one text; None for all.
    """
    try:
        return _Normaliser(redact, max_depth, max_items, max_string).value(value, 0)
    except Exception:  # noqa: BLE001 - an exotic type; its class can always be named
        return safe_repr(value, 200)


class _Normaliser:
    def __init__(
        self, redact: bool, max_depth: int, max_items: int | None, max_string: int | None
    ) -> None:
        self._redact = redact
        self._depth = max_depth
        self._items = max_items
        self._string = max_string
        self._open: set[int] = set()

    def value(self, value: Any, depth: int) -> object:
        cls = type(value)
        if cls is str:
            return self.text(value)
        if value is None or cls is bool:
            return value
        if cls is int:
            return _integer(value)
        if cls is float:
            return value if isfinite(value) else repr(value)
        if cls in (dict, list, tuple):
            return self._guarded(value, depth)
        return self._other(value, cls, depth)

    def text(self, value: str) -> str:
        if self._redact:
            return plain(redact_text(value, self._string))
        # Data keeps its control characters, which JSON can hold; half a character it cannot.
        return whole_characters(value) if self._string is None else plain(value, self._string)

    def _other(self, value: Any, cls: type, depth: int) -> object:
        bases = _types.mro(cls)
        if Enum in bases:
            return self.value(object.__getattribute__(value, "_value_"), depth)
        if str in bases:
            return self.value(str.__str__(value), depth)
        if int in bases:
            return self.value(int.__int__(value), depth)
        if float in bases:
            return self.value(float.__float__(value), depth)
        if any(base in bases for base in (dict, list, tuple, set, frozenset)):
            return self._guarded(value, depth)
        if _types.field_values(value) is not None:
            return self._guarded(value, depth)
        if _types.trusted(value):
            return self.text(_printed(value))
        if self._redact:
            return redacted_repr(value, limit=self._string or 2_000)
        return safe_repr(value, self._string or 2_000)

    def _guarded(self, value: object, depth: int) -> object:
        if depth >= self._depth or id(value) in self._open:
            return CUT
        self._open.add(id(value))
        try:
            return self._container(value, depth)
        finally:
            self._open.discard(id(value))

    def _container(self, value: Any, depth: int) -> object:
        bases = _types.mro(type(value))
        if dict in bases:
            return self._object(dict.items(value), depth)
        for base in (list, tuple, set, frozenset):
            if base in bases:
                return self._array(base.__iter__(value), base, depth)
        return self._object(_types.field_values(value) or (), depth)

    def _object(self, pairs: Iterable[tuple[object, object]], depth: int) -> dict[str, object]:
        result: dict[str, object] = {}
        for key, item in islice(pairs, self._items):
            name = key if type(key) is str else self._name(key)
            if self._redact and is_secret_key(name) and not shown_anyway(item):
                result[self.text(name)] = REDACTED
            else:
                result[self.text(name)] = self.value(item, depth + 1)
        if self._redact and names_a_secret(result) and not shown_anyway(result["value"]):
            result["value"] = REDACTED
        return result

    def _name(self, key: Any) -> str:
        if key is None or type(key) is bool:
            return {None: "null", True: "true", False: "false"}[key]
        if _types.is_a(key, str):
            return str.__str__(key)
        return safe_repr(key, 200)

    def _array(self, items: Iterable[object], base: type, depth: int) -> list[object]:
        result = [self.value(item, depth + 1) for item in islice(items, self._items)]
        # Sets have no order of their own; two runs must give the same JSON.
        return sorted(result, key=repr) if base in (set, frozenset) else result


def _integer(value: int) -> object:
    bits = value.bit_length()
    return value if bits <= _WIDEST_INT else f"<int of {bits} bits>"


def _printed(value: object) -> str:
    iso = getattr(value, "isoformat", None)
    return str(iso()) if callable(iso) else str(value)
