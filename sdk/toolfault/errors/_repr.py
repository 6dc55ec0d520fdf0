"""A representation of any value: bounded, redacted, and without running the value's own code."""

from __future__ import annotations

from enum import Enum
from itertools import islice

from toolfault.errors import _types
from toolfault.errors._policy import is_secret_key, names_a_secret, shown_anyway
from toolfault.errors._redact import redact_name, redact_text
from toolfault.errors._text import cut, one_line
from toolfault.errors._words import REDACTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

__all__ = ["redacted_repr", "safe_repr", "type_and_size", "type_name"]

DEPTH = 6
LIMIT = 2_000
_MOST_ITEMS = 200
_WIDEST_INT = 4_096  # bits; Python itself refuses to print more than 4,300 digits
_SIMPLE = (bool, float, complex, range, type(None), type(Ellipsis))
_LITERALS: tuple[tuple[Any, str, str], ...] = ((list, "[", "]"), (tuple, "(", ")"))
_UNITS: tuple[tuple[Any, str], ...] = (
    (str, "characters"),
    (dict, "keys"),
    (list, "items"),
    (tuple, "items"),
    (set, "items"),
    (frozenset, "items"),
    (bytes, "bytes"),
    (bytearray, "bytes"),
)


def type_name(value: object) -> str:
    """The Python type name of *value*: `str`, `int`, `dict`, `NoneType`."""
    return one_line(_types.class_name(value))


def type_and_size(value: object) -> str:
    """What stands in for *value* where it must not be shown: `str, 18 characters`, `int`.

    The unit is in the plural whatever the size: failures are grouped by their wording.
    """
    bases = _types.mro(type(value))
    for base, unit in _UNITS:
        if base in bases:
            return f"{type_name(value)}, {base.__len__(value)} {unit}"
    return type_name(value)


def safe_repr(value: object, limit: int = LIMIT) -> str:
    """What `repr(value)` would say, without its dangers; not redacted.

    Values of JSON and of common standard library types look as Python shows them. An object with
    a `__repr__` of its own is never asked: it may raise, sleep or print a gigabyte. It is shown
    as `<unrepresentable ClassName>`, bytes as `<bytes len=N>`, arrays by type and shape.

    Args:
        value: Anything.
        limit: The most characters of the result; a cut ends in an ellipsis.
    """
    return _written(value, limit, redact=False)


def redacted_repr(value: object, *, key: object = None, limit: int = LIMIT) -> str:
    """`safe_repr` without secrets: those under secret keys and those with a telling shape.

    Args:
        value: Anything.
        key: The name the value goes by; a secret name hides everything but numbers and booleans.
        limit: The most characters of the result.
    """
    if is_secret_key(key) and not shown_anyway(value):
        return REDACTED
    return _written(value, limit, redact=True)


def _written(value: object, limit: int, *, redact: bool) -> str:
    try:
        return cut(_Writer(limit, redact=redact).write(value, 0), limit)
    except Exception:  # noqa: BLE001 - an exotic type; showing nothing of it is always possible
        return f"<unrepresentable {type_name(value)}>"


