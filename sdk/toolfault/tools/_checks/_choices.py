"""Checks of alternatives: a fixed list of values, several types, a type named later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolfault.errors import listed
from toolfault.tools._checks._findings import Check, Findings, Loc

__all__ = ["ChoiceCheck", "LaterCheck", "UnionCheck"]


class ChoiceCheck(Check):
    """One of a fixed list of JSON values, each standing for a final value (an Enum member)."""

    __slots__ = ("_by_value", "_finals", "_words")
    kind = "choice"

    def __init__(self, choices: Sequence[tuple[Any, Any]]) -> None:
        """Take ``(JSON value, final value)`` pairs in the order they are told to the model."""
        self._finals = tuple(choices)
        # Keyed by type too: 1, 1.0 and True are equal in Python, and different answers in JSON.
        self._by_value: dict[tuple[type, Any], Any] = {}
        for shown, final in choices:
            self._by_value.setdefault((type(shown), shown), final)
        self._words = listed(shown for shown, _ in choices)

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Return the final value that ``value`` names."""
        kind = type(value)
        if kind in (str, int, bool, float) or value is None:
            found = self._by_value.get((kind, value), self)
            if found is not self:
                return found
        for _, final in self._finals:
            if value is final:
                return final
        findings.add(
            loc,
            "invalid_choice",
            f"Input should be {self._words}",
            expected=self._words,
            value=value,
        )
        return value

    @property
    def shown(self) -> list[Any]:
        """The JSON values a model may send."""
        return [shown for shown, _ in self._finals]

    def schema(self) -> dict[str, Any]:
        """Return enum, with the type where all choices share it."""
        shown = self.shown
        if shown and all(type(value) is str for value in shown):
            return {"type": "string", "enum": shown}
        return {"enum": shown}


class UnionCheck(Check):
    """One of several types."""

    __slots__ = ("branches",)

    def __init__(self, branches: Sequence[Check]) -> None:
        self.branches = tuple(branches)

    @property
    def kind(self) -> str:  # type: ignore[override] # depends on the branches
        """The branches' words: ``integer or null``."""
        kinds = list(dict.fromkeys(branch.kind for branch in self.branches))
        return " or ".join([", ".join(kinds[:-1]), kinds[-1]]) if len(kinds) > 1 else kinds[0]

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Take the first branch that fits, one that changes nothing before one that repairs."""
        kind = type(value)
        for branch in self.branches:
            if branch.exact is kind:
                return value
        fit, trials = self._try(value, loc, findings.trial(coerce=False))
        if fit is None and findings.coerce:
            fit, trials = self._try(value, loc, findings.trial(coerce=True))
        if fit is None:
            self._explain(value, loc, findings, trials)
            return value
        result, trial = fit
        findings.absorb(trial)
        return result

    def _try(
        self, value: Any, loc: Loc, findings: Findings
    ) -> tuple[tuple[Any, Findings] | None, list[Findings]]:
        """Return the best fit (value and what it took), and what every branch found."""
        repaired: tuple[Any, Findings] | None = None
        trials: list[Findings] = []
        for branch in self.branches:
            trial = findings.trial(coerce=findings.coerce)
            result = branch.check(value, loc, trial)
            trials.append(trial)
            if trial.found:
                continue
            if not trial.repairs:
                return (result, trial), trials
            repaired = repaired or (result, trial)
        return repaired, trials

    def _explain(self, value: Any, loc: Loc, findings: Findings, trials: list[Findings]) -> None:
        """Note why nothing fits.

        Where the value was of a branch's type, that branch knows best what is wrong with it;
        otherwise one sentence names all types, since a list of complaints per type would read as
        several errors.
        """
        close = [trial for trial in trials if not _wrong_at(trial, loc)]
        real = [branch for branch in self.branches if branch.kind != "null"]
        if len(real) == 1:
            close = close or [trials[self.branches.index(real[0])]]
        if close:
            findings.found.extend(min(close, key=lambda trial: len(trial.found)).found)
            return
        findings.add(
            loc,
            "wrong_type",
            f"Input should be a valid {self.kind}",
            expected=self.kind,
            value=value,
        )

    def schema(self) -> dict[str, Any]:
        """Return anyOf."""
        return {"anyOf": [branch.schema() for branch in self.branches]}


def _wrong_at(trial: Findings, loc: Loc) -> bool:
    """Say whether the value itself was of the wrong type, not something inside it."""
    return any(found.code == "wrong_type" and found.loc == loc for found in trial.found)


class LaterCheck(Check):
    """A type that refers to itself: resolved when it is first needed."""

    __slots__ = ("_make", "_name", "_target")

    def __init__(self, name: str, make: Callable[[], Check]) -> None:
        self._name = name
        self._make = make
        self._target: Check | None = None

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Check against the type referred to."""
        if self._target is None:
            self._target = self._make()
        return self._target.check(value, loc, findings)

    def schema(self) -> dict[str, Any]:
        """Return the name only: the schema of a type inside itself has no end."""
        return {"type": "object", "title": self._name}
