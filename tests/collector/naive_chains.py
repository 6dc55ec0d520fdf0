"""The chain rules once more, written for reading rather than for speed, to test the real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from toolfault_collector.chains.fold import IDLE_US, Call

__all__ = ["NaiveChain", "chains_of", "other_calls_of", "outcome_of"]


@dataclass
class NaiveChain:
    """A chain as its members: what each was tells everything else."""

    failures: list[Call] = field(default_factory=list)
    members: list[Call] = field(default_factory=list)
    round_trips: list[Call] = field(default_factory=list)
    success: Call | None = None


def _parallel(call: Call, failure: Call) -> bool:
    if call.turn is not None and failure.turn is not None:
        return call.turn == failure.turn
    return call.time_source != "none" and call.started_at < failure.occurred_at


def chains_of(calls: Sequence[Call], *, look_back: int = 64) -> list[NaiveChain]:
    """The chains of the calls of one tool in one conversation, whatever their order."""
    chains: list[NaiveChain] = []
    current: NaiveChain | None = None
    for call in sorted(calls, key=lambda call: (call.started_at, call.seq, call.event_id)):
        if current is None:
            if not call.success:
                current = NaiveChain([call], [call])
                chains.append(current)
            continue
        parallel = any(_parallel(call, failure) for failure in current.failures[-look_back:])
        if call.success and parallel:
            continue
        current.members.append(call)
        if not parallel:
            current.round_trips.append(call)
        if call.success:
            current.success = call
            current = None
        else:
            current.failures.append(call)
    return chains


def outcome_of(
    chain: NaiveChain, tool: str, *, calls: dict[str, list[Call]], ended_at: int | None, now: int
) -> str:
    """The outcome of *chain*, given the calls of its conversation by tool."""
    if chain.success is not None:
        return "recovered"
    everything = [call for of_tool in calls.values() for call in of_tool]
    last_at = max([call.occurred_at for call in everything] + [ended_at or 0])
    untimed = all(call.time_source == "none" for call in everything)
    ended = ended_at is not None and ended_at >= last_at
    if not (ended or untimed or last_at <= now - IDLE_US):
        return "open"
    others = (
        call
        for other, of_tool in calls.items()
        for call in of_tool
        if other != tool and call.success
    )
    return "switched" if any(_helped(each, chain) for each in others) else "abandoned"


def _helped(other: Call, chain: NaiveChain) -> bool:
    """Whether a success of another tool came after *chain*, and not beside its last failure."""
    last = chain.failures[-1]
    if (other.started_at, other.seq) <= (last.started_at, last.seq):
        return False
    if other.turn is not None and last.turn is not None:
        return other.turn != last.turn
    return other.started_at >= max(failure.occurred_at for failure in chain.failures[-64:])


def other_calls_of(
    chain: NaiveChain, tool: str, *, calls: dict[str, list[Call]], most: int = 20
) -> int:
    """The calls of other tools that *chain* cost, given the calls of its conversation by tool."""
    first = chain.failures[0]
    last = chain.members[-1]
    others = sorted(
        (
            call
            for other, of_tool in calls.items()
            for call in of_tool
            if other != tool
            and (call.started_at, call.seq) > (first.started_at, first.seq)
            and not _parallel(call, first)
        ),
        key=lambda call: call.key,
    )
    between = [call for call in others if call.key[:2] < last.key[:2]]
    everything = [(name, call) for name, of_tool in calls.items() for call in of_tool]
    helped = [
        call for name, call in everything if name != tool and call.success and _helped(call, chain)
    ]
    if chain.success is not None or not helped:
        return min(len(between), most)
    end = min(call.key for call in helped)
    return min(len([call for call in others if call.key <= end]), most)
