"""Bad input over real HTTP: a clear answer to each, and nothing lost beside it.

The rows are those of the table of bad inputs that the collector was designed against.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import uuid
from typing import Any

import httpx2
import pytest
from sqlalchemy import select
from tests.factories import counts, failure, success
from tests.running import RunningCollector, new_key

from toolfault_collector.admin.keys import list_keys, revoke_key
from toolfault_collector.clock import DAY_US, format_time, now_us, parse_time
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.tables import rejected_event, tool_call

JSON = {"Content-Type": "application/json"}
GZIP = {**JSON, "Content-Encoding": "gzip"}
MIB = 1024 * 1024
SECRET = "hunter2-correct-horse"


def case(row: int, *values: Any) -> Any:
    """Values of one test, and the row of the table of bad inputs that they belong to."""
    return pytest.param(*values, id=f"row {row}: {values[0]!r} {values[1]!r}"[:60])


def _send(collector: RunningCollector, body: bytes, **headers: str) -> httpx2.Response:
    return collector.client.post(
        f"{collector.url}/v1/events", content=body, headers=headers or JSON
    )


def _stored(collector: RunningCollector, sent: dict[str, Any]) -> dict[str, Any]:
    engine = open_engine(collector.database_url)
    with read_connection(engine) as conn:
        row = conn.execute(
            select(tool_call).where(tool_call.c.event_id == sent["event_id"].lower())
        )
        found = dict(row.mappings().one())
    engine.dispose()
    return found


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def _batch(*events: Any) -> bytes:
    return json.dumps({"events": events}).encode()


def _with(member: str, raw: str) -> bytes:
    """A batch of a good event and one whose *member* is the JSON text *raw*."""
    event = failure()
    event[member] = "@"
    return _batch(event, success()).replace(b'"@"', raw.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        case(1, b"", 422, "empty"),
        case(1, b"  \n", 422, "empty"),
        case(2, b"null", 422, "wrong_shape"),
        case(2, b"[]", 422, "wrong_shape"),
        case(2, b'"x"', 422, "wrong_shape"),
        case(2, b"1", 422, "wrong_shape"),
        case(2, b"{}", 422, "wrong_shape"),
        case(2, b'{"events": {}}', 422, "wrong_shape"),
        case(2, b'{"events": [], "schema_version": "1"}', 422, "wrong_shape"),
        case(2, b'{"events": [NaN], "schema_version": true}', 422, "wrong_shape"),
        case(3, b'{"events": [', 400, "not_json"),
        case(4, b'{"events": []} {"events": []}', 400, "not_json"),
        case(4, b'{"events": []} x', 400, "not_json"),
        case(5, b'{"events": ["\xff\xfe"]}', 400, "not_utf8"),
        case(6, '{"events": []}'.encode("utf-16"), 400, "not_utf8"),
        case(6, '{"events": []}'.encode("utf-16-le"), 400, "not_json"),
        case(14, b'{"events": [' + b"[" * 100_000 + b"]" * 100_000 + b"]}", 400, "not_json"),
        case(16, b'{"events": [{"seq": ' + b"9" * 5_000 + b"}]}", 400, "not_json"),
        case(20, b'{"events": [' + b",".join([b"{}"] * 1_001) + b"]}", 413, "too_many_events"),
        case(20, b'{"events": [[' + b",".join([b"1"] * 1_048_576) + b"]]}", 413, "too_many_values"),
        case(23, b'{"events": ["' + b"a" * 30 * MIB + b'"]}', 413, "body_too_large"),
    ],
)
def test_unreadable_batch(collector: RunningCollector, body: bytes, status: int, code: str) -> None:
    """A batch that cannot be read is answered with a short problem document."""
    answer = _send(collector, body)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.content) < 1_024


@pytest.mark.parametrize(
    ("body", "accepted"),
    [
        case(1, b'{"events": []}', 0),
        case(7, b'\xef\xbb\xbf{"events": []}', 0),
        case(35, b'{"events": [], "schema_version": 1, "planet": "mars", "dropped": 3}', 0),
    ],
)
def test_empty_batch_is_fine(collector: RunningCollector, body: bytes, accepted: int) -> None:
    """A batch without events is a batch; a byte order mark and unknown members change nothing."""
    answer = _send(collector, body)

    assert answer.status_code == 200
    assert answer.json() == {"accepted": accepted, "duplicate": 0, "rejected": []}


@pytest.mark.parametrize(
    ("member", "raw", "code", "pointer"),
    [
        case(8, "duration_ms", "NaN", "non_finite", "/duration_ms"),
        case(9, "duration_ms", "Infinity", "non_finite", "/duration_ms"),
        case(9, "duration_ms", "-Infinity", "non_finite", "/duration_ms"),
        case(9, "duration_ms", "1e400", "non_finite", "/duration_ms"),
        case(10, "seq", "NaN", "non_finite", "/seq"),
        case(9, "tags", '{"a": 1e400}', "non_finite", "/tags"),
        case(17, "seq", "9" * 4_000, "int_range", "/seq"),
        case(17, "seq", "9223372036854775808", "int_range", "/seq"),
        case(17, "planet", "9223372036854775808", "int_range", ""),
        case(18, "seq", "-0", "wrong_type", "/seq"),
        case(18, "seq", "1.0", "wrong_type", "/seq"),
        case(18, "seq", '"5"', "wrong_type", "/seq"),
        case(18, "seq", "true", "wrong_type", "/seq"),
        case(18, "seq", "-1", "out_of_range", "/seq"),
        case(18, "success", "1", "wrong_type", "/success"),
        case(18, "success", '"true"', "wrong_type", "/success"),
        case(18, "tool", "null", "wrong_type", "/tool"),
        case(18, "tool", '""', "empty", "/tool"),
        case(18, "error", "[]", "wrong_type", "/error"),
        case(18, "error", "{}", "missing_field", "/error/code"),
        case(
            18,
            "error",
            '{"code": "x", "issues": [{"field": "a"}]}',
            "missing_field",
            "/error/issues/0/code",
        ),
        case(15, "planet", "[" * 900 + "]" * 900, "too_deep", ""),
        case(20, "tags", json.dumps({f"k{n}": "v" for n in range(201)}), "too_many_keys", "/tags"),
        case(11, "event_id", '"\\ud800"', "invalid_event_id", "/event_id"),
        case(29, "event_id", '"../../etc/passwd"', "invalid_event_id", "/event_id"),
        case(29, "event_id", '"a/b"', "invalid_event_id", "/event_id"),
        case(29, "event_id", '"%2e%2e"', "invalid_event_id", "/event_id"),
        case(29, "event_id", '"CON"', "invalid_event_id", "/event_id"),
        case(29, "event_id", json.dumps("a" * 10_240), "invalid_event_id", "/event_id"),
        case(29, "event_id", "7", "wrong_type", "/event_id"),
        case(18, "type", '"telepathy"', "unknown_type", "/type"),
        case(18, "type", "null", "missing_field", "/type"),
        case(18, "type", "[]", "wrong_type", "/type"),
        case(30, "occurred_at", '"0000-01-01T00:00:00Z"', "invalid_time", "/occurred_at"),
        case(30, "occurred_at", "1e30", "wrong_type", "/occurred_at"),
        case(30, "occurred_at", "-1e18", "wrong_type", "/occurred_at"),
        case(32, "occurred_at", '"2026-02-05T10:00:00"', "invalid_time", "/occurred_at"),
        case(32, "occurred_at", '"2026-02-30T10:00:00Z"', "invalid_time", "/occurred_at"),
        case(32, "occurred_at", '"2026-02-05"', "invalid_time", "/occurred_at"),
        case(20, "planet", json.dumps("x" * 300_000), "event_too_large", ""),
    ],
)
def test_bad_event_is_rejected_alone(
    collector: RunningCollector, member: str, raw: str, code: str, pointer: str
) -> None:
    """One bad event is rejected with code and pointer, and its neighbour is stored."""
    answer = _send(collector, _with(member, raw))

    body = answer.json()
    assert answer.status_code == 200, body
    assert body["accepted"] == 1
    (rejected,) = body["rejected"]
    assert (rejected["index"], rejected["code"]) == (0, code)
    assert rejected["pointer"] == f"/events/0{pointer}"


@pytest.mark.parametrize(
    ("member", "raw", "column", "value", "flag"),
    [
        case(12, "model", r'"a\ud800b"', "model", "a\ufffdb", "replaced:model"),
        case(13, "model", r'"a\u0000b"', "model", "a\ufffdb", "replaced:model"),
        case(23, "model", json.dumps("m" * 300), "model", None, "truncated:model"),
        case(33, "duration_ms", "-1", "duration_ms", None, "duration"),
        case(33, "duration_ms", "1e12", "duration_ms", None, "duration"),
        case(33, "tokens", "1099511627777", "tokens", None, "tokens"),
        case(33, "tokens", "1099511627776", "tokens", 2**40, None),
        case(30, "occurred_at", '"9999-12-31T23:59:59Z"', "time_source", "server", "clock_skew"),
        case(31, "occurred_at", '"2016-01-01T00:00:00Z"', "time_source", "server", "clock_skew"),
        case(
            32, "occurred_at", '"2036-01-01T00:00:00+14:00"', "time_source", "server", "clock_skew"
        ),
        case(34, "error", '{"code": "x", "audience": "aliens"}', "audience", "system", "audience"),
        case(34, "error", '{"code": "x"}', "audience", "system", "audience"),
        case(34, "error", '{"code": "x", "audience": ["llm"]}', "audience", "system", "audience"),
        case(34, "error", '{"code": "x", "audience": "USER "}', "audience", "system", "audience"),
        case(34, "error", '{"code": "x", "category": "magic"}', "category", "internal", "category"),
        case(
            34,
            "error",
            '{"code": "wrong_type", "category": 7}',
            "category",
            "parameter",
            "category",
        ),
        case(34, "side", '"client"', "side", None, "side"),
        case(34, "side", '"AGENT"', "side", None, "side"),
        case(34, "side", '"agent"', "side", "agent", None),
        case(34, "side", '""', "side", None, None),
        case(18, "tags", '{"a": null, "b": 7}', "tags", {"b": "7"}, "tags"),
        case(19, "seq", '5, "seq": 6', "seq", 6, "duplicate_key"),
        case(19, "tool", '"a", "tool": "c"', "tool", "c", "duplicate_key"),
        case(19, "tool", '"a", "t\\u006fol": "c"', "tool", "c", "duplicate_key"),
        case(19, "tags", '{"a": "1", "a": "2"}', "tags", {"a": "2"}, "duplicate_key"),
    ],
)
def test_repaired_event_is_flagged(
    collector: RunningCollector, member: str, raw: str, column: str, value: Any, flag: str | None
) -> None:
    """What can be stored after a repair is, and says what was repaired."""
    event = {**failure(), member: "@"}
    answer = _send(collector, _batch(event).replace(b'"@"', raw.encode()))

    assert answer.json() == {"accepted": 1, "duplicate": 0, "rejected": []}
    stored = _stored(collector, event)
    if value is not None or member in {"duration_ms", "tokens", "side"}:
        assert stored[column] == value
    if flag is not None:
        assert flag in stored["flags"]


def test_unknown_members_are_kept(collector: RunningCollector) -> None:
    """Members of a newer protocol, and names that mean something to Python, are plain data."""
    odd: dict[str, Any] = {"__proto__": {"a": 1}, "a.b.c": 1, "": 2, "__class__": "x"}
    event = failure(planet="mars", **odd)
    event["error"]["colour"] = "red"

    assert collector.post(event).json()["accepted"] == 1

    extra = _stored(collector, event)["extra"]
    assert extra["planet"] == "mars"
    assert extra["__proto__"] == {"a": 1}
    assert extra["error.colour"] == "red"


def test_million_keys(collector: RunningCollector) -> None:
    """An object of more keys than an event has room for is rejected by size, fewer by count."""
    large = {f"k{n}": 1 for n in range(40_000)}

    answer = collector.post(failure(planet=large), failure(planet=dict(list(large.items())[:300])))

    codes = [rejected["code"] for rejected in answer.json()["rejected"]]
    assert codes == ["event_too_large", "too_many_keys"]


def test_colliding_keys(collector: RunningCollector) -> None:
    """Integers that hash alike, as keys, are strings here and cost nothing."""
    crafted = {str(n * (2**61 - 1)): 1 for n in range(5_000)}

    answer = collector.post(failure(planet=crafted))

    assert answer.json()["rejected"][0]["code"] == "too_many_keys"


BAD: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"seq": SECRET}, "wrong_type", "/seq"),
    ({"event_id": SECRET}, "invalid_event_id", "/event_id"),
    ({"occurred_at": SECRET}, "invalid_time", "/occurred_at"),
    ({"type": SECRET}, "unknown_type", "/type"),
    ({"tool": ""}, "empty", "/tool"),
    ({"tags": {f"{SECRET}{n}": "v" for n in range(201)}}, "too_many_keys", "/tags"),
    (
        {"error": {"code": "x", "issues": [{"field": SECRET}]}},
        "missing_field",
        "/error/issues/0/code",
    ),
)


@pytest.mark.parametrize(
    "batches", [3, pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(1_800)])]
)
def test_any_bad_of_a_thousand(collector: RunningCollector, batches: int) -> None:
    """Whatever is bad, wherever it stands: that alone is refused, with place, code and pointer."""
    for number in range(batches):
        draw = random.Random(number)
        events = [draw.choice((success, failure))(session_id=None) for _ in range(1_000)]
        wanted = []
        for place in sorted(draw.sample(range(1_000), draw.choice([1, 2, 30, 999]))):
            members, code, pointer = draw.choice(BAD)
            events[place] |= members
            wanted.append((place, code, f"/events/{place}{pointer}"))

        answer = collector.post(*events)

        found = [
            (each["index"], each["code"], each["pointer"]) for each in answer.json()["rejected"]
        ]
        assert found == wanted
        assert answer.json()["accepted"] == 1_000 - len(wanted)
        assert SECRET not in answer.text
        bad = {place for place, _, _ in wanted}
        good = {each["event_id"] for place, each in enumerate(events) if place not in bad}
        assert _stored_among(collector, [each["event_id"] for each in events]) == good


def _stored_among(collector: RunningCollector, ids: list[str]) -> set[str]:
    engine = open_engine(collector.database_url)
    with read_connection(engine) as conn:
        query = select(tool_call.c.event_id).where(tool_call.c.event_id.in_(ids))
        found = set(conn.execute(query).scalars())
    engine.dispose()
    return found


def test_same_event_twice_in_a_batch(collector: RunningCollector) -> None:
    """The first is accepted, the second a duplicate."""
    event = failure()

    assert collector.post(event, event).json() == {"accepted": 1, "duplicate": 1, "rejected": []}


def test_same_id_other_body(collector: RunningCollector) -> None:
    """The first is kept and the difference is counted."""
    first, second = failure("one"), failure("two")
    second["event_id"] = first["event_id"]
    before = _metric(collector, "toolfault_event_conflicts_total")

    collector.post(first)
    body = collector.post(second).json()

    assert body == {"accepted": 0, "duplicate": 1, "rejected": []}
    assert _stored(collector, first)["tool"] == "one"
    assert _metric(collector, "toolfault_event_conflicts_total") == before + 1


def test_same_id_in_another_project(collector: RunningCollector) -> None:
    """Projects do not see each other's ids."""
    event = failure()
    other = new_key(collector.database_url, project="other")

    assert collector.post(event).json()["accepted"] == 1
    assert collector.post(event, key=other).json()["accepted"] == 1


