"""The demo as a person starts it: a server of its own, a history, and agents at work."""

from __future__ import annotations

import asyncio
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
from typing import Final

from rich.console import Console
from sqlalchemy import Engine, make_url

from toolfault_collector import clock, log
from toolfault_collector.admin.keys import create_key
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.database.schema import prepare
from toolfault_dashboard.access.signin import create_link, link_command, own_name
from toolfault_dashboard.demo.history import DeliveryError, live_through
from toolfault_dashboard.demo.live import agents_at_work, quiet_tools

__all__ = ["PROJECT", "ServerError", "serve_demo"]

PROJECT: Final = "demo"
_READY_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0
_SERVE: Final = "from toolfault_dashboard.cli import main; main()"


class ServerError(RuntimeError):
    """The demo's server did not come up."""


def serve_demo(
    *,
    host: str,
    port: int,
    database_url: str | None,
    seed: int,
    days: int,
    open_browser: bool,
) -> int:
    """Run the demo until Ctrl-C; see ``run_demo``."""
    console = Console(stderr=False, highlight=False, soft_wrap=True)
    quiet_tools()
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
                _tell_history(console, dsn, seed=seed, days=days)
                with agents_at_work(dsn=dsn, seed=seed, hurry=hurry):
                    threading.Event().wait()
        except KeyboardInterrupt:
            # What is left takes no time, and leaves a folder behind if it is cut short.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            console.print("\nThe demo is over.")
            return 0
        except (ServerError, DeliveryError) as error:
            console.print(f"{error}", style="red", markup=False)
            return 1
        finally:
            engine.dispose()
    return 0


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


def _tell_history(console: Console, dsn: str, *, seed: int, days: int) -> None:
    started = time.monotonic()
    with console.status(f"Sending {days} days of history ..."):
        ledger = asyncio.run(live_through(dsn=dsn, seed=seed, until=time.time(), days=days))
    console.print(
        f"  {ledger.calls.total():,} calls, {ledger.failures.total():,} of them failed, in "
        f"{ledger.conversations:,} conversations of {days} days, sent in "
        f"{time.monotonic() - started:.0f} seconds.\n"
        "  The agents go on as often as in these days: the pages grow until you press Ctrl-C.\n"
    )


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
