"""Matrices, messages, fixes, effects and trials equal a naive recount over the rows."""

from __future__ import annotations

import math
import random
import uuid
from collections import Counter, defaultdict
from typing import Any

import pytest
from sqlalchemy import Connection, Engine
from tests.dashboard.conftest import on_engines
from tests.dashboard.generated import NOW
from tests.dashboard.naive import Tables, codes_of
from tests.engines import HISTORY_ON_POSTGRESQL_IS_LONG, POSTGRESQL_IS_LONG
from tests.factories import failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, SECOND_US, format_time, now_us
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.exports.comparisons import comparison_markdown
from toolfault_dashboard.exports.fixes import fixes_markdown
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.comparisons.trials import before_trial
from toolfault_dashboard.queries.fixes.fix_next import FEW
from toolfault_dashboard.search import parse

TEXTS = ("", "model:claude* code:wrong_type")
MORE_TEXTS = ("tool:http_request,search since:14d",)
ONE = "since:14d -tool:search"


each_text = on_engines("text", TEXTS, [ONE], long=MORE_TEXTS)


@pytest.fixture
def asked(project: int, text: str) -> Scope:
    """A scope to recount."""
    return Scope(project, parse(text), NOW)


@pytest.mark.parametrize("by", ["code", "field"])
@each_text
def test_matrix(conn: Connection, asked: Scope, stored: Tables, by: Any) -> None:
    """Every cell is counted once per failure, whatever its issues; all are there or hidden."""
    found = queries.matrix(conn, asked, by, tools=3, columns=3)
    counts: Counter[tuple[str, str]] = Counter()
    for call in stored.failures(asked.query, NOW):
        columns = {*codes_of(call)} if by == "code" else {i["root_field"] for i in call["issues"]}
        counts.update((call["tool"], column) for column in columns if column)
    shown = {(cell.tool, cell.column): cell.failures for cell in found.cells}
    assert shown.items() <= counts.items()
    assert sum(shown.values()) + found.hidden == counts.total()
    assert len(found.tools) <= 3
    assert len(found.columns) <= 3
    calls = Counter[str]()
    for row in stored.denominators(asked.query, NOW):
        calls[row["tool"]] += row["calls"]
    assert all(cell.rate.n == max(calls[cell.tool], cell.failures) for cell in found.cells)


@on_engines("text", TEXTS[1:], [ONE], long=[TEXTS[0], *MORE_TEXTS])
def test_messages(conn: Connection, asked: Scope, stored: Tables) -> None:
    """A wording's failures, answers and fixes are those of the next call in each chain."""
    members: defaultdict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for call in stored.calls:
        if call["chain_id"]:
            members[call["chain_id"]][int(call["attempt"])] = call
    expected: defaultdict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for call in stored.failures(asked.query, NOW):
        if call["message_digest"] is None:
            continue
        counted = expected[call["tool"], call["code"], call["message_text"]]
        counted["failures"] += 1
        if call["chain_id"] is None:
            continue
        following = members[call["chain_id"]].get(int(call["attempt"]) + 1)
        if following is None:
            counted["asked"] += call["chain_outcome"] != "open"
            continue
        turns = call["turn"] is not None and following["turn"] is not None
        beside = (
            following["turn"] == call["turn"]
            if turns
            else call["time_source"] != "none" and following["started_at"] < call["occurred_at"]
        )
        if not beside:
            counted["asked"] += 1
            counted["answered"] += 1
            counted["fixed"] += following["success"]
    found = {
        (row.tool, row.code, row.message): row
        for group in queries.message_efficacy(conn, asked)
        for row in group.rows
    }
    assert found.keys() == expected.keys()
    for key, row in found.items():
        for name in ("failures", "asked", "answered", "fixed"):
            assert getattr(row, name) == expected[key][name], (key, name)
        assert row.failures == len(stored.failures(asked.narrowed(row.query).query, NOW))