def test_newer_schema(collector: RunningCollector) -> None:
    """A batch of a newer version is stored where it can be read, and says so where it cannot."""
    body = collector.post(success(), success(seq="x"), schema_version=2).json()

    assert body["accepted"] == 1
    assert [rejected["code"] for rejected in body["rejected"]] == ["schema_too_new"]


def test_secret_of_a_rejected_event_is_nowhere(collector: RunningCollector) -> None:
    """What was refused is neither echoed, nor logged, nor kept as it was."""
    event = failure(seq="x", password=SECRET, token=f"sk-{SECRET}")

    answer = collector.post(event)

    engine = open_engine(collector.database_url)
    with read_connection(engine) as conn:
        kept = conn.execute(
            select(rejected_event.c.body).where(rejected_event.c.event_id == event["event_id"])
        ).scalar_one()
    engine.dispose()
    for text in (answer.text, collector.output(), kept):
        assert SECRET not in text
    assert "[redacted:named]" in kept


def test_gzip_is_accepted(collector: RunningCollector) -> None:
    """A compressed batch is stored, also when it comes as two members."""
    text = _batch(success())
    half = len(text) // 2

    assert _send(collector, _gzip(text), **GZIP).json()["accepted"] == 1
    text = _batch(success())
    split = _gzip(text[:half]) + _gzip(text[half:])
    assert _send(collector, split, **GZIP).json()["accepted"] == 1


