"""What one project can do to the others: nothing."""

from __future__ import annotations

import gc
import gzip
import json
import sqlite3
import tracemalloc
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, func, select
from tests.collector.otlp.spans import as_json, span
from tests.collector.poisons import DEADLOCK, poison
from tests.engines import POSTGRESQL_IS_LONG
from tests.factories import conversation_end, counts, failure, success
from tests.running import RunningCollector, new_key

from toolfault_collector.admin.keys import create_key
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.doctor.checks import examine
from toolfault_collector.doctor.recount import recount
from toolfault_collector.errors import OverQuota
from toolfault_collector.http.app import create_app
from toolfault_collector.otlp.encoding.items import MAX_ITEMS
from toolfault_collector.pipeline.quota import Quota
from toolfault_collector.protocol.records import Context
from toolfault_collector.protocol.submission import read_events
from toolfault_collector.runtime import Collector
from toolfault_collector.settings import MIB, Settings
from toolfault_collector.storage.database.engine import (
    read_connection,
    sqlite_path,
    write_transaction,
)
from toolfault_collector.storage.name_limits import NameLimits
from toolfault_collector.storage.store import store_group
from toolfault_collector.storage.tables import (
    call_counts,
    chain,
    failure_counts,
    issue,
    quota_bucket,
    signature,
    tool_call,
)
from toolfault_collector.storage.tables import (
    conversation_end as conversation_end_table,
)

SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
POSTGRESQL = pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)


def test_quota_fills_with_time() -> None:
    """A project may send a minute's worth at once, then as fast as the bucket fills."""
    now = 0.0
    quota = Quota(60, clock=lambda: now)
    quota.spend(1, 60)
    with pytest.raises(OverQuota) as refused:
        quota.spend(1, 10)
    assert (refused.value.limit, refused.value.wait) == (60, 10)
    quota.spend(2, 60)

    now = 10.0
    quota.spend(1, 10)
    with pytest.raises(OverQuota):
        quota.spend(1, 1)


def test_quota_lets_a_large_batch_through() -> None:
    """A batch of more than a minute's worth needs a full bucket and empties it."""
    now = 0.0
    quota = Quota(60, clock=lambda: now)
    quota.spend(1, 1_000)
    with pytest.raises(OverQuota) as refused:
        quota.spend(1, 1_000)
    assert refused.value.wait == 60

    now = 60.0
    quota.spend(1, 1_000)


def test_quota_holds_for_all_collectors(engine: Engine) -> None:
    """A process goes on with what all of them left; what was not committed was not taken."""
    now = 0.0
    ours, theirs = (Quota(60, clock=lambda: now) for _ in range(2))
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")

    def commit(quota: Quota) -> None:
        with write_transaction(engine) as conn:
            spent = quota.share(conn, [project_id, project_id])
        quota.shared(spent, committed=True)

    ours.spend(project_id, 60)
    with write_transaction(engine) as conn:
        ours.shared(ours.share(conn, [project_id]), committed=False)
        conn.rollback()
    commit(ours)
    theirs.spend(project_id, 45)  # does not know of ours yet
    commit(theirs)

    with read_connection(engine) as conn:
        left = conn.execute(select(quota_bucket.c.events_left)).scalar_one()
    assert -45 <= left < -30
    for quota in (ours, theirs):
        with pytest.raises(OverQuota):
            quota.spend(project_id, 1)


@pytest.mark.slow
@POSTGRESQL
def test_quota_over_two_collectors(database_url: str, tmp_path: Path) -> None:
    """Over the quota is 429 with Retry-After, whichever collector let the rest in.

    What one let in is missing at the other as soon as that has stored something; another project
    is not touched.
    """
    settings = {"TOOLFAULT_QUOTA_EVENTS_PER_MINUTE": "10"}
    with (
        RunningCollector(database_url, folder=tmp_path, **settings) as one,
        RunningCollector(database_url, folder=tmp_path, **settings) as two,
    ):
        other = new_key(database_url, project="other")
        assert one.post(*[success() for _ in range(10)]).status_code == 200
        assert two.post(*[success() for _ in range(5)]).status_code == 200

        for collector in (one, two):
            refused = collector.post(*[success() for _ in range(5)])
            assert refused.status_code == 429
            assert 1 <= int(refused.headers["retry-after"]) <= 300
            assert refused.json()["code"] == "over_quota"
            assert collector.post(success(), key=other).status_code == 200