@pytest.mark.parametrize(
    ("fixed", "marked"),
    [({"a": 10, "b": 0}, ("a", "b")), ({"a": 6, "b": 4}, None), ({"a": 10, "b": 5, "c": 0}, "ac")],
)
def test_a_text_is_best_where_its_interval_lies_above_that_of_the_worst(
    empty_sqlite: Engine, fixed: dict[str, int], marked: Any
) -> None:
    """Of texts that were each told ten times; chance tells six and four of ten not apart."""

    def told(text: str, conversation: str, at: int) -> dict[str, Any]:
        error = {"renderings": {"llm": text, "user": "u", "system": "s"}}
        return failure(session_id=conversation, error=error, at=at)

    events = []
    for text, succeed in fixed.items():
        for n in range(10):
            events.append(told(text, f"{text}{n}", NOW - DAY_US))
            then = NOW - DAY_US + SECOND_US
            worked = success(session_id=f"{text}{n}", at=then)
            events.append(worked if n < succeed else told("x", f"{text}{n}", then))
    with write_transaction(empty_sqlite) as conn:
        project = ensure_project(conn, "demo")
        store_events(conn, project, events, received_at=NOW)
    with read_connection(empty_sqlite) as conn:
        (group,) = queries.message_efficacy(conn, Scope(project, parse("message:a,b,c"), NOW))
    found = group.best and group.worst and (group.best.message, group.worst.message)
    assert found == (tuple(marked) if marked else None)


@on_engines("text", TEXTS, long=MORE_TEXTS)  # `test_windows` asks for fixes of PostgreSQL
def test_fixes_lead_to_their_evidence(conn: Connection, asked: Scope, stored: Tables) -> None:
    """What a fix counts is among the failures that its query shows, and ranks by what it saves."""
    found = queries.fix_next(conn, asked)
    assert found.failures == len(stored.failures(asked.query, NOW))
    assert found.complete
    open_rows = [row for row in found.rows if row.mended_by is None]
    ranks = [
        (row.failures >= FEW, row.calls, row.abandoned or 0, row.failures) for row in open_rows
    ]
    assert ranks == sorted(ranks, reverse=True)
    for row in found.rows:
        shown = stored.failures(asked.narrowed(row.query).query, NOW)
        if row.remedy != "all_at_once":
            assert row.failures <= len(shown), row
        assert (row.saved is None) == (row.remedy == "open")
        if row.saved_per_week is not None:
            assert row.saved_per_week_low is not None
            assert row.saved_per_week_high is not None
            assert row.saved_per_week_low <= row.saved_per_week <= row.saved_per_week_high


@HISTORY_ON_POSTGRESQL_IS_LONG
def test_sides_that_name_a_time_are_of_calls_that_have_one(
    conn: Connection, scope: Scope, stored: Tables
) -> None:
    """Calls without a time are in no cohort that names one, and it is said how many failed."""
    before, after = (queries.cohort_scope(scope, text) for text in ("until:7d", "since:7d"))
    found = queries.comparison(conn, before, after).effect
    failures = stored.failures(scope.query, NOW)
    timed = [row for row in failures if row["time_source"] != "none"]
    assert found.before.failures + found.after.failures == len(timed)
    assert found.excluded_untimed == len(failures) - len(timed) > 0
    some = queries.cohort_scope(scope, "tool:http_request until:7d")
    again = queries.comparison(conn, some, after).effect
    assert again.excluded_untimed == found.excluded_untimed  # those of a tool are among all
    without = queries.cohort_scope(scope, "time:none since:30d")
    found = queries.comparison(conn, before, without).effect
    assert found.after.failures == len(stored.failures(parse("time:none since:30d"), NOW)) > 0


def test_effect_of_a_change_is_that_of_its_rows(
    conn: Connection, scope: Scope, stored: Tables
) -> None:
    """Rates before and after are those of a recount on either side of the moment."""
    change = next(row for row in queries.changes(conn, scope) if row.tool == "http_request")
    found = queries.change_comparison(conn, scope, change)
    cohorts = queries.cohorts_of_change(scope, change)
    metric = found.effect.metrics[0]
    for cohort, shown, rate in zip(
        cohorts,
        (found.effect.before, found.effect.after),
        (metric.before, metric.after),
        strict=True,
    ):
        failures = stored.failures(cohort.query, NOW)
        calls = sum(row["calls"] for row in stored.denominators(cohort.query, NOW))
        assert (shown.calls, shown.failures) == (calls, len(failures))
        assert rate == pytest.approx(len(failures) / calls)
        assert all(row["time_source"] != "none" for row in failures)
    untimed = [
        row
        for row in stored.failures(parse("tool:http_request"), NOW)
        if row["time_source"] == "none"
    ]
    assert found.effect.excluded_untimed == len(untimed)
    assert found.control is not None
    before = stored.failures(cohorts[0].query, NOW)
    by_code = Counter(code for row in before for code in codes_of(row))
    assert {row.code: row.before.count for row in found.codes if row.before.count} == by_code