def test_a_refused_event_is_named_by_its_own_id(collector: RunningCollector) -> None:
    """The answer names the id of the event, not one that stands in a member before it."""
    inner, own = failure(), failure(seq="x")
    answer = _send(collector, _batch({"planet": {"event_id": inner["event_id"]}, **own}))
    assert [each["event_id"] for each in answer.json()["rejected"]] == [own["event_id"]]


@pytest.mark.parametrize(
    ("members", "code", "pointer"),
    [
        ({"tool": ""}, "empty", "/tool"),
        ({"duration_ms": {"buckets": [[math.nan, 3]]}}, "non_finite", "/duration_ms/buckets/0/0"),
        ({"duration_ms": {"buckets": [[math.inf, 3]]}}, "non_finite", "/duration_ms/buckets/0/0"),
    ],
)
def test_counts_that_say_nothing_are_refused(
    collector: RunningCollector, members: dict[str, Any], code: str, pointer: str
) -> None:
    """Counts of a tool without a name, or below no bound, are rejected like such calls."""
    answer = _send(collector, json.dumps({"events": [counts() | members, success()]}).encode())
    (rejected,) = answer.json()["rejected"]
    assert (rejected["code"], rejected["pointer"]) == (code, f"/events/0{pointer}")


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        case(39, {**JSON, "Content-Encoding": "br"}, b"{}", 415),
        case(39, {**JSON, "Content-Encoding": "zstd"}, b"{}", 415),
        case(39, {**JSON, "Content-Encoding": "gzip, gzip"}, b"{}", 415),
        case(39, {**JSON, "Content-Encoding": "identity"}, b'{"events": []}', 200),
        case(40, GZIP, b'{"events": []}', 400),
        case(40, JSON, _gzip(b'{"events": []}'), 400),
        case(44, {"Content-Type": "text/plain"}, b'{"events": []}', 415),
        case(44, {"Content-Type": "application/x-www-form-urlencoded"}, b"a=b", 415),
        case(44, {"Content-Type": "multipart/form-data; boundary=x"}, b"--x--", 415),
        case(44, {"Content-Type": ""}, b'{"events": []}', 415),
        case(44, {"Content-Type": "application/json; charset=utf-16"}, b'{"events": []}', 415),
        case(44, {"Content-Type": "Application/JSON; charset=UTF-8"}, b'{"events": []}', 200),
        case(
            44, {"Content-Type": 'application/json; x=1; charset="utf-8"'}, b'{"events": []}', 200
        ),
    ],
)
def test_type_and_coding(
    collector: RunningCollector, headers: dict[str, str], body: bytes, status: int
) -> None:
    """Only JSON in UTF-8, as it is or with gzip, is read."""
    assert _send(collector, body, **headers).status_code == status


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "TRACE", "BOGUS"])
def test_wrong_method(collector: RunningCollector, method: str) -> None:
    """Any method but POST is 405 and names the one that works."""
    answer = collector.client.request(method, f"{collector.url}/v1/events")

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer x", "Basic eDp4", f"Bearer tf_ingest_{'a' * 43}", "Bearer é"],
)
def test_bad_key(collector: RunningCollector, authorization: str) -> None:
    """Whatever is wrong with a key, the answer is the same, and the body is not looked at."""
    headers = {name.encode(): value.encode() for name, value in GZIP.items()}
    headers[b"Authorization"] = authorization.encode("latin-1")

    answer = collector.client.post(
        f"{collector.url}/v1/events", content=b"not gzip", headers=headers
    )

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    body = answer.json()
    assert body["code"] == "unauthorized"
    assert body["detail"] == "send a valid key: Authorization: Bearer tf_ingest_..."


