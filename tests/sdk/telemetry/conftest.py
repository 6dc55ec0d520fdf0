"""Fixtures of the telemetry tests."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.telemetry.collector import Server, running_collector

from toolfault.errors import Issue, ToolError
from toolfault.telemetry import Client
from toolfault.telemetry._config import Config
from toolfault.telemetry._context import on_end
from toolfault.telemetry._dsn import parse_dsn
from toolfault.telemetry._limits import Limits
from toolfault.tools import CallRecord

QUICK = Limits(batch_seconds=0.01, backoff_base=0.01, backoff_cap=0.05, request_seconds=2.0)
SILENT = QUICK._replace(request_seconds=0.2, adopt_seconds=0.2)

MakeClient = Callable[..., Client]

HOST = "collector.test"  # a name that only the certificate, and a proxy, know


@pytest.fixture
def collector() -> Iterator[Server]:
    """An honest collector on a real socket."""
    with running_collector() as server:
        yield server


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for the collector, signed by itself, with its key in one file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt"]
    command += ["ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={HOST}"]
    command += ["-addext", f"subjectAltName=DNS:{HOST},IP:127.0.0.1"]
    command += ["-keyout", str(folder / "key"), "-out", str(folder / "certificate")]
    subprocess.run(command, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text((folder / "certificate").read_text() + (folder / "key").read_text())
    return both


@pytest.fixture
def secure(certificate: Path) -> Iterator[Server]:
    """A collector that speaks TLS."""
    with running_collector(certificate) as server:
        yield server


@pytest.fixture
def make_client() -> Iterator[MakeClient]:
    """Make clients that are closed with the test, and hold the conservation law then."""
    made: list[Client] = []

    def make(dsn: str | None = None, *, limits: Limits = QUICK, **settings: Any) -> Client:
        seams = {name: settings.pop(name) for name in _SEAMS if name in settings}
        config = Config(**{"successes": "all", **settings})
        client = Client(config, dsn=parse_dsn(dsn) if dsn else None, limits=limits, **seams)
        made.append(client)
        on_end(client.end_conversation)
        return client

    yield make
    on_end(lambda conversation: None)
    for client in made:
        client.close(0.2)
        conserved(client)


_SEAMS = ("transport", "clock", "new_id")


def conserved(client: Client) -> None:
    """Assert the conservation law: what was captured is accounted for, to one."""
    stats = client.stats()
    known = stats.acked + stats.rejected + sum(stats.dropped.values()) + stats.pending
    assert stats.captured == known, stats


def a_call(tool: str = "http_request", **members: Any) -> CallRecord:
    """A finished call that succeeded, unless ``error`` is given."""
    given = {"started_at": 0.0, "duration_ms": 1.5, "arguments": {"port": 80}, **members}
    return CallRecord(tool, tool, success=given.get("error") is None, **given)


def a_failure(tool: str = "http_request", **members: Any) -> ToolError:
    """A failure with one issue."""
    issue = Issue(
        "port",
        "wrong_type",
        "Input should be a valid integer",
        expected="integer",
        received="'eighty'",
        received_type="str",
        type="int_parsing",
    )
    return ToolError.from_issues(tool, [issue]).with_(**members)


def few_or_many(few: int, many: int) -> pytest.MarkDecorator:
    """Give a heavy test its ``times``: ``few``, and ``many`` in ``make test-long``."""
    return pytest.mark.parametrize("times", [few, pytest.param(many, marks=pytest.mark.long)])


def segments(folder: Path) -> list[Path]:
    """Segments on disk."""
    return sorted(folder.rglob("*.seg"))
