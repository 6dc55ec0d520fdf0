"""Reading in another process: the same result whoever reads, and only speed depends on it."""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from tests.collector.mutations import bodies
from tests.factories import change, conversation_end, counts, failure, success, tool_error
from tests.running import RunningCollector

from toolfault_collector.clock import now_us
from toolfault_collector.decode import BadBatch
from toolfault_collector.reader import LEAST_BYTES, MOST_BYTES, Reader, Reading
from toolfault_collector.reading import Request, answer, read_batch, understand
from toolfault_collector.submission import Submission


@pytest.fixture
def server(sqlite_url: str, tmp_path: Path) -> Iterator[RunningCollector]:
    """A collector process that has large batches read beside it."""
    with RunningCollector(sqlite_url, folder=tmp_path, TOOLFAULT_READER="true") as running:
        yield running


CONTRACT = Path(__file__).resolve().parent.parent / "contract" / "v1"


def _request(body: bytes) -> Request:
    return Request(body, 1, now_us(), 1_000, 256 * 1_024)


def _large(events: int = 200) -> Request:
    body = json.dumps({"events": [failure() for _ in range(events)]}).encode()
    assert len(body) > LEAST_BYTES
    return _request(body)


def _said(result: Submission | BadBatch) -> object:
    """Everything that a batch or its refusal says, comparable."""
    if isinstance(result, BadBatch):
        return result.status, result.code, result.pointer
    kept = [each.body for each in result.rejected]
    return result, [type(event) for event in result.events], kept


def _here(request: Request) -> Submission | BadBatch:
    try:
        return read_batch(request)
    except BadBatch as bad:
        return bad


def _there(request: Request) -> Submission | BadBatch:
    try:
        return understand(answer(msgspec.msgpack.encode(request)))
    except BadBatch as bad:
        return bad


def _assert_alike(body: bytes) -> None:
    request = _request(body)
    assert _said(_here(request)) == _said(_there(request))


@contextmanager
def _reader(**settings: float) -> Iterator[Reader]:
    reader = Reader(enabled=True, **settings)
    try:
        yield reader
    finally:
        reader.stop()


def _begun(reader: Reader, request: Request) -> Reading:
    """Have *request* read by the other process, and wait until it has been asked."""
    reading = reader.begin(request)
    assert reading is not None
    while not reading.running() and not reading.done():
        wait([reading], timeout=0.01)
    return reading


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def _has_ended(process: int) -> bool:
    """Whether the process behind the file *process* ends within a while."""
    ended, _, _ = select.select([process], [], [], 20)
    return bool(ended)


@pytest.mark.parametrize("file", sorted(path.name for path in CONTRACT.glob("*.json")))
def test_frozen_batches_are_read_alike(file: str) -> None:
    """Every batch of the contract says the same wherever it is read."""
    golden = json.loads((CONTRACT / file).read_text())
    for batch in golden if isinstance(golden, list) else [golden]:
        for body in (batch, batch.get("request"), batch.get("batch")):
            if isinstance(body, dict):
                _assert_alike(json.dumps(body).encode())


def test_every_type_and_every_oddity_is_read_alike() -> None:
    """All types of event, secrets, unknown members and refused events say the same."""
    token = {"code": "wrong_type", "renderings": {"llm": "password: hunter22, wrong"}}
    events = [
        *(make() for make in (change, counts, failure, success, tool_error)),
        conversation_end(),
        failure(error=token),
        failure(tags={"": "é\u202e"}, unknown=[-0.0, {"deep": [None, 2**62]}]),
        {"event_id": "no id", "type": "tool_call"},
        {"type": "unheard_of"},
    ]
    _assert_alike(json.dumps({"resource": {"agent": "shop"}, "events": events}).encode())


def test_text_that_outgrows_its_limit_is_read_here() -> None:
    """A text that is too long once a secret is taken out of it is stored as if read here."""
    grown = {"code": "wrong_type", "renderings": {"llm": "password: hunter22 " + "x" * 8_170}}
    request = _request(json.dumps({"events": [failure(error=grown) for _ in range(3)]}).encode())
    with _reader() as reader:
        submission = reader.finish(request, _begun(reader, request))

        assert _said(submission) == _said(read_batch(request))
        assert "flags=['redacted']" in repr(submission.events[0])
        assert reader.finish(request, _begun(reader, request)).size == 3


def test_damaged_batches_are_read_alike() -> None:
    """What is left of a batch after any damage, or why nothing is, is the same."""
    for body, headers in bodies(7, 400):
        if "Content-Encoding" not in headers:
            _assert_alike(body)


def test_large_batches_are_read_by_the_other_process() -> None:
    """A large batch is read elsewhere, with the same result; a small one is not handed over."""
    request = _large()
    with _reader() as reader:
        reading = reader.begin(request)
        assert reading is not None
        reading.result(60)

        assert reader.pid not in (None, os.getpid())
        assert _said(reader.finish(request, reading)) == _said(read_batch(request))
        assert reader.begin(_request(b'{"events":[]}')) is None


def test_what_is_being_read_is_bounded() -> None:
    """Beyond its share of memory nothing is handed over, until the writer has taken some."""
    request = _request(b" " * (MOST_BYTES // 2))
    with _reader() as reader:
        taken = [reader.begin(request) for _ in range(3)]
        assert [reading is None for reading in taken] == [False, False, True]
        assert taken[0] is not None
        with pytest.raises(BadBatch):
            reader.finish(request, taken[0])
        assert reader.begin(request) is not None


def test_a_refused_batch_is_refused_there_too() -> None:
    """What is no batch is refused with the same words, and the process goes on."""
    with _reader() as reader:
        for _ in range(2):
            request = _request(b"[" * LEAST_BYTES)
            reading = reader.begin(request)
            assert reading is not None
            reading.result(60)
            with pytest.raises(BadBatch) as refused:
                reader.finish(request, reading)
            assert refused.value.code == "not_json"


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGSTOP])
def test_a_reader_that_dies_or_hangs_costs_nothing(by: signal.Signals) -> None:
    """Its batch is read here, and a later one by a new process."""
    with _reader(patience_seconds=1, rest_seconds=0) as reader:
        first = reader.begin(_large())
        assert first is not None
        first.result(60)
        before = reader.pid
        assert before is not None
        os.kill(before, by)

        request = _large()
        reading = _begun(reader, request)
        assert _said(reader.finish(request, reading)) == _said(read_batch(request))

        while _begun(reader, request).exception(60) is not None:
            """That one was begun before the loss was seen."""
        assert reader.pid not in (None, before)


def test_a_killed_collector_leaves_no_process_behind(server: RunningCollector) -> None:
    """The other process ends with the collector, however that ends."""
    assert server.post(*(failure() for _ in range(200))).status_code == 200
    (child,) = _children(server.pid)
    process = os.pidfd_open(child)

    server.kill()

    assert _has_ended(process)
    os.close(process)


def test_readers_killed_under_load_lose_nothing(server: RunningCollector) -> None:
    """While its readers are killed a collector answers every batch, and stops in time."""
    batches = [[failure() for _ in range(100)] for _ in range(12)]
    with ThreadPoolExecutor(4) as senders:
        answers = [senders.submit(server.post, *batch) for batch in batches]
        for answer_to in answers:
            for child in _children(server.pid):
                with suppress(ProcessLookupError):  # it was killed before, and is gone by now
                    os.kill(child, signal.SIGKILL)
            assert answer_to.result(60).json()["accepted"] == 100
    assert server.terminate() == 0
    assert "Traceback" not in server.output()
