"""The conversation, and the OpenTelemetry span, in which calls happen."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any

from toolfault._uuid7 import uuid7
from toolfault.telemetry._names import name_of

if TYPE_CHECKING:
    from toolfault.telemetry._conversations import ConversationState

__all__ = [
    "Conversation",
    "Turn",
    "active_span",
    "current_conversation",
    "current_scope",
    "on_end",
    "span_ids",
]


class Scope:
    """One entered conversation or turn; never changed after it was made.

    Attributes:
        conversation: The conversation.
        turn: Opaque model turn, or None.
        outer: The scope that was current before, restored when this one is left.
    """

    __slots__ = ("conversation", "outer", "turn")

    def __init__(self, conversation: Conversation, turn: str | None, outer: Scope | None) -> None:
        self.conversation = conversation
        self.turn = turn
        self.outer = outer


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
