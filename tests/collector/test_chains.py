"""The fold of ordered calls into chains, against its rules and against a naive reading of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.collector.naive_chains import chains_of

from toolfault_collector.chains.fold import IDLE_US, LOOK_BACK, Call, Chain, fold

SECOND = 1_000_000


def _calls(script: str, **common: object) -> list[Call]:
    """Calls a second apart: F failed, S succeeded; ``F1`` names the turn."""
    calls: list[Call] = []
    for position, word in enumerate(script.split()):
        at = position * SECOND
        calls.append(
            Call(
                event_id=f"{position:04d}",
                started_at=at,
                occurred_at=at + 1,
                seq=position,
                turn=word[1:] or None,
                success=word[0] == "S",
                code="wrong_type",
                **common,  # type: ignore[arg-type]
            )
        )
    return calls


def _shape(chain: Chain) -> tuple[int, int, int, bool]:
    return (chain.calls, chain.failures, chain.round_trips, chain.recovered)


def test_failures_then_success() -> None:
    """F F S is one recovered chain with two round trips."""
    (chain,) = fold(_calls("F F S"))

    assert _shape(chain) == (3, 2, 2, True)


def test_lone_failure() -> None:
    """F alone is an unrecovered chain without a round trip."""
    (chain,) = fold(_calls("S F"))

    assert _shape(chain) == (1, 1, 0, False)


def test_success_between_chains() -> None:
    """A failure after a recovery opens a new chain."""
    chains = fold(_calls("F S F F"))

    assert [_shape(chain) for chain in chains] == [(2, 1, 1, True), (2, 2, 1, False)]


def test_time_never_splits() -> None:
    """A success days later still recovers the chain."""
    failed, succeeded = _calls("F S")
    succeeded.started_at += 10 * 86_400 * SECOND
    succeeded.occurred_at += 10 * 86_400 * SECOND

    (chain,) = fold([failed, succeeded])

    assert chain.recovered
    assert chain.time_lost_us == 1 + IDLE_US


def test_a_night_within_a_failing_call_is_no_time_lost() -> None:
    """A call that waited for a person until the morning counts up to the idle limit."""
    failed, succeeded = _calls("F S")
    failed.occurred_at = failed.started_at + 10 * 3_600 * SECOND
    succeeded.started_at = succeeded.occurred_at = failed.occurred_at + SECOND

    (chain,) = fold([failed, succeeded])

    assert chain.time_lost_us == IDLE_US + SECOND


def test_same_turn_failure_is_no_round_trip() -> None:
    """A failure of the same turn adds to the failures only."""
    (chain,) = fold(_calls("F1 F1 S2"))

    assert _shape(chain) == (3, 2, 1, True)


def test_same_turn_success_is_no_recovery() -> None:
    """A success of the same turn neither recovers the chain nor belongs to it."""
    (chain,) = fold(_calls("F1 S1 F2"))

    assert _shape(chain) == (2, 2, 1, False)


def test_call_begun_before_the_failure_ended_is_parallel() -> None:
    """Without turns a call that was under way could not have seen the error."""
    failed, other = _calls("F S")
    failed.occurred_at = other.started_at + 1

    (chain,) = fold([failed, other])

    assert _shape(chain) == (1, 1, 0, False)


def test_untimed_calls_are_compared_by_turn_only() -> None:
    """Calls without times are never parallel for their times, which are all one."""
    failed, succeeded = _calls("F S", time_source="none")
    succeeded.started_at = failed.started_at = failed.occurred_at = succeeded.occurred_at = 5

    (chain,) = fold([failed, succeeded])

    assert _shape(chain) == (2, 1, 1, True)
    assert chain.time_lost_us == 0


def test_serial_discovery_and_confusion() -> None:
    """A later failure that names a new field is serial discovery; the same again is confusion."""
    first, second, third = _calls("F F F")
    first.fields, second.fields = (("url", "missing_field"),), (("port", "wrong_type"),)
    third.fields = second.fields

    discovered = fold([first, second])[0]
    assert (discovered.serial_discoveries, discovered.repeat_confusions) == (1, 0)
    confused = fold([first, second, third])[0]
    assert confused.repeat_confusions == 1


def test_identical_repeats_are_counted_after_the_error_was_seen() -> None:
    """The same arguments again count, but not those sent beside the failure."""
    calls = _calls("F1 F1 F2 F3", args_fingerprint="same")

    assert fold(calls)[0].identical_repeats == 2


def test_time_lost_counts_overlap_once() -> None:
    """Overlapping failures and the wait between attempts are counted once."""
    first, second, third = _calls("F F S")
    first.occurred_at = 3 * SECOND
    second.occurred_at = 4 * SECOND
    third.started_at = 6 * SECOND

    (chain,) = fold([first, second, third])

    assert chain.time_lost_us == 6 * SECOND


def test_memory_of_a_chain_is_bounded() -> None:
    """A chain of any length remembers so many turns and no more."""
    calls = _calls(" ".join(f"F{turn}" for turn in range(3 * LOOK_BACK)))

    assert len(fold(calls)[0].memory.turns) == LOOK_BACK


@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.sampled_from([None, "a", "b", "c"]),
            st.integers(0, 20),
            st.integers(0, 5),
        ),
        max_size=30,
    )
)
def test_equals_the_naive_reading(drawn: list[tuple[bool, str | None, int, int]]) -> None:
    """The fold says what the rules say, for any calls."""
    calls = [
        Call(f"{place:03d}", start, start + length, place, turn, success, code="x")
        for place, (success, turn, start, length) in enumerate(drawn)
    ]

    folded = fold(sorted(calls, key=lambda call: call.key))

    expected = chains_of(calls)
    assert [_shape(chain) for chain in folded] == [
        (len(one.members), len(one.failures), len(one.round_trips), one.success is not None)
        for one in expected
    ]
    assert [[call.event_id for call, _ in chain.members] for chain in folded] == [
        [call.event_id for call in one.members] for one in expected
    ]
