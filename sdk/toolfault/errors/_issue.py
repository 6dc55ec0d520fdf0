"""One thing wrong with one argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from toolfault.errors._cleaning import (
    as_text,
    clean_name,
    clean_received,
    clean_text,
    known_text,
    redaction_policy,
    shown_value,
    without,
)
from toolfault.errors._codes import MISSING_TEXT, ROOT, UNEXPECTED_TEXT, ToolErrorCode
from toolfault.errors._types import ABSENT

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

    Attributes:
        sent: What was sent, so that its near misses can be named: a value that cannot change, an
            empty container of its kind, or ABSENT. It is never shown, sent or pickled.
    """

    __slots__ = (
        "_near_miss",
        "code",
        "expected",
        "field",
        "hint",
        "loc",
        "message",
        "received",
        "received_type",
        "sent",
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
    _near_miss: tuple[str, ...] | Callable[[Issue], tuple[str, ...]]
    hint: str | None
    stand_in: str | None
    sent: object

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
        self.received_type = _known(received_type, LONGEST_TYPE)
        self.field = _clean_field(field)
        self.code = ToolErrorCode(code)
        self.message = _known(message, LONGEST_MESSAGE) or _default_text(self.code)
        self.expected = _known(expected, LONGEST_EXPECTED)
        self.received = clean_received(
            received, field=self.field, received_type=self.received_type, limit=LONGEST_RECEIVED
        )
        self.type = None if type is None else as_text(type, LONGEST_TYPE)
        self.loc = _parts(self.field) if loc is None else _clean_loc(loc)
        self._near_miss = tuple(near_miss)
        self.hint = _known(hint, LONGEST_MESSAGE)
        self.stand_in = None if stand_in is None else as_text(stand_in, LONGEST_TYPE)
        self.sent = ABSENT

    @classmethod
    def of_value(
        cls,
        loc: tuple[str | int, ...],
        code: str,
        message: str,
        value: object,
        *,
        hidden: bool = False,
        expected: str | None,
        type: str | None = None,  # noqa: A002 - the name of the field on the wire
    ) -> Issue:
        """The issue of *value*, or of none where it is ABSENT, at *loc*.

        Args:
            loc: Its path.
            code: What is wrong.
            message: The same in words.
            value: What was sent.
            hidden: Whether it must not be shown.
            expected: What would have been right.
            type: The error type of the validation library.
        """
        issue = cls.__new__(cls)
        known = redaction_policy().clean_texts
        issue.field = issue.loc = loc  # type: ignore[assignment]
        if len(loc) == 1 and loc[0] in known:
            issue.field = loc[0]
        elif not loc:
            issue.field = ROOT
        else:
            issue.field = _clean_field(".".join([str(part) for part in loc]))
            issue.loc = _clean_loc(loc)
        issue.code = ToolErrorCode._value2member_map_.get(code) or ToolErrorCode(code)  # type: ignore[assignment]
        if message not in known:
            message = known_text(message, LONGEST_MESSAGE) or _default_text(issue.code)
        issue.message = message
        issue.expected = expected if expected in known else _known(expected, LONGEST_EXPECTED)
        if value is ABSENT:
            issue.received = issue.received_type = issue.stand_in = None
            issue.sent = ABSENT
        else:
            shown = shown_value(value, hidden)
            issue.received, issue.received_type, issue.stand_in, issue.sent = shown
        issue.type = type
        issue._near_miss = ()  # noqa: SLF001 - its own issue
        issue.hint = None
        return issue

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

    @property
    def near_miss(self) -> tuple[str, ...]:
        """Names of remedies that would have accepted the value; worked out when first asked for."""
        known = self._near_miss
        if callable(known):
            known = self._near_miss = known(self)
        return known

    @near_miss.setter
    def near_miss(self, names: tuple[str, ...]) -> None:
        self._near_miss = names

    def seek_near_miss(self, find: Callable[[Issue], tuple[str, ...]]) -> None:
        """Have *find* say what its near misses are, when first asked, unless somebody has said."""
        if not self._near_miss:
            self._near_miss = find

    def with_(self, **changes: object) -> Issue:
        """A copy with *changes*, named like the arguments of the constructor.

        Raises:
            TypeError: A name is not an argument of the constructor.
        """
        copy = self.copy()
        if "received" in changes:
            copy.stand_in = None  # it was that of another value
        for name, clean in _CLEANERS.items():
            if name in changes:
                setattr(copy, name, clean(copy, changes.pop(name)))
        if changes:
            raise TypeError(f"Issue has no argument {next(iter(changes))!r}")
        return copy

    def copy(self) -> Issue:
        """A copy of its own, which later changes of this one do not reach."""
        twin = Issue.__new__(Issue)
        twin.field, twin.code, twin.message = self.field, self.code, self.message
        twin.expected, twin.received, twin.hint = self.expected, self.received, self.hint
        twin.received_type, twin.stand_in = self.received_type, self.stand_in
        twin.type, twin.loc, twin.sent = self.type, self.loc, self.sent
        twin._near_miss = self._near_miss  # noqa: SLF001 - its own twin
        return twin

    def without(self, values: Sequence[str]) -> Issue:
        """The issue itself, or a copy whose message quotes none of *values*.

        A validator may compare two fields, and quote the other one.
        """
        message = without(self.message, values)
        return self if message == self.message else self.with_(message=message)

    def _key(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in _PARTS)

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
    issue.sent = ABSENT
    for name, value in zip(_PARTS, values, strict=True):
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


def _clean_field(value: Any) -> str:
    if type(value) is str and len(value) <= LONGEST_FIELD:
        if value in redaction_policy().clean_texts:
            return value
        known_text(value, LONGEST_FIELD)  # a name that is clean is known from now on
    return clean_name(as_text(value, LONGEST_FIELD)) or ROOT


def _clean_loc(value: Any) -> tuple[str | int, ...]:
    known = redaction_policy().clean_texts
    return tuple(
        [
            part
            if type(part) is int or (type(part) is str and part in known)
            else clean_name(as_text(part, LONGEST_FIELD))
            for part in value
        ]
    )


def _known(value: Any, limit: int) -> str | None:
    if value is None:
        return None
    return known_text(value, limit) if type(value) is str else clean_text(value, limit)


# The parts of an issue, and how each is cleaned when it is changed later.
_CLEANERS: dict[str, Callable[[Issue, Any], object]] = {
    "received_type": lambda _, value: _known(value, LONGEST_TYPE),
    "field": lambda _, value: _clean_field(value),
    "code": lambda _, value: ToolErrorCode(value),
    "message": lambda issue, value: _known(value, LONGEST_MESSAGE) or _default_text(issue.code),
    "expected": lambda _, value: _known(value, LONGEST_EXPECTED),
    "received": lambda issue, value: clean_received(
        value, field=issue.field, received_type=issue.received_type, limit=LONGEST_RECEIVED
    ),
    "type": lambda _, value: None if value is None else as_text(value, LONGEST_TYPE),
    "loc": lambda issue, value: _parts(issue.field) if value is None else _clean_loc(value),
    "near_miss": lambda _, value: tuple(value),
    "hint": lambda _, value: _known(value, LONGEST_MESSAGE),
    "stand_in": lambda _, value: None if value is None else as_text(value, LONGEST_TYPE),
}
_PARTS = tuple(_CLEANERS)
