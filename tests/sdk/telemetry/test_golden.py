"""The wire examples: what this SDK sends is what ``tests/contract/v1/sdk_*.json`` have frozen.

``TOOLFAULT_WRITE_GOLDEN=1`` writes them. The collector's tests accept every file of that folder;
a change here that they refuse breaks the contract between the two distributions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.telemetry.conftest import QUICK, Clock, MakeClient

import toolfault
from toolfault.errors import Issue, ToolError
from toolfault.telemetry import Client
from toolfault.testing import MemoryTransport
from toolfault.tools import CallRecord, Repair

GOLDEN = Path(__file__).parents[2] / "contract" / "v1"
BEGIN = 1_795_000_000.0  # 2026-11-18T11:06:40Z


class Ids:
    """Ids that count, in the form of a UUID version 7."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, unix_seconds: float) -> str:
        """Make the next one."""
        self.made += 1
        text = f"{int(unix_seconds * 1000):012x}7000800000000000{self.made:04x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def call(tool: str, arguments: dict | None, error: ToolError | None = None, **more: Any):
    """A finished call."""
    named, mark = more.pop("phantom_arguments", ()), more.pop("idempotent", None)
    counted_by = more.pop("counted_by", None)
    made = CallRecord(
        tool,
        more.pop("tool_requested", tool),
        success=error is None,
        started_at=0.0,
        duration_ms=more.pop("duration_ms", 12.5),
        arguments=arguments,
        error=error,
        validation_mode=more.pop("validation_mode", "comprehensive"),
        schema_hash="3f5a1c0d9b7e2468",
        **more,
    )
    made.phantom_arguments = named
    made.idempotent = mark
    if counted_by is not None:
        made.framework, made.side, made.counted_by = "mcp", "server", counted_by
    return made


def rejected() -> ToolError:
    """Three issues at once."""
    return ToolError.from_issues(
        "http_request",
        [
            Issue("url", "missing_field", "Missing required parameter", type="missing"),
            Issue(
                "port",
                "wrong_type",
                "Input should be a valid integer",
                expected="integer",
                received="'80'",
                received_type="str",
                type="int_type",
                near_miss=["int_from_string"],
                stand_in="str, 2 characters",
            ),
            Issue(
                "headers.0.value",
                "wrong_type",
                "Input should be a valid string",
                expected="string",
                received="7",
                received_type="int",
                type="string_type",
                loc=("headers", 0, "value"),
            ),
        ],
    ).with_(kind="validation", phase="validation", retry_hint="Send url and an integer port.")


def crashed() -> ToolError:
    """An unexpected exception inside a handler, with its cause."""
    source = (
        "def connect(host):\n    raise OSError('no route to host')\n\n"
        "def handler(host):\n    try:\n        connect(host)\n"
        "    except OSError as error:\n        raise RuntimeError('fetch failed') from error\n"
    )
    names: dict[str, Any] = {}
    exec(compile(source, "agent/tools.py", "exec"), names)
    try:
        names["handler"]("example.com")
    except RuntimeError as error:
        # The frame of this file would put the path of the checkout into the example.
        caught = error.with_traceback(error.__traceback__.tb_next)  # type: ignore[union-attr]
    return ToolError.from_exception("http_request", caught).with_(kind="exec", phase="handler")


def recovered_chain(client: Client) -> None:
    """Rejected, timed out, and then a success with a repaired argument."""
    with toolfault.conversation(
        "conv-42", model="claude-x", user="u-7", tags={"team": "travel"}, ends=True
    ) as conversation:
        conversation.turn("msg_1")
        bad = {"port": "80", "headers": [{"value": 7}]}
        client.on_call(call("http_request", bad, rejected(), call_id="call_1"))
        conversation.turn("msg_2")
        slow = ToolError("http_request", "no answer", "timeout", kind="exec", phase="handler")
        good = {"url": "https://example.com", "port": "80"}
        client.on_call(call("http_request", good, slow, call_id="call_2", duration_ms=100.25))
        conversation.turn("msg_3")
        repaired = (Repair("port", "str", "int"),)
        client.on_call(call("http_request", good, call_id="call_3", coercions=repaired))


def unavailable(client: Client) -> None:
    """A tool that a policy denies, called through an alias."""
    error = ToolError.unavailable("shell", "policy_denied", tool_requested="bash")
    with toolfault.conversation("conv-43", variant="before", ends=True):
        client.on_call(call("shell", None, error, tool_requested="bash", validation_mode="none"))


def internal(client: Client) -> None:
    """A handler that crashed."""
    client.on_call(call("http_request", {"url": "https://example.com"}, crashed()))


def captured(client: Client) -> None:
    """An error of an agent that keeps its own loop."""
    error = ToolError("search", "no such index: flights", "not_found", field="index")
    with toolfault.conversation("conv-44", ends=True):
        client.capture_failure(error, arguments={"index": "flights"}, call_id="call_9")


def marked(client: Client) -> None:
    """A change of one tool and a release."""
    client.record_change("coerce booleans", tool="http_request", kind="manual")
    client.record_change("1.5.0", tool=None, kind="release")


