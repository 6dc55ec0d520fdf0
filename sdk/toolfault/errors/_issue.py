"""One thing wrong with one argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolfault.errors._codes import MISSING_TEXT, ROOT, UNEXPECTED_TEXT, ToolErrorCode
from toolfault.errors._redaction import without
from toolfault.errors._values import as_text, clean_name, clean_received, clean_text, cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["Issue"]

LONGEST_FIELD = 256
LONGEST_MESSAGE = 500
LONGEST_EXPECTED = 500
LONGEST_RECEIVED = 2_000
LONGEST_TYPE = 128


class Issue:
    """One thing wrong with one argument of a call.

    Every part is cleaned as it comes in: secrets are redacted, texts bounded and made plain, so
    an issue may be shown and sent as it is.

    Args:
        field: Dotted path of the argument (`items.1.port`), or `(root)`.
        code: What is wrong, as a code or its text.
        message: What is wrong in words, without the field and without the value.
        expected: What would have been right, in JSON words (`integer`, `<= 65535`).
        received: A representation of what the model sent; None when nothing was.
        received_type: The Python type name of what was sent.
        type: The error type of the validation library, when there is one.
        loc: The path as parts; made from *field* when absent.
        near_miss: Names of remedies that would have accepted the value.
        hint: A derived hint (did-you-mean, example of the form), for who asks for it.
        stand_in: Type and size of what was sent (`str, 18 characters`), told in the place of
            *received* wherever values must not be.
    """

    __slots__ = (
        "code",
        "expected",
        "field",
        "hint",
        "loc",
        "message",
        "near_miss",
        "received",
        "received_type",
        "stand_in",
        "type",
    )

    field: str
    code: ToolErrorCode
    message: str
    expected: str | None
    received: str | None
    received_type: str | None
    type: str | None
    loc: tuple[str | int, ...]
    near_miss: tuple[str, ...]
    hint: str | None
    stand_in: str | None

    def __init__(  # noqa: PLR0913 - one field each
        self,
        field: str,
        code: ToolErrorCode | str,
        message: str = "",
        *,
        expected: str | None = None,
        received: str | None = None,
        received_type: str | None = None,
        type: str | None = None,  # noqa: A002 - the name of the field on the wire
        loc: Sequence[str | int] | None = None,
        near_miss: Iterable[str] = (),
        hint: str | None = None,
        stand_in: str | None = None,
    ) -> None:
        given = (received_type, field, code, message, expected, received, type, loc)
        for name, value in zip(_ORDER, (*given, near_miss, hint, stand_in), strict=True):
            setattr(self, name, _CLEANERS[name](self, value))

    @property
    def field_pattern(self) -> str:
        """The field with list indexes as `*` (`items.*.port`), for grouping.

        A name the model invented is `*` too: invented names are endless.
        """
        parts = ["*" if isinstance(part, int) else str(part) for part in self.loc]
        if parts and self.code is ToolErrorCode.UNKNOWN_FIELD:
            parts[-1] = "*"
        return as_text(".".join(parts), LONGEST_FIELD) or ROOT

    @property
    def root_field(self) -> str:
        """The argument this issue is about, without what lies inside it."""
        return as_text(str(self.loc[0]), LONGEST_FIELD) if self.loc else ROOT

    @property
    def is_root(self) -> bool:
        """Whether the issue concerns the arguments as a whole."""
        return self.field == ROOT

    def with_(self, **changes: object) -> Issue:
        """A copy with *changes*, named like the arguments of the constructor.

        Raises:
            TypeError: A name is not an argument of the constructor.
        """
        copy = _rebuilt(self._key())
        if "received" in changes:
            copy.stand_in = None  # it was that of another value
        for name in _ORDER:
            if name in changes:
                setattr(copy, name, _CLEANERS[name](copy, changes.pop(name)))
        if changes:
            raise TypeError(f"Issue has no argument {next(iter(changes))!r}")
        return copy

    def cut(self, limit: int) -> Issue:
        """The issue itself, or a copy whose received value has at most *limit* characters."""
        if self.received is None or len(self.received) <= limit:
            return self
        copy = _rebuilt(self._key())
        copy.received = cut(self.received, limit)
        return copy

    def without(self, values: Sequence[str]) -> Issue:
        """The issue itself, or a copy whose message quotes none of *values*.

        A validator may compare two fields, and quote the other one.
        """
        message = without(self.message, values)
        return self if message == self.message else self.with_(message=message)

    def _key(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in Issue.__slots__)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if type(other) is Issue else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuilt, (self._key(),))

    def __repr__(self) -> str:
        return f"Issue(field={self.field!r}, code={self.code.value!r}, message={self.message!r})"


def _rebuilt(values: tuple[object, ...]) -> Issue:
    issue = Issue.__new__(Issue)
    for name, value in zip(Issue.__slots__, values, strict=True):
        setattr(issue, name, value)
    return issue


def _default_text(code: ToolErrorCode) -> str:
    """The message of an issue that was given none."""
    if code is ToolErrorCode.MISSING_FIELD:
        return MISSING_TEXT
    if code is ToolErrorCode.UNKNOWN_FIELD:
        return UNEXPECTED_TEXT
    return str(code.value).replace("_", " ").capitalize()


def _parts(field: str) -> tuple[str | int, ...]:
    if field == ROOT:
        return ()
    return tuple(int(p) if p.isdecimal() and len(p) < 10 else p for p in field.split("."))


# Every part of an issue and how it is cleaned, in an order in which each finds what it needs.


def _clean_field(_: Issue, value: Any) -> str:
    return clean_name(as_text(value, LONGEST_FIELD)) or ROOT


def _clean_loc(value: Any) -> tuple[str | int, ...]:
    return tuple(p if type(p) is int else clean_name(as_text(p, LONGEST_FIELD)) for p in value)


def _clean_message(issue: Issue, value: Any) -> str:
    return _clean_text(value, LONGEST_MESSAGE) or _default_text(issue.code)


def _clean_received(issue: Issue, value: Any) -> str | None:
    return clean_received(
        value, field=issue.field, received_type=issue.received_type, limit=LONGEST_RECEIVED
    )


def _clean_text(value: Any, limit: int) -> str | None:
    return None if value is None else clean_text(value, limit)


_CLEANERS: dict[str, Callable[[Issue, Any], object]] = {
    "received_type": lambda _, value: _clean_text(value, LONGEST_TYPE),
    "field": _clean_field,
    "code": lambda _, value: ToolErrorCode(value),
    "message": _clean_message,
    "expected": lambda _, value: _clean_text(value, LONGEST_EXPECTED),
    "received": _clean_received,
    "type": lambda _, value: None if value is None else as_text(value, LONGEST_TYPE),
    "loc": lambda issue, value: _parts(issue.field) if value is None else _clean_loc(value),
    "near_miss": lambda _, value: tuple(value),
    "hint": lambda _, value: _clean_text(value, LONGEST_MESSAGE),
    "stand_in": lambda _, value: None if value is None else as_text(value, LONGEST_TYPE),
}
_ORDER = tuple(_CLEANERS)