class _Writer:
    """Writes one value with a budget of characters, items and depth."""

    def __init__(self, limit: int, *, redact: bool) -> None:
        self._left = limit + 1
        self._redact = redact
        self._open: set[int] = set()

    def write(self, value: Any, depth: int) -> str:
        text = self._scalar(value)
        if text is None:
            if depth >= DEPTH or id(value) in self._open:
                text = "..."
            else:
                self._open.add(id(value))
                try:
                    text = self._container(value, depth)
                finally:
                    self._open.discard(id(value))
                return text
        self._left -= len(text)
        return text

    def _scalar(self, value: Any) -> str | None:
        cls = type(value)
        if cls is str:
            return self._text(value)
        if cls is int:
            return _integer(value)
        if cls in _SIMPLE:
            return repr(value)
        if cls in (list, tuple, dict, set, frozenset):
            return None
        return self._other_scalar(value, cls)

    def _other_scalar(self, value: Any, cls: type) -> str | None:
        bases = _types.mro(cls)
        if Enum in bases:
            name = object.__getattribute__(value, "_name_")
            inner = self.write(object.__getattribute__(value, "_value_"), DEPTH - 1)
            return f"<{type_name(value)}.{name}: {inner}>"
        if str in bases:
            return self._text(str.__str__(value))
        if int in bases:
            return _integer(int.__int__(value))
        if float in bases:
            return float.__repr__(value)
        if bytes in bases or bytearray in bases or memoryview in bases:
            return f"<{_types.class_name(value)} len={_length(value)}>"
        if any(base in bases for base in (list, tuple, dict, set, frozenset)):
            return None
        if _types.trusted(value):
            return self._cleaned(repr(value))
        if BaseException in bases or _types.field_values(value) is not None:
            return None
        return _described(value)

    def _text(self, value: str) -> str:
        limit = max(self._left, 0)
        if self._redact:
            return repr(redact_text(value, limit))
        return repr(value if len(value) <= limit else value[:limit])

    def _cleaned(self, text: str) -> str:
        return redact_text(text) if self._redact else text

    def _container(self, value: Any, depth: int) -> str:
        bases = _types.mro(type(value))
        if dict in bases:
            return "{" + self._joined(self._pairs(value, depth)) + "}"
        for base, opening, closing in _LITERALS:
            if base in bases:
                items = self._items(islice(base.__iter__(value), _MOST_ITEMS + 1), depth)
                text = self._joined(items)
                single = base is tuple and text and _length(value) == 1
                return f"{opening}{text}{',' if single else ''}{closing}"
        if set in bases or frozenset in bases:
            return self._set(value, depth)
        fields = _types.field_values(value)
        if fields is not None:
            inner = self._joined(f"{k}={self._value(k, v, depth)}" for k, v in fields)
            return f"{type_name(value)}({inner})"
        arguments = BaseException.__dict__["args"].__get__(value)
        return f"{type_name(value)}({self._joined(self._items(iter(arguments), depth))})"

    def _set(self, value: Any, depth: int) -> str:
        base = set if set in _types.mro(type(value)) else frozenset
        items = list(self._items(base.__iter__(value), depth))
        if not items:
            return f"{base.__name__}()"
        text = "{" + self._joined(iter(sorted(items))) + "}"
        return text if base is set else f"frozenset({text})"

    def _pairs(self, value: dict[object, object], depth: int) -> Iterator[str]:
        named = self._redact and names_a_secret(value)
        for key, item in islice(dict.items(value), _MOST_ITEMS):
            if self._redact and type(key) is str:
                shown = repr(redact_name(key[:256]))
            else:
                shown = self.write(key, depth + 1)
            self._left -= 4
            hidden = named and type(key) is str and key == "value" and not shown_anyway(item)
            yield f"{shown}: {repr(REDACTED) if hidden else self._value(key, item, depth)}"

    def _value(self, key: object, value: object, depth: int) -> str:
        if self._redact and is_secret_key(key) and not shown_anyway(value):
            return repr(REDACTED)
        return self.write(value, depth + 1)

    def _items(self, values: Iterable[object], depth: int) -> Iterator[str]:
        for item in islice(values, _MOST_ITEMS + 1):
            self._left -= 2
            yield self.write(item, depth + 1)

    def _joined(self, parts: Iterable[str]) -> str:
        shown: list[str] = []
        for part in parts:
            shown.append(part)
            if self._left <= 0 or len(shown) > _MOST_ITEMS:
                shown.append("...")
                break
        return ", ".join(shown)


def _integer(value: int) -> str:
    bits = value.bit_length()
    return repr(value) if bits <= _WIDEST_INT else f"<int of {bits} bits>"


def _length(value: object) -> int:
    """The length as the built-in base class knows it."""
    bases = _types.mro(type(value))
    measure: Any
    for measure in (bytes, bytearray, memoryview, list, tuple):
        if measure in bases:
            return int(measure.__len__(value))
    return 0


def _described(value: object) -> str:
    """An object that may not print itself: an array by its shape, anything else by its class."""
    name = type_name(value)
    shape = _types.shape_of(value)
    if shape is not None:
        return f"<{name} shape={shape}>"
    if _types.is_a(value, type):
        return f"<class {one_line(_types._name_of(value))[:64]}>"  # noqa: SLF001
    return f"<unrepresentable {name}>" if _types.has_own(value, "__repr__") else f"<{name} object>"