def folded(client: Client) -> None:
    """Successes of two conversations, one of them with a failure."""
    for name, fails in (("conv-45", False), ("conv-46", True)):
        with toolfault.conversation(name, model="claude-x", variant="bools=treatment", ends=True):
            for number in range(4):
                repairs = (Repair("port", "str", "int"),) if number == 1 else ()
                client.on_call(
                    call("http_request", {"n": number}, coercions=repairs, duration_ms=3.0 + number)
                )
            client.on_call(call("search", {"q": "x"}, duration_ms=0.75))
            if fails:
                client.on_call(call("search", {"q": 1}, crashed().with_(tool="search")))
                client.on_call(call("http_request", {"n": 9}))


def dropped(client: Client) -> None:
    """A batch that tells of losses."""
    ignored = ToolError("noisy", "as always", "not_found")
    for _ in range(3):
        client.on_call(call("noisy", {}, ignored))
    client.on_call(call("http_request", {}))


def withheld(client: Client) -> None:
    """What is sent of values by default: their type and size."""
    unreadable = ToolError(
        "http_request",
        "failed to parse tool arguments: Expecting value: line 1 column 10 (char 9)",
        "malformed_json",
        snippet='{"port": ',
        kind="deserialize",
        phase="parse",
    )
    with toolfault.conversation("conv-47", ends=True):
        client.on_call(call("http_request", {"port": "80", "headers": [{"value": 7}]}, rejected()))
        client.on_call(call("http_request", None, unreadable))


def phantoms(client: Client) -> None:
    """Arguments that the tool does not have: in successes that are folded, and in a failure."""
    with toolfault.conversation("conv-48", model="claude-x", ends=True):
        for number in range(3):
            named = ("pet", "who.*.title") if number else ("pet",)
            client.on_call(call("book", {"day": "x", "pet": number}, phantom_arguments=named))
        error, sent = crashed().with_(tool="book"), {"day": "x", "pet": 3}
        client.on_call(call("book", sent, error, phantom_arguments=("pet",)))


def repeats(client: Client) -> None:
    """The same call again after it succeeded: counted, and beside an open chain sent whole."""
    with toolfault.conversation("conv-49", model="claude-x", ends=True):
        for number in (1, 1, 1, 2):
            client.on_call(call("pay", {"amount": number}, idempotent=False))
        client.on_call(call("pay", {"amount": 3}, crashed().with_(tool="pay"), idempotent=False))
        client.on_call(call("pay", {"amount": 1}, idempotent=False))
        client.on_call(call("look", {"amount": 1}, idempotent=True))


def of_clients(client: Client) -> None:
    """Calls of a server of tools that its client counts, and one of which no client says so."""
    with toolfault.conversation("conv-50", ends=True):
        for number, counted_by in enumerate(("5bfc23f3a2d9b8aa", "5bfc23f3a2d9b8aa", None)):
            client.on_call(call("book", {"day": number}, counted_by=counted_by))
        error = crashed().with_(tool="book")
        client.on_call(call("book", {"day": 3}, error, counted_by="5bfc23f3a2d9b8aa"))


SCENES: dict[str, tuple[str, Callable[[Client], None]]] = {
    "recovered_chain": ("all", recovered_chain),
    "unavailable": ("all", unavailable),
    "internal_error": ("all", internal),
    "tool_error": ("all", captured),
    "change": ("all", marked),
    "folded": ("folded", folded),
    "dropped": ("all", dropped),
    "values_withheld": ("all", withheld),
    "phantom_arguments": ("folded", phantoms),
    "repeated_execution": ("folded", repeats),
    "counted_by": ("folded", of_clients),
}


@pytest.mark.parametrize("scene", SCENES)
def test_wire_is_as_frozen(scene: str, make_client: MakeClient) -> None:
    """What a scene sends equals its frozen example, byte for byte of its JSON."""
    successes, act = SCENES[scene]
    transport = MemoryTransport()
    client = make_client(
        "http://KEY@127.0.0.1:1",
        transport=transport,
        limits=QUICK.with_(batch_seconds=60.0),
        clock=Clock(BEGIN, step=0.25),
        new_id=Ids(),
        agent="travel-bot",
        environment="prod",
        release="1.4.0",
        successes=successes,
        ignore=("noisy",),
        capture_values=scene != "values_withheld",
    )
    act(client)
    assert client.flush(20)
    (request,) = transport.batches
    request["sent_at"] = "2026-11-18T16:27:00.000000Z"
    request["sdk"]["runtime"] = "CPython 3.11.0"
    answer = {"accepted": len(request["events"]), "duplicate": 0, "rejected": []}
    text = json.dumps({"request": request, "answer": answer}, indent=2, ensure_ascii=False) + "\n"
    path = GOLDEN / f"sdk_{scene}.json"
    if os.environ.get("TOOLFAULT_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text("utf-8")


def test_every_frozen_example_is_still_sent() -> None:
    """No example of an earlier release is forgotten."""
    assert {path.stem for path in GOLDEN.glob("sdk_*.json")} == {f"sdk_{name}" for name in SCENES}
