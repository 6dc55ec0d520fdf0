"""Arguments of a call, reduced to what may be kept: a fingerprint and a table of hashed leaves.

Values never leave this module. Hashes are keyed by the conversation, since the hash of a short
value without a key can be guessed by trying.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from toolfault_collector.importers._text import cut

__all__ = ["Arguments", "changes", "read_arguments"]

MAX_LEAVES: Final = 200
MAX_DEPTH: Final = 6
MAX_CHANGES: Final = 50
MAX_PATH: Final = 128

_KINDS: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class Arguments:
    """Fingerprint and leaves (path -> kind and keyed hash) of the arguments of one call."""

    fingerprint: str
    leaves: Mapping[str, tuple[str, bytes]]


def read_arguments(raw: object, *, key: bytes) -> Arguments:
    """Reduce the arguments of a call; *raw* may be an object or a JSON string, valid or not.

    Args:
        raw: Arguments as the model wrote them.
        key: Secret of the hash, at most 64 bytes.
    """
    value = _parsed(raw)
    leaves: dict[str, tuple[str, bytes]] = {}
    for path, leaf in _walk(value, "", 0):
        if len(leaves) >= MAX_LEAVES:
            break
        leaves[cut(path, MAX_PATH)] = (_kind(leaf), _digest(leaf, key=key, size=8))
    return Arguments(_digest(value, key=key, size=16).hex(), leaves)


def changes(before: Arguments, after: Arguments) -> tuple[Mapping[str, str], ...]:
    """List the differences between two attempts: where, and what kind of change.

    Returns:
        Mappings with ``path`` (dotted, list indexes as numbers, empty for the whole), ``change``
        (``added``, ``removed``, ``changed``), and the JSON types ``from_type`` and ``to_type``
        where there was something before and is something after.
    """
    found: list[Mapping[str, str]] = []
    for path in sorted(before.leaves.keys() | after.leaves.keys()):
        old, new = before.leaves.get(path), after.leaves.get(path)
        if old == new:
            continue
        entry = {"path": path, "change": "changed" if old and new else "added"}
        if old is not None:
            entry["from_type"] = old[0]
        if new is None:
            entry["change"] = "removed"
        else:
            entry["to_type"] = new[0]
        found.append(entry)
        if len(found) == MAX_CHANGES:
            break
    return tuple(found)


def _parsed(raw: object) -> object:
    if not isinstance(raw, str):
        return raw
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "other")


def _digest(value: object, *, key: bytes, size: int) -> bytes:
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    except (RecursionError, TypeError, ValueError):
        text = f"{_kind(value)} too deep to compare"
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=size, key=key).digest()


def _walk(value: object, path: str, depth: int) -> Iterator[tuple[str, object]]:
    """Yield the leaves; an empty container or one below the depth limit is a leaf itself."""
    if depth < MAX_DEPTH and isinstance(value, dict) and value:
        # In one order: a name with a dot, or an empty one, can make two paths the same.
        for name in sorted(value, key=str):
            yield from _walk(value[name], f"{path}.{name}" if path else str(name), depth + 1)
    elif depth < MAX_DEPTH and isinstance(value, list) and value:
        for index, member in enumerate(value):
            yield from _walk(member, f"{path}.{index}" if path else str(index), depth + 1)
    else:
        yield path, value