def test_read_key_cannot_write(collector: RunningCollector) -> None:
    """A key of another kind is known, and refused."""
    key = new_key(collector.database_url, kind="read")

    assert collector.post(success(), key=key).status_code == 403


def test_revoked_key(collector: RunningCollector) -> None:
    """A key that was revoked before it was used is refused."""
    key = new_key(collector.database_url)
    engine = open_engine(collector.database_url)
    with write_transaction(engine) as conn:
        assert revoke_key(conn, list_keys(conn)[-1].id)
    engine.dispose()

    assert collector.post(success(), key=key).status_code == 401


@pytest.mark.parametrize("query", ["key=tf_ingest_x", "api_key=x", "a=1&accessToken=x", "token=x"])
def test_key_in_the_url(collector: RunningCollector, query: str) -> None:
    """A key in the URL is refused, even beside a good one."""
    answer = collector.client.post(f"{collector.url}/v1/events?{query}", json={"events": []})

    assert (answer.status_code, answer.json()["code"]) == (401, "key_in_url")


@pytest.mark.parametrize(
    ("offset_us", "source"),
    [
        (-29 * DAY_US, "client"),
        (-31 * DAY_US, "server"),
        (50_000_000, "client"),
        (120_000_000, "server"),
    ],
)
def test_client_clock(collector: RunningCollector, offset_us: int, source: str) -> None:
    """A client's time is believed from 30 days back to a minute ahead, else kept as a claim."""
    claimed = format_time(now_us() + offset_us)
    event = failure(occurred_at=claimed)

    collector.post(event)

    stored = _stored(collector, event)
    assert stored["time_source"] == source
    if source == "server":
        assert abs(stored["occurred_at"] - now_us()) < 60_000_000
        assert stored["extra"]["occurred_at"] == claimed


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000000Z"),
        ("2026-02-05T12:00:00.123456789+14:00", "2026-02-04T22:00:00.123456Z"),
        ("2026-02-05t12:00:00z", "2026-02-05T12:00:00.000000Z"),
        ("2026-02-05 12:00:00.5-00:30", "2026-02-05T12:30:00.500000Z"),
    ],
)
def test_times_are_normalised(raw: str, normal: str) -> None:
    """Any RFC 3339 time becomes microseconds in UTC."""
    assert format_time(parse_time(raw)) == normal


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "{{7*7}} {% x %} ${jndi:ldap://x} %s%n {0.__class__}",
        "=HYPERLINK(1)",
        "\x1b]8;;http://x\x07 \u202e \u2028 \u200b",
        "'; DROP TABLE tool_call; --",
    ],
)
def test_text_is_kept_as_it_is(collector: RunningCollector, text: str) -> None:
    """What only a reader must be careful with is stored unchanged."""
    event = failure(error={"received": text, "renderings": {"llm": text}})

    collector.post(event)

    stored = _stored(collector, event)
    assert (stored["received"], stored["text_llm"]) == (text, text)
    assert stored["flags"] is None