@on_engines(
    "text", ["", "model:claude* -time:none"], ["model:claude* -time:none"], long=["tool:search"]
)
def test_metrics_are_those_of_a_recount(
    conn: Connection, scope: Scope, stored: Tables, text: str
) -> None:
    """Every metric of a comparison is the ratio of sums that its name says, over the rows."""
    asked = scope.narrowed(text)
    found = queries.comparison(conn, asked, asked).effect
    shown = {str(each.metric): each for each in found.metrics}
    failures = stored.failures(asked.query, NOW)
    chains = stored.opened(asked.query, NOW)
    calls = stored.denominators(asked.query, NOW)
    trips = sum(row["round_trips"] for row in chains)
    alone = sum(1 for row in failures if row["chain_id"] is None)
    total = sum(row["calls"] for row in calls)
    closed = [row for row in chains if row["outcome_now"] != "open"]
    told = [row for row in chains if row["tokens_lost"] is not None]
    timed = {(row["session_id"] or row["event_id"], row["tool"], row["model"], row["agent"])
             for row in stored.calls if row["time_source"] != "none"}  # fmt: skip
    lost = sum(
        row["time_lost_ms"] for row in chains
        if (row["session_id"], row["tool"], row["model"], row["agent"]) in timed
    )  # fmt: skip
    expected = {
        "failure_rate": (len(failures), total),
        "first_try_success": (total - trips - len(chains) - alone, total - trips),
        "recovery_rate": (sum(1 for row in chains if row["recovered_at"]), len(closed)),
        "round_trips_per_operation": (trips, total - trips),
        "round_trips_per_failure": (trips, len(failures)),
        "tokens_lost_per_chain": (sum(row["tokens_lost"] for row in told), len(told)),
    }
    assert shown.keys() == {*expected, "seconds_lost_per_operation"}
    for name, (count, n) in expected.items():
        assert shown[name].n_before == n, name
        assert shown[name].before == (pytest.approx(count / n) if n else None), name
    seconds = shown["seconds_lost_per_operation"]
    assert seconds.before is not None
    assert seconds.before * seconds.n_before == pytest.approx(lost / 1_000)
    # A conversation without times lost none, and its operations are none of those that did.
    by_cell: Counter[tuple[Any, ...]] = Counter()
    for row in stored.calls:
        if row in calls or row | {"calls": 1} in calls:
            key = (row["session_id"] or row["event_id"], row["tool"], row["model"], row["agent"])
            by_cell[key] += not row["retry"]
    folded = total - sum(1 for row in calls if "event_type" in row)
    assert seconds.n_before == folded + sum(n for key, n in by_cell.items() if key in timed)
    assert seconds.n_before <= total - trips
    assert {each.verdict for each in found.metrics if each.before is not None} <= {
        "no detectable change", "not enough data",
    }  # fmt: skip


def test_a_conversation_in_two_trials_is_in_both(conn: Connection, scope: Scope) -> None:
    """The arms of every trial are found, also where a conversation carries several."""
    assert queries.experiments(conn, scope) == {"a": ("1",), "aa": ("1",), "b": ("2", "3")}
    found = queries.experiment(conn, scope, "b")
    assert found is not None
    assert (found.control, found.arms) == ("2", ("2", "3"))
    assert {effect.arm for effect in found.effects} == {"3"}
    assert queries.experiment(conn, scope, "none") is None


def _trial_events() -> list[dict[str, Any]]:
    """Sixty conversations that go on for days; on the third day each gets an arm of a trial."""
    events: list[dict[str, Any]] = []
    for number in range(60):
        for day in range(6):
            for index in range(1 + (number + day) % 3):
                failed = (number * 7 + day * 3 + index) % 5 < (1 + number % 3)
                event = {
                    "type": "tool_call",
                    "event_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"t-{number}-{day}-{index}")),
                    "session_id": f"thread-{number}",
                    "occurred_at": f"2026-11-{day + 1:02}T{number % 24:02}:{index:02}:00Z",
                    "tool": "search",
                    "success": not failed,
                }
                if day >= 2:
                    event["variant"] = f"t={'ab'[number % 2]}"
                if failed:
                    event["error"] = {"code": "timeout", "category": "internal"}
                events.append(event)
    return events


