"""What an answer means: the retry table (S10), ``Retry-After``, and the waits between attempts."""

from __future__ import annotations

import random
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfault.telemetry import Response
from toolfault.telemetry._retry import Backoff, judge, retry_after

NOW = 1_790_000_000.0
ACK = b'{"accepted":2,"duplicate":1,"rejected":[]}'

TABLE = [
    # status, body, action, attempts allowed
    (200, ACK, "settle", None),
    (201, ACK, "settle", None),
    (207, ACK, "settle", None),
    (200, b'{"accepted":1,"duplicate":1,"rejected":[{"index":2,"code":"x"}]}', "settle", None),
    (200, b'{"accepted":3,"duplicate":0,"rejected":[],"more":1}', "settle", None),
    (200, b"", "retry", None),
    (200, b"<html>sign in</html>", "retry", None),
    (200, b"[]", "retry", None),
    (200, b'"ok"', "retry", None),
    (200, b'{"accepted":true,"duplicate":2,"rejected":[]}', "retry", None),
    (200, b'{"accepted":2.0,"duplicate":1,"rejected":[]}', "retry", None),
    (200, b'{"accepted":4,"duplicate":-1,"rejected":[]}', "retry", None),
    (200, b'{"accepted":2,"duplicate":0,"rejected":[]}', "retry", None),
    (200, b'{"accepted":2,"duplicate":0,"rejected":[{"index":3}]}', "retry", None),
    (200, b'{"accepted":1,"duplicate":0,"rejected":[{"index":1},{"index":1}]}', "retry", None),
    (200, b'{"accepted":2,"duplicate":0,"rejected":["1"]}', "retry", None),
    (200, b'{"accepted":2,"duplicate":1}', "retry", None),
    (200, b"\xff\xfe", "retry", None),
    (200, b"[" * 100_000, "retry", None),
    (204, b"", "retry", None),
    (101, b"", "retry", None),
    (301, b"", "retry", None),
    (302, b"", "retry", None),
    (304, b"", "retry", None),
    (307, b"", "retry", None),
    (308, b"", "retry", None),
    (400, b"", "drop", None),
    (401, b"", "drop", None),
    (403, b"", "drop", None),
    (404, b"", "drop", None),
    (405, b"", "drop", None),
    (408, b"", "retry", 2),
    (409, b"", "drop", None),
    (410, b"", "drop", None),
    (413, b"", "split", None),
    (415, b"", "drop", None),
    (422, b"", "drop", None),
    (425, b"", "drop", None),
    (429, b"", "retry", None),
    (431, b"", "drop", None),
    (500, b"", "retry", 4),
    (501, b"", "drop", None),
    (502, b"", "retry", None),
    (503, b"", "retry", None),
    (504, b"", "retry", None),
    (505, b"", "drop", None),
    (507, b"", "retry", None),
    (511, b"", "drop", None),
    (999, b"", "retry", None),
]


@pytest.mark.parametrize(("status", "body", "action", "attempts"), TABLE)
def test_every_answer_has_its_action(
    status: int, body: bytes, action: str, attempts: int | None
) -> None:
    """An answer is settled, retried, split or dropped as the table says."""
    verdict = judge(Response(status, {}, body), sent=3)
    assert (verdict.action, verdict.attempts) == (action, attempts)


def test_no_answer_is_retried() -> None:
    """A request without an answer is tried again."""
    assert judge(None, sent=3).action == "retry"


def test_rejected_positions_are_named() -> None:
    """The positions of refused events come with the acknowledgement."""
    body = b'{"accepted":1,"duplicate":0,"rejected":[{"index":2},{"index":0}]}'
    assert judge(Response(200, {}, body), sent=3).rejected == (2, 0)


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0", 1.0),
        ("-1", 1.0),
        ("1000000000000", 300.0),
        ("9" * 5_000, 300.0),
        ("soon", None),
        ("", None),
        ("1.5", None),
        ("7, 8", None),
        ("\u0667", None),
        (None, None),
        (formatdate(NOW + 30, usegmt=True), 30.0),
        (formatdate(NOW - 3_600, usegmt=True), 1.0),
        (formatdate(NOW + 86_400, usegmt=True), 300.0),
        ("Wed, 99 Foo 2026 99:99:99 GMT", None),
    ],
)
def test_retry_after(value: str | None, wait: float | None) -> None:
    """Seconds and dates are understood and kept between 1 and 300 seconds; the rest is ignored."""
    assert retry_after(value, now=NOW) == wait


@given(value=st.text(max_size=60))
def test_no_retry_after_breaks_the_sender(value: str) -> None:
    """Whatever the header holds, the wait is none or within its bounds."""
    wait = retry_after(value, now=NOW)
    assert wait is None or 1.0 <= wait <= 300.0


def test_waits_grow_and_are_spread() -> None:
    """The bound of the wait doubles up to its cap; the wait is drawn from all of it."""
    backoff = Backoff(1.0, 60.0)
    bounds = [min(60.0, 2.0**n) for n in range(40)]
    for bound in bounds:
        assert 0.0 <= backoff.wait(None) <= bound
    backoff.reset()
    assert backoff.wait(None) <= 1.0
    waits = [Backoff(1.0, 60.0).wait(None) for _ in range(2_000)]
    assert 0.4 < sum(waits) / len(waits) < 0.6


def test_asked_wait_is_spread_upwards() -> None:
    """Clients told the same number come back at different times, none of them early."""
    waits = [Backoff(1.0, 60.0).wait(10.0) for _ in range(500)]
    assert all(10.0 <= wait <= 12.0 for wait in waits)
    assert max(waits) - min(waits) > 1.0


def test_clients_do_not_come_back_together() -> None:
    """After an outage of a minute 200 clients do not exceed three times their steady rate.

    Simulated on a virtual clock: each client sends a batch a second; during the outage its
    attempts fail at once; afterwards each sends its one waiting batch and goes on.
    """
    chance = random.Random(3)
    requests: list[float] = []
    for _ in range(200):
        now = chance.random()
        backoff = Backoff(1.0, 60.0)
        while now < 60.0:
            now += backoff.wait(None)
        while now < 180.0:
            requests.append(now)
            now += 1.0
    per_second = [sum(int(at) == second for at in requests) for second in range(60, 180)]
    assert max(per_second) <= 3 * 200
