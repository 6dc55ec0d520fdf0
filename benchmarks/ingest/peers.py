"""The same load on Phoenix, MLflow and Bugsink, and on toolfault beside them, over
`/v1/events` and over OTLP.

    python benchmarks/ingest/peers.py [--seconds 20] [--environments DIR] [--only NAME...]

Each peer is installed by pip into an environment of its own (minutes, and a gigabyte; kept in
--environments for the next time) and runs as its documentation says, on SQLite. What it is sent is
the nearest it has to a failed tool call: Phoenix and MLflow one OTLP span with an exception event,
100 per request; Bugsink one Sentry event per request, since its protocol has no batches. A rate
counts the rows in the peer's own database, from the first request until the last accepted event is
there or --seconds more have passed: Phoenix answers before it writes.

A peer that cannot be installed or started is skipped, with the reason.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import subprocess
import sys
import time
import uuid
import venv
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from databases import count_rows, sqlite_database  # noqa: E402
from events import bodies, failures  # noqa: E402
from load import request, run  # noqa: E402
from processes import Server, collector, free_port, new_key  # noqa: E402

BATCH = 100
CONNECTIONS = 8


@dataclass
class Peer:
    """A product under load: how it is started, what it is sent, how its rows are counted."""

    name: str
    server: Server
    requests: Callable[[int], Iterable[bytes]]
    count: Callable[[], int]
    batch: int = BATCH
    prepared: int = field(default=100)  # requests made before the clock starts


def measure(peer: Peer, seconds: float) -> dict[str, object]:
    """Load *peer* for so many seconds, wait until it has stored, and return what came of it."""
    with peer.server as server:
        requests = list(peer.requests(peer.prepared))
        before, cpu, began = peer.count(), server.cpu_seconds(), time.monotonic()
        result = run([server.port], requests, connections=CONNECTIONS, at_most_seconds=seconds)
        answered = sum(count for status, count in result.statuses.items() if status < 300)
        stored = settled(peer.count, answered * peer.batch + before, seconds) - before
        took = time.monotonic() - began
        return {
            "benchmark": "ingest peers",
            "peer": peer.name,
            "batch": peer.batch,
            "connections": CONNECTIONS,
            "stored_per_second": round(stored / took, 1),
            "stored": stored,
            "acknowledged": answered * peer.batch,
            "statuses": result.statuses,
            "p50_ms": round(result.percentile(0.5), 1),
            "p99_ms": round(result.percentile(0.99), 1),
            "server_cpu_us_per_event": round((server.cpu_seconds() - cpu) / max(stored, 1) * 1e6),
            "peak_mib": round(server.peak_mib()),
        }


def settled(count: Callable[[], int], wanted: int, seconds: float) -> int:
    """Wait until *count* returns *wanted* or so many seconds are over; return what it returned."""
    until = time.monotonic() + seconds
    while (stored := count()) < wanted and time.monotonic() < until:
        time.sleep(0.2)
    return stored


# -- the products ---------------------------------------------------------------------------------


def toolfault(folder: Path, _: Path) -> Peer:
    """Return toolfault on a new SQLite file."""
    url = f"sqlite:///{folder}/toolfault.db"

    def requests(count: int) -> Iterable[bytes]:
        bearer = {"Authorization": f"Bearer {new_key(url)}"}
        events = failures(count * BATCH, generator=random.Random(1))
        return (request(body, headers=bearer) for body in bodies(events, batch=BATCH))

    server = collector(url, folder)
    return Peer("toolfault", server, requests, lambda: count_rows(url)["tool_call"], prepared=1_500)


def toolfault_otlp(folder: Path, _: Path) -> Peer:
    """Return toolfault on a new SQLite file, sent the spans that its peers are."""
    url = f"sqlite:///{folder}/toolfault.db"

    def requests(count: int) -> Iterable[bytes]:
        return _spans(Path(sys.prefix), count, {"Authorization": f"Bearer {new_key(url)}"})

    server = collector(url, folder)
    calls = lambda: count_rows(url)["tool_call"]  # noqa: E731
    return Peer("toolfault-otlp", server, requests, calls, prepared=400)


def phoenix(folder: Path, environment: Path) -> Peer:
    """Return Phoenix with its own SQLite file in *folder*."""
    port = free_port()
    settings = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    server = Server(
        [str(environment / "bin" / "phoenix"), "serve"],
        port=port,
        ready="/healthz",
        folder=folder,
        environment=settings,
    )
    return Peer(
        "phoenix",
        server,
        lambda count: _spans(environment, count, {}),
        lambda: _count(folder / "phoenix.db", "spans"),
    )


def mlflow(folder: Path, environment: Path) -> Peer:
    """Return the MLflow tracking server with one worker and an SQLite store in *folder*."""
    port = free_port()
    command = [str(environment / "bin" / "mlflow"), "server", "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db"]
    command += ["--default-artifact-root", str(folder / "artifacts")]
    server = Server(
        [*command, "--host", "127.0.0.1", "--port", str(port)],
        port=port,
        ready="/health",
        folder=folder,
        environment={"MLFLOW_DISABLE_TELEMETRY": "true"},
    )
    return Peer(
        "mlflow",
        server,
        lambda count: _spans(environment, count, {"x-mlflow-experiment-id": "0"}),
        lambda: _count(folder / "mlflow.db", "spans"),
    )


def bugsink(folder: Path, environment: Path) -> Peer:
    """Return Bugsink that digests in the request (its template ``local``), without quotas."""
    port, binaries = free_port(), environment / "bin"

    def tool(name: str, *arguments: str) -> str:
        command = [binaries / f"bugsink-{name}", *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout

    tool("create-conf", "--template=local", "--host=127.0.0.1", f"--port={port}")
    with (folder / "bugsink_conf.py").open("a") as conf:
        conf.write(_BUGSINK_SETTINGS.format(folder=folder))
    tool("manage", "migrate")
    tool("manage", "migrate", "--database=snappea")
    made = tool("manage", "shell", "-c", _BUGSINK_PROJECT)
    project, key = made.strip().splitlines()[-1].split()
    workers = ["--workers=1", "--threads=4", f"--bind=127.0.0.1:{port}"]
    server = Server(
        [str(binaries / "gunicorn"), "bugsink.wsgi", *workers],
        port=port,
        ready="/",
        folder=folder,
        environment={"PYTHONPATH": str(folder), "DJANGO_SETTINGS_MODULE": "bugsink_conf"},
    )
    return Peer(
        "bugsink",
        server,
        lambda count: _sentry_events(count, f"/api/{project}/envelope/", key),
        lambda: _count(folder / "db.sqlite3", "events_event"),
        batch=1,
        prepared=2_000,
    )


PEERS = {
    "toolfault": ("", toolfault),
    "toolfault-otlp": ("", toolfault_otlp),
    "phoenix": ("arize-phoenix", phoenix),
    "mlflow": ("mlflow", mlflow),
    "bugsink": ("bugsink gunicorn", bugsink),
}
_BUGSINK_SETTINGS = """
DATABASES["default"]["NAME"] = "{folder}/db.sqlite3"
DATABASES["snappea"]["NAME"] = "{folder}/snappea.sqlite3"
ALLOWED_HOSTS = ["*"]
for _limit in ("5_MINUTES", "HOUR", "MONTH"):
    BUGSINK["MAX_EVENTS_PER_" + _limit] = 10**9
    BUGSINK["MAX_EVENTS_PER_PROJECT_PER_" + _limit] = 10**9
