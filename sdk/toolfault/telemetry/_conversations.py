"""Conversations: the one a call belongs to, where it stands in it, and what its end tells.

Bounded: conversations are kept in the order of their last call, and the one idle longest is ended
when there are too many. The queue's lock guards all of it.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from hashlib import blake2b
from types import TracebackType
from typing import Any, NamedTuple
from zlib import crc32

from toolfault._uuid7 import uuid7
from toolfault.errors import clean_name, redaction_policy, safe_repr, safe_text
from toolfault.telemetry._aggregator import Counter, CounterKey
from toolfault.telemetry._config import Config, Limits
from toolfault.telemetry._queue import EVENT_BYTES, Gate, Item, Queue
from toolfault.tools import CallRecord

# Names that hosts and models give: text, without secrets, within the bounds of the protocol.


def name_of(value: object, limit: int = 128) -> str | None:
    """Return a name the host gave as text within its limit; None and empty text as None.

    Anything but text or a number is shown without running its code.
    """
    if value is None:
        return None
    if type(value) is str:
        return value[:limit] or None

    # Not isinstance, which asks the value for its class; and not every number can be written.
    return safe_text(value if issubclass(type(value), str) else safe_repr(value), limit)


def tool_name(name: str) -> str:
    """Return the name of a tool, which a model may have written: no secret, at most 128 characters.

    What the SDK keeps and sends goes by this name.
    """
    return _cleaned(name[:1_024], redaction_policy())


@lru_cache(maxsize=1_024)
def _cleaned(name: str, _: object) -> str:
    return clean_name(name, 128)


def labels(tags: Mapping[str, str]) -> dict[str, str]:
    """Return tags within their bounds: 20, keys of 64 and values of 256 characters."""
    kept: dict[str, str] = {}
    for key, value in list(tags.items())[:20]:
        text = name_of(key, 64) or ""
        name = "".join(c if c.isascii() and (c.isalnum() or c in "_.-") else "_" for c in text)
        kept[name] = name_of(value, 256) or ""
    return kept


# The conversation, and the OpenTelemetry span, in which calls happen.


class Scope(NamedTuple):
    """One entered conversation or turn.

    Attributes:
        conversation: The conversation.
        turn: Opaque model turn, or None.
        outer: The scope that was current before, restored when this one is left.
    """

    conversation: Conversation
    turn: str | None
    outer: Scope | None


_scope: ContextVar[Scope | None] = ContextVar("toolfault_conversation", default=None)
_listeners: list[Callable[[Conversation], None]] = []


def on_end(listener: Callable[[Conversation], None]) -> None:
    """Call ``listener`` with every conversation that ends; the latest listener alone is kept."""
    _listeners[:] = [listener]


current_scope: Callable[[], Scope | None] = _scope.get
"""Return the scope of this context, or None outside any conversation."""


def current_conversation() -> Conversation | None:
    """Return the conversation of this context, or None."""
    scope = _scope.get()
    return None if scope is None else scope.conversation


class Conversation:
    """The session in which tool calls happen.

    Enter it with ``with`` or ``async with``, once for each message of a chat if need be: a block
    with the same id continues the conversation. One with an id of its own ends by ``end()``, after
    30 idle minutes, or with the process. One without an id ends with its block, since nothing
    else can continue it.

    Args:
        conversation_id: Opaque id, at most 128 characters; None makes one.
        model: Name of the model that makes the calls.
        agent: Name of the agent, where it differs from ``init(agent=...)``.
        user: Opaque id of the person, never a name or an address.
        variant: Arms of running trials, used as given; ``toolfault.variant`` adds to them.
        turn: Opaque id of the model turn that issues the next calls.
        tags: Further labels, at most 20.
        ends: Whether leaving the block ends the conversation; by default only one without an id.
    """

    __slots__ = (
        "_arms",
        "_given",
        "agent",
        "ends",
        "id",
        "model",
        "rung",
        "state",
        "tags",
        "turn_id",
        "user",
        "variant",
    )

    def __init__(
        self,
        conversation_id: str | None = None,
        *,
        model: str | None = None,
        agent: str | None = None,
        user: str | None = None,
        variant: str | None = None,
        turn: str | None = None,
        tags: dict[str, str] | None = None,
        ends: bool | None = None,
    ) -> None:
        self.id = name_of(conversation_id) or uuid7(time.time())
        self.model = name_of(model)
        self.agent = name_of(agent)
        self.user = name_of(user)
        self.turn_id = name_of(turn)
        self.tags = dict(tags) if isinstance(tags, Mapping) else {}
        self.ends = conversation_id is None if ends is None else ends
        self.variant = self._given = name_of(variant)
        self._arms: dict[str, str] = {}
        self.rung = "explicit"  # where the id comes from, see the ladder in integrations
        self.state: ConversationState | None = None  # what the running client knows of it

    def assign(self, name: str, arm: str) -> None:
        """Tag the further calls of the conversation with an arm of the trial ``name``."""
        self._arms = {**self._arms, name: arm}
        arms = [f"{trial}={assigned}" for trial, assigned in self._arms.items()]
        self.variant = ",".join([self._given, *arms] if self._given else arms)[:128]

    def bind(self) -> Conversation:
        """Make this the conversation of the present context until another one is entered."""
        _scope.set(Scope(self, self.turn_id, None))
        return self

    def end(self) -> None:
        """Say that no call will follow: unresolved chains become abandoned or switched at once."""
        for listener in _listeners:
            listener(self)

    def set_tags(self, **tags: str) -> None:
        """Label the further calls of the conversation."""
        self.tags = {**self.tags, **tags}

    def turn(self, turn_id: str) -> Turn:
        """Name the model turn that issues the next calls; calls of one turn are parallel.

        Returns:
            Something to leave the turn with (``with conversation.turn("t1"): ...``); the turn
            holds until the next one where it is not used.
        """
        before = _scope.get()
        inside = before is not None and before.conversation is self
        # A turn replaces the one before it, so that a long conversation builds no long chain.
        outer = before.outer if before is not None and inside else before
        _scope.set(Scope(self, name_of(turn_id), outer))
        return Turn(self, before if inside else None)

    def __enter__(self) -> Conversation:
        _scope.set(Scope(self, self.turn_id, _scope.get()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        outer = _without(_scope.get(), self)
        _scope.set(outer)
        if self.ends and not _inside(outer, self.id):
            self.end()

    async def __aenter__(self) -> Conversation:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    def __repr__(self) -> str:
        return f"<Conversation {self.id!r}>"


class Turn:
    """Leaves a model turn when its block ends.

    Args:
        conversation: Whose turn it is.
        before: The scope in which the conversation had another turn; None where the turn was what
            entered the conversation.
    """

    __slots__ = ("_before", "_conversation")

    def __init__(self, conversation: Conversation, before: Scope | None) -> None:
        self._conversation = conversation
        self._before = before

    def __enter__(self) -> Turn:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        now = _scope.get()
        if now is None or now.conversation is not self._conversation:
            return  # left in another context than it was entered in
        before = self._before
        _scope.set(now.outer if before is None else Scope(now.conversation, before.turn, now.outer))


def _without(scope: Scope | None, conversation: Conversation) -> Scope | None:
    """Return the scopes without the innermost of ``conversation``; all where it is not in them.

    A block may be left in another context than it was entered in, and before one that was entered
    later: the conversations of others stay.
    """
    above: list[Scope] = []
    within = scope
    while within is not None and within.conversation is not conversation:
        above.append(within)
        within = within.outer
    if within is None:
        return scope
    left = within.outer
    for each in reversed(above):
        left = Scope(each.conversation, each.turn, left)
    return left


def _inside(scope: Scope | None, conversation_id: str) -> bool:
    while scope is not None:
        if scope.conversation.id == conversation_id:
            return True
        scope = scope.outer
    return False


def active_span() -> Any:
    """Return the recording span of this context, or None.

    OpenTelemetry is never imported: a host that uses it has done so already.
    """
    trace = sys.modules.get("opentelemetry.trace")
    current = getattr(trace, "get_current_span", None)
    if current is None:
        return None
    span = current()
    return span if span.is_recording() else None


def span_ids(span: Any) -> tuple[str, str] | None:
    """Return trace and span id in hex (W3C Trace Context), or None for an invalid span."""
    context = span.get_span_context()
    if not context.is_valid:
        return None
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


# Where a call stands in its conversation.


# Tool, agent, model and variant of a call, and who counts it where a client says that it does: what
# the counter of a folded call is keyed by.
CallKey = tuple[str, "str | None", "str | None", "str | None", "str | None"]
_OverAll = tuple[None, "str | None", "str | None", "str | None", "str | None"]

_WHOLE_AFTER_FAILURE = 20
_OPEN_CHAINS = 50
_TOOLS_PER_EVENT = 200
_ENDED_AT_ONCE = 20
_COUNTERS = 1_000  # kinds of calls outside any conversation that are folded at once


Leaves = dict[str, tuple[str, int]]
"""Paths of arguments, each with the type and the hash of its value."""


class Chain:
    """An unresolved chain of one tool.

    Attributes:
        chain_id: Made by the SDK; the collector computes its own chains.
        attempt: Number of the latest call, from 1.
        ended_at: End of the latest failure by the host's clock, seconds.
        turn: Model turn of the latest failure, or None.
        leaves: Arguments of the latest call, without values; None when unknown.
    """

    __slots__ = ("attempt", "chain_id", "ended_at", "leaves", "turn")

    def __init__(self, chain_id: str) -> None:
        self.chain_id = chain_id
        self.attempt = 0
        self.ended_at = 0.0
        self.turn: str | None = None
        self.leaves: Leaves | None = None

    def had_seen(self, turn: str | None, started_at: float) -> bool:
        """Whether a call was issued by a model that had seen the chain's latest failure."""
        same_turn = turn is not None and turn == self.turn
        return not same_turn and started_at >= self.ended_at


