"""The demo as a person starts it: a server of its own, and a fleet of agents that report to it.

The agents are a package of their own (``toolfault_demo``), of which the server knows how to start
it and nothing else: they are told an address and a key, as any agent is.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from rich.console import Console
from sqlalchemy import Engine, make_url

from toolfault_collector import clock, log
from toolfault_collector.admin.keys import create_key
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.database.schema import prepare
from toolfault_dashboard.access.signin import create_link, link_command, own_name

__all__ = ["PROJECT", "FleetError", "ServerError", "serve_demo"]

PROJECT: Final = "demo"
_READY_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0
_SERVE: Final = "from toolfault_dashboard.cli import main; main()"
# -P: no module of the folder that the demo is started in, whatever its name, is taken for another.
_FLEET: Final = (sys.executable, "-P", "-m", "toolfault_demo")


class ServerError(RuntimeError):
    """The demo's server did not come up."""


class FleetError(RuntimeError):
    """The demo's agents could not tell their history, or ended unasked."""


def serve_demo(
    *,
    host: str,
    port: int,
    database_url: str | None,
    seed: int,
    days: int,
    open_browser: bool,
) -> int:
    """Serve a demo until Ctrl-C and say with an exit status how it went.

    Args:
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        database_url: Where to keep the data; a fresh SQLite file, removed at the end, if None.
        seed: Same seed and same moment of start, same agents and same calls.
        days: Days of history to send before the live part, 1 to 28 (the collector takes client
            times from 30 days back).
        open_browser: Open the sign-in link in the default browser.

    Returns:
        0 after Ctrl-C, 1 when the server or the agents could not go on.
    """
    console = Console(stderr=False, highlight=False, soft_wrap=True)
    log.configure("warning")
    for ending in (signal.SIGINT, signal.SIGTERM):
        # Also where the caller ignores SIGINT, as shells do for what they start in the background.
        signal.signal(ending, signal.default_int_handler)
    port = port or _free_port(host)
    hurry = threading.Event()  # whether Ctrl-C was pressed again
    with tempfile.TemporaryDirectory(prefix="toolfault-demo-") as folder:
        url = database_url or f"sqlite:///{Path(folder) / 'demo.db'}"
        engine = open_engine(url)
        key = _prepare(engine)
        try:
            output = Path(folder) / "server.log"
            with _server(url, host=host, port=port, output=output, hurry=hurry) as address:
                link = f"{address}/sign-in?token={create_link(engine, now=clock.now_us())}"
                _welcome(console, link, address=address, database_url=url)
                if open_browser:
                    webbrowser.open(link)
                dsn = address.replace("http://", f"http://{key}@")
                with _fleet(dsn, seed=seed, days=days, hurry=hurry) as fleet:
                    _wait_for_history(console, fleet, days=days)
                    _wait_until_it_ends(fleet)
        except KeyboardInterrupt:
            # What is left takes no time, and leaves a folder behind if it is cut short.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            console.print("\nThe demo is over.")
            return 0
        except (ServerError, FleetError) as error:
            console.print(f"{error}", style="red", markup=False)
            return 1
        finally:
            engine.dispose()


def _free_port(host: str) -> int:
    with socket.create_server((host, 0)) as probe:
        return int(probe.getsockname()[1])


def _prepare(engine: Engine) -> str:
    """Make schema, project and ingest key; return the key."""
    prepare(engine, migrate=True)
    with write_transaction(engine) as conn:
        project = ensure_project(conn, PROJECT)
        return create_key(conn, project, "ingest", label="demo agents")


def _welcome(console: Console, link: str, *, address: str, database_url: str) -> None:
    console.print("\ntoolfault demo: simulated agents, everything else is real.\n")
    console.print(f"  Sign in here (works once):  [link={link}]{link}[/link]\n")
    shown = make_url(database_url).render_as_string(hide_password=True)
    command = link_command(address, program=own_name())
    again = f"{command} --database-url {shown}"
    console.print(f"  Another link:  {again}\n", markup=False, soft_wrap=True)


@contextmanager
def _fleet(
    dsn: str, *, seed: int, days: int, hurry: threading.Event
) -> Iterator[subprocess.Popen[str]]:
    """Run the agents as a process of their own while the block lasts."""
    with subprocess.Popen(  # noqa: S603 - our own agents
        [*_FLEET, "--seed", str(seed), "--days", str(days)],
        env={**os.environ, "TOOLFAULT_DSN": dsn},
        # Its end says stop, also when this process is killed.
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Ctrl-C is for the demo, which then stops its agents in order.
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_STOP_SECONDS)
            except KeyboardInterrupt:
                # Pressed again while they finish: then they are ended at once.
                hurry.set()
                process.terminate()
                process.wait()
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_for_history(console: Console, fleet: subprocess.Popen[str], *, days: int) -> None:
    with console.status(f"Sending {days} days of history ..."):
        assert fleet.stdout is not None
        said = fleet.stdout.readline()
    if not said:
        _wait_until_it_ends(fleet)
    told: dict[str, Any] = json.loads(said)
    if "error" in told:
        raise FleetError(told["error"])
    console.print(
        f"  {told['calls']:,} calls, {told['failures']:,} of them failed, in "
        f"{told['conversations']:,} conversations of {days} days, sent in "
        f"{told['seconds']:.0f} seconds.\n"
        "  The agents go on as often as in these days: the pages grow until you press Ctrl-C.\n"
    )


def _wait_until_it_ends(fleet: subprocess.Popen[str]) -> NoReturn:
    raise FleetError(f"The agents have ended unasked, with exit status {fleet.wait()}.")


@contextmanager
def _server(
    url: str, *, host: str, port: int, output: Path, hurry: threading.Event
) -> Iterator[str]:
    """Run ``toolfault serve`` as a process of its own while the block lasts; yield its address."""
    address = f"http://{host}:{port}"
    command = [sys.executable, "-c", _SERVE, "serve", "--host", host, "--port", str(port)]
    with output.open("wb") as log_file:
        process = subprocess.Popen(  # noqa: S603 - our own server
            [*command, "--database-url", url],
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for the demo, which then stops its server in order.
            start_new_session=True,
        )
        try:
            _wait_until_ready(address, process, output)
            yield address
        finally:
            process.terminate()
            try:
                process.wait(0 if hurry.is_set() else _STOP_SECONDS)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                # It is killed at once for who presses Ctrl-C again: what it took in is committed.
                process.kill()
                process.wait()


def _wait_until_ready(address: str, process: subprocess.Popen[bytes], output: Path) -> None:
    until = time.monotonic() + _READY_SECONDS
    while time.monotonic() < until:
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            # Whoever has taken the port may answer as well: our own server says that it listens.
            if b"toolfault listens on" in output.read_bytes() and _answers(f"{address}/readyz"):
                return
        else:
            break
    said = output.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]
    raise ServerError("\n".join([f"The server at {address} did not start. It said:", *said]))


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - our own server
            return True
    except (OSError, urllib.error.URLError):
        return False
