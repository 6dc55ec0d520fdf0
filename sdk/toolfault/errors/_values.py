"""Any value as a bounded, printable text or as plain JSON, without running the value's own code."""

from __future__ import annotations

from enum import Enum
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any

from toolfault.errors import _types
from toolfault.errors._codes import REDACTED
from toolfault.errors._redaction import (
    is_secret_key,
    is_secret_path,
    names_a_secret,
    redact_name,
    redact_text,
    redaction_policy,
    shown_anyway,
)
from toolfault.errors._types import is_a

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "PLAIN_TYPES",
    "as_text",
    "clean_name",
    "clean_received",
    "clean_text",
    "cut",
    "first_line",
    "is_secret_value",
    "known_text",
    "one_line",
    "plain",
    "redacted_repr",
    "safe_repr",
    "shown_value",
    "snippet",
    "to_jsonable",
    "type_and_size",
    "type_name",
    "whole_characters",
]

# Making any text fit to be shown: no control characters, no lone surrogates, bounded.

REPLACEMENT = "\ufffd"
SNIP = "…<snip>…"
_SNIPPET_TAIL = 200

_unshowable: dict[int, str] = {}


def plain(text: str, limit: int | None = None) -> str:
    """*text* with control characters and lone surrogates replaced, cut to *limit* characters.

    Line feeds and tabs stay: a message for the model may have several lines.
    """
    # A subclass may override any method; this makes an exact `str` without calling one.
    text = str.__str__(text)
    if limit is not None and len(text) > limit:
        text = cut(text, limit)
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_unshowable or _filled())


def _filled() -> dict[int, str]:
    """C0 and C1 controls except tab and line feed, and surrogates, which UTF-8 cannot hold."""
    codes = {*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000)} - {0x09, 0x0A}
    _unshowable.update(dict.fromkeys(codes, REPLACEMENT))
    return _unshowable


def whole_characters(text: str) -> str:
    """*text* with surrogate pairs joined and lone surrogates replaced."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def as_text(value: object, limit: int = 8_000) -> str:
    """*value* as bounded plain text; anything but text by its representation."""
    if is_a(value, str):
        return plain(value, limit)
    return safe_repr(value, limit)


def cut(text: str, limit: int) -> str:
    """*text*, at most *limit* characters; a cut is marked by a final ellipsis."""
    if len(text) <= limit:
        return text
    return text[: limit - 1] + "…" if limit > 0 else ""


def snippet(text: str, maximum: int = 512) -> str:
    """*text* verbatim up to *maximum* characters, else its head and its last 200 characters.

    The result has at most *maximum* + 8 characters. Counted in characters, never in bytes, so
    that no character is torn apart (contract.md 2.1.7).
    """
    if len(text) <= maximum:
        return text
    tail = _SNIPPET_TAIL if maximum > _SNIPPET_TAIL else max(maximum, 0) // 2
    head = max(maximum, 0) - tail
    return text[:head] + SNIP + (text[-tail:] if tail else "")


def first_line(text: str, limit: int) -> str:
    """The first non-empty line of *text*, at most *limit* characters."""
    for line in text[: 4 * limit + 64].splitlines():
        if line.strip():
            return cut(line.strip(), limit)
    return ""


def one_line(text: str) -> str:
    """*text* on one line, every unprintable character escaped as Python would.

    Line feeds, terminal escapes, bidirectional overrides and zero-width characters become
    visible, so that a name or a value can neither forge a log line nor hide in one.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return repr(character)[1:-1]


# A representation of any value: bounded, redacted, and without running the value's own code.

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
    return PLAIN_TYPES.get(type(value)) or one_line(_types.class_name(value))


def type_and_size(value: object) -> str:
    """What stands in for *value* where it must not be shown: `str, 18 characters`, `int`.

    The unit is in the plural whatever the size: failures are grouped by their wording.
    """
    bases = _types.mro(type(value))
    for base, unit in _UNITS:
        if base in bases:
            return f"{type_name(value)}, {base.__len__(value)} {unit}"
    return type_name(value)