"""
_BUGSINK_PROJECT = (
    "from projects.models import Project;"
    "p = Project.objects.create(name='bench', slug='bench', retention_max_event_count=10**7);"
    "print(p.pk, p.sentry_key.hex)"
)

# -- what they are sent ---------------------------------------------------------------------------


def _spans(environment: Path, count: int, headers: dict[str, str]) -> Iterable[bytes]:
    """Return *count* OTLP requests, made in the peer's environment, which has the protocol."""
    events = "\n".join(failures(count * BATCH, generator=random.Random(1)))
    made = subprocess.run(
        [environment / "bin" / "python", HERE / "otlp.py", str(BATCH)],
        input=events.encode(),
        capture_output=True,
        check=True,
    ).stdout
    while made:
        size = int.from_bytes(made[:4], "big")
        body, made = made[4 : 4 + size], made[4 + size :]
        yield request(
            body,
            path="/v1/traces",
            content_type="application/x-protobuf",
            gzipped=False,
            headers=headers,
        )


def _sentry_events(count: int, path: str, key: str) -> Iterable[bytes]:
    for text in failures(count, generator=random.Random(1)):
        failure = json.loads(text)
        error, tool = failure["error"], failure["tool"]
        raised, event_id = error["exception"], uuid.uuid4().hex
        frames = [
            {"filename": f"app/tools/module_{n}.py", "lineno": n * 7, "function": "handle"}
            for n in range(6)
        ]
        event = {
            "event_id": event_id,
            "timestamp": failure["occurred_at"],
            "platform": "python",
            "level": "error",
            "transaction": tool,
            "release": failure["release"],
            "environment": failure["environment"],
            "tags": {"tool": tool, "code": error["code"], "field": error["field"]},
            "extra": {"received": error["received"], "text": error["renderings"]["llm"]},
            "exception": {
                "values": [
                    {
                        "type": raised["type"],
                        "module": raised["module"],
                        "value": error["renderings"]["system"],
                        "stacktrace": {"frames": frames},
                    }
                ]
            },
        }
        item = json.dumps(event)
        head = json.dumps({"event_id": event_id})
        body = f'{head}\n{{"type":"event","length":{len(item)}}}\n{item}\n'.encode()
        auth = {"X-Sentry-Auth": f"Sentry sentry_version=7, sentry_key={key}"}
        yield request(
            body,
            path=path,
            content_type="application/x-sentry-envelope",
            gzipped=False,
            headers=auth,
        )


