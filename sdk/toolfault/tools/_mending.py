"""Repairing what a foreign validator complains of, where a tool asks for it (``coerce=True``).

The validator itself says where it wants another type; a string that is one is repaired and the
whole is validated again. Nothing has to know how a model or a schema is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from toolfault.coerce import COERCERS
from toolfault.errors._types import ABSENT
from toolfault.tools._checks import Findings, Loc

# Where, by the validator's path, and the JSON word for what is wanted there.
Complaint = tuple[Loc, str]

_ROUNDS = 4  # what stands in JSON that stood in a string is complained of one round later


class Outcome(NamedTuple):
    """What a validator made of a value.

    Attributes:
        value: The validated value, where it is right.
        error: What was raised of it, else None.
        complaints: Where another type is wanted.
    """

    value: Any
    error: Exception | None = None
    complaints: Sequence[Complaint] = ()


class _Repair(NamedTuple):
    complaint: Complaint
    path: Loc
    before: str
    after: Any


def mended(
    value: Any, attempt: Callable[[Any], Outcome], loc: Loc, findings: Findings
) -> tuple[Any, Any]:
    """Return the value, its strings repaired where ``findings`` allow it, and what it became.

    A repair counts only where the validator no longer complains of that place.

    Args:
        value: What the model sent.
        attempt: Validates.
        loc: Where the value stands in the arguments.
        findings: Takes the repairs.

    Raises:
        Exception: What the validator raised, of the value as far as it could be repaired.
    """
    outcome = attempt(value)
    for _ in range(_ROUNDS if findings.coerce else 0):
        if outcome.error is None:
            break
        repairs, candidate, after = _improved(value, outcome, attempt)
        if not repairs:
            break
        value, outcome = candidate, after
        findings.repairs.extend((loc + r.path, r.before, r.after) for r in repairs)
    if outcome.error is not None:
        raise outcome.error
    return value, outcome.value


def _improved(
    value: Any, outcome: Outcome, attempt: Callable[[Any], Outcome]
) -> tuple[list[_Repair], Any, Outcome]:
    """Return repairs that helped, the value with them, and what the validator made of it."""
    complaints = outcome.complaints
    while True:
        repairs, candidate = _repaired(value, complaints)
        if not repairs:
            return [], value, outcome
        after = attempt(candidate)
        still = {loc for loc, _ in after.complaints}
        if not any(repair.complaint[0] in still for repair in repairs):
            return repairs, candidate, after
        useless = {r.complaint for r in repairs if r.complaint[0] in still}
        complaints = [complaint for complaint in complaints if complaint not in useless]


def _repaired(value: Any, complaints: Iterable[Complaint]) -> tuple[list[_Repair], Any]:
    """Return what could be repaired, and a copy of the value with it."""
    repairs: list[_Repair] = []
    for complaint in complaints:
        path, text = at(value, complaint[0])
        coerce = COERCERS.get(complaint[1])
        if coerce is None or type(text) is not str:
            continue
        repaired = coerce(text)
        if repaired is not text:
            repairs.append(_Repair(complaint, path, text, repaired))
            value = _with(value, path, repaired)
    return repairs, value


def at(value: Any, loc: Loc) -> tuple[Loc, Any]:
    """Return the path of real keys and indexes in ``loc``, and what stands there.

    A part that is neither is the label of a union's branch and is passed over.
    """
    path: Loc = ()
    for part in loc:
        inside = _child(value, part)
        if inside is not ABSENT:
            value = inside
            path = (*path, part)
    return path, value


def _child(value: Any, part: Any) -> Any:
    if type(value) is dict:
        return value.get(part, ABSENT)
    if type(value) is list and type(part) is int and 0 <= part < len(value):
        return value[part]
    return ABSENT


def _with(value: Any, path: Loc, repaired: Any) -> Any:
    """Return a copy of ``value`` with another value at ``path``; what lies beside is shared."""
    if not path:
        return repaired
    copy = value.copy()
    copy[path[0]] = _with(value[path[0]], path[1:], repaired)
    return copy
