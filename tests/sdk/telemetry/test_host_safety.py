"""The SDK never raises into the host, never recurses, never grows without bound (S1, S3, S8)."""

from __future__ import annotations

import gc
import itertools
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sdk.telemetry.collector import Server
from tests.sdk.telemetry.conftest import (
    MakeClient,
    a_call,
    a_failure,
    conserved,
    few_or_many,
    python,
)

import toolfault
from toolfault.telemetry import Response
from toolfault.testing import MemoryTransport

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Trap:
    """An object whose every method raises."""

    def _trap(self, *args: object, **kwargs: object) -> Any:
        raise RuntimeError("trap")

    __repr__ = __str__ = __eq__ = __iter__ = __len__ = __bool__ = _trap
    __getattr__ = __contains__ = __getitem__ = __hash__ = __format__ = _trap


class Nasty(Exception):
    """An exception that cannot be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def _cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {"list": []}
    value["self"] = value
    value["list"].append(value)
    return value


hostile = st.one_of(
    st.builds(Trap),
    st.builds(_cyclic),
    st.floats(),
    st.binary(max_size=200),
    st.integers(min_value=-(10**400), max_value=10**400),
    st.text(st.characters(exclude_categories=()), max_size=200),
    st.just("x" * 1_000_000),
    st.just("\ud800\udfff\x00"),
    st.builds(object),
    st.builds(lambda: {Trap() if False else 1: Trap()}),
    st.sets(st.integers(), max_size=5),
)
payloads = st.recursive(
    hostile,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def _raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


errors = st.one_of(
    payloads.map(lambda value: _raised(ValueError(value))),
    st.just(Nasty()).map(_raised),
    st.builds(lambda a, b: _raised(KeyError(a, b)), payloads, payloads),
    st.just(KeyboardInterrupt()),
    st.just(RecursionError("x" * 100_000)),
)


@settings(
    max_examples=10_000 if os.environ.get("TOOLFAULT_LONG") else 20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(value=payloads, error=errors, name=st.text(max_size=300))
def test_no_payload_raises_into_the_host(value: Any, error: BaseException, name: str) -> None:
    """Whatever a host hands over at any entry point, nothing is raised and all is accounted for."""
    transport = MemoryTransport()
    client = toolfault.init(transport=transport, successes="all", agent="a", release="r")
    assert client is not None
    try:
        with toolfault.conversation(name, user=name, tags={name: name, "odd": value}):
            toolfault.capture_failure(error, tool=name or "t", arguments=value)
            toolfault.capture_failure(error, tool="t", arguments={"a": value}, call_id=name)
            toolfault.record_change(name, tool=name, kind=name)
            toolfault.set_tags(odd=value)
            toolfault.variant(name, (name, "b"))
            client.on_call(a_call(error=a_failure(), arguments={"a": value}))
        with toolfault.conversation(value, model=value, user=value, turn=value, variant=value):
            toolfault.record_change(value, tool=value, kind=value)
            toolfault.variant(value, (value, "b"))
            client.on_call(a_call(error=a_failure()))
        toolfault.flush(20)
    finally:
        toolfault.close()
    conserved(client)
    assert client.stats().pending == 0
    text = json.dumps(transport.batches, ensure_ascii=False)
    assert text.encode()
    assert "\0" not in text
    stats = client.stats()
    assert "sdk_error" not in stats.dropped
    assert "encode_error" not in stats.dropped


def test_results_of_tools_are_untouched(make_client: MakeClient) -> None:
    """A tool's value reaches the caller as the same object, with and without a client."""
    value = object()

    @toolfault.tool
    def give() -> object:
        return value

    assert give.call({}).value is value
    client = make_client(transport=MemoryTransport())
    assert give.call({}).value is value
    assert client.flush(20)
    assert client.stats().acked == 1


def test_captures_inside_captures_are_counted(make_client: MakeClient) -> None:
    """A log handler that captures what the SDK logs does not recurse."""
    transport = MemoryTransport()
    client = make_client(transport=transport, clock=lambda: 1 / 0)

    here = threading.get_ident()

    class Capturing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == here:  # the sender of a client before may still say something
                client.on_call(a_call())

    handler = Capturing()
    logger = logging.getLogger("toolfault")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        for _ in range(10):
            client.on_call(a_call())
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert client.stats().dropped == {"sdk_error": 10, "reentrant": 10}
    conserved(client)


