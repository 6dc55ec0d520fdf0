"""The whole OpenAPI document against a running server: generated requests, right and wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.factories import change, conversation_end, counts, failure, success
from tests.live_server import LiveServer, live_server

CHECKS = (
    "not_a_server_error",
    "negative_data_rejection",
    "content_type_conformance",
    "response_schema_conformance",
    "status_code_conformance",
)


# A generated text may be so long that the request is refused for its size (431), not its content.
_SETTINGS = """\
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 415, 422, 428, 429, 431, "5xx"]
"""


@dataclass(frozen=True)
class _Target:
    """A server with some data, its document as a file, and keys of its project."""

    server: LiveServer
    document: Path
    keys: dict[str, str]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Target]:
    """A server with every kind of event."""
    folder = tmp_path_factory.mktemp("openapi")
    with live_server(folder) as server:
        keys = {
            kind: server.run("keys", "create", "--project", "demo", "--kind", kind).split()[-1]
            for kind in ("ingest", "read")
        }
        events = [failure(), success(), failure(code="timeout"), counts(), change()]
        answer = httpx2.post(
            f"{server.address}/v1/events",
            json={"events": [*events, conversation_end()]},
            headers={"Authorization": f"Bearer {keys['ingest']}"},
            timeout=60,
        )
        assert answer.json()["accepted"] == 6, answer.text
        document = httpx2.get(
            f"{server.address}/api/v1/openapi.json",
            headers={"Authorization": f"Bearer {keys['read']}"},
            timeout=60,
        ).json()
        (folder / "schemathesis.toml").write_text(_SETTINGS, encoding="utf-8")
        path = folder / "openapi.json"
        path.write_text(json.dumps(_flat(document)), encoding="utf-8")
        yield _Target(server, path, keys)


def _flat(document: dict[str, Any]) -> dict[str, Any]:
    """*document* with one base for all its paths, which is all that schemathesis knows."""
    base = document["servers"][0]["url"]
    paths = {}
    for path, operations in document["paths"].items():
        own = operations.pop("servers", None)
        paths[path if own else base + path] = operations
    return {**document, "paths": paths, "servers": [{"url": "/"}]}


def _explore(target: _Target, which: list[str], kind: str, *, examples: int = 0) -> None:
    """Send each operation of *which* every kind of right and wrong value; any finding fails.

    And so many *examples* drawn at random, each without a key too.
    """
    checks = (*CHECKS, "ignored_auth") if examples else CHECKS
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        str(target.document),
        f"--url={target.server.address}",
        f"--checks={','.join(checks)}",
        f"--phases=examples,coverage{',fuzzing' if examples else ''}",
        f"--max-examples={examples or 1}",
        "--seed=20261122",
        # How long an answer takes says most about the machine: the first comparison loads scipy.
        "--request-timeout=60",
        "--warnings=off",
        "--no-color",
        "--continue-on-failure",
        "--suppress-health-check=all",
        "--generation-database=none",
        *which,
        f"--header=Authorization: Bearer {target.keys[kind]}",
    ]
    done = subprocess.run(
        command,
        cwd=target.document.parent,
        env={**os.environ, "SCHEMATHESIS_HOOKS": ""},
        capture_output=True,
        text=True,
        timeout=3_000,
        check=False,
    )
    assert done.returncode == 0, _findings(done.stdout) + done.stderr[-2_000:]
    assert '"level":"error"' not in target.server.log.read_text(encoding="utf-8")


AREAS = [
    ("ingest opentelemetry health", "ingest"),
    ("lists figures comparisons exports", "read"),
]
# A list, a detail and a comparison; the long run explores all the others as well. What senders get
# wrong is sent in process too (``tests/collector/test_fuzz.py``).
READING = "list_failures get_chain compare"


def _tagged(tags: str) -> list[str]:
    return [f"--include-tag={tag}" for tag in tags.split()]


def _findings(output: str) -> str:
    """What schemathesis found; a request in it may be megabytes long."""
    return "\n".join(line[:300] for line in output.splitlines())[-12_000:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "kind"),
    [
        pytest.param(_tagged(AREAS[0][0]), "ingest", id="ingest", marks=pytest.mark.long),
        pytest.param([f"--include-operation-id={each}" for each in READING.split()], "read",
                     id="some-read"),
        pytest.param(_tagged(AREAS[1][0]), "read", id="read", marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_generated_requests(target: _Target, which: list[str], kind: str) -> None:
    """No request makes a server error, and wrong data is refused.

    That no answer needs no key is asked in process (``tests/dashboard/api/test_api.py``).
    """
    _explore(target, which, kind)


@pytest.mark.long
@pytest.mark.parametrize(("tags", "kind"), AREAS)
def test_many_generated_requests(target: _Target, tags: str, kind: str) -> None:
    """The same with 500 requests for each operation, and no answer needs no key."""
    _explore(target, _tagged(tags), kind, examples=500)


def test_every_operation_is_explored(target: _Target) -> None:
    """No operation is outside the areas, and those of the short run are there."""
    document = json.loads(target.document.read_text(encoding="utf-8"))
    wanted = {tag for tags, _ in AREAS for tag in tags.split()}

    names: set[str] = set()
    for operations in document["paths"].values():
        for operation in operations.values():
            assert set(operation["tags"]) & wanted, operation["operationId"]
            names.add(operation["operationId"])
    assert set(READING.split()) <= names
