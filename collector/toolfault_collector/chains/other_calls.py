"""Calls of other tools that a chain cost beside its own round trips.

A model whose call failed often does something else before it calls the tool again, or calls another
tool instead: it reads a file that it has to read first, it searches for the right name. These calls
are part of what the failure cost. *Calls spent* are the round trips of a chain and its other calls
together:

* Other calls come after the chain's first failure and before its end. A chain ends with its last
  call; a switched one ends with the success of another tool that replaced it, which counts as well,
  unless the next rule leaves it out.
* A call that the model issued before it could have seen the first failure is none of them: it has
  the same turn, or, where one of the two turns is unknown, it started before that failure ended.
* At most `MOST_OTHER_CALLS` count. The SDK sends no more successes one by one after a failure, and
  a model that comes back to a tool after more calls has done something else in between. The bound
  also means that no chain needs more of the calls of its conversation than that to be looked at.

The rule is pure; `storage.other_calls` finds the calls and writes the number.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

from toolfault_collector.chains.fold import Success, Unresolved, switches

__all__ = ["MOST_OTHER_CALLS", "ChainSpan", "OtherCall", "count_other_calls", "is_looked_at"]

MOST_OTHER_CALLS: Final = 20


class OtherCall(NamedTuple):
    """One call of a conversation; times are microseconds since the epoch."""

    started_at: int
    seq: int
    event_id: str
    tool: str
    turn: str | None
    success: bool


class ChainSpan(NamedTuple):
    """Where a chain begins and ends.

    Attributes:
        tool: Whose chain it is.
        started_at: When its first failure began.
        first_seq: The place of that failure among calls that began at the same moment.
        first_failed_at: When that failure ended.
        first_turn: Its turn.
        last_started_at: When the last call of the chain began.
        last_seq: The place of that call.
        failed_until: When the last of its failures to end did.
        last_failure_turn: The turn of its last failure.
        switched: It never succeeded, and another tool succeeded after it.
    """

    tool: str
    started_at: int
    first_seq: int
    first_failed_at: int
    first_turn: str | None
    last_started_at: int
    last_seq: int
    failed_until: int
    last_failure_turn: str | None
    switched: bool


def is_looked_at(call: OtherCall, chain: ChainSpan) -> bool:
    """Return whether *call* may count for *chain*, or is a success that may have replaced it."""
    return _is_seen(call, chain) or _replaces(call, chain)


def count_other_calls(chain: ChainSpan, calls: Iterable[OtherCall]) -> int:
    """Return how many calls of other tools *chain* cost, `MOST_OTHER_CALLS` at most.

    Args:
        chain: The chain.
        calls: The first `MOST_OTHER_CALLS` calls that `is_looked_at` holds for, in order, or more.
    """
    end = (chain.last_started_at, chain.last_seq)
    between = number = 0
    for number, call in enumerate(islice(calls, MOST_OTHER_CALLS), 1):
        if call[:2] < end:
            between = number
        elif not chain.switched:
            break
        elif _replaces(call, chain):
            # It ends the chain, also where it was issued together with the first failure.
            return number if _is_seen(call, chain) else number - 1
    # The success that replaced it may come after all that count.
    return number if chain.switched and number == MOST_OTHER_CALLS else between


def _is_seen(call: OtherCall, chain: ChainSpan) -> bool:
    """Return whether *call* is of another tool, and issued after the chain's first failure."""
    if call.tool == chain.tool or call[:2] <= (chain.started_at, chain.first_seq):
        return False
    if call.turn is None or chain.first_turn is None:
        return call.started_at >= chain.first_failed_at
    return call.turn != chain.first_turn


def _replaces(call: OtherCall, chain: ChainSpan) -> bool:
    """Return whether *call* is a success by which *chain* is switched, if it is."""
    end = (chain.last_started_at, chain.last_seq)
    unresolved = Unresolved(chain.tool, *end, chain.failed_until, chain.last_failure_turn)
    success: Success = (call.started_at, call.seq, call.tool, call.turn)
    return call.success and switches(success, unresolved)