@few_or_many(150, 50_000)
@pytest.mark.parametrize("successes", ["all", "folded"])
def test_finalizers_may_capture_at_any_line(
    successes: str, times: int, make_client: MakeClient
) -> None:
    """With the collector of garbage running all the time, captures in finalizers never hang."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes=successes)
    made = threading.local()
    finalized: list[int] = []

    class Finalized:
        def __init__(self) -> None:
            self.cycle = self

        def __del__(self) -> None:
            finalized.append(1)
            client.on_call(a_call("finalizer"))

    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for number in range(times):
            made.cycle = Finalized()
            client.on_call(a_call(error=a_failure() if number % 10 == 0 else None))
            if number % 200 == 0:
                client.flush(20)
    finally:
        gc.set_threshold(*thresholds)
    made.cycle = None
    gc.collect()
    client.flush(20)
    stats = client.stats()
    assert stats.captured == times + len(finalized)
    conserved(client)


def test_closing_in_the_middle_of_a_capture_is_left_for_later(make_client: MakeClient) -> None:
    """A handler of signals that closes while its thread captures neither waits nor loses."""
    transport = MemoryTransport()
    answers: list[object] = []
    client = make_client(transport=transport)

    def interrupt(*_: object) -> None:
        if client.is_capturing:
            answers.extend([toolfault.close(), client.close(), client.flush(20)])

    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: interrupt())
    try:
        with toolfault.conversation("c", ends=True):
            client.on_call(a_call(error=a_failure()))
    finally:
        sys.settrace(before)
    assert len(answers) > 30
    assert set(answers) == {False}
    assert toolfault.client() is client
    assert toolfault.flush(20)
    assert len(transport.events) == 2
    assert toolfault.close()
    conserved(client)


@contextmanager
def at(place: str, number: int, act: Callable[[], object]) -> Iterator[list[int]]:
    """Act, as a handler of signals does, before a line or a call of the SDK; yields how many."""
    passed = [0]

    def trace(frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if "toolfault/telemetry" not in code.co_filename or code.co_name == "<genexpr>":
            return None
        if event == place:
            passed[0] += 1
            if passed[0] == number:
                sys.settrace(None)
                act()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield passed
    finally:
        sys.settrace(before)


def test_closing_in_the_middle_of_a_flush_is_left_for_later(make_client: MakeClient) -> None:
    """Wherever a handler of signals interrupts a flush, closing loses nothing."""
    for number in itertools.count(1):
        client = make_client(transport=MemoryTransport())
        client.on_call(a_call(error=a_failure()))
        with at("line", number, lambda: toolfault.close(20)) as passed:
            toolfault.flush(20)
        toolfault.close(20)
        assert client.stats().dropped == {}, number
        if passed[0] < number:
            break
    assert number > 20


class Silent(MemoryTransport):
    """A collector that is never reached: what is captured waits."""

    def send(self, body: bytes, *, headers: Mapping[str, str], timeout: float) -> Response:
        """Fail."""
        raise ConnectionRefusedError


def interrupt() -> None:
    """What Ctrl-C does."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("successes", ["all", "folded"])
@pytest.mark.parametrize("fails", [True, False])
def test_an_interrupt_of_any_call_is_counted(
    fails: bool, successes: str, make_client: MakeClient
) -> None:
    """Ctrl-C in a capture or a flush reaches the host, and the conservation law holds after it.

    CPython runs handlers of signals as it enters a function.
    """
    client = make_client(transport=Silent(), successes=successes)
    client.on_call(a_call())
    for number in itertools.count(1):
        with suppress(KeyboardInterrupt), at("call", number, interrupt) as passed:
            client.on_call(a_call(error=a_failure() if fails else None))
            client.flush(0.0)
        conserved(client)
        if passed[0] < number:
            break
    assert number > 5
    assert client.stats().dropped.keys() <= {"interrupted"}
    captured = client.stats().captured
    client.on_call(a_call())
    assert client.stats().captured == captured + 1
    assert "reentrant" not in client.stats().dropped


class Deadly(MemoryTransport):
    """Ends the thread that is the first to send."""

    sender: threading.Thread | None = None

    def send(self, body: bytes, *, headers: Mapping[str, str], timeout: float) -> Response:
        """End the thread, or keep the batch."""
        if self.sender is None:
            self.sender = threading.current_thread()
            raise SystemExit
        return super().send(body, headers=headers, timeout=timeout)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_number_of_a_dead_sender_means_nothing(make_client: MakeClient) -> None:
    """A thread that gets the number of a sender thread that died is not taken for it."""
    transport = Deadly()
    client = make_client(transport=transport)
    client.on_call(a_call())
    while transport.sender is None:
        client.flush(0.05)
    transport.sender.join(20)
    assert not transport.sender.is_alive()
    numbers = []

    def work() -> None:
        numbers.append(threading.get_ident())
        client.on_call(a_call())

    for _ in range(20):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert client.flush(20)
    assert client.stats().dropped == {}
    assert client.stats().acked == 21
    conserved(client)


