"""What reporting costs the host: toolfault beside OpenTelemetry, Sentry and Logfire.

    python benchmarks/sdk/overhead.py [--quick] [--rounds N] [--only WAY ...] [--environment DIR]
                                      [--json FILE]

Makes a virtual environment of its own with the peers, starts a local sink in another process, and
runs each way of reporting in a process of its own, in turns, several rounds. All report the same
pydantic error with three issues, raised six frames down, with the same eleven fields.

- ``burst``: calls back to back while the sender works, the case in which exporters hold the
  interpreter lock. ``paced``: one call each 5 ms, caches cold, closer to a real agent.
- Times are those of the calling thread for the reporting alone. The exception (and what a tool's
  boundary makes of it for the model, which is not reporting) is made before the clock starts.
- Ratios are paired: ours over theirs within one round, minutes apart at most, then the median of
  the rounds. A machine that is busy for one round is busy for both sides of its ratio.
- ``landed`` is what the sink has got, ``wire`` its compressed bytes per event.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import http.server
import json
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
import venv
import zlib
from pathlib import Path
from typing import ClassVar

HERE = Path(__file__).resolve().parent
SDK = HERE.parents[1] / "sdk"
PEERS = [
    "opentelemetry-sdk",
    "opentelemetry-exporter-otlp-proto-http",
    "sentry-sdk",
    "logfire",
    "pydantic",
]
FAILURES = ["toolfault", "otel", "sentry", "logfire"]
SUCCESSES = ["toolfault_success", "otel_success"]
# What, ours, theirs, the largest ratio of the medians of the calling thread's time.
TARGETS = [
    ("captured failure, of an OpenTelemetry span", "toolfault", "otel", 0.35),
    ("captured failure, of sentry capture_exception", "toolfault", "sentry", 0.05),
    ("captured failure, of a logfire span", "toolfault", "logfire", 0.35),
    ("folded success, of an OpenTelemetry span", "toolfault_success", "otel_success", 0.25),
]
ADDED_US = 6.0
P99_US = 1_000.0

# -- what is reported -----------------------------------------------------------------------------

FIELDS = {
    "tool": "http_request",
    "call_id": "call_8f2k1",
    "agent": "travel-bot",
    "model": "claude-x",
    "conversation": "conv-42",
    "turn": "msg_7",
    "environment": "prod",
    "release": "1.4.0",
    "variant": "control",
    "user": "u-17",
    "schema_hash": "3f5a1c0d9b7e2468",
}
ARGUMENTS = {"url": "https://example.com/a", "port": "eighty", "timeout": "soon", "retries": [1]}


def make_error():
    from pydantic import BaseModel, ValidationError

    class HttpRequest(BaseModel):
        url: str
        port: int
        timeout: float
        retries: int

    def deep(depth: int) -> None:
        if depth:
            deep(depth - 1)
        HttpRequest.model_validate(ARGUMENTS)

    def raised() -> ValidationError:
        try:
            deep(4)
        except ValidationError as error:
            return error
        raise AssertionError

    return raised


# -- ways of reporting: each returns (prepare, report, finish) ---------------------------------


def toolfault(port: int):
    import toolfault
    from toolfault.tools import CallRecord, notify

    toolfault.init(
        f"http://KEY@127.0.0.1:{port}",
        agent=FIELDS["agent"],
        environment=FIELDS["environment"],
        release=FIELDS["release"],
    )
    toolfault.conversation(
        FIELDS["conversation"],
        model=FIELDS["model"],
        variant=FIELDS["variant"],
        user=FIELDS["user"],
        turn=FIELDS["turn"],
    ).bind()
    raised = make_error()

    def prepare():
        return toolfault.ToolError.from_validation_error(FIELDS["tool"], raised(), ARGUMENTS)

    def report(error) -> None:
        notify(
            CallRecord(
                FIELDS["tool"],
                FIELDS["tool"],
                success=False,
                started_at=0.0,
                duration_ms=1.5,
                call_id=FIELDS["call_id"],
                arguments=ARGUMENTS,
                error=error,
                schema_hash=FIELDS["schema_hash"],
            )
        )

    return prepare, report, lambda: toolfault.flush(60)


def otel_tracer(port: int):
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    exporter = OTLPSpanExporter(f"http://127.0.0.1:{port}/v1/traces", compression=Compression.Gzip)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider, provider.get_tracer("benchmark")


def otel(port: int):
    from opentelemetry.trace import Status, StatusCode

    provider, tracer = otel_tracer(port)

    def report(error) -> None:
        with tracer.start_as_current_span("execute_tool http_request") as span:
            for name, value in FIELDS.items():
                span.set_attribute(name, value)
            span.record_exception(error)
            span.set_status(Status(StatusCode.ERROR))

    return make_error(), report, provider.force_flush


def otel_success(port: int):
    provider, tracer = otel_tracer(port)

    def report(_: object) -> None:
        with tracer.start_as_current_span("execute_tool http_request") as span:
            for name, value in FIELDS.items():
                span.set_attribute(name, value)

    return lambda: None, report, provider.force_flush


def sentry(port: int):
    import sentry_sdk

    sentry_sdk.init(f"http://key@127.0.0.1:{port}/1", environment="prod", release="1.4.0")
    for name, value in FIELDS.items():
        sentry_sdk.set_tag(name, value)
    return make_error(), sentry_sdk.capture_exception, lambda: sentry_sdk.flush(60)


def logfire(port: int):
    import logfire

    logfire.configure(
        token="pylf_v1_us_0123456789",
        console=False,
        inspect_arguments=False,
        advanced=logfire.AdvancedOptions(base_url=f"http://127.0.0.1:{port}"),
    )

    def report(error) -> None:
        with logfire.span("execute_tool {tool}", **FIELDS) as span:
            span.record_exception(error)

    return make_error(), report, lambda: logfire.force_flush(60_000)


def toolfault_success(port: int):
    """A decorated function that does nothing, called directly; the bare call is taken off."""
    import toolfault

    toolfault.init(f"http://KEY@127.0.0.1:{port}", agent=FIELDS["agent"], successes="folded")
    toolfault.conversation(FIELDS["conversation"], model=FIELDS["model"]).bind()

    @toolfault.tool
    def add(a: int, b: int) -> int:
        return a + b

    return lambda: None, lambda _: add(a=1, b=2), lambda: toolfault.flush(60)


def bare(port: int):
    def add(a: int, b: int) -> int:
        return a + b

    return lambda: None, lambda _: add(a=1, b=2), lambda: True


# -- one measurement, in a process of its own ---------------------------------------------------


def resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def measure(name: str, port: int, *, pause: float, events: int) -> dict[str, float]:
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {0})
    before = resident()
    prepare, report, finish = globals()[name](port)
    for _ in range(200):
        report(prepare())
    finish()
    prepared = [prepare() for _ in range(events)]
    # What was prepared is the benchmark's; collecting it as garbage is not part of reporting.
    gc.collect()
    gc.freeze()
    clock, waits = time.perf_counter, []
    counted = sink_stats(port)
    cpu = time.process_time()
    for payload in prepared:
        begin = clock()
        report(payload)
        waits.append(clock() - begin)
        if pause:
            time.sleep(pause)
    finish()
    cpu = time.process_time() - cpu
    now = sink_stats(port)
    waits.sort()
    landed = now["events"] - counted["events"]
    return {
        "p50": waits[events // 2] * 1e6,
        "p99": waits[int(events * 0.99)] * 1e6,
        "max": waits[-1] * 1e6,
        "cpu": cpu / events * 1e6,
        "landed": landed,
        "wire": (now["bytes"] - counted["bytes"]) / max(landed, 1),
        "rss": (resident() - before) / 2**20,
    }


def sink_stats(port: int) -> dict[str, int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats") as answer:
        return json.load(answer)


# -- the sink -----------------------------------------------------------------------------------


class Sink(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    counted: ClassVar[dict[str, int]] = {"events": 0, "bytes": 0}
    lock = threading.Lock()

    def do_GET(self) -> None:
        body = self.counted if self.path == "/stats" else {"project_name": "x", "project_url": "x"}
        self.reply(json.dumps(body).encode(), "application/json")

    def do_POST(self) -> None:
        raw = self.body()
        plain = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        if self.path.endswith("/v1/events"):
            batch = json.loads(plain)["events"]
            folded = [event for event in batch if event["type"] == "tool_call_counts"]
            whole = [event for event in batch if event["type"] in ("tool_call", "tool_error")]
            count = len(whole) + sum(event.get("calls", 0) for event in folded)
            answer = {"accepted": len(batch), "duplicate": 0, "rejected": []}
            self.count(count, raw)
            self.reply(json.dumps(answer).encode(), "application/json")
        elif self.path.endswith("/v1/traces"):
            self.count(plain.count(b"execute_tool http_request"), raw)
            self.reply(b"", "application/x-protobuf")
        else:
            self.count(plain.count(b'"type":"event"'), raw)
            self.reply(b"{}", "application/json")

    def body(self) -> bytes:
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"]))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def count(self, events: int, raw: bytes) -> None:
        with self.lock:
            self.counted["events"] += events
            self.counted["bytes"] += len(raw)

    def reply(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


def serve_sink() -> None:
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {1})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    print(server.server_port, flush=True)
    server.serve_forever()


# -- the run ------------------------------------------------------------------------------------


def environment(folder: Path) -> Path:
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    mark = folder / "installed"
    wanted = f"{zlib.crc32(' '.join(PEERS).encode())}"
    if not mark.exists() or mark.read_text() != wanted:
        subprocess.run([python, "-m", "pip", "install", "-q", *PEERS], check=True)
        mark.write_text(wanted)
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", SDK], check=True)
    return python


def run(python: Path, name: str, *, quick: bool, pause: float) -> dict[str, float]:
    events = 400 if quick and pause else 2_000 if not pause else 1_000
    if name in ("toolfault_success", "bare") and not pause:
        events = 10_000 if quick else 50_000
    sink = subprocess.Popen([python, __file__, "--sink"], stdout=subprocess.PIPE, text=True)
    try:
        port = sink.stdout.readline().strip()
        done = subprocess.run(
            [python, __file__, "--worker", name, port, str(pause), str(events)],
            capture_output=True,
            text=True,
            check=True,
            cwd=HERE,
            # Logfire hooks itself into pydantic wherever it is installed, and brings OpenTelemetry
            # into processes of the others, which would then look for spans.
            env={**os.environ, "PYDANTIC_DISABLE_PLUGINS": "__all__"},
        )
        return json.loads(done.stdout.splitlines()[-1])
    finally:
        sink.kill()
        sink.wait()


Rounds = dict[str, list[dict[str, float]]]


def compare(rounds: Rounds) -> list[str]:
    """Say of every target whether it was met, and by how much."""
    lines = []
    for text, ours, theirs, bound in TARGETS:
        for mode in ("burst", "paced"):
            pairs = zip(rounds.get(f"{ours} {mode}", ()), rounds.get(f"{theirs} {mode}", ()))  # noqa: B905 - a way may be left out
            ratios = sorted(mine["p50"] / other["p50"] for mine, other in pairs)
            if ratios:
                middle = statistics.median(ratios)
                spread = f"{ratios[0]:.3f} to {ratios[-1]:.3f}"
                lines.append(
                    f"{met(middle <= bound)} {mode} {text}: {middle:.3f} ({spread}; <= {bound})"
                )
    for mode, bound in (("burst", ADDED_US), ("paced", None)):
        pairs = zip(rounds.get(f"toolfault_success {mode}", ()), rounds.get(f"bare {mode}", ()))  # noqa: B905 - a way may be left out
        added = [ours["p50"] - bare["p50"] for ours, bare in pairs]
        if added:
            middle = statistics.median(added)
            verdict = "       " if bound is None else met(middle <= bound)
            limit = "" if bound is None else f" (<= {bound})"
            lines.append(f"{verdict} {mode} folded success adds {middle:.2f} us{limit}")
    if "toolfault burst" in rounds:
        p99 = statistics.median(row["p99"] for row in rounds["toolfault burst"])
        lines.append(f"{met(p99 <= P99_US)} capture p99 in a burst: {p99:.0f} us (<= {P99_US:.0f})")
    return lines


def met(is_met: bool) -> str:
    return "met   " if is_met else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one round, fewer events")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=[*FAILURES, *SUCCESSES, "bare"])
    parser.add_argument("--environment", type=Path, default=HERE / "build")
    parser.add_argument("--json", type=Path, help="write every round here")
    given = parser.parse_args()
    python = environment(given.environment)
    cases = [(name, pause) for name in FAILURES for pause in (0.0, 0.005)]
    cases += [(name, 0.0) for name in [*SUCCESSES, "bare"]]
    cases += [(name, 0.005) for name in [*SUCCESSES, "bare"]]
    cases = [case for case in cases if case[0] in given.only]
    rounds: Rounds = {}
    for number in range(1 if given.quick else given.rounds):
        for name, pause in cases:
            label = f"{name} {'paced' if pause else 'burst'}"
            print(f"round {number + 1}: {label}", file=sys.stderr)
            found = run(python, name, quick=given.quick, pause=pause)
            rounds.setdefault(label, []).append(found)
    medians = {
        label: {key: statistics.median(each[key] for each in every) for key in every[0]}
        for label, every in rounds.items()
    }
    print("| way | p50 us | p99 us | max us | CPU us/event | landed | wire B/event | RSS MiB |")
    print("|---|---|---|---|---|---|---|---|")
    for label, row in medians.items():
        cells = [f"{row[key]:.0f}" for key in ("p99", "max", "cpu", "landed", "wire")]
        print(f"| {label} | {row['p50']:.1f} | {' | '.join(cells)} | {row['rss']:.1f} |")
    print("\n" + "\n".join(compare(rounds)))
    if given.json:
        given.json.write_text(json.dumps(rounds, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--sink"]:
        serve_sink()
    elif sys.argv[1:2] == ["--worker"]:
        which, where, wait, number = sys.argv[2:6]
        print(json.dumps(measure(which, int(where), pause=float(wait), events=int(number))))
    else:
        main()
