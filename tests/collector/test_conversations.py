"""What a chain without a success comes to, of what its conversation remembers."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collector.naive_chains import NaiveChain, outcome_of

from toolfault_collector.chains.fold import Call, Unresolved
from toolfault_collector.storage.chains.conversations import Conversation

turns = st.sampled_from([None, "a", "b", "c"])
successes = st.tuples(st.sampled_from("tuv"), st.integers(0, 9), turns)


@settings(max_examples=100, deadline=None)
@given(
    made=st.lists(successes, max_size=12),
    starts=st.integers(0, 5),
    takes=st.integers(0, 5),
    turn=turns,
    data=st.data(),
)
def test_any_other_success_after_a_chain_makes_it_switched(
    made: list[tuple[str, int, str | None]],
    starts: int,
    takes: int,
    turn: str | None,
    data: st.DataObject,
) -> None:
    """However many successes there were, of whatever turns, in whatever order they came.

    What is remembered of them has a bound.
    """
    failed = Call("f", starts, starts + takes, 0, turn, success=False)
    calls: dict[str, list[Call]] = {"t": [], "u": [], "v": []}
    for seq, (tool, at, of_turn) in enumerate(made, start=1):
        calls[tool].append(Call(f"{seq}", at, at, seq, of_turn, success=True))
    talk = Conversation(1, "c", 0, 9, time_source="client")
    each_of = [(tool, call) for tool, of_tool in calls.items() for call in of_tool]
    for tool, call in data.draw(st.permutations(each_of)):
        talk.add_success((call.started_at, call.seq, tool, call.turn))

    chain = NaiveChain([failed], [failed])
    expected = outcome_of(chain, "t", calls={**calls, "f": [failed]}, ended_at=20, now=20)

    found, _ = talk.outcome_of(Unresolved("t", starts, 0, failed.occurred_at, turn))
    assert found == expected
    assert len(talk.successes) <= 6