@POSTGRESQL_IS_LONG
def test_a_trial_day_after_day(engine: Engine) -> None:
    """Each look is the trial as it was shown that day; before it is what came before the arm."""
    events = _trial_events()
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "trial")
        receipt = store_events(conn, project, events, received_at=NOW, time_policy="import")
        assert not receipt.rejected
    scope = Scope(project, parse(""), NOW)
    with read_connection(engine) as conn:
        whole = queries.experiment(conn, scope, "t")
        looks = queries.experiment_looks(conn, scope, "t")
        daily = [
            queries.experiment(conn, scope.narrowed(f"until:2026-11-{day:02}"), "t")
            for day in range(4, 7)
        ]
        cut = queries.experiment_looks(conn, scope.narrowed("until:2026-11-05"), "t")
        earlier = before_trial(conn, scope.narrowed("since:2026-11-03"), "t")
        assert queries.experiment_looks(conn, scope, "nothing") is None
    assert whole is not None
    assert looks is not None
    assert (looks.days, looks.control) == (1, "a")
    assert len(looks.looks) == 4
    for look, shown in zip(looks.looks, [*daily, whole], strict=True):
        assert shown is not None
        (effect,) = (each for each in shown.effects if each.metric == "failure_rate")
        assert (look.difference, look.fixed, look.always) == (
            effect.difference, effect.fixed, effect.always,
        )  # fmt: skip
        assert (look.n_control, look.n_treatment) == (effect.n_control, effect.n_treatment)
    assert cut is not None
    assert len(cut.looks) == 2
    counted: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for event in events:
        if "variant" not in event:
            counted[event["session_id"]][0] += not event["success"]
            counted[event["session_id"]][1] += 1
    assert earlier == {key: tuple(value) for key, value in counted.items()}
    effect = whole.effects[0]
    assert effect.adjusted is not None
    assert effect.adjusted.conversations == 60


def test_variants_are_compared_as_arms(sqlite_engine: Engine) -> None:
    """A comparison of randomised variants carries balance and always-valid intervals."""
    with write_transaction(sqlite_engine) as conn:
        project = ensure_project(conn, "trial")
        store_events(conn, project, _trial_events(), received_at=NOW, time_policy="import")
    scope = Scope(project, parse(""), NOW)
    with read_connection(sqlite_engine) as conn:
        cohorts = scope.narrowed("variant:t=a"), scope.narrowed("variant:t=b")
        found = queries.comparison(conn, *cohorts, labels=("t=a", "t=b"))
        assert queries.comparison(conn, *cohorts, equal_mix=True).trial is None
        other = queries.cohort_scope(scope, "tool:search variant:t=b")
        assert queries.comparison(conn, cohorts[0], other).trial is None
        shown = queries.experiment(conn, scope, "t")
    assert shown is not None
    assert found.trial is not None
    assert found.trial.balance.conversations == {"t=a": 30, "t=b": 30}
    assert [each.always for each in found.trial.effects] == [each.always for each in shown.effects]
    text = comparison_markdown(found)
    assert "valid no matter how often you check" in text
    assert "30 in t=a, 30 in t=b" in text


def test_silent_successes(sqlite_engine: Engine) -> None:
    """Successes that read like errors are listed by tool and rule, and count as no failure."""
    events = [
        {
            "type": "tool_call",
            "event_id": str(uuid.uuid5(uuid.NAMESPACE_URL, str(number))),
            "session_id": "c",
            "seq": number,
            "occurred_at": "2026-11-01T00:00:00Z",
            "tool": "search",
            "success": True,
            "detection": "soft:error_text" if number < 3 else "explicit",
        }
        for number in range(10)
    ]
    with write_transaction(sqlite_engine) as conn:
        project = ensure_project(conn, "p")
        receipt = store_events(conn, project, events, received_at=now_us(), time_policy="import")
        assert not receipt.rejected
    scope = Scope(project, parse(""), now_us())
    with read_connection(sqlite_engine) as conn:
        (row,) = queries.silent_successes(conn, scope)
        assert queries.summary(conn, scope).failures == 0
    assert (row.tool, row.rule, row.calls, row.rate.n) == ("search", "error_text", 3, 10)
    assert row.example == events[2]["event_id"]


