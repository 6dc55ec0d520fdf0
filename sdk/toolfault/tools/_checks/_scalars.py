"""Checks of the JSON scalars: string, integer, number, boolean, null."""

from __future__ import annotations

from typing import Any

from toolfault.tools._checks._bounds import Bounds
from toolfault.tools._checks._findings import Check, Findings, Loc

__all__ = ["BoolCheck", "FloatCheck", "IntCheck", "NullCheck", "StrCheck"]

# ``issubclass(type(value), int)`` everywhere, never ``isinstance``: isinstance reads the value's
# ``__class__``, which a hostile object can make raise.


class _Bounded(Check):
    """A scalar with optional bounds."""

    __slots__ = ("bounds", "exact")
    exact: type | None
    plain: type

    def __init__(self, bounds: Bounds | None = None) -> None:
        self.bounds = bounds
        # With bounds the value has to be looked at, so containers may not skip the check.
        self.exact = self.plain if bounds is None else None

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Return the value, repaired if that is allowed and possible."""
        if type(value) is self.plain:
            if self.bounds is not None:
                self.bounds.check(value, loc, findings, raw=value)
            return value
        return self._other(value, loc, findings)

    def _other(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Decide on a value that is not exactly of the plain type."""
        if self.accepts(type(value)):
            accepted = value
        else:
            accepted = self.repair(value, coerce=findings.coerce)
            if type(accepted) is not self.plain:
                findings.add(loc, "wrong_type", self.words(value), expected=self.kind, value=value)
                return value
            findings.repairs.append((loc, value, accepted))
        if self.bounds is not None:
            self.bounds.check(accepted, loc, findings, raw=value)
        return accepted

    def accepts(self, kind: type) -> bool:
        """Say whether values of ``kind`` pass unchanged."""
        return issubclass(kind, self.plain)

    def repair(self, value: Any, *, coerce: bool) -> Any:
        """Return the value as the plain type if that loses nothing, else unchanged."""
        return value

    def words(self, value: Any) -> str:
        """Return the sentence for a value of the wrong type."""
        return f"Input should be a valid {self.kind}"

    def schema(self) -> dict[str, Any]:
        """Return type and bounds."""
        return {"type": self.kind, **(self.bounds.schema() if self.bounds else {})}


class StrCheck(_Bounded):
    """A string."""

    __slots__ = ()
    plain = str
    kind = "string"


class BoolCheck(_Bounded):
    """A boolean."""

    __slots__ = ()
    plain = bool
    kind = "boolean"

    def repair(self, value: Any, *, coerce: bool) -> Any:
        """Repair ``"true"``, ``"no"`` ... if coercion is on."""
        if not coerce:
            return value
        from toolfault.coerce import coerce_bool

        return coerce_bool(value)


class IntCheck(_Bounded):
    """An integer; a boolean is none."""

    __slots__ = ()
    plain = int
    kind = "integer"

    def accepts(self, kind: type) -> bool:
        """Accept subclasses of int, but bool is not a number."""
        return issubclass(kind, int) and not issubclass(kind, bool)

    def repair(self, value: Any, *, coerce: bool) -> Any:
        """Take ``2.0`` as 2: JSON has one number type (JSON Schema 2020-12, 6.1.1)."""
        if type(value) is float:
            return int(value) if value.is_integer() else value
        if not coerce:
            return value
        from toolfault.coerce import coerce_int

        return coerce_int(value)

    def words(self, value: Any) -> str:
        """Say why a number is not an integer."""
        sentence = super().words(value)
        if type(value) is float and value - value == 0:  # finite
            return f"{sentence}, got a number with a fractional part"
        return sentence


class FloatCheck(_Bounded):
    """A number; integers pass unchanged (PEP 484, the numeric tower), booleans do not."""

    __slots__ = ()
    plain = float
    kind = "number"

    def accepts(self, kind: type) -> bool:
        """Accept int and float, but bool is not a number."""
        return issubclass(kind, (int, float)) and not issubclass(kind, bool)

    def repair(self, value: Any, *, coerce: bool) -> Any:
        """Repair ``"1.5"`` if coercion is on."""
        if not coerce:
            return value
        from toolfault.coerce import coerce_float

        return coerce_float(value)


class NullCheck(Check):
    """None, JSON's null."""

    __slots__ = ()
    exact = type(None)
    kind = "null"

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Accept None alone."""
        if value is not None:
            findings.add(loc, "wrong_type", "Input should be None", expected="null", value=value)
        return value

    def schema(self) -> dict[str, Any]:
        """Return the null type."""
        return {"type": "null"}