class ChainPosition(NamedTuple):
    """Where a call stands.

    Attributes:
        whole: Whether it is sent whole even if it succeeded.
        attempt: Its number in its chain; 1 outside any.
        chain: The chain it belongs to, or None.
        repeated: Whether the same call was executed before.
    """

    whole: bool
    attempt: int
    chain: Chain | None
    repeated: bool = False


class ToolCounter:
    """Calls of one kind in one conversation, and the counter of its successes just now.

    Attributes:
        calls: How many there were, failed ones included.
        current: The counter, or None.
    """

    __slots__ = ("calls", "current")

    def __init__(self) -> None:
        self.calls = 0
        self.current: Counter | None = None


class ConversationState:
    """One conversation.

    Attributes:
        owner: Who follows it; None once it has ended.
        last_at: Time of its latest call by the client's clock.
        listed_at: What ``last_at`` was when it was put into the order of latest calls.
        calls: Calls by what counts them apart.
        failed: Whether any call failed.
        open: Unresolved chains by tool.
        whole_left: Successes still sent whole since the latest failure.
    """

    __slots__ = ("calls", "failed", "last_at", "listed_at", "open", "owner", "whole_left")

    def __init__(self) -> None:
        self.owner: object = None
        self.last_at = self.listed_at = 0.0
        self.calls: dict[CallKey, ToolCounter] = {}
        self.failed = False
        self.open: OrderedDict[str, Chain] = OrderedDict()
        self.whole_left = 0

    def fail(
        self,
        tool: str,
        *,
        turn: str | None,
        started_at: float,
        ended_at: float,
        new_id: Callable[[float], str],
    ) -> ChainPosition:
        """Place a failed call: it opens a chain or goes on with one."""
        self.failed = True
        self.whole_left = _WHOLE_AFTER_FAILURE
        chain = self.open.get(tool)
        if chain is None:
            chain = self.open[tool] = Chain(new_id(ended_at))
            if len(self.open) > _OPEN_CHAINS:
                self.open.popitem(last=False)
            chain.attempt = 1
        elif chain.had_seen(turn, started_at):
            chain.attempt += 1
        chain.turn = turn
        chain.ended_at = ended_at
        return ChainPosition(True, chain.attempt, chain)

    def succeed(self, tool: str, *, turn: str | None, started_at: float) -> ChainPosition:
        """Place a success: it ends the chain of its tool, or is sent whole beside an open one.

        The success that ends a chain is always sent whole, also when the other successes since
        the latest failure have used up their share: without it a recovery would be unknown.
        """
        chain = self.open.get(tool)
        if chain is not None and chain.had_seen(turn, started_at):
            del self.open[tool]
            return ChainPosition(True, chain.attempt + 1, chain)
        if self.open and self.whole_left > 0:
            self.whole_left -= 1
            return ChainPosition(True, 1, None)
        return ChainPosition(False, 1, None)