def _ten_events() -> bytes:
    return json.dumps({"events": [success() for _ in range(10)]}).encode()


def _ten_spans() -> bytes:
    return as_json([span(1, number, "chat") for number in range(10)])


@pytest.mark.parametrize(
    ("path", "ten"), [("/v1/events", _ten_events), ("/v1/traces", _ten_spans)], ids=["sdk", "otlp"]
)
def test_a_batch_that_was_not_stored_costs_nothing(
    sqlite_url: str, path: str, ten: Callable[[], bytes]
) -> None:
    """Who is told to send the same again later has the quota for it."""
    settings = Settings(database_url=sqlite_url, quota_events_per_minute=10, busy_seconds=0.2)
    collector = Collector(settings)
    with write_transaction(collector.engine) as conn:
        key = create_key(conn, ensure_project(conn, "demo"), "ingest")
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    batch = ten()
    with TestClient(create_app(settings, collector=collector), headers=headers) as client:
        with closing(sqlite3.connect(sqlite_path(collector.engine), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert client.post(path, content=batch).status_code == 503
            other.execute("ROLLBACK")

        assert client.post(path, content=batch).status_code == 200
        over = client.post(path, content=ten())
        assert "quota" in over.text, over.text


def _no_json() -> bytes:
    return b'{"events": ["' + Random(7).randbytes(MIB).hex().encode()


def _too_many_events() -> bytes:
    return json.dumps(
        {"events": [{"event_id": Random(n).randbytes(500).hex()} for n in range(1_001)]}
    ).encode()


def _too_many_spans() -> bytes:
    return as_json([span(1, number, "x" * 100) for number in range(MAX_ITEMS + 1)])


def _over_quota() -> bytes:
    return as_json([span(1, n, Random(n).randbytes(500).hex()) for n in range(300)])


@pytest.mark.parametrize(
    ("path", "made", "status"),
    [
        ("/v1/events", _no_json, 400),
        ("/v1/traces", _no_json, 400),
        ("/v1/events", _too_many_events, 413),
        ("/v1/traces", _too_many_spans, 413),
        ("/v1/traces", _over_quota, 503),
    ],
    ids=["no-json", "no-otlp", "events", "spans", "quota"],
)
def test_refused_batches_do_not_stay_in_memory(
    sqlite_url: str, path: str, made: Callable[[], bytes], status: int
) -> None:
    """Nothing holds a batch that is refused, also while Python looks for no cycles."""
    settings = Settings(database_url=sqlite_url, quota_events_per_minute=1)
    collector = Collector(settings)
    with write_transaction(collector.engine) as conn:
        project_id = ensure_project(conn, "demo")
        key = create_key(conn, project_id, "ingest")
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    headers["Content-Encoding"] = "gzip"
    body = made()
    batch = gzip.compress(body)
    with TestClient(create_app(settings, collector=collector), headers=headers) as client:
        collector.quota.spend(project_id, 1)
        client.post(path, content=batch)  # what is loaded once
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            for _ in range(4):
                assert client.post(path, content=batch).status_code == status
            held = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
            gc.enable()

    assert held < 2 * len(body)  # of the last one the client may hold something


@POSTGRESQL
def test_a_batch_stored_in_part_stays_charged(engine: Engine) -> None:
    """What was stored is not given back, although the answer is to send all of it again."""
    settings = Settings(quota_events_per_minute=10)
    collector = Collector(settings, engine=engine)
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        key = create_key(conn, project_id, "ingest")
        how = f"IF new.tool = 'late' THEN {DEADLOCK}; END IF; RAISE EXCEPTION 'no'"
        poison(conn, how, when="new.tool IN ('bad', 'late')")
    events = [success(), failure("bad"), failure("late"), *(success() for _ in range(7))]
    with TestClient(create_app(settings, collector=collector)) as client:
        headers = {"Authorization": f"Bearer {key}"}
        answer = client.post("/v1/events", json={"events": events}, headers=headers)

    assert answer.status_code == 503
    with read_connection(engine) as conn:
        assert conn.execute(select(func.count()).select_from(tool_call)).scalar_one() > 0
    with pytest.raises(OverQuota):
        collector.quota.spend(project_id, 10)


def test_names_beyond_the_limit_are_other(engine: Engine) -> None:
    """Further tools and codes are stored as "other", flagged, with their own name in extra."""
    calls = [failure(f"tool-{number}", code=f"code_{number}") for number in range(6)]
    with write_transaction(engine) as conn:
        context = Context(ensure_project(conn, "demo"), now_us())
        limits = NameLimits(max_tools=4, max_codes=3)
        stored = store_group(conn, [read_events(calls, context)], limits=limits)

    assert [receipt.accepted for receipt in stored.receipts] == [6]
    assert stored.renamed == {"tool": 2, "code": 3}
    with read_connection(engine) as conn:
        rows = conn.execute(select(tool_call).order_by(tool_call.c.seq)).all()
    assert [row.tool for row in rows] == [*(f"tool-{n}" for n in range(4)), "other", "other"]
    assert [row.code for row in rows] == [*(f"code_{n}" for n in range(3)), *["other"] * 3]
    assert rows[5].extra == {"tool": "tool-5", "code": "code_5"}
    assert rows[5].flags == ["tool_limit", "code_limit"]
    assert recount(engine).right


@POSTGRESQL_IS_LONG
def test_tools_beyond_the_limit_are_in_no_chain(engine: Engine) -> None:
    """Different tools that are stored as one retry nothing of each other; their ends say the same.

    A tool that is really called so has its chain among them, in whatever order it arrives.
    """
    made = [failure("known"), failure("x"), failure("other"), failure("y"), success("x")]
    made += [failure("other"), failure("z"), success("other")]
    end = conversation_end(calls={"known": 1, "x": 2, "y": 1, "z": 1, "other": 3})
    limits = NameLimits(max_tools=1)
    for batch in ([*made[:2], *made[3:5], *made[6:], end], [made[2]], [made[5]]):
        with write_transaction(engine) as conn:
            context = Context(ensure_project(conn, "demo"), now_us())
            stored = store_group(conn, [read_events(batch, context)], limits=limits)
        assert stored.receipts[0].accepted == len(batch)

    with read_connection(engine) as conn:
        found = conn.execute(select(chain.c.tool, chain.c.calls, chain.c.round_trips)).all()
        ended = conn.execute(select(conversation_end_table)).one()
        of_other = (failure_counts.c.by == "pair") & (failure_counts.c.tool == "other")
        unchained = conn.execute(select(failure_counts.c.calls).where(of_other)).scalar_one()
    assert sorted(found) == [("known", 1, 0), ("other", 3, 2)]
    assert (ended.calls, ended.flags) == ({"known": 1, "other": 7}, ["tool_limit"])
    assert unchained == 3
    assert recount(engine).right


@SQLITE
def test_what_is_rolled_back_starts_from_its_records_again(engine: Engine) -> None:
    """What one transaction made of a batch is unknown to the next one that tries it."""
    with write_transaction(engine) as conn:
        context = Context(ensure_project(conn, "demo"), now_us())
    batch = read_events([failure("a"), failure("b", field="port"), counts("c")], context)
    limits = NameLimits(max_tools=1, max_codes=1, max_arguments=1)
    with suppress(InterruptedError), write_transaction(engine) as conn:
        assert store_group(conn, [batch], limits=limits).renamed["tool"] == 1
        raise InterruptedError

    with write_transaction(engine) as conn:
        assert store_group(conn, [batch]).receipts[0].accepted == 3

    with read_connection(engine) as conn:
        rows = conn.execute(select(tool_call).order_by(tool_call.c.seq)).all()
        assert conn.execute(select(call_counts.c.tool)).scalar_one() == "c"
    assert [row.tool for row in rows] == ["a", "b"]
    assert [(row.extra, row.flags) for row in rows] == [(None, None)] * 2


@SQLITE
def test_arguments_beyond_the_limit_are_other(engine: Engine) -> None:
    """Further arguments are counted as "other", and the issue keeps its own name."""
    fields = ["items.0.port", "items.1.port", "url", "made_up", "made_up.too"]
    limits = NameLimits(max_arguments=2)
    with write_transaction(engine) as conn:
        context = Context(ensure_project(conn, "demo"), now_us())
        for field in fields:
            store_group(conn, [read_events([failure(field=field)], context)], limits=limits)

    with read_connection(engine) as conn:
        issues = conn.execute(select(issue).order_by(issue.c.tool_call_id)).all()
        calls = conn.execute(select(tool_call).order_by(tool_call.c.seq)).all()
        signatures = conn.execute(select(func.count()).select_from(signature)).scalar_one()
        by_field = (failure_counts.c.by == "field") & (failure_counts.c.name != "")
        counted = conn.execute(select(failure_counts.c.name).where(by_field)).scalars()
        assert sorted(counted) == ["items", "other", "url"]
    assert [row.field for row in issues] == fields
    assert [row.root_field for row in issues] == ["items", "items", "url", "other", "other"]
    assert [row.flags for row in calls[3:]] == [["argument_limit"], ["argument_limit"]]
    assert signatures == 3
    assert recount(engine).right


@SQLITE
def test_folded_tools_count_towards_the_limit(engine: Engine) -> None:
    """Tools that only ever succeed fill the same limit, in this process and in the next."""
    with write_transaction(engine) as conn:
        context = Context(ensure_project(conn, "demo"), now_us())
        for events in ([counts("a"), counts("b"), counts("c"), counts(None)], [failure("d")]):
            submission = read_events(events, context)
            limits = NameLimits(max_tools=2)
            store_group(conn, [submission], limits=limits)

    with read_connection(engine) as conn:
        folded = conn.execute(select(call_counts.c.tool).order_by(call_counts.c.id)).scalars()
        assert list(folded) == ["a", "b", "other", None]
        assert conn.execute(select(tool_call.c.tool)).scalar_one() == "other"


def test_what_is_counted_as_other_is_visible(sqlite_engine: Engine) -> None:
    """Folded successes have no room for a flag: a metric and the doctor say that they are other."""
    settings = Settings(max_tools=2, max_codes=1)
    collector = Collector(settings, engine=sqlite_engine)
    collector.start()

    def store(*events: dict[str, object]) -> dict[str, float | None]:
        with write_transaction(sqlite_engine) as conn:
            context = Context(ensure_project(conn, "demo"), now_us())
        collector.writer.store(read_events(events, context))
        value = collector.metrics.registry.get_sample_value
        kinds = ("folded_tool", "tool", "code")
        return {kind: value("toolfault_names_over_limit_total", {"kind": kind}) for kind in kinds}

    nothing = dict.fromkeys(("folded_tool", "tool", "code"))
    assert store(counts("a", calls=5), failure("b", code="timeout")) == nothing
    more = store(counts("c", calls=7), counts("d", calls=4), failure("e", code="not_found"))
    collector.stop()

    assert more == {"folded_tool": 2, "tool": 1, "code": 1}
    findings = {each.name: each for each in examine(settings, sqlite_engine)}
    assert findings["names"].level == "warning"
    assert "project demo has used 2 names of tools, and 12 calls" in findings["names"].text


@POSTGRESQL_IS_LONG
def test_names_are_remembered_across_processes(engine: Engine) -> None:
    """A new process knows the names that are stored, and other projects have their own."""
    for project, expected in (("demo", "a"), ("demo", "other"), ("second", "b")):
        tool = "a" if expected == "a" else "b"
        with write_transaction(engine) as conn:
            context = Context(ensure_project(conn, project), now_us())
            submission = read_events([failure(tool)], context)
            limits = NameLimits(max_tools=1)
            store_group(conn, [submission], limits=limits)
        with read_connection(engine) as conn:
            newest = select(tool_call.c.tool).order_by(tool_call.c.id.desc()).limit(1)
            assert conn.execute(newest).scalar_one() == expected
