"""Checks of arguments, compiled once per tool from type hints.

Every check says all that is wrong (never fail-fast), in pydantic's words, with codes of our own.
"""

from toolfault.tools._checks._findings import ABSENT, ANYTHING, Check, Finding, Findings, Loc
from toolfault.tools._checks._from_hints import Hints, description_of
from toolfault.tools._checks._objects import FieldCheck, ObjectCheck

__all__ = [
    "ABSENT",
    "ANYTHING",
    "Check",
    "FieldCheck",
    "Finding",
    "Findings",
    "Hints",
    "Loc",
    "ObjectCheck",
    "description_of",
]
