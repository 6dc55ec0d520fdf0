"""Small members of events, within the bounds of the protocol (contract.md 3.9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolfault.tools._call import Repair

__all__ = ["change_members", "coercion_members", "labels", "name_of", "tool_name"]

_KINDS = ("manual", "release", "schema", "variant")


def name_of(value: object, limit: int = 128) -> str | None:
    """Return a name the host gave as text within its limit; None and empty text as None.

    Anything but text or a number is shown without running its code.
    """
    if value is None:
        return None
    if type(value) is str:
        return value[:limit] or None
    if type(value) in (int, float, bool):
        return str(value)[:limit]
    from toolfault.errors import safe_repr, safe_text

    return safe_text(value if isinstance(value, str) else safe_repr(value), limit)


def tool_name(name: str) -> str:
    """Return the name of a tool, which a model may have written: no secret, at most 128 characters.

    What the SDK keeps and sends goes by this name.
    """
    from toolfault.errors import redaction_policy

    return _cleaned(name[:1_024], redaction_policy())


@lru_cache(maxsize=1_024)
def _cleaned(name: str, _: object) -> str:
    from toolfault.errors import clean_name

    return clean_name(name, 128)


def labels(tags: Mapping[str, str]) -> dict[str, str]:
    """Return tags within their bounds: 20, keys of 64 and values of 256 characters."""
    kept: dict[str, str] = {}
    for key, value in list(tags.items())[:20]:
        text = name_of(key, 64) or ""
        name = "".join(c if c.isascii() and (c.isalnum() or c in "_.-") else "_" for c in text)
        kept[name] = name_of(value, 256) or ""
    return kept


def change_members(label: str, *, tool: str | None, kind: str) -> dict[str, Any]:
    """Return what a marker says; an unknown kind is a manual one."""
    return {
        "label": name_of(label, 200) or "change",
        "tool": name_of(tool),
        "kind": kind if kind in _KINDS else "manual",
    }


def coercion_members(coercions: Sequence[Repair]) -> list[dict[str, str]]:
    """Return at most 50 repairs: field and types, never a value."""
    return [
        {"field": c.field[:256], "from_type": str(c.from_type), "to_type": str(c.to_type)}
        for c in coercions[:50]
    ]