class Conversations:
    """All conversations with a call in the last half hour, at most ``limit``.

    Attributes:
        kinds: Kinds of calls in all of them, at most ``most_kinds``: a model can invent names of
            tools without end.
    """

    def __init__(self, limit: int, most_kinds: int, idle_seconds: float) -> None:
        self.kinds = 0
        self._limit = limit
        self._most_kinds = most_kinds
        self._idle_seconds = idle_seconds
        self._states: OrderedDict[str, ConversationState] = OrderedDict()
        self._left_open: OrderedDict[str, OrderedDict[str, Chain]] = OrderedDict()

    @property
    def is_full(self) -> bool:
        """Whether no further kind of call can be followed."""
        return self.kinds >= self._most_kinds

    def touch(self, conversation_id: str, now: float) -> tuple[ConversationState, bool]:
        """Return the state of a conversation that has a call now, and whether it is new.

        One that ended with open chains and goes on gets them back: time never splits a chain.
        """
        state = self._states.get(conversation_id)
        is_new = state is None
        if state is None:
            state = self._states[conversation_id] = ConversationState()
            state.open = self._left_open.pop(conversation_id, state.open)
        else:
            self._states.move_to_end(conversation_id)
        state.last_at = state.listed_at = now
        return state, is_new

    def pop(self, conversation_id: str) -> ConversationState | None:
        """Forget a conversation and return what was known of it; its open chains are kept."""
        state = self._states.pop(conversation_id, None)
        if state is None:
            return None
        state.owner = None
        self.kinds -= len(state.calls)
        if state.open:
            self._left_open[conversation_id] = state.open
            if len(self._left_open) > self._limit:
                self._left_open.popitem(last=False)
        return state

    def evict(self, now: float, *, at_most: int, room: int) -> list[tuple[str, ConversationState]]:
        """Forget and return conversations that are idle or too many, ``at_most`` of them.

        ``room`` further kinds of calls can be followed afterwards.

        Calls that are folded at once do not move their conversation in the order; one found at
        the front is moved when its turn has come.
        """
        gone: list[tuple[str, ConversationState]] = []
        while self._states and len(gone) < at_most:
            conversation_id, state = next(iter(self._states.items()))
            if state.last_at > state.listed_at:
                state.listed_at = state.last_at
                self._states.move_to_end(conversation_id)
                continue
            idle = now - state.last_at >= self._idle_seconds
            too_many = len(self._states) > self._limit or self.kinds + room > self._most_kinds
            if not idle and not too_many:
                break
            self.pop(conversation_id)
            gone.append((conversation_id, state))
        return gone

    def drain(self) -> list[tuple[str, ConversationState]]:
        """Forget and return all conversations: the process ends."""
        gone = list(self._states.items())
        for conversation_id, _ in gone:
            self.pop(conversation_id)
        return gone


