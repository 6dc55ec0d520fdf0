"""The state machine against a naive replay: one message for a problem, none lost, none twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfault_collector.clock import MINUTE_US
from toolfault_dashboard.alerts.evaluation import (
    MOST_NOTICES,
    Figure,
    Measured,
    Sighting,
    State,
    advance,
)
from toolfault_dashboard.alerts.rules import CONDITIONS, HOLD_US, ConditionName, Rule

START = 1_000_000 * MINUTE_US


def _rule(condition: ConditionName, **changed: object) -> Rule:
    asks = CONDITIONS[condition]
    rule = Rule(
        id=1, project_id=1, name="r", condition=condition, query="", audience="system",
        threshold=asks.threshold, least=asks.least, window_us=60 * MINUTE_US, created_at=START,
    )  # fmt: skip
    return replace(rule, **changed)  # type: ignore[arg-type]


# What a moment shows of a rate that must not rise above 20%: far above, about it, well below, few.
_HIGH = Figure(0.4, 0.3, 0.5, 100)
_WIDE = Figure(0.3, 0.15, 0.5, 100)  # its near end does not pass
_ABOUT = Figure(0.19, 0.1, 0.3, 100)  # below, but not by the margin
_LOW = Figure(0.1, 0.05, 0.2, 100)
_FEW = Figure(1.0, 0.5, 1.0, 10)
_NONE = Figure(None, None, None, 0)
_MOMENTS = st.lists(
    st.tuples(
        st.sampled_from([_HIGH, _WIDE, _ABOUT, _LOW, _FEW, _NONE]),
        st.integers(1, 15),  # minutes since the last look
        st.booleans(),  # whether it is snoozed
    ),
    max_size=40,
)


@given(_MOMENTS)
def test_a_figure_is_told_like_a_naive_replay_tells_it(
    moments: list[tuple[Figure, int, bool]],
) -> None:
    """Each firing is told once, after it held; its end once, after it was clear for as long."""
    rule, states, now = _rule("failure_rate"), dict[str, State](), START
    history: list[tuple[int, Figure, bool]] = []
    said: list[tuple[int, str]] = []
    for figure, minutes, snoozed in moments:
        now += minutes * MINUTE_US
        history.append((now, figure, snoozed))
        asked = replace(rule, snoozed_until=now + 1 if snoozed else 0)
        states, notices = advance(asked, states, Measured(figure), now)
        said += [(now, each.event) for each in notices]

    assert said == _naive(history)


def _naive(history: list[tuple[int, Figure, bool]]) -> list[tuple[int, str]]:
    """Read the whole history anew at each moment: where does the newest stretch begin?"""
    said: list[tuple[int, str]] = []
    firing = told = False
    turned = -1  # index of the moment at which the phase was entered

    def stretch(index: int, good: set[int]) -> int:
        first = index
        while first - 1 > turned and id(history[first - 1][1]) in good:
            first -= 1
        return history[first][0]

    passing, clear = {id(_HIGH)}, {id(_LOW), id(_NONE)}
    for index, (now, figure, snoozed) in enumerate(history):
        if not firing and id(figure) in passing and now - stretch(index, passing) >= HOLD_US:
            firing, told, turned = True, False, index - 1
        if not firing:
            continue
        if id(figure) in clear:
            if now - stretch(index, clear) >= HOLD_US:
                said += [(now, "resolved")] if told else []
                firing, turned = False, index
        elif not told and not snoozed:
            told = True
            said.append((now, "firing"))
    return said


_SIGHTINGS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 12)), max_size=4),
        st.booleans(),
    ),
    max_size=30,
)


@pytest.mark.parametrize("condition", ["user_failures", "new_kind"])
@given(_SIGHTINGS)
def test_no_kind_and_chain_is_told_twice_and_none_while_it_goes_on(
    condition: ConditionName, moments: list[tuple[list[tuple[str, int]], bool]]
) -> None:
    """Of whatever is seen in whatever order, each kind and chain is told at most once.

    A kind that is not firing is told as soon as a chain begins that lies after all told of it.
    """
    rule, states = _rule(condition), dict[str, State]()
    told: list[tuple[str, int]] = []
    newest: dict[str, int] = {}
    for number, (seen, snoozed) in enumerate(moments, 1):
        now = START + number * MINUTE_US
        begun: dict[str, int] = {}
        for subject, chain in seen:
            begun[subject] = max(begun.get(subject, 0), chain)
        sightings = tuple(_sighting(subject, chain) for subject, chain in begun.items())
        firing = {subject for subject, state in states.items() if state.phase == "firing"}
        asked = replace(rule, snoozed_until=now + 1 if snoozed else 0)
        states, notices = advance(asked, states, Measured(sightings=sightings), now)
        spoken = [(each.sightings[0].subject, begun[each.subject]) for each in notices]
        told += spoken
        for subject, chain in begun.items():
            goes_on = subject in firing and condition == "user_failures"
            due = chain > max(newest.get(subject, 0), 0) and not goes_on and not snoozed
            assert ((subject, chain) in spoken) == due
        newest |= dict(spoken)
        for subject, chain in begun.items():
            if subject in firing and condition == "user_failures":
                newest[subject] = max(newest.get(subject, 0), chain)

    assert len(told) == len(set(told))


def _sighting(subject: str, chain: int, failures: int = 1) -> Sighting:
    """A kind whose newest chain began so many seconds after the rule was made."""
    return Sighting(subject, subject, f"signature:{subject}", START + chain, failures)


def test_many_kinds_at_once_are_one_message() -> None:
    """A release that breaks everything is told in one message that names each kind, once."""
    seen = tuple(_sighting(str(number), 1) for number in range(MOST_NOTICES + 1))
    states, notices = advance(_rule("new_kind"), {}, Measured(sightings=seen), START + MINUTE_US)

    assert [each.sightings for each in notices] == [seen]
    assert advance(_rule("new_kind"), states, Measured(sightings=seen), START + HOLD_US)[1] == ()


def test_what_is_older_than_the_rule_and_what_is_too_few_is_not_told() -> None:
    """A rule speaks of what begins after it was made, and from so many failures on."""
    rule = _rule("user_failures", least=3)
    seen = (_sighting("old", 0, 9), _sighting("few", 1, 2), _sighting("new", 1, 3))

    _, notices = advance(rule, {}, Measured(sightings=seen), START + MINUTE_US)

    assert [each.subject for each in notices] == ["new"]


@pytest.mark.parametrize(
    ("condition", "figure", "fires"),
    [
        ("first_try_success", Figure(0.7, 0.6, 0.79, 100), True),
        ("first_try_success", Figure(0.7, 0.6, 0.81, 100), False),
        ("recovery_rate", Figure(0.3, 0.2, 0.4, 20), True),
        ("recovery_rate", Figure(0.3, 0.2, 0.4, 19), False),
        ("round_trips_per_operation", Figure(0.8, 0.6, 1.0, 50), True),
        ("round_trips_per_operation", Figure(0.8, None, None, 50), False),
        ("no_data", Figure(0, 0, 0, 5), True),
        ("no_data", Figure(0, 0, 0, 0), False),  # nothing came before either
        ("no_data", Figure(1, 1, 1, 5), False),
        ("sender_drops", Figure(1, 1, 1, 1), True),
        ("sender_drops", Figure(0, 0, 0, 0), False),
    ],
)
def test_what_passes(condition: ConditionName, figure: Figure, fires: bool) -> None:
    """The near end of the interval must be beyond the threshold, of enough calls."""
    rule, states = _rule(condition), dict[str, State]()
    said: list[object] = []
    for minutes in (0, 10):
        now = START + minutes * MINUTE_US
        states, notices = advance(rule, states, Measured(figure), now)
        said += notices

    assert bool(said) == fires
