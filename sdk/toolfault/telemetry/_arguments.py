"""Comparing the arguments of attempts without keeping or sending a value.

The caller copies the arguments, since they may change; hash and comparison are the sender's.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

if TYPE_CHECKING:
    from toolfault.telemetry._conversations import Chain

__all__ = [
    "ATTEMPT",
    "Attempt",
    "Leaves",
    "attempt",
    "difference",
    "fingerprint",
    "leaves",
]

ATTEMPT = "(arguments)"  # member of an unfinished event that never travels

Leaves = dict[str, tuple[str, int]]

_NODES = 500
_DEPTH = 8
_LEAVES = 64
_CHANGES = 50
# A longer text is kept as its ends and a checksum: 500 of them must not take the queue's 16 MiB,
# or the failure that they belong to would be dropped for what is never sent.
_TEXT = 1_024
_CHECKED = 65_536
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class Attempt(NamedTuple):
    """Arguments of one call, waiting for the sender.

    Attributes:
        arguments: A copy in JSON types.
        chain: The chain the call belongs to, or None.
        secret: Key of the fingerprint.
        is_whole: Whether the copy says all that the arguments do: nothing in it was shortened,
            left out or named by its type only.
    """

    arguments: Any
    chain: Chain | None
    secret: bytes
    is_whole: bool

    def members(self) -> dict[str, Any]:
        """Return the fingerprint, and the difference to the chain's attempt before this one."""
        told: dict[str, Any] = {"args_fingerprint": fingerprint(self.arguments, self.secret)}
        if self.chain is not None:
            before, self.chain.leaves = self.chain.leaves, leaves(self.arguments)
            if before is not None:
                told["args_diff"] = difference(before, self.chain.leaves)
        return told


def attempt(arguments: object, chain: Chain | None, secret: bytes) -> tuple[Attempt, int]:
    """Copy arguments for later and return them with the bytes they take while they wait."""
    budget = [_NODES, 0, 1]
    if type(arguments) is dict:  # what they nearly always are
        copy: Any = _plain_members(arguments, budget, 1)
    else:
        copy = _plain(arguments, budget, 0)
    is_whole = bool(budget[2]) and budget[0] > 0
    return Attempt(copy, chain, secret, is_whole), 2 * budget[1] + 100 * (_NODES - budget[0])


def _plain(value: object, budget: list[int], depth: int) -> Any:
    """Return ``value`` in JSON types, looking only into exact dicts, lists and tuples.

    Anything else an argument can be (a tensor, a generator, a lock, a subclass with methods of
    its own) is named by its type: it is never iterated, compared or printed.
    """
    budget[0] -= 1
    kind = type(value)
    if kind is str:
        text: str = value  # type: ignore[assignment]
        if len(text) > _TEXT:
            text = _shortened(text)
            budget[2] = 0
        budget[1] += len(text)
        return text
    if value is None or kind is bool or kind is int or kind is float:
        if kind is not float or value == value:  # noqa: PLR0124 - NaN test
            return value
        budget[2] = 0
        return "<nan>"
    if budget[0] <= 0 or depth >= _DEPTH:
        budget[2] = 0
        return "<deep>"
    if kind is dict:
        assert isinstance(value, dict)
        return _plain_members(value, budget, depth + 1)
    if kind is list or kind is tuple:
        assert isinstance(value, (list, tuple))
        return [_plain(member, budget, depth + 1) for member in value[: max(budget[0], 0)]]
    budget[2] = 0
    return f"<{kind.__name__}>"


def _plain_members(value: dict[Any, Any], budget: list[int], depth: int) -> dict[str, Any]:
    """Copy a dict; the scalars that arguments mostly are without a call of their own."""
    copy: dict[str, Any] = {}
    for name, member in list(value.items())[: max(budget[0], 0)]:
        kind = type(member)
        if kind is int or kind is bool or member is None:
            budget[0] -= 1
        elif kind is str and len(member) <= _TEXT:
            budget[0] -= 1
            budget[1] += len(member)
        else:
            member = _plain(member, budget, depth)  # noqa: PLW2901 - the copy of the member
        if type(name) is not str:
            name = f"<{type(name).__name__}>"  # noqa: PLW2901 - the copy of the name
            budget[2] = 0
        elif len(name) > _TEXT:
            name = _shortened(name)  # noqa: PLW2901
            budget[2] = 0
        budget[1] += len(name)
        copy[name] = member
    return copy


def _shortened(text: str) -> str:
    """Return head, length, checksum and tail: enough to tell two texts apart, at a bounded cost."""
    half = _TEXT // 2
    middle = crc32(text[half:_CHECKED].encode("utf-8", "surrogatepass"))
    return f"{text[:half]}<{len(text)} {middle}>{text[-half:]}"


def fingerprint(arguments: Any, key: bytes) -> str:
    """Return a keyed hash of the canonical JSON of ``plain`` arguments, 32 hex digits.

    Equal arguments have equal fingerprints whatever the order of their keys. The key keeps
    whoever reads the store from finding a value by hashing guesses. Source: BLAKE2 (RFC 7693).

    Empty where a number has more digits than Python writes (``sys.set_int_max_str_digits``).
    """
    try:
        text = _canonical(arguments)
    except ValueError:
        return ""
    return blake2b(text.encode(), digest_size=16, key=key).hexdigest()


def leaves(arguments: Any) -> Leaves:
    """Return the path of each value in ``plain`` arguments with its type and hash.

    Paths are written as fields are: names and positions joined by dots. At most 64 are kept.
    """
    found: Leaves = {}
    _walk(arguments, "", found)
    return found


def _walk(value: Any, path: str, found: Leaves) -> None:
    if len(found) >= _LEAVES:
        return
    if isinstance(value, dict) and value:
        # In one order: a name with a dot, or an empty one, can make two paths the same.
        for name in sorted(value):
            _walk(value[name], f"{path}.{name}" if path else name, found)
    elif isinstance(value, list) and value:
        for index, member in enumerate(value):
            _walk(member, f"{path}.{index}" if path else str(index), found)
    else:
        token = hash(str(value)) if isinstance(value, (list, dict)) else hash((value,))
        found[path[:256] or "(root)"] = (type(value).__name__, token)


def difference(before: Leaves, after: Leaves) -> list[dict[str, str]]:
    """Return how ``after`` differs from ``before``: at most 50 paths, each with its change."""
    changes: list[dict[str, str]] = []
    for path, (kind, token) in after.items():
        was = before.get(path)
        if was is None:
            changes.append({"path": path, "change": "added"})
        elif was[0] != kind:
            changes.append({"path": path, "change": "type_changed"})
        elif was[1] != token:
            changes.append({"path": path, "change": "changed"})
    changes += [{"path": path, "change": "removed"} for path in before if path not in after]
    return changes[:_CHANGES]