# Comparing the arguments of attempts without keeping or sending a value.
# The caller copies the arguments, since they may change; hash and comparison are the sender's.


ATTEMPT = "(arguments)"  # member of an unfinished event that never travels

_NODES = 500
_DEPTH = 8
_LEAVES = 64
_CHANGES = 50
# A longer text is kept as its ends and a checksum: 500 of them must not take the queue's 16 MiB,
# or the failure that they belong to would be dropped for what is never sent.
_TEXT = 1_024
_CHECKED = 65_536
_PART, _CHECKSUMS, _ALL = range(3)  # what a copy tells of its arguments
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class Attempt(NamedTuple):
    """Arguments of one call, waiting for the sender.

    Attributes:
        arguments: A copy in JSON types.
        chain: The chain the call belongs to, or None.
        secret: Key of the fingerprint.
        is_whole: Whether the copy says all that the arguments do: nothing in it was shortened,
            left out or named by its type only.
        tells_apart: Whether other arguments have another copy: what was shortened has a checksum
            of all of it.
    """

    arguments: Any
    chain: Chain | None
    secret: bytes
    is_whole: bool
    tells_apart: bool

    def members(self) -> dict[str, Any]:
        """Return the fingerprint, and the difference to the chain's attempt before this one.

        Without a fingerprint where other arguments have the same copy: who compares fingerprints
        would take two dates, or two long texts, for the same call made twice.
        """
        told: dict[str, Any] = {}
        if self.tells_apart:
            told["args_fingerprint"] = fingerprint(self.arguments, self.secret)
        if self.chain is not None:
            before, self.chain.leaves = self.chain.leaves, leaves(self.arguments)
            if before is not None:
                told["args_diff"] = difference(before, self.chain.leaves)
        return told