def _count(file: Path, table: str) -> int:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30)) as conn:
        return int(conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


# -- running --------------------------------------------------------------------------------------


def install(requirements: str, environment: Path) -> None:
    """Make *environment* with *requirements*, unless it is there already."""
    done = environment / ".installed"
    if not requirements or (done.exists() and done.read_text() == requirements):
        return
    venv.create(environment, with_pip=True, clear=True)
    pip = [environment / "bin" / "python", "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *requirements.split()], check=True, capture_output=True, timeout=1_800)
    done.write_text(requirements)


def main() -> None:
    """Measure each product, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of load on each")
    parser.add_argument("--environments", type=Path, default=Path("build/bench-peers"))
    parser.add_argument("--only", nargs="*", choices=list(PEERS), default=list(PEERS))
    chosen = parser.parse_args()
    rates: dict[str, float] = {}
    for name in chosen.only:
        requirements, make = PEERS[name]
        environment = (chosen.environments / name).resolve()
        try:
            install(requirements, environment)
            with sqlite_database() as (_, folder):
                line = measure(make(folder, environment), chosen.seconds)
        except (OSError, RuntimeError, subprocess.SubprocessError, sqlite3.Error) as error:
            reason = getattr(error, "stderr", None) or str(error)
            text = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
            line = {"benchmark": "ingest peers", "peer": name, "skipped": text[-600:]}
        else:
            rates[name] = float(str(line["stored_per_second"]))
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
    own, _ = rates.pop("toolfault", None), rates.pop("toolfault-otlp", None)
    if own is not None and rates:
        best = max(rates, key=lambda name: rates[name])
        summary = {"best_peer": best, "toolfault_to_best_peer": round(own / rates[best], 1)}
        sys.stdout.write(json.dumps({"benchmark": "ingest peers", **summary}) + "\n")


if __name__ == "__main__":
    main()