def test_calls_before_init_and_after_close_do_nothing(collector: Server) -> None:
    """Every function of the public face works without a client."""
    toolfault.close()
    for _ in range(2):
        before = toolfault.stats()
        assert toolfault.flush() is True
        assert toolfault.capture_failure(ValueError("x"), tool="t") is None
        assert toolfault.record_change("x") is None
        assert toolfault.stats() == before  # those of the client that was closed last
        toolfault.set_tags(a="b")
        with toolfault.conversation("c") as conversation:
            conversation.set_tags(a="b")
            assert toolfault.variant("trial") in ("control", "treatment")
        assert toolfault.close() is True
        toolfault.init(collector.dsn)
        toolfault.close()


@pytest.mark.parametrize(
    "setting",
    [
        {"dsn": "not a dsn"},
        {"dsn": "http://no-key-here"},
        {"dsn": 42},
        {"successes": "most"},
        {"sample_rate": 7},
        {"sample_rate": "often"},
        {"ignore": [1, 2]},
        {"before_send": "not callable"},
        {"spool_dir": "/proc/not/possible"},
        {"redact_keys": 3},
    ],
)
def test_wrong_settings_are_reported_not_raised(
    setting: dict[str, Any], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A setting that cannot work is named with what is expected; the host goes on."""
    toolfault.init(**{"dsn": "http://secret-key@127.0.0.1:1", **setting})
    toolfault.close(0.0)
    said = capsys.readouterr().err + caplog.text
    assert "expected" in said or "memory" in said
    assert "secret-key" not in said


MEMORY = """
import resource, sys
import toolfault
from toolfault.errors import Issue, ToolError
toolfault.init("http://KEY@127.0.0.1:1", successes="all")
def failure(text):
    return ToolError.from_issues("t", [Issue("f", "wrong_type", "no", received=text)])
def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
small, large = "x" * 1_000, "x" * 1_000_000
texts = [small] * 9 + [large]
errors = [failure(text) for text in texts]
errors[4] = ToolError.from_exception("t", ValueError(large))
for error, text in zip(errors, texts):
    toolfault.capture_failure(error, arguments={"a": text})
toolfault.flush(0.5)
start = rss()
total = int(sys.argv[1])
between = max(600, total // 1_000)  # a megabyte costs as much as many
for number in range(total):
    kind = number % between
    kind = kind if kind < 10 else 0
    toolfault.capture_failure(errors[kind], arguments={"a": texts[kind], "n": number})
stats = toolfault.stats()
known = stats.acked + stats.rejected + sum(stats.dropped.values()) + stats.pending
assert stats.captured == known == total + 10, stats
assert stats.dropped["queue_overflow"] == total + 10 - stats.pending
print((rss() - start) // 1024)
toolfault.close(0.0)
"""


@few_or_many(4_000, 1_000_000)
def test_a_dead_collector_costs_bounded_memory(times: int) -> None:
    """Captures of 1 KB to 1 MB against a dead collector: at most 32 MiB, counted exactly."""
    agent = python("-c", MEMORY, str(times))
    assert agent.returncode == 0, agent.stderr
    assert int(agent.stdout) < 32 * 1024


REFUSED = """
import tracemalloc
import toolfault
toolfault.init("http://KEY@127.0.0.1:1")
names = [f"a{number}_token" for number in range(50)]
exec("def f(" + ", ".join(f"{name}: int" for name in names) + "): ...")
refusing = toolfault.tool(f)
tracemalloc.start()
for number in range(300):
    refusing.call({name: f"{number} {name}".ljust(9_900) for name in names})
print(tracemalloc.get_traced_memory()[0] // 1024)
stats = toolfault.stats()
assert stats.captured == sum(stats.dropped.values()) + stats.pending == 300, stats
toolfault.close(0.0)
"""


def test_refused_values_that_are_never_shown_are_charged_for() -> None:
    """What an issue keeps to name its near misses counts among the bytes of the queue."""
    agent = python("-c", REFUSED)
    assert agent.returncode == 0, agent.stderr
    assert int(agent.stdout) < 32 * 1024
