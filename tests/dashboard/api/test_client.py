"""The client of the JSON API against a real server: the rows of the queries, errors that help."""

from __future__ import annotations

import http.server
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine
from tests.dashboard.api.serving import key_of, served

from toolfault_dashboard import client, queries
from toolfault_dashboard.client import AddressError, Reader
from toolfault_dashboard.queries import Scope


@pytest.fixture(scope="module")
def address(history: Engine) -> Iterator[str]:
    """A served API: host and port."""
    with served(history) as found:
        yield found


@pytest.fixture(scope="module")
def dsn(history: Engine, address: str) -> Iterator[str]:
    """Where to read the generated project."""
    with key_of(history, "generated") as key:
        yield f"http://{key}@{address}"


@pytest.fixture
def reader(dsn: str) -> Iterator[Reader]:
    """A reader of the generated project."""
    with Reader(dsn) as found:
        yield found


@pytest.fixture
def seen(scope: Scope) -> Scope:
    """The scope of a read key."""
    return scope


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", marks=pytest.mark.long),
        "tool:search -code:timeout",
        pytest.param("since:10d", marks=pytest.mark.long),
        "tool:nothing",
    ],
)
def test_lists_are_read_to_their_end(
    reader: Reader, conn: Connection, seen: Scope, text: str
) -> None:
    """Small pages give every failure and chain once, in the order of the list."""
    asked = seen.narrowed(text)
    failures = reader.failures(text, page=37)
    assert [row["event_id"] for row in failures] == [
        row[0] for row in queries.iter_failures(conn, asked).rows
    ]
    assert failures.about["total"] == queries.count_failures(conn, asked)
    assert [row["chain_id"] for row in reader.chains(text, page=11)] == [
        row[0] for row in queries.iter_chains(conn, asked).rows
    ]


