"""Which conversation a framework's call belongs to: one ladder for all.

An open ``toolfault.conversation``, then the framework's run or thread id, then the baggage
``gen_ai.conversation.id``, then ids in the metadata of the protocol, then the trace id, then a
handle that the client sends back; else none, and the call cannot be chained.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from toolfault._forks import fork_safe_lock
from toolfault.telemetry._conversations import (
    Conversation,
    active_span,
    current_conversation,
    span_ids,
)

if TYPE_CHECKING:
    from toolfault.integrations.seen import Seen

_KEPT = 1_024
_kept: OrderedDict[tuple[str, str | None, str | None], Conversation] = OrderedDict()
_lock = fork_safe_lock()


def conversation_of(seen: Seen) -> Conversation | None:
    """Return the conversation of a call with its model and agent; None where nothing names one.

    What the host says of its own conversation stays; the framework fills in what it left out.
    """
    present = current_conversation()
    if present is None:
        named, rung = _id_of(seen)
        return None if named is None else _known(named, seen.agent, seen.model, rung)
    if (present.model or not seen.model) and (present.agent or not seen.agent):
        return present
    twin = _known(
        present.id, present.agent or seen.agent, present.model or seen.model, present.rung
    )
    twin.user, twin.variant, twin.tags = present.user, present.variant, present.tags
    return twin


def _id_of(seen: Seen) -> tuple[str | None, str]:
    if seen.conversation and seen.rung == "framework":
        return str(seen.conversation), "framework"
    carried = _baggage()
    if carried is not None:
        return carried, "baggage"
    if seen.conversation and seen.rung == "meta":
        return str(seen.conversation), "meta"
    trace = _trace_id()
    if trace is not None:
        return trace, "trace"
    return (str(seen.conversation), seen.rung) if seen.conversation else (None, "none")


def _known(named: str, agent: str | None, model: str | None, rung: str) -> Conversation:
    """Return the one object of a conversation: its state is found fast then."""
    key = (named, agent, model)
    with _lock:
        found = _kept.get(key)
        if found is None:
            found = _kept[key] = Conversation(named, agent=agent, model=model, ends=False)
            if len(_kept) > _KEPT:
                _kept.popitem(last=False)
        found.rung = rung
    return found


def _baggage() -> str | None:
    """Return ``gen_ai.conversation.id`` of the baggage (OpenTelemetry GenAI conventions)."""
    module: Any = sys.modules.get("opentelemetry.baggage")
    if module is None:
        return None
    value = module.get_baggage("gen_ai.conversation.id")
    return value if isinstance(value, str) and value else None


def _trace_id() -> str | None:
    if "opentelemetry.trace" not in sys.modules:
        return None
    span = active_span()
    ids = None if span is None else span_ids(span)
    return None if ids is None else ids[0]