_SHORTEST_SECRET = 9  # characters of a number, an account's, that is one
# Values that are what they say, without a class of their own.
PLAIN_TYPES = {str: "str", int: "int", float: "float", bool: "bool", type(None): "NoneType"}


def shown_value(value: object, *, hidden: bool = False) -> tuple[str, str, str]:
    """The clean representation of *value* on one line, its type name, and what stands in for it.

    Args:
        value: Anything.
        hidden: Whether the value is a secret, which is not shown.
    """
    kind = type(value)
    name = PLAIN_TYPES.get(kind)
    if name is None:
        shown = REDACTED if hidden else redacted_repr(value)
        if len(shown) >= _SHORTEST_SECRET:  # what lies beside each other may be one, too
            shown = one_line(clean_text(shown, LIMIT))
        return shown, type_name(value), type_and_size(value)
    if kind is str:
        shown = REDACTED if hidden else cut(repr(redact_text(value, LIMIT + 1)), LIMIT)  # type: ignore[arg-type]
        return shown, name, f"str, {len(value)} characters"  # type: ignore[arg-type]
    if hidden:
        return REDACTED, name, name
    shown = _integer(value) if kind is int else repr(value)  # type: ignore[arg-type]
    return redact_text(shown) if len(shown) >= _SHORTEST_SECRET else shown, name, name


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
        return f"<class {one_line(_types.name_of(value))[:64]}>"
    return f"<unrepresentable {name}>" if _types.has_own(value, "__repr__") else f"<{name} object>"


# Any value as plain JSON values: no exception, no cycle, nothing that `json.dumps` refuses.

CUT = "…"


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
            return value if value.bit_length() <= _WIDEST_INT else _integer(value)
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


def _printed(value: object) -> str:
    iso = getattr(value, "isoformat", None)
    return str(iso()) if callable(iso) else str(value)


# Texts that are fit to be shown: clean of secrets, printable, bounded.

_LONGEST_NAME = 256
_NEVER_SECRET_TYPES = frozenset({"int", "float", "bool", "NoneType", "Decimal"})


def clean_name(name: str, limit: int = _LONGEST_NAME) -> str:
    """A tool or field name fit to be shown: one line, bounded, never a credential."""
    return cut(one_line(plain(redact_name(name[: limit + 1_000]), limit)), limit)


def clean_received(
    received: object, *, field: object, received_type: str | None, limit: int
) -> str | None:
    """The representation of a received value, without secrets, at most *limit* characters."""
    if received is None:
        return None
    if type(field) is str and is_secret_value(field.split("."), received_type):
        return REDACTED
    return one_line(clean_text(received, limit))


def is_secret_value(loc: Iterable[object], received_type: str | None) -> bool:
    """Whether a value of *received_type* at *loc* must not be shown, by a name on its path."""
    return received_type not in _NEVER_SECRET_TYPES and is_secret_path(loc)


_LONGEST_KNOWN = 300
_MOST_KNOWN = 1_000


def clean_text(value: object, limit: int) -> str:
    """Any text without secrets and control characters, at most *limit* characters."""
    return plain(redact_text(as_text(value, 4 * limit + 1_000), limit))


def known_text(text: str, limit: int) -> str:
    """`clean_text` of a name or a sentence that comes again with every failure of its kind.

    A line that came out as it was is remembered by the policy, up to a thousand of them; a text
    that held a secret never is.
    """
    policy = redaction_policy()
    if type(text) is str and text in policy.clean_texts and len(text) <= limit:
        return text
    cleaned = clean_text(text, limit)
    if (
        cleaned == text
        and 0 < len(cleaned) <= _LONGEST_KNOWN
        and cleaned.isprintable()
        and policy.redactor is None
    ):
        if len(policy.clean_texts) >= _MOST_KNOWN:
            policy.clean_texts.clear()
        policy.clean_texts.add(cleaned)
    return cleaned
