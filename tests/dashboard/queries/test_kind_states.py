"""The life of a kind of failure: what people decide, and what follows from the failures stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select, update
from tests.dashboard.conftest import copied_database
from tests.factories import failure

from toolfault_collector.admin.audit import acts
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, MINUTE_US
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import project, signature
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse
from toolfault_dashboard.writes.kind_states import Decision, decide, history_of, state_of

BEGAN = 1_790_000_000_000_000 // DAY_US * DAY_US
_names = count()


@dataclass
class Failed:
    """A failure of the kind as the oracle remembers it."""

    at: int
    release: str | None
    timed: bool


@dataclass
class Life:
    """A kind of failure, as naively as can be: lists, and loops over all of it."""

    failures: list[Failed] = field(default_factory=list)
    decision: Decision = field(default_factory=Decision)
    decided_at: int = 0
    new_days: int = 7

    def state(self, now: int) -> str:
        """The state at *now*."""
        wanted = self.decision.state
        if wanted == "fixed":
            return "regressed" if any(map(self._says, self.failures)) else "fixed"
        if wanted == "ignored":
            until, most = self.decision.ignored_until, self.decision.ignored_count
            further = [each for each in self.failures if each.timed and each.at > self.decided_at]
            over = until is not None and until <= now
            return "open" if over or (most is not None and len(further) >= most) else "ignored"
        if wanted is not None:
            return wanted
        first = min(each.at for each in self.failures)
        timed = any(each.timed for each in self.failures)
        return "new" if timed and first > now - self.new_days * DAY_US else "open"

    def _says(self, each: Failed) -> bool:
        fixed_at, release = self.decision.fixed_at, self.decision.fixed_release
        assert fixed_at is not None
        if not each.timed or each.at <= fixed_at:
            return False
        older = {one.release for one in self.failures if one.timed and one.at <= fixed_at}
        if release is None or each.release == release:
            return True
        return each.release is not None and each.release not in older


_minutes = st.integers(0, 4 * 24 * 60)
_releases = st.sampled_from([None, "1", "2", "3"])
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("fail"), _minutes, _releases, st.sampled_from([True, True, True, False])),
        st.tuples(st.just("fix"), st.one_of(st.none(), _minutes), _releases),
        st.tuples(st.just("ignore"), st.one_of(st.none(), _minutes), st.sampled_from([None, 1, 2])),
        st.tuples(st.sampled_from(["acknowledged", "open"])),
    ),
    min_size=1,
    max_size=8,
)


def _fail(engine: Engine, number: int, each: Failed, received_at: int) -> None:
    event = failure(
        session_id=None,
        at=each.at,
        release=each.release,
        time_source="import" if each.timed else "none",
    )
    with write_transaction(engine) as conn:
        receipt = store_events(conn, number, [event], received_at=received_at, time_policy="import")
    assert receipt.accepted == 1, receipt


def _made(engine: Engine, days: int | None = None) -> int:
    with write_transaction(engine) as conn:
        number = ensure_project(conn, f"life {next(_names)}")
        conn.execute(update(project).where(project.c.id == number).values(new_kind_days=days))
    return number


def _fingerprint(engine: Engine, number: int) -> str:
    with read_connection(engine) as conn:
        found = select(signature.c.fingerprint).where(signature.c.project_id == number)
        return str(conn.execute(found).scalar_one())


def _decision(step: tuple[Any, ...], now: int) -> Decision:
    if step[0] == "fix":
        at = now if step[1] is None else now - step[1] * MINUTE_US
        return Decision(state="fixed", fixed_at=at, fixed_release=step[2])
    if step[0] == "ignore":
        until = None if step[1] is None else now + (step[1] + 1) * MINUTE_US
        return Decision(state="ignored", ignored_until=until, ignored_count=step[2])
    return Decision(state=step[0])


def _lives(engine: Engine, steps: list[tuple[Any, ...]], gaps: list[int], days: int | None) -> None:
    """Play *steps* and compare with the oracle after each, and long after the last."""
    number = _made(engine, days)
    life, now = Life(new_days=days or 7), BEGAN
    steps = [("fail", 0, "1", True), *steps]
    for step, gap in zip(steps, [*gaps, *[60] * len(steps)], strict=False):
        now += gap * MINUTE_US
        if step[0] == "fail":
            timed = step[3]
            each = Failed(now - step[1] * MINUTE_US if timed else now, step[2], timed)
            _fail(engine, number, each, received_at=now)
            life.failures.append(each)
        else:
            life.decision, life.decided_at = _decision(step, now), now
            kinds = [_fingerprint(engine, number)]
            decide(engine, number, kinds, life.decision, actor="ana", now=now)
        for moment in (now, now + 40 * DAY_US):
            scope = Scope(number, parse(""), moment)
            with read_connection(engine) as conn:
                (row,) = queries.kinds(conn, scope, drawn=False).rows
            assert row.state == life.state(moment), (steps, moment)
    expected = life.state(now)
    scope = Scope(number, parse(""), now)
    with read_connection(engine) as conn:
        found = queries.count_failures(conn, scope.narrowed(f"state:{expected}"))
        assert found == len(life.failures)
        assert queries.count_failures(conn, scope.narrowed(f"-state:{expected}")) == 0


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def lives(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """One database for all lives; each has a project of its own."""
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("lives") / "toolfault.db"
        path.write_bytes(request.getfixturevalue("sqlite_template").read_bytes())
        url = f"sqlite:///{path}"
    else:
        url = copied_database(request, "lives")
    engine = open_engine(url)
    yield engine
    engine.dispose()


@pytest.mark.parametrize(
    "lives",
    ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.long])],
    indirect=True,
)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    steps=_steps,
    gaps=st.lists(_minutes, min_size=9, max_size=9),
    days=st.sampled_from([None, 1, 30]),
)
def test_a_kind_is_in_the_state_that_a_naive_look_at_everything_gives(
    lives: Engine, steps: list[tuple[Any, ...]], gaps: list[int], days: int | None
) -> None:
    """Whatever happens in whatever order, late or without times, state and query key are right."""
    _lives(lives, steps, gaps, days)


@pytest.mark.long
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    steps=_steps,
    gaps=st.lists(_minutes, min_size=9, max_size=9),
    days=st.sampled_from([None, 1, 30]),
)
def test_many_lives(
    lives: Engine, steps: list[tuple[Any, ...]], gaps: list[int], days: int | None
) -> None:
    """The same for many more of them."""
    _lives(lives, steps, gaps, days)


def test_an_older_release_that_still_runs_does_not_regress_a_kind(lives: Engine) -> None:
    """A fix that names a release is judged by it and by later ones, not by those before it."""
    number = _made(lives)
    _fail(lives, number, Failed(BEGAN, "1", timed=True), BEGAN)
    kinds = [_fingerprint(lives, number)]
    fixed = Decision(state="fixed", fixed_release="2")
    decide(lives, number, kinds, fixed, actor="ana", now=BEGAN + DAY_US)

    def state() -> str:
        with read_connection(lives) as conn:
            scope = Scope(number, parse(""), BEGAN + 9 * DAY_US)
            return queries.kinds(conn, scope).rows[0].state

    for at, release, expected in ((2, "1", "fixed"), (3, None, "fixed"), (4, "2", "regressed")):
        _fail(lives, number, Failed(BEGAN + at * DAY_US, release, timed=True), BEGAN + at * DAY_US)
        assert state() == expected


def test_old_news_does_not_regress_a_kind(lives: Engine) -> None:
    """What failed before the fix and is heard of later leaves a kind fixed."""
    number = _made(lives)
    _fail(lives, number, Failed(BEGAN, None, timed=True), BEGAN)
    fixed = Decision(state="fixed")
    decide(lives, number, [_fingerprint(lives, number)], fixed, actor="ana", now=BEGAN + 3 * DAY_US)

    def state() -> str:
        with read_connection(lives) as conn:
            scope = Scope(number, parse(""), BEGAN + 9 * DAY_US)
            return queries.kinds(conn, scope).rows[0].state

    for at, expected in ((2, "fixed"), (4, "regressed")):
        _fail(lives, number, Failed(BEGAN + at * DAY_US, None, timed=True), BEGAN + 5 * DAY_US)
        assert state() == expected


def test_every_decision_is_in_the_history_and_none_that_changes_nothing(lives: Engine) -> None:
    """Who, when and what; owner and note stay until they are changed, marks of a fix do not."""
    number = _made(lives)
    _fail(lives, number, Failed(BEGAN, "1", timed=True), BEGAN)
    (kind,) = kinds = [_fingerprint(lives, number)]
    decisions = [
        Decision(state="acknowledged", owner="ana", note="asked the\nmakers"),
        Decision(state="acknowledged"),
        Decision(state="fixed", fixed_release="2", fixed_at=BEGAN + 5),
        Decision(state="ignored", ignored_count=3),
        Decision(owner=""),
    ]
    changed = [
        decide(lives, number, kinds, each, actor=f"person {place}", now=BEGAN + place)
        for place, each in enumerate(decisions)
    ]
    assert changed == [1, 0, 1, 1, 1]
    with read_connection(lives) as conn:
        stored = state_of(conn, number, kind)
        told = history_of(conn, number, kind)
    assert {name: value for name, value in stored.items() if value is not None} == {
        "state": "ignored", "note": "asked the\nmakers",
        "ignored_at": BEGAN + 3, "ignored_count": 3,
    }  # fmt: skip
    assert [(each.at - BEGAN, each.actor) for each in told] == [
        (4, "person 4"), (3, "person 3"), (2, "person 2"), (0, "person 0"),
    ]  # fmt: skip
    assert {each.detail["fingerprint"] for each in told} == {kind}
    assert told[0].detail["owner"] is None
    assert (told[2].detail["state"], told[2].detail["fixed_release"]) == ("fixed", "2")


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (Decision(), "Say what to change"),
        (Decision(state="ignored", ignored_count=0), "further failures"),
        (Decision(state="ignored", ignored_until=BEGAN), "ahead"),
        (Decision(state="open", ignored_count=5), "state ignored"),
        (Decision(state="ignored", fixed_release="2"), "state fixed"),
        (Decision(owner="x" * 129), "owner"),
        (Decision(note="\x00"), "note"),
    ],
)
def test_what_makes_no_sense_is_refused(
    sqlite_engine: Engine, decision: Decision, said: str
) -> None:
    """With a sentence that says what to do; nothing is stored, also not of the kinds beside."""
    number = _made(sqlite_engine)
    _fail(sqlite_engine, number, Failed(BEGAN, "1", timed=True), BEGAN)
    kinds = [_fingerprint(sqlite_engine, number)]
    with pytest.raises(ValueError, match=said):
        decide(sqlite_engine, number, kinds, decision, actor="ana", now=BEGAN)
    with pytest.raises(LookupError, match="nothing like it"):
        decide(
            sqlite_engine, number, [*kinds, "nothing like it"], Decision(state="open"),
            actor="ana", now=BEGAN,
        )  # fmt: skip
    with read_connection(sqlite_engine) as conn:
        assert state_of(conn, number, kinds[0]) == {}
        assert [act for act in acts(conn) if act.action == "kind_changed"] == []