def attempt(arguments: object, chain: Chain | None, secret: bytes) -> tuple[Attempt, int]:
    """Copy arguments for later and return them with the bytes they take while they wait."""
    budget = [_NODES, 0, _ALL]
    if type(arguments) is dict:  # what they nearly always are
        copy: Any = _plain_members(arguments, budget, 1)
    else:
        copy = _plain(arguments, budget, 0)
    told = budget[2] if budget[0] > 0 else _PART
    made = Attempt(copy, chain, secret, told == _ALL, told != _PART)
    return made, 2 * budget[1] + 100 * (_NODES - budget[0])


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
            budget[2] = min(budget[2], _told_of(text))
            text = _shortened(text)
        budget[1] += len(text)
        return text
    if value is None or kind is bool or kind is int or kind is float:
        if kind is not float or value == value:  # noqa: PLR0124 - NaN test
            return value
        budget[2] = _PART
        return "<nan>"
    if budget[0] <= 0 or depth >= _DEPTH:
        budget[2] = _PART
        return "<deep>"
    if kind is dict:
        assert isinstance(value, dict)
        return _plain_members(value, budget, depth + 1)
    if kind is list or kind is tuple:
        assert isinstance(value, (list, tuple))
        return [_plain(member, budget, depth + 1) for member in value[: max(budget[0], 0)]]
    budget[2] = _PART
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
            budget[2] = _PART
        elif len(name) > _TEXT:
            budget[2] = min(budget[2], _told_of(name))
            name = _shortened(name)  # noqa: PLW2901
        budget[1] += len(name)
        copy[name] = member
    return copy


def _told_of(text: str) -> int:
    return _CHECKSUMS if len(text) <= _CHECKED else _PART


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