def _first_seen(stored: Tables) -> dict[tuple[str, str], dict[str, int]]:
    """When each name was first seen, by kind and owner, read off the rows one by one."""
    found: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    calls = [row | {"at": row["occurred_at"]} for row in stored.calls]
    counts = [row | {"at": row["minute"], "time_source": "client"} for row in stored.counts]
    for row in calls + counts:
        if row["time_source"] == "none":
            continue
        named = [("release", row["agent"] or "", row["release"]), ("model", "", row["model"])]
        named += [("variant", "", arm) for arm in (row["variant"] or "").split(",")]
        named.append(("schema", row["tool"] or "", row.get("schema_hash")))
        for kind, owner, name in named:
            if name:
                own = found[kind, owner]
                own[name] = min(own.get(name, row["at"]), row["at"])
    return found


def test_changes_nobody_recorded(conn: Connection, scope: Scope, stored: Tables) -> None:
    """A model, release, schema or variant is found at its first call, but for the first of all."""
    rows = queries.detected_changes(conn, scope)
    expected = {
        (kind, owner, name, at)
        for (kind, owner), own in _first_seen(stored).items()
        for name, at in own.items()
        if at > min(own.values())
    }
    found = {(row.kind, row.agent or row.tool or "", row.name, row.occurred_at) for row in rows}
    assert found == expected
    assert {row.kind for row in rows} >= {"model", "release", "variant"}
    assert {row.source for row in rows} == {"toolfault"}
    for row in rows:
        assert queries.change(conn, scope, row.event_id) == row
    within = queries.detected_changes(conn, scope.narrowed("since:2d"))
    assert within == tuple(row for row in rows if row.occurred_at >= NOW - 2 * DAY_US)
    everything = queries.all_changes(conn, scope)
    assert sorted(everything, key=str) == sorted((*queries.changes(conn, scope), *rows), key=str)
    assert everything == tuple(sorted(everything, key=lambda row: -row.occurred_at))


def _talk(number: int, texts: str, sender: random.Random) -> list[dict[str, Any]]:
    """A conversation: one failure for each letter of *texts*, its message, then a success."""
    found = []
    for place, letter in enumerate(f"{texts}."):
        call = {
            "type": "tool_call",
            "event_id": str(uuid.UUID(int=sender.getrandbits(128), version=4)),
            "occurred_at": format_time(NOW - DAY_US + (number * 60 + place) * SECOND_US),
            "session_id": f"talk-{number}",
            "seq": number * 10 + place,
            "tool": "t",
            "success": letter == ".",
        }
        if letter != ".":
            call["error"] = {
                "code": "wrong_type",
                "category": "parameter",
                "audience": "llm",
                "renderings": {"user": "", "llm": f"text {letter}", "system": ""},
            }
        found.append(call)
    return found


def test_a_better_wording_is_counted_in_failures_chains_and_conversations(
    empty_sqlite: Engine,
) -> None:
    """Twelve failures in nine chains are those, and the interval is over the nine conversations.

    Each of them also stands, with its cost, in the line of what the call failed with: both say so.
    """
    sender = random.Random(1)
    talks = ["AAB"] * 3 + ["AB"] * 6 + ["B"] * 3
    with write_transaction(empty_sqlite) as conn:
        project = ensure_project(conn, "p")
        for number, texts in enumerate(talks):
            sent = _talk(number, texts, sender)
            receipt = store_events(conn, project, sent, received_at=NOW, time_policy="import")
            assert not receipt.rejected
    with read_connection(empty_sqlite) as conn:
        found = queries.fix_next(conn, Scope(project, parse("since:7d"), NOW))
    (row,) = (row for row in found.rows if row.remedy == "reword")
    # Every other failure was fixed by the next call, none of these: each costs one call.
    assert (row.detail, row.failures, row.chains) == ("text A", 12, 9)
    assert row.saved == pytest.approx(12.0)
    # The project is a day old, however long the window: a week has seven of them.
    assert (found.weeks, row.saved_per_week) == pytest.approx((1 / 7, 7 * 12.0))
    # None of 12 is fixed: that is known to 1 / 14. As long as it is none, one call follows each
    # failure with the text and one with another, whatever share of these is fixed.
    error = (1 / 14) * (13 / 14) / 14
    reach = 1.959964 * math.sqrt(3 * 2**2 + 6 * 1**2 + 12**2 * error)
    assert (row.saved_per_week_low, row.saved_per_week_high) == pytest.approx(
        (7 * (12 - reach), 7 * (12 + reach)), abs=1e-3
    )
    (other,) = (each for each in found.rows if each is not row)
    assert [(each.failures, each.shared, each.shared_with) for each in (other, row)] == [
        (24, 12, (row.number,)), (12, 12, (other.number,)),
    ]  # fmt: skip
    assert [each.number for each in found.rows] == [1, 2]
    assert (row.cost, row.cost_per_week, row.round_trips, row.abandoned) == (None,) * 4
    assert (other.saved, other.cost) == (None, found.cost)
    text = fixes_markdown(found, {})
    assert f"12 of its 24 failures also stand under number {row.number}: do not add" in text
    assert f"All of its 12 failures also stand under number {other.number}: do not add" in text