def test_pages_are_fetched_as_they_are_read() -> None:
    """Nothing is asked before the first row is wanted, and only as many pages as are read."""
    asked: list[str] = []

    def read(path: str) -> bytes:
        asked.append(path)
        rows = [{"event_id": str(number)} for number in range(10)]
        return json.dumps({"rows": rows, "total": 30, "next_cursor": f"c{len(asked)}"}).encode()

    with http.server.HTTPServer(("127.0.0.1", 0), _handler(read)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            host, port = server.server_address[:2]
            rows = iter(Reader(f"http://KEY@{host!s}:{port}").failures(page=10))
            before = len(asked)
            for _ in range(10):
                next(rows)
            first = len(asked)
            next(rows)
        finally:
            server.shutdown()
            thread.join()
    assert (before, first, len(asked)) == (0, 1, 2)
    assert "cursor=c1" in asked[1]


@pytest.mark.parametrize("by", ["code", "field"])
def test_frequencies(reader: Reader, conn: Connection, seen: Scope, by: queries.Dimension) -> None:
    """A table has the groups, counts and intervals of the query."""
    expected = queries.frequency(conn, seen, by)
    rows = list(reader.frequency(by))
    assert [(row["name"], row["failures"], row["rate"]["n"]) for row in rows] == [
        (row.name, row.failures, row.rate.n) for row in expected.rows
    ]
    assert reader.frequency(by).about["calls"] == expected.calls


def test_other_tables(reader: Reader, conn: Connection, seen: Scope) -> None:
    """Messages, fixes, changes, summary and trials are those of the queries."""
    groups = queries.message_efficacy(conn, seen)
    assert [row["message"] for row in reader.messages()] == [
        row.message for group in groups for row in group.rows
    ]
    assert [row["title"] for row in reader.fix_next()] == [
        row.title for row in queries.fix_next(conn, seen, limit=100).rows
    ]
    assert [row["label"] for row in reader.changes()] == [
        row.label for row in queries.all_changes(conn, seen)
    ]
    recorded = [row.label for row in queries.changes(conn, seen)]
    assert [row["label"] for row in reader.changes(detected=False)] == recorded
    assert reader.summary("tool:search")["calls"] == (
        queries.summary(conn, seen.narrowed("tool:search")).calls
    )
    assert reader.experiment("a")["name"] == "a"
    looks = queries.experiment_looks(conn, seen, "b")
    assert looks is not None
    assert [row["n_control"] for row in reader.looks("b")] == [
        look.n_control for look in looks.looks
    ]
    pytest.importorskip("pandas")
    assert {"always_low", "always_high"} <= set(reader.looks("b").to_frame().columns)


def test_comparisons(reader: Reader, conn: Connection, seen: Scope) -> None:
    """Both ways of naming cohorts give what the server compares."""
    cohorts = (queries.cohort_scope(seen, text) for text in ("until:10d", "since:10d"))
    expected = queries.comparison(conn, *cohorts)
    found = reader.compare("until:10d", "since:10d")
    assert found.verdict == expected.effect.verdict
    assert [row["difference"] for row in found] == pytest.approx(
        [metric.difference for metric in expected.effect.metrics]
    )
    assert [row["code"] for row in found.codes] == [row.code for row in expected.codes]
    change = next(iter(reader.changes()))
    assert reader.compare(change=change["event_id"]).answer["effect"]["before"]["label"] == "before"
    # One cohort alone is compared with everything.
    everything = reader.compare("", "since:10d").answer["effect"]["before"]["calls"]
    assert everything == queries.summary(conn, seen).calls
    with pytest.raises(ValueError, match="Name two cohorts"):
        reader.compare()
    with pytest.raises(ValueError, match="Name two cohorts"):
        reader.compare("a", change="b")


def test_frames(reader: Reader) -> None:
    """A frame has the rows with times as times, and a rate as value, ends and n."""
    pandas = pytest.importorskip("pandas")
    failures = reader.failures("-time:none").to_frame()
    assert len(failures) == reader.failures("-time:none").about["total"]
    assert str(failures["occurred_at"].dtype).startswith("datetime64")
    assert failures["occurred_at"].is_monotonic_decreasing
    codes = reader.frequency("code").to_frame()
    assert {"rate", "rate_low", "rate_high", "rate_n"} <= set(codes.columns)
    assert (codes["failures"] / codes["rate_n"] - codes["rate"]).abs().max() < 1e-12
    assert len(reader.compare("until:10d", "since:10d").to_frame()) >= 4
    assert isinstance(reader.failures("tool:nothing").to_frame(), pandas.DataFrame)


def test_functions_read_where_the_environment_says(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The functions need no reader: the address is an argument or in the environment."""
    monkeypatch.setenv("TOOLFAULT_READ_DSN", dsn)
    assert client.summary()["failures"] == client.failures().about["total"]
    assert next(iter(client.chains()))["chain_id"]
    assert list(client.frequency("tool", minimum_calls=10**6)) == []
    assert next(iter(client.messages()))["message"]
    assert client.experiment("a", dsn=dsn)["name"] == "a"
    assert next(iter(client.changes()))
    assert next(iter(client.fix_next()))
    assert client.compare("until:10d", "since:10d", dsn=dsn).verdict
    monkeypatch.delenv("TOOLFAULT_READ_DSN")
    with pytest.raises(AddressError, match="TOOLFAULT_READ_DSN"):
        client.failures()


def test_a_bad_query_says_where_and_what_was_meant(reader: Reader) -> None:
    """The error of the query language arrives with column and suggestion."""
    with pytest.raises(client.BadQueryError) as caught:
        list(reader.failures("tool:x tol:y"))
    assert (caught.value.column, caught.value.suggestion) == (8, "tool")
    assert "column 8" in str(caught.value)
    assert "'tool'" in str(caught.value)
    with pytest.raises(client.BadQueryError, match="by"):
        list(reader.frequency("colour"))
    with pytest.raises(client.NotFoundError, match="no trial"):
        reader.experiment("nothing/../x")


def test_a_wrong_key_says_which_is_needed(history: Engine, address: str) -> None:
    """Neither an unknown nor an ingest key reads, and no error shows a key."""
    with key_of(history, "generated", "ingest") as ingest:
        for key in ("tf_read_" + "x" * 43, ingest):
            with pytest.raises(client.KeyRefusedError, match="read key") as caught:
                Reader(f"http://{key}@{address}").summary()
            assert key not in str(caught.value) + repr(Reader(f"http://{key}@{address}"))
            assert caught.value.status in {401, 403}


@pytest.mark.parametrize("dsn", ["127.0.0.1:8321", "http://secret", "ftp://secret@host"])
def test_an_address_that_is_none_is_not_shown(dsn: str) -> None:
    """A malformed address is refused at once and not repeated: it may hold a key."""
    with pytest.raises(AddressError) as caught:
        Reader(dsn)
    assert "secret" not in str(caught.value)


@contextmanager
def _answering(*answers: bytes) -> Iterator[str]:
    """A server that gives each connection one of *answers* as it is, then closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def run() -> None:
            for answer in answers:
                connection, _ = listening.accept()
                with connection:
                    while b"\r\n\r\n" not in connection.recv(65536):
                        pass
                    connection.sendall(answer)

        thread = threading.Thread(target=run)
        thread.start()
        host, port = listening.getsockname()
        try:
            yield f"http://KEY@{host}:{port}"
        finally:
            thread.join()


def _http(body: bytes, *, length: int | None = None, status: str = "200 OK") -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n\r\n".encode() + body


def test_a_connection_that_the_server_closed_is_opened_again() -> None:
    """A kept connection closed meanwhile is no error to the reader."""
    with _answering(_http(b'{"calls": 1}'), _http(b'{"calls": 2}')) as dsn:
        reader = Reader(dsn)
        assert [reader.summary()["calls"], reader.summary()["calls"]] == [1, 2]
        reader.close()


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (_http(b'{"calls"', length=500), client.ServerGoneError, "cannot be read"),
        (b"SSH-2.0-OpenSSH_9\r\n", client.ServerGoneError, "cannot be read"),
        (_http(b"<html>sign in</html>"), client.ReadError, "not as a toolfault server"),
        (_http(b"oops", status="500 Oh"), client.ReadError, "status 500"),
        (
            _http(b'{"code": "too_slow", "detail": "Narrow it."}', status="503 Busy")
            .replace(b"\r\n\r\n", b"\r\nRetry-After: 60\r\n\r\n", 1),
            client.ServerBusyError,
            "Narrow it",
        ),
    ],
)  # fmt: skip
def test_answers_that_are_none(answer: bytes, error: type[Exception], says: str) -> None:
    """What breaks off, comes from something else or is an error is said to be."""
    with _answering(answer) as dsn, pytest.raises(error, match=says) as caught:
        Reader(dsn).summary()
    if isinstance(caught.value, client.ServerBusyError):
        assert caught.value.retry_after == 60.0


