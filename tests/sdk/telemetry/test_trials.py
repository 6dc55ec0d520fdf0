"""Randomised trials: stable, fair, tagged, and without a collector."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.sdk.telemetry.conftest import MakeClient, a_call, python

import toolfault
from toolfault.testing import MemoryTransport


def arms(count: int, *arguments: object) -> Counter[str]:
    """How often each arm is drawn over many conversations."""
    drawn: Counter[str] = Counter()
    for number in range(count):
        with toolfault.conversation(f"conversation-{number}"):
            drawn[toolfault.variant(*arguments)] += 1  # type: ignore[arg-type]
    return drawn


def test_arm_is_stable_in_every_process() -> None:
    """Each conversation is in the same arm, today and elsewhere."""
    program = (
        "import toolfault\n"
        "for number in range(30):\n"
        "    with toolfault.conversation(f'c-{number}'):\n"
        "        print(toolfault.variant('trial', ('a', 'b', 'c')))\n"
    )
    elsewhere = python("-c", program).stdout.split()
    here: list[str] = []
    for number in range(30):
        with toolfault.conversation(f"c-{number}"):
            (arm,) = {toolfault.variant("trial", ("a", "b", "c")) for _ in range(5)}
        here.append(arm)

    assert here == elsewhere
    assert set(here) == {"a", "b", "c"}


def test_arms_are_drawn_evenly_or_by_weight() -> None:
    """Shares follow the weights within chance (six standard deviations)."""
    even = arms(4_000, "trial", ("control", "treatment"))
    assert abs(even["control"] - 2_000) < 6 * 32
    skewed = arms(4_000, "trial", ("a", "b", "c"), (1, 0, 3))
    assert skewed["b"] == 0
    assert abs(skewed["a"] - 1_000) < 6 * 28


def test_trials_are_independent() -> None:
    """The arm of one trial says nothing about the arm of another."""
    pairs: Counter[tuple[str, str]] = Counter()
    for number in range(4_000):
        with toolfault.conversation(f"c{number}"):
            pairs[(toolfault.variant("first"), toolfault.variant("second"))] += 1
    assert all(abs(count - 1_000) < 6 * 28 for count in pairs.values())
    assert len(pairs) == 4


def test_calls_carry_their_arms(make_client: MakeClient) -> None:
    """Calls after the draw are tagged; a given variant comes first, as it is."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    with toolfault.conversation("c1", variant="before"):
        client.on_call(a_call())
        first = toolfault.variant("coerce", ("control", "treatment"))
        client.on_call(a_call())
        second = toolfault.variant("wording", ("short", "long"))
        toolfault.variant("coerce", ("control", "treatment"))
        client.on_call(a_call())
    assert client.flush()
    assert [event["variant"] for event in transport.events] == [
        "before",
        f"before,coerce={first}",
        f"before,coerce={first},wording={second}",
    ]


@pytest.mark.parametrize(
    ("variants", "weights", "arm"),
    [
        ((), None, "control"),
        (("a", "b"), (1,), "a"),
        (("a", "b"), (0, 0), "a"),
        (("a", "b"), (-1, 2), "a"),
        (("a", "b"), (float("nan"), 1), "a"),
        (("a", "b"), ("x", "y"), "a"),
    ],
)
def test_impossible_trial_is_reported_and_harmless(
    variants: tuple[str, ...],
    weights: object,
    arm: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A trial that cannot work says so and gives its first arm."""
    with toolfault.conversation("c"):
        assert toolfault.variant("trial", variants, weights) == arm  # type: ignore[arg-type]
    assert "variant('trial') cannot work" in capsys.readouterr().err + caplog.text


def test_outside_a_conversation_the_control_is_given() -> None:
    """Without a conversation there is nothing to draw for."""
    assert toolfault.variant("trial", ("control", "treatment")) == "control"
