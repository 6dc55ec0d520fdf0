"""Durable spans per second through `/v1/traces`, counted in the database afterwards.

    python benchmarks/ingest/spans.py [--spans N] [--rounds N] [--peers DIR] [--peer-spans N]

Starts the real server (SQLite with `synchronous=FULL`) on an empty database and sends traces of
agents as OTLP in protobuf, 512 spans per request over 4 connections: per trace one agent, three
requests of a model, and six tool calls of which two fail. Each round measures `/v1/events` beside
it, with batches of 100 failures over the same number of connections. One line of JSON per run.

With --peers, Phoenix and MLflow (installed there by pip, as `peers.py` does) are sent such spans in
turns with toolfault, and `/v1/events` is left out. A peer's rate counts the rows of its own
database, until all that it answered for is there. The last lines are the ratios, round by round:
toolfault's rate to that of the peer in the same round.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sqlite3
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from databases import sqlite_database  # noqa: E402
from events import bodies, failures  # noqa: E402
from load import request, run  # noqa: E402
from peers import PEERS, Peer, install, settled  # noqa: E402
from processes import collector, new_key  # noqa: E402

BATCH = 512
CONNECTIONS = 4
PEER_SECONDS = 60.0
PER_TRACE = 10
TOOLS = ("search", "book_flight", "get_weather", "http_request", "read_file")


def traces(spans: int, generator: random.Random) -> Iterator[Span]:
    """Yield the spans of traces, one trace after the other, children before their parents."""
    for number in range(spans // PER_TRACE):
        trace_id, root = generator.randbytes(16), generator.randbytes(8)
        began = time.time_ns() - 3_600_000_000_000 + number * 1_000_000
        for step in range(1, PER_TRACE):
            if step % 3 == 1:
                yield _span(
                    *(trace_id, root, "chat model-1", began + step * 100_000_000),
                    **{"gen_ai.operation.name": "chat", "gen_ai.request.model": "model-1"},
                    **{"gen_ai.usage.input_tokens": "812", "gen_ai.provider.name": "x"},
                )
                continue
            tool = generator.choice(TOOLS)
            made = _span(
                *(trace_id, root, f"execute_tool {tool}", began + step * 100_000_000),
                **{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool},
                **{"gen_ai.tool.call.id": f"call_{generator.randbytes(12).hex()}"},
                **{"gen_ai.tool.call.arguments": json.dumps({"query": "x" * 40, "limit": step})},
            )
            if step in (2, 5):
                made.status.code = 2
                made.status.message = f"1 validation error for {tool}\nlimit\n  Field required"
                made.attributes.add(key="error.type").value.string_value = "ValidationError"
            yield made
        agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "travel-bot"}
        conversation = {"gen_ai.conversation.id": f"conv-{number // 3}"}
        yield _span(trace_id, b"", "invoke_agent travel-bot", began, root, **agent, **conversation)


def _span(
    trace_id: bytes, parent: bytes, name: str, at: int, own: bytes = b"", **attributes: str
) -> Span:
    made = Span(
        trace_id=trace_id,
        span_id=own or random.randbytes(8),
        parent_span_id=parent,
        name=name,
        kind=1,
        start_time_unix_nano=at,
        end_time_unix_nano=at + 80_000_000,
    )
    for key, value in attributes.items():
        made.attributes.add(key=key).value.string_value = value
    return made


def requests(spans: int, headers: dict[str, str], generator: random.Random) -> list[bytes]:
    """Return the requests of so many spans, each with *headers*."""
    made, found = traces(spans, generator), []
    while batch := list(itertools.islice(made, BATCH)):
        message = ExportTraceServiceRequest()
        resource = message.resource_spans.add()
        resource.resource.attributes.add(key="service.name").value.string_value = "travel-bot"
        resource.scope_spans.add().spans.extend(batch)
        found.append(
            request(
                message.SerializeToString(),
                path="/v1/traces",
                content_type="application/x-protobuf",
                gzipped=False,
                headers=headers,
            )
        )
    return found


def counted(url: str) -> dict[str, int]:
    """Return what is in the database."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as conn:
        return {
            name: int(conn.execute(sql).fetchone()[0] or 0)
            for name, sql in {
                "spans": "SELECT sum(spans) FROM trace_batch",
                "calls": "SELECT count(*) FROM tool_call",
                "chains": "SELECT count(*) FROM chain",
            }.items()
        }


