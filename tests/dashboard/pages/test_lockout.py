"""Lock-out: who keeps trying links that do not work waits; who has one that works does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser

from toolfault_collector.storage.database.engine import open_engine
from toolfault_dashboard.access import signin
from toolfault_dashboard.access.lockout import MOST, TRIES, WINDOW_US, Lockout


@pytest.fixture
def stranger(sqlite_url: str) -> Iterator[Browser]:
    """Somebody without a session."""
    engine: Engine = open_engine(sqlite_url)
    yield from open_browser(engine, role=None)
    engine.dispose()


def _try(browser: Browser, token: str) -> int:
    answer = browser.client.post("/sign-in", data={"token": token}, follow_redirects=False)
    assert answer.status_code != 429 or int(answer.headers["retry-after"]) > 0
    return answer.status_code


def test_after_ten_tries_there_is_a_wait(stranger: Browser) -> None:
    """The eleventh link that does not work is 429; one that works is let in, and ends the wait."""
    assert [_try(stranger, f"wrong {n}") for n in range(TRIES)] == [410] * TRIES
    assert _try(stranger, "wrong") == 429

    assert _try(stranger, signin.create_link(stranger.engine, now=NOW)) == 303
    assert _try(stranger, "wrong") == 410


def test_the_wait_ends() -> None:
    """A quarter of an hour after the first of ten tries there is room for another."""
    now = 0
    lockout = Lockout(lambda: now)
    for _ in range(TRIES):
        assert lockout.fail("a") == 0
    assert lockout.fail("a") == 900
    assert lockout.fail("b") == 0

    now = WINDOW_US

    assert lockout.fail("a") == 0


def test_memory_is_bounded() -> None:
    """However many addresses try, only so many are remembered."""
    lockout = Lockout(lambda: 0)
    for _ in range(TRIES):
        lockout.fail("first")
    for number in range(MOST):
        lockout.fail(str(number))

    assert lockout.fail("first") == 0
