"""Pairs the calls of one conversation with their results, whatever the format.

Arguments are reduced to what may be kept: a fingerprint and a table of hashed leaves. Their values
never leave this module. Hashes are keyed by the conversation, since the hash of a short value
without a key can be guessed by trying.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Final, TypeAlias

from toolfault_collector.importers.classify.soft import soft_rule
from toolfault_collector.importers.items import Call, Outcome
from toolfault_collector.importers.members import cut
from toolfault_collector.protocol.repair import clean_text

__all__ = ["Assembly", "fingerprint_of"]

MAX_TEXT: Final = 8_000  # the wire's limit for a rendering
MAX_EARLY: Final = 1_000
MAX_WAITING: Final = 500  # calls of one id, among which that of a result is looked for
MAX_LEAVES: Final = 200
MAX_DEPTH: Final = 6
MAX_CHANGES: Final = 50
MAX_PATH: Final = 128

# Path of each leaf of the arguments to its JSON type and its hash.
_Leaves: TypeAlias = Mapping[str, tuple[str, bytes]]
_JSON_TYPES: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)


class Assembly:
    """Collects what a format finds in one conversation, in the order of the transcript.

    A result belongs to the latest turn that holds an unanswered call of its id (ids repeat within
    a conversation in real files), within that turn to the first. A second result of a call is a
    copy and ignored.

    Args:
        key: Keys the argument hashes of this conversation, at most 64 bytes.
        early_results: Whether a result may stand before its call; only where ids are unique.
    """

    def __init__(self, *, key: bytes, early_results: bool = False) -> None:
        self._key = key
        self._calls: list[Call] = []
        self._leaves: list[_Leaves | None] = []  # of the call at the same place
        self._unanswered: dict[str | None, list[Call]] = {}
        self._max_early = MAX_EARLY if early_results else 0
        self._early: dict[str, Outcome] = {}
        self._last_turn = 0  # number of calls before it
        self.orphans = 0

    def next_turn(self) -> None:
        """Note that the model goes on, without the results that are missing so far."""
        self._last_turn = len(self._calls)

    def issue(self, call: Call) -> None:
        """Add a call."""
        call.position = len(self._calls)
        arguments, call.arguments = call.arguments, None
        call.args_fingerprint = fingerprint_of(arguments, key=self._key)
        self._calls.append(call)
        recorded = arguments is not None
        self._leaves.append(_leaves(_parsed(arguments), key=self._key) if recorded else None)
        waiting = self._unanswered.setdefault(call.call_id, [])
        early = self._early.pop(call.call_id, None) if call.call_id else None
        if early is None:
            waiting.append(call)
        else:
            self.orphans -= 1
            _settle(call, early)

    def answer(self, outcome: Outcome) -> None:
        """Add a result."""
        call = self._answered_by(outcome)
        if call is not None:
            _settle(call, outcome)
        elif outcome.call_id not in self._unanswered:
            self.orphans += 1
            if outcome.call_id and len(self._early) < self._max_early:
                self._early.setdefault(outcome.call_id, outcome)

    def _answered_by(self, outcome: Outcome) -> Call | None:
        """Take the call that a result belongs to out of those that wait for one."""
        waiting = self._unanswered.get(outcome.call_id, [])
        # The legacy shape names the function instead of the call.
        any_tool = outcome.call_id is not None or outcome.tool is None
        place: int | None = None
        for at in range(len(waiting) - 1, max(-1, len(waiting) - MAX_WAITING), -1):
            if any_tool or waiting[at].tool == outcome.tool:
                if place is not None and waiting[at].turn != waiting[place].turn:
                    break
                place = at
        return waiting.pop(place) if place is not None else None

    def finish(self, *, grows: bool) -> tuple[tuple[Call, ...], int]:
        """Give the calls in the order in which they were issued, and how many are left out.

        The source's times are kept if every call has one; the order is theirs then, with the place
        in the file deciding between equals.

        Args:
            grows: Whether this is the same conversation after it has gone on. What its last turn
                still waits for is left out then, since a later import brings it with its result.
        """
        timed = all(call.started_at is not None for call in self._calls)
        if timed:
            self._calls.sort(key=lambda call: call.started_at or 0)
        self._compare_attempts()
        for call in self._calls:
            _tidy(call, timed=timed)
        known = tuple(call for call in self._calls if not (grows and self._is_pending(call)))
        return known, len(self._calls) - len(known)

    def _is_pending(self, call: Call) -> bool:
        return call.status == "missing" and call.position >= self._last_turn

    def _compare_attempts(self) -> None:
        """Say how each call differs from the last one of the failures before it, if it saw it."""
        failed: dict[str, Call] = {}
        for call in self._calls:
            previous = failed.get(call.tool)
            parallel = previous is not None and call.turn is not None and previous.turn == call.turn
            if previous is not None and not parallel:
                before, after = self._leaves[previous.position], self._leaves[call.position]
                if before is not None and after is not None:
                    call.args_diff = _changes(before, after)
            if call.status == "failed":
                failed[call.tool] = call
            elif call.status == "ok" and not parallel:
                failed.pop(call.tool, None)


def _settle(call: Call, outcome: Outcome) -> None:
    call.status = "failed" if outcome.failed else "ok"
    call.ended_at = outcome.at
    if outcome.failed:
        call.text = cut(clean_text(outcome.text), MAX_TEXT)
        call.rule = outcome.rule
    else:
        call.soft = outcome.soft or soft_rule(outcome.text)


def _tidy(call: Call, *, timed: bool) -> None:
    """Make names storable and times consistent, once nothing is compared with them any more."""
    # Names are as long as they are: the store keeps cut ones apart and marks them.
    call.tool = clean_text(call.tool)
    call.call_id = clean_text(call.call_id) if call.call_id else None
    call.turn = clean_text(call.turn) if call.turn else None
    if not timed:
        call.started_at = call.ended_at = None
    elif call.started_at is not None:
        call.ended_at = max(call.ended_at or 0, call.started_at)


def fingerprint_of(arguments: object, *, key: bytes) -> str | None:
    """Return a hash of the arguments of a call: any JSON value, or a text that holds one.

    None where they were not recorded, which is no equal of anything.
    """
    return None if arguments is None else _digest(_parsed(arguments), key=key, size=16).hex()


def _parsed(arguments: object) -> object:
    """Give arguments that were written as a JSON string as what it holds, if it is valid."""
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments


def _leaves(arguments: object, *, key: bytes) -> _Leaves:
    leaves: dict[str, tuple[str, bytes]] = {}
    for path, leaf in _walk(arguments, "", 0):
        if len(leaves) >= MAX_LEAVES:
            break
        leaves[cut(path, MAX_PATH)] = (_json_type(leaf), _digest(leaf, key=key, size=8))
    return leaves


def _walk(value: object, path: str, depth: int) -> Iterator[tuple[str, object]]:
    """Yield the leaves; an empty container or one below the depth limit is a leaf itself."""
    members: list[tuple[object, object]] = []
    if depth < MAX_DEPTH and isinstance(value, dict):
        # In one order: a name with a dot, or an empty one, can make two paths the same.
        members = [(name, value[name]) for name in sorted(value, key=str)]
    elif depth < MAX_DEPTH and isinstance(value, list):
        members = list(enumerate(value))
    if not members:
        yield path, value
    for name, member in members:
        yield from _walk(member, f"{path}.{name}" if path else str(name), depth + 1)


def _json_type(value: object) -> str:
    return _JSON_TYPES.get(type(value), "other")


def _digest(value: object, *, key: bytes, size: int) -> bytes:
    try:
        text = _ENCODER.encode(value)
    except (RecursionError, TypeError, ValueError):
        text = f"{_json_type(value)} too deep to compare"
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=size, key=key).digest()


def _changes(before: _Leaves, after: _Leaves) -> tuple[Mapping[str, str], ...]:
    """List where two attempts differ, and how: ``path`` (dotted), ``change``, JSON types."""
    found: list[Mapping[str, str]] = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old != new and len(found) < MAX_CHANGES:
            change = "added" if old is None else "removed" if new is None else "changed"
            from_type = {"from_type": old[0]} if old else {}
            to_type = {"to_type": new[0]} if new else {}
            found.append({"path": path, "change": change, **from_type, **to_type})
    return tuple(found)
