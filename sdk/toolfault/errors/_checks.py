"""Arithmetic and statistics that tell credentials from plain numbers, paths and words."""

from __future__ import annotations

import re
from itertools import pairwise

__all__ = ["confirmed", "is_credential", "is_random"]

_DIGITS = re.compile(r"\D")
_BASE64_TEXT = re.compile(rb"[\x20-\x7e]+:[\x20-\x7e]*$")


def confirmed(check: str, text: str) -> bool:
    """Whether *text*, found by the pattern of *check*, really is what it looks like."""
    if check == "luhn":
        return _luhn(_DIGITS.sub("", text))
    if check == "iban":
        return _iban(text.replace(" ", ""))
    if check == "mixed":
        return _mixed(text)
    return True


def _luhn(digits: str) -> bool:
    """The check sum of payment cards (ISO/IEC 7812-1, annex B)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit)
        if place % 2:
            number = number * 2 - 9 if number > 4 else number * 2
        total += number
    return total % 10 == 0


def _iban(text: str) -> bool:
    """The check of account numbers: rearranged and read in base 36, modulo 97 is 1 (ISO 13616)."""
    if not 15 <= len(text) <= 34:
        return False
    return int("".join(str(int(c, 36)) for c in text[4:] + text[:4])) % 97 == 1


def _mixed(text: str) -> bool:
    """Whether 40 characters are a random base64 key rather than a path, a name or a hash."""
    digits = sum(c.isdigit() for c in text)
    upper = sum(c.isupper() for c in text)
    lower = sum(c.islower() for c in text)
    if digits < 2 or upper < 4 or lower < 4:
        return False
    # Names change case where words begin; random text changes class about every other letter.
    changes = sum(_kind(a) != _kind(b) for a, b in pairwise(text))
    return changes >= 16 and len(set(text)) >= 20


def _kind(character: str) -> int:
    if character.isdigit():
        return 0
    return 1 if character.isupper() else 2


def is_credential(scheme: str, value: str) -> bool:
    """Whether *value* after `Bearer` or `Basic` is a credential and not the next word."""
    value = value.rstrip(".=")
    if scheme == "basic":
        import binascii

        try:
            raw = binascii.a2b_base64(value + "=" * (-len(value) % 4))
        except ValueError:
            return False
        return _BASE64_TEXT.match(raw) is not None
    return "." in value or len(value) >= 20 or any(c.isdigit() for c in value)


def is_random(value: str) -> bool:
    """Whether *value* looks generated: hexadecimal, or letters of both cases and digits."""
    if all(c in "0123456789abcdefABCDEF-" for c in value):
        return len(value) >= 32
    digits = sum(c.isdigit() for c in value)
    return digits >= 3 and any(c.isupper() for c in value) and any(c.islower() for c in value)