def measure(path: str, spans: int, seed: int) -> float:
    """Send to one endpoint of a new server, print what came of it, and return spans per second."""
    with ExitStack() as stack:
        url, folder = stack.enter_context(sqlite_database())
        server = stack.enter_context(collector(url, folder))
        bearer, generator = {"Authorization": f"Bearer {new_key(url)}"}, random.Random(seed)
        if path == "/v1/traces":
            made = requests(spans, bearer, generator)
        else:
            events = failures(spans * 6 // PER_TRACE, generator=generator)
            made = [request(each, headers=bearer) for each in bodies(events, batch=100)]
        cpu = server.cpu_seconds()
        result = run([server.port], made, connections=CONNECTIONS)
        cpu = server.cpu_seconds() - cpu
        stored = counted(url)
        if set(result.statuses) != {200}:
            message = f"not all was taken: {result.statuses}"
            raise RuntimeError(message)
        line = {
            "path": path,
            "durable_spans_per_second": round(stored["spans"] / result.seconds),
            "durable_calls_per_second": round(stored["calls"] / result.seconds),
            "p50_ms": round(result.percentile(0.5), 1),
            "p99_ms": round(result.percentile(0.99), 1),
            "server_cpu_us_per_call": round(cpu / stored["calls"] * 1e6),
            "peak_mib": round(server.peak_mib()),
            **stored,
        }
        _print(line)
        return stored["spans"] / result.seconds


def measure_peer(name: str, environment: Path, spans: int, seed: int) -> float:
    """Send to a peer until it answered for all or a minute is over; return spans per second."""
    packages, make = PEERS[name]
    install(packages, environment)
    with sqlite_database() as (_, folder):
        peer: Peer = make(folder, environment)
        headers = {"x-mlflow-experiment-id": "0"} if name == "mlflow" else {}
        made = requests(spans, headers, random.Random(seed))
        with peer.server as server:
            before, cpu, began = peer.count(), server.cpu_seconds(), time.monotonic()
            result = run([server.port], made, connections=CONNECTIONS, at_most_seconds=PEER_SECONDS)
            answered = sum(count for status, count in result.statuses.items() if status < 300)
            stored = settled(peer.count, answered * BATCH + before, PEER_SECONDS) - before
            took = time.monotonic() - began
            _print(
                {
                    "peer": name,
                    "durable_spans_per_second": round(stored / took, 1),
                    "stored": stored,
                    "acknowledged": answered * BATCH,
                    "statuses": result.statuses,
                    "p50_ms": round(result.percentile(0.5), 1),
                    "server_cpu_us_per_span": round(
                        (server.cpu_seconds() - cpu) / max(stored, 1) * 1e6
                    ),
                    "peak_mib": round(server.peak_mib()),
                }
            )
            return stored / took


def _print(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def compare(given: argparse.Namespace) -> None:
    """Measure toolfault and its peers in turns, and print the ratios of each round."""
    ratios: dict[str, list[float]] = {"phoenix": [], "mlflow": []}
    for round_ in range(given.rounds):
        own = measure("/v1/traces", given.spans, round_)
        for name, found in ratios.items():
            environment = (given.peers / name).resolve()
            found.append(own / measure_peer(name, environment, given.peer_spans, round_))
    for name, found in ratios.items():
        in_order = [round(each, 1) for each in sorted(found)]
        middle = round(statistics.median(found), 1)
        ratio = {"min": in_order[0], "median": middle, "max": in_order[-1], "rounds": len(found)}
        _print({"toolfault_to": name, **ratio})


def main() -> None:
    """Measure both endpoints, or toolfault and its peers, in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=40_960)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", type=Path, help="folder of the peers' environments")
    parser.add_argument("--peer-spans", type=int, default=5_120)
    given = parser.parse_args()
    if given.peers is not None:
        compare(given)
        return
    for round_ in range(given.rounds):
        for path in ("/v1/traces", "/v1/events"):
            measure(path, given.spans, round_)


if __name__ == "__main__":
    main()
