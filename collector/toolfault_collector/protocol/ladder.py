"""The ladder: what named a conversation to its sender, from the best name to none.

A sender that knows no id of a conversation takes the next best thing that holds calls together.
Where the calls of one conversation name different rungs, the best one counts, so that the order of
arrival does not matter.
"""

from __future__ import annotations

from typing import Final

__all__ = ["EXPLICIT", "LADDER", "NONE", "better_rung", "rung_of"]

EXPLICIT: Final = "explicit"
NONE: Final = "none"
LADDER: Final = (EXPLICIT, "framework", "baggage", "meta", "trace", "handle", NONE)
"""The rungs of the protocol, the best first; senders may name others."""

_PLACES: Final = {rung: place for place, rung in enumerate(LADDER)}
_UNKNOWN: Final = len(LADDER) - 2
"""As good as a handle: it names the conversation somehow."""


def rung_of(told: str | None, session_id: str | None, run_id: str | None) -> str:
    """Return what named the conversation of a call.

    Args:
        told: What the sender says of it; senders leave out that it was an id of its own.
        session_id: The conversation, None if there is none.
        run_id: The run, which stands for a conversation that nothing else names.
    """
    if session_id is None:
        return NONE
    if told and told != NONE:
        return told
    return "framework" if session_id == run_id else EXPLICIT


def better_rung(one: str, other: str) -> str:
    """Return the better of two rungs; of two that are equally good, the first by alphabet."""
    return min(one, other, key=lambda rung: (_PLACES.get(rung, _UNKNOWN), rung))
