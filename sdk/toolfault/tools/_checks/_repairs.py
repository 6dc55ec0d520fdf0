"""A check that repairs the value first, because its field asks for it (``port: LLMInt``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolfault.tools._checks._findings import Check, Findings, Loc

__all__ = ["RepairCheck"]


class RepairCheck(Check):
    """Applies a coercer, then the check of the declared type."""

    __slots__ = ("_coerce", "_inner")

    def __init__(self, inner: Check, coerce: Callable[[Any], Any]) -> None:
        self._inner = inner
        self._coerce = coerce

    @property
    def kind(self) -> str:  # type: ignore[override] # depends on what is inside
        """The word of the declared type."""
        return self._inner.kind

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Repair, then check; a repair counts only where the result is right."""
        try:
            repaired = self._coerce(value)
        except ValueError as error:  # broken JSON in a string
            words = str(error)
            code = "malformed_json" if words.startswith("Invalid JSON") else "invalid_input"
            findings.add(loc, code, words, value=value)
            return value
        trial = findings.trial(coerce=findings.coerce)
        checked = self._inner.check(repaired, loc, trial)
        for found in trial.found:
            if found.loc == loc:
                found.value = value  # what the model sent, not what became of it
        if repaired is not value and not trial.found and not _same(repaired, value):
            findings.repairs.append((loc, value, repaired))
        findings.absorb(trial)
        return checked

    def schema(self) -> dict[str, Any]:
        """Return the schema of the declared type."""
        return self._inner.schema()


def _same(repaired: Any, value: Any) -> bool:
    return type(repaired) is type(value) and bool(repaired == value)
