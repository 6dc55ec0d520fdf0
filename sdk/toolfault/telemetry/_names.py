"""Names that hosts and models give: text, without secrets, within the bounds of the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

__all__ = ["labels", "name_of", "tool_name"]


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
    from toolfault.errors import safe_repr, safe_text  # an agent without failures never loads it

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