class Executions:
    """Calls that succeeded of tools that are not idempotent: the ``limit`` seen last.

    They outlive their conversation, which may go on after half an hour.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    def add(self, conversation_id: str, tool: str, arguments: str) -> bool:
        """Add a success, by the fingerprint of its arguments; say whether it was there before."""
        key, known = (conversation_id, tool, arguments), self._known
        is_repeated = key in known
        known[key] = None
        known.move_to_end(key)
        if len(known) > self._limit:
            known.popitem(last=False)
        return is_repeated


def _arguments(record: CallRecord) -> str:
    """Return the fingerprint of a success whose repetition is to be known.

    Empty where the arguments are not all compared: what is no JSON, more than 500 values, a
    text of more than 64 KiB. So what one call may cost is bounded.
    """
    if record.arguments is None:
        return ""
    copy, _ = attempt(record.arguments, None, b"")
    return fingerprint(copy.arguments, b"") if copy.tells_apart else ""


_ALONE = ChainPosition(True, 1, None)
_ORDINARY = ChainPosition(False, 1, None)


class Tracker:
    """Follows conversations; the queue's lock guards it.

    Args:
        config: Settings.
        limits: Bounds.
        queue: Where counters and ends go.
        gate: The way into it.
        clock: Present time, seconds since the epoch.
        new_id: Makes ids from a time.

    Attributes:
        capture: Captures a call whole: the record, its end, its scope and its position. Set by
            the client, once there is what captures.
    """

    def __init__(
        self,
        config: Config,
        limits: Limits,
        queue: Queue,
        *,
        gate: Gate,
        clock: Callable[[], float],
        new_id: Callable[[float], str],
    ) -> None:
        self._config = config
        self._folding = config.successes == "folded"
        self._folds_at_once = self._folding and config.spool_dir is None
        self._queue = queue
        self._gate = gate
        self.capture: Callable[[CallRecord, float, Scope | None, ChainPosition], None]
        self._clock = clock
        self._new_id = new_id
        self._conversations = Conversations(
            limits.conversations, limits.conversation_lanes, limits.idle_seconds
        )
        self._executions = Executions(limits.executions)
        self._counters: dict[CallKey, ToolCounter] = {}
        self._latest = self._noticed = 0.0
        self._noticed_at = time.monotonic()

    def on_call(self, record: CallRecord) -> None:
        """Fold one finished tool call or have it captured; the observer of the tools layer."""
        now = None
        if (
            self._folds_at_once
            and record.error is None
            and not record.coercions
            and not record.phantom_arguments
            and not record.reported
            and record.idempotent is not False
        ):
            # What almost every call of a healthy agent goes through: no function but the needed.
            thread, inside = threading.get_ident(), self._gate.inside
            if self._queue.is_read and thread not in inside:
                try:
                    inside.add(thread)
                    now = self._clock()
                    if self.fold_at_once(record, now):
                        return
                except Exception:  # noqa: BLE001, S110 - the host's clock; raised, and counted, below
                    pass
                except BaseException:
                    self._queue.mend()
                    raise
                finally:
                    inside.discard(thread)
        self._gate.run(self._take, record, now)

    def _take(self, record: CallRecord, now: float | None) -> None:
        """Take a finished call, folded or whole.

        Args:
            record: The call.
            now: Its end by the client's clock, where that was read already.
        """
        error = record.error
        if error is not None and self._config.ignore and self._config.ignores(error):
            self._queue.discard("ignored")
            return
        now = self._clock() if now is None else now
        scope = current_scope()
        position = self.place_call(record, scope, now)
        if position is not None:
            self.capture(record, now, scope, position)

    def place_call(
        self, record: CallRecord, scope: Scope | None, now: float
    ) -> ChainPosition | None:
        """Follow the conversation of a finished call; None when the call was folded.

        Args:
            record: The call.
            scope: Its conversation and turn.
            now: Its end by the client's clock.
        """
        failed = record.error is not None
        tool = tool_name(record.tool)
        arguments = ""
        if record.idempotent is False and not failed and scope is not None:
            arguments = _arguments(record)
        repeated = False
        with self._queue.lock:
            if scope is None:
                position = _ALONE if failed else _ORDINARY
                key: CallKey = (tool, self._config.agent, None, None, record.counted_by)
                counter = (
                    self._counters.setdefault(key, ToolCounter())
                    if self._folding
                    else ToolCounter()
                )
            else:
                key, counter, state = self._count(tool, scope, now, record.counted_by)
                position = _ORDINARY
                if failed or state.open:
                    position = self._place(state, tool, record, scope, now)
                if arguments:
                    repeated = self._executions.add(scope.conversation.id, tool, arguments)
            if position.whole or not self._folding:
                return position._replace(repeated=True) if repeated else position
            repaired = [repair.field[:256] for repair in record.coercions]
            counter.current = self._queue.fold(
                self._counter_key(key, now),
                record.duration_ms,
                repaired,
                record.phantom_arguments,
                repeated=repeated,
            )
            if len(self._counters) > _COUNTERS:
                self._counters.clear()
            return None

    def fold_at_once(self, record: CallRecord, now: float) -> bool:
        """Count a success where its counter is at hand, in a microsecond; False where it is not.

        This is what almost every call of a healthy agent goes through: ``place_call`` has counted
        a call of this kind in this conversation and minute before, and no chain is open.

        Args:
            record: A call that succeeded without repairs.
            now: End of the call by the client's clock.
        """
        scope = current_scope()
        queue = self._queue
        with queue.lock:
            if scope is None:
                state = None
                kind: CallKey = (record.tool, self._config.agent, None, None, record.counted_by)
                counter = self._counters.get(kind)
            else:
                conversation = scope.conversation
                state = conversation.state
                if state is None or state.owner is not self or state.open:
                    return False
                agent = conversation.agent or self._config.agent
                of_scope = (conversation.model, conversation.variant)
                counter = state.calls.get((record.tool, agent, *of_scope, record.counted_by))
            current = None if counter is None else counter.current
            if counter is None or current is None or not 0.0 <= now - current.starts_at < 60.0:
                return False
            current.add_call(record.duration_ms, ())
            counter.calls += 1
            queue.captured += 1
            if state is not None:
                state.last_at = self._latest = now
            return True

    def place_error(self, tool: str, scope: Scope | None, now: float) -> ChainPosition:
        """Follow the conversation of an error captured outside a call: it is a failed call."""
        if scope is None:
            return _ALONE
        tool = tool_name(tool)
        with self._queue.lock:
            _, _, state = self._count(tool, scope, now)
            return state.fail(
                tool,
                turn=scope.turn,
                started_at=now,
                ended_at=now,
                new_id=self._new_id,
            )

    def _count(
        self, tool: str, scope: Scope, now: float, counted_by: str | None = None
    ) -> tuple[CallKey, ToolCounter, ConversationState]:
        conversation = scope.conversation
        key = (
            tool,
            conversation.agent or self._config.agent,
            conversation.model,
            conversation.variant,
            counted_by,
        )
        self._latest = now
        if self._conversations.is_full:
            self._evict(now, room=1)
        state, is_new = self._conversations.touch(conversation.id, now)
        state.owner = self
        conversation.state = state
        counter = state.calls.get(key)
        if counter is None:
            counter = state.calls[key] = ToolCounter()
            self._conversations.kinds += 1
        counter.calls += 1
        if is_new:
            self._evict(now)
        return key, counter, state

    def _place(
        self, state: ConversationState, tool: str, record: CallRecord, scope: Scope, now: float
    ) -> ChainPosition:
        turn = record.turn or scope.turn
        started_at = now - record.duration_ms / 1000.0
        if record.error is None:
            return state.succeed(tool, turn=turn, started_at=started_at)
        return state.fail(
            tool,
            turn=turn,
            started_at=started_at,
            ended_at=now,
            new_id=self._new_id,
        )

    def _counter_key(self, key: CallKey | _OverAll, now: float) -> CounterKey:
        tool, agent, model, variant, counted_by = key
        config = self._config
        minute = int(now // 60.0)
        return minute, tool, agent, model, variant, config.environment, config.release, counted_by

    # -- ends ----------------------------------------------------------------------------------

    def end(self, conversation_id: str) -> None:
        """Tell what is known about a conversation that ended."""
        with self._queue.lock:
            state = self._conversations.pop(conversation_id)
            if state is not None:
                self._tell(conversation_id, state, self._clock())

    def end_idle(self) -> bool:
        """End some conversations that had no call for too long; for the sender thread.

        Captures wait meanwhile, hence some: True says that there may be more.

        The client's clock is the host's and is not read from another thread: time goes on from
        its latest reading.
        """
        with self._queue.lock:
            if self._latest != self._noticed:
                self._noticed, self._noticed_at = self._latest, time.monotonic()
            return self._evict(self._latest + time.monotonic() - self._noticed_at)

    def end_all(self) -> None:
        """End every conversation: the process does."""
        now = self._clock()
        with self._queue.lock:
            for conversation_id, state in self._conversations.drain():
                self._tell(conversation_id, state, now)

    def _evict(self, now: float, *, room: int = 0) -> bool:
        """End conversations that are idle or too many; True when it was as many as at a time."""
        ended = self._conversations.evict(now, at_most=_ENDED_AT_ONCE, room=room)
        for conversation_id, state in ended:
            self._tell(conversation_id, state, now)
        return len(ended) == _ENDED_AT_ONCE

    def _tell(self, conversation_id: str, state: ConversationState, now: float) -> None:
        if self._folding:
            self._fold_conversation(state, now)
        if state.failed:
            for counted_by, calls in _per_tool(state):
                event = {
                    "type": "conversation_end",
                    "event_id": self._new_id(now),
                    "occurred_at": now,
                    "session_id": conversation_id,
                    "calls": calls,
                    "counted_by": counted_by,
                }
                self._queue.put(Item(event, size=EVENT_BYTES + 200 * len(calls)))

    def _fold_conversation(self, state: ConversationState, now: float) -> None:
        """Add the conversation to the counters, per tool and over all tools.

        The sum of squared calls makes the cluster-robust variance of a rate exact without a row
        per conversation.
        """
        over_all: dict[_OverAll, int] = {}
        for key, counter in state.calls.items():
            self._queue.fold_conversation(self._counter_key(key, now), counter.calls)
            every_tool = (None, *key[1:])
            over_all[every_tool] = over_all.get(every_tool, 0) + counter.calls
        for every_tool, calls in over_all.items():
            self._queue.fold_conversation(self._counter_key(every_tool, now), calls)


def _per_tool(state: ConversationState) -> Iterator[tuple[str | None, dict[str, int]]]:
    """Yield who counts the calls of a conversation, and these by tool, as one event can carry."""
    parts: dict[str | None, dict[str, int]] = {}
    for (tool, *_, counted_by), counter in state.calls.items():
        calls = parts.setdefault(counted_by, {})
        calls[tool] = calls.get(tool, 0) + counter.calls
    for counted_by, calls in parts.items():
        pairs = list(calls.items())
        for at in range(0, len(pairs), _TOOLS_PER_EVENT):
            yield counted_by, dict(pairs[at : at + _TOOLS_PER_EVENT])