@pytest.mark.parametrize("text", ["x" * 200_000, "line\n" * 40_000], ids=["one line", "many lines"])
def test_huge_text(collector: RunningCollector, text: str) -> None:
    """A text beyond its limit is cut, says so, and says how long it was."""
    event = failure(error={"received": text, "exception": {"type": "E", "traceback": text}})

    # Both together are more than one event may have.
    assert collector.post(event).json()["rejected"][0]["code"] == "event_too_large"
    del event["error"]["exception"]
    assert collector.post(event).json()["accepted"] == 1

    stored = _stored(collector, event)
    assert len(stored["received"]) <= 16_384
    assert stored["received"].endswith(f"[{len(text)} characters]")
    assert "truncated:error.received" in stored["flags"]


def test_event_ids_may_be_ulids(collector: RunningCollector) -> None:
    """A ULID is an id as well; case does not make two of a UUID."""
    assert collector.post(success(event_id="01KHP5MZ00E01J10G20G40R38M")).json()["accepted"] == 1
    upper = str(uuid.uuid4()).upper()
    collector.post(success(event_id=upper))
    assert collector.post(success(event_id=upper.lower())).json()["duplicate"] == 1


def _metric(collector: RunningCollector, name: str) -> float:
    lines = collector.get("/metrics").text.splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))