def test_less_than_a_day_says_nothing_of_a_week(empty_sqlite: Engine) -> None:
    """A window of hours, and a project that began hours ago, have calls but no calls a week."""
    with write_transaction(empty_sqlite) as conn:
        project = ensure_project(conn, "p")
        sent = _talk(0, "AAB", random.Random(1))
        store_events(conn, project, sent, received_at=NOW, time_policy="import")
    begun = NOW - DAY_US
    with read_connection(empty_sqlite) as conn:
        for text, now in (("", begun + 60 * SECOND_US), ("since:23h", begun + 7 * DAY_US // 8)):
            found = queries.fix_next(conn, Scope(project, parse(text), now))
            assert found.rows, text
            assert found.weeks is None
            assert {each.cost_per_week for each in found.rows} == {None}
            assert {each.saved_per_week for each in found.rows} == {None}
        assert queries.fix_next(conn, Scope(project, parse(""), NOW)).weeks == pytest.approx(1 / 7)


def test_tools_that_fail_with_one_text_are_one_thing_to_mend(empty_sqlite: Engine) -> None:
    """Same code and same text: one line of the sum; another text, or a second one: its own."""
    said = {
        "edit": ["Read the file first"] * 3,
        "write": ["Read the file first"] * 2,
        "move": ["No such file"] * 3,
        "copy": ["Read the file first", "No such file", "No such file"],
    }
    sent = [
        failure(
            tool,
            session_id=f"{tool}-{number}-{again}",
            code="precondition_failed",
            error={"renderings": {"llm": text}, "message": text, "issues": [], "field": None},
        )
        for tool, texts in said.items()
        for number, text in enumerate(texts)
        for again in range(2)
    ]
    with write_transaction(empty_sqlite) as conn:
        project = ensure_project(conn, "p")
        receipt = store_events(conn, project, sent, received_at=now_us())
        assert not receipt.rejected
    with read_connection(empty_sqlite) as conn:
        scope = Scope(project, parse(""), now_us())
        rows = queries.fix_next(conn, scope).rows
        assert [(row.title, row.failures) for row in rows] == [
            ("edit and write fail with precondition_failed", 10),
            ("copy fails with precondition_failed", 6),
            ("move fails with precondition_failed", 6),
        ]
        behind = [queries.summary(conn, scope.narrowed(row.query)).failures for row in rows]
    assert behind == [10, 6, 6]


@each_text
def test_signatures_that_are_new_since_a_change(
    conn: Connection, asked: Scope, stored: Tables
) -> None:
    """A signature is new when no call of the project had it before its tool's latest change."""
    at = NOW - 10 * DAY_US  # of both changes: of one tool, and of all
    appeared: dict[str, int] = {}
    for call in stored.calls:
        if call["fingerprint"]:
            first = appeared.setdefault(call["fingerprint"], call["occurred_at"])
            appeared[call["fingerprint"]] = min(first, call["occurred_at"])
    rows = queries.frequency(conn, asked, "signature").rows
    for row in rows:
        new = row.first_at is not None and appeared[row.name] >= at
        assert row.new_since == ("coerce booleans" if new else None)
    if not asked.query.clauses:
        assert {row.new_since for row in rows} == {None, "coerce booleans"}
    after = queries.new_signatures(conn, asked.narrowed("since:10d -time:none"), at, limit=10_000)
    names = {row.name for row in after}
    assert names == {
        call["fingerprint"]
        for call in stored.failures(asked.narrowed("since:10d -time:none").query, NOW)
        if appeared[call["fingerprint"]] >= at
    }