def test_a_server_that_is_gone(address: str) -> None:
    """Nobody there, and somebody who never answers, are both the server's absence."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        with pytest.raises(client.ServerGoneError, match=r"0\.05 seconds"):
            Reader(f"http://KEY@{host}:{port}", timeout=0.05).summary()
    with pytest.raises(client.ServerGoneError, match="is the server running"):
        Reader(f"http://KEY@{host}:{port}").summary()


def _handler(read: Callable[[str], bytes]) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = read(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    return Handler


def test_a_prefix_of_the_address_is_kept() -> None:
    """A server behind a path is asked below that path, and the query is escaped."""
    asked: list[str] = []

    def read(path: str) -> bytes:
        asked.append(path)
        return b"{}"

    with http.server.HTTPServer(("127.0.0.1", 0), _handler(read)) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        host, port = server.server_address[:2]
        Reader(f"http://KEY@{host!s}:{port}/tools/").summary('message:"a & b"')
        thread.join()
    assert asked == ["/tools/api/v1/summary?q=message%3A%22a+%26+b%22"]


EXAMPLE = re.compile(r"<!-- a test runs this block against a server -->\n```python\n(.*?)```", re.S)


def test_the_example_of_the_documentation_runs(dsn: str) -> None:
    """The block in docs/reading.md runs as a program of its own against a real server."""
    page = Path(__file__).parents[3] / "docs" / "reading.md"
    match = EXAMPLE.search(page.read_text(encoding="utf-8"))
    assert match is not None
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", match[1]],
        env={**os.environ, "TOOLFAULT_READ_DSN": dsn},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 5
