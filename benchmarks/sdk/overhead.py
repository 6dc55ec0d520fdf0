"""What one tool call costs the host under toolfault, beside OpenTelemetry and Sentry.

    python benchmarks/sdk/overhead.py [--rounds N] [--calls N] [--only CASE ...] [--json FILE]

Needs opentelemetry-sdk, opentelemetry-exporter-otlp-proto-http, sentry-sdk and pydantic in the
interpreter that runs it, beside toolfault; it says what to install where one is missing.

Each way of calling runs in a process of its own, which stays up and waits. The ways take turns: a
block of calls each, round after round, so that what else the machine does falls on all of them
alike. A local sink in another process takes what they send; at the end of a block everything
has been sent.

What is measured is the whole call at the tool's boundary, as the calling thread sees it:

- ``failed``: three faults for a pydantic model. toolfault validates, makes the error and the text
  for the model, and captures. OpenTelemetry: a span with eleven attributes, the exception recorded.
  Sentry: ``capture_exception``. The bare host validates and drops the exception.
- ``crash``: the arguments are right, the tool raises.
- ``capture``: ``capture_failure`` of an exception that was raised before the clock starts.
- ``success``: a direct call of a decorated function; ``validated``: ``call`` of one with a model.

``burst`` is calls back to back while the sender works; ``paced`` is one each 5 ms, caches cold.
A figure is the median of a block, less that of the bare host in the same round; a ratio is ours
over theirs within a round. Reported is the median of the rounds with the lowest and the highest.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import http.server
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import ClassVar

HERE = Path(__file__).resolve().parent
PAUSE = 0.005
NEEDED = {
    "pydantic": "pydantic",
    "sentry_sdk": "sentry-sdk",
    "opentelemetry.sdk": "opentelemetry-sdk",
    "opentelemetry.exporter.otlp.proto.http": "opentelemetry-exporter-otlp-proto-http",
}
# Case, other way, the largest ratio of ours to theirs, each less the bare host.
RATIOS = [
    ("failed burst", "otel", 0.6),
    ("failed paced", "otel", 0.6),
    ("failed burst", "sentry", 0.08),
    ("failed paced", "sentry", 0.08),
    ("crash burst", "otel", 0.35),
    ("crash paced", "otel", 0.35),
    ("capture burst", "otel", 0.6),
    ("capture paced", "otel", 0.6),
    ("success burst", "otel", 0.2),
    ("validated burst", "otel", 0.2),
]
# Case, the most microseconds of ours less the bare host.
ADDED = [("success burst", 4.0), ("validated burst", 4.0)]
CASES = ["failed", "crash", "capture", "success", "validated"]
WAYS = ["bare", "toolfault", "otel", "sentry"]

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
WRONG = {"url": "https://example.com/a", "port": "eighty", "timeout": "soon", "retries": [1]}
RIGHT = {"url": "https://example.com/a", "port": 80, "timeout": 1.5, "retries": 2}


def request_model():
    from pydantic import BaseModel

    class HttpRequest(BaseModel):
        url: str
        port: int
        timeout: float
        retries: int

    return HttpRequest


def http_request(url: str, port: int, timeout: float, retries: int) -> int:
    return port


def refused(url: str, port: int, timeout: float, retries: int) -> int:
    raise ConnectionResetError(f"{url} closed the connection")


def add(a: int, b: int) -> int:
    return a + b


def full() -> None:
    raise RuntimeError("the disk is full")


def raised() -> RuntimeError | None:
    try:
        full()
    except RuntimeError as error:
        return error


# -- ways: each returns its cases by name, what waits until all is sent, and what begins a case ----
# A case takes what was made for it before the clock starts: an exception, or nothing.


def ignore(_: object) -> None:
    return


def bare(_: int):
    from pydantic import ValidationError

    model = request_model()

    def failed(_: object) -> None:
        try:
            http_request(**model.model_validate(WRONG).__dict__)
        except ValidationError:
            return

    def crash(_: object) -> None:
        try:
            refused(**model.model_validate(RIGHT).__dict__)
        except ConnectionResetError:
            return

    return (
        {
            "failed": failed,
            "crash": crash,
            "capture": lambda _: None,
            "success": lambda _: add(a=1, b=2),
            "validated": lambda _: http_request(**model.model_validate(RIGHT).__dict__),
        },
        lambda: None,
        ignore,
    )


def toolfault(port: int):
    import toolfault

    toolfault.init(
        f"http://KEY@127.0.0.1:{port}",
        agent=FIELDS["agent"],
        environment=FIELDS["environment"],
        release=FIELDS["release"],
    )
    tool = toolfault.tool(model=request_model())(http_request)
    broken = toolfault.tool(model=request_model())(refused)
    added = toolfault.tool(add)

    def begin(case: str) -> None:
        """Enter the conversation of the case: in one with an open chain no success is folded."""
        toolfault.conversation(
            f"{FIELDS['conversation']} {case}",
            model=FIELDS["model"],
            variant=FIELDS["variant"],
            user=FIELDS["user"],
            turn=FIELDS["turn"],
        ).bind()

    return (
        {
            "failed": lambda _: tool.call(WRONG),
            "crash": lambda _: broken.call(RIGHT),
            "capture": lambda error: toolfault.capture_failure(error, tool="save", arguments=RIGHT),
            "success": lambda _: added(a=1, b=2),
            "validated": lambda _: tool.call(RIGHT),
        },
        lambda: toolfault.flush(60),
        begin,
    )


def otel(port: int):
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import Status, StatusCode

    provider = TracerProvider()
    exporter = OTLPSpanExporter(f"http://127.0.0.1:{port}/v1/traces", compression=Compression.Gzip)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("benchmark")
    model = request_model()

    def spanned(run):
        def call(given: object) -> None:
            with tracer.start_as_current_span("execute_tool http_request") as span:
                for name, value in FIELDS.items():
                    span.set_attribute(name, value)
                try:
                    run(given)
                except Exception as error:
                    span.record_exception(error)
                    span.set_status(Status(StatusCode.ERROR))

        return call

    def captured(error: BaseException) -> None:
        with tracer.start_as_current_span("execute_tool http_request") as span:
            for name, value in FIELDS.items():
                span.set_attribute(name, value)
            span.record_exception(error)
            span.set_status(Status(StatusCode.ERROR))

    return (
        {
            "failed": spanned(lambda _: http_request(**model.model_validate(WRONG).__dict__)),
            "crash": spanned(lambda _: refused(**model.model_validate(RIGHT).__dict__)),
            "capture": captured,
            "success": spanned(lambda _: add(a=1, b=2)),
            "validated": spanned(lambda _: http_request(**model.model_validate(RIGHT).__dict__)),
        },
        provider.force_flush,
        ignore,
    )


def sentry(port: int):
    import sentry_sdk

    sentry_sdk.init(f"http://key@127.0.0.1:{port}/1", environment="prod", release="1.4.0")
    for name, value in FIELDS.items():
        sentry_sdk.set_tag(name, value)
    model = request_model()

    def reported(run):
        def call(_: object) -> None:
            try:
                run()
            except Exception as error:
                sentry_sdk.capture_exception(error)

        return call

    return (
        {
            "failed": reported(lambda: http_request(**model.model_validate(WRONG).__dict__)),
            "crash": reported(lambda: refused(**model.model_validate(RIGHT).__dict__)),
            "capture": sentry_sdk.capture_exception,
        },
        lambda: sentry_sdk.flush(60),
        ignore,
    )


# -- blocks of calls, in a process of their own ---------------------------------------------------


def resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def work(way: str, port: int) -> None:
    """Run the blocks that are asked for on standard input, one line of JSON each."""
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {0})
    before = resident()
    cases, finish, begin = globals()[way](port)
    for case, run in cases.items():
        begin(case)
        for _ in range(5 if way == "sentry" else 50):
            run(raised() if case == "capture" else None)
    finish()
    print(json.dumps(sorted(cases)), flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        begin(wanted["case"])
        found = block(cases[wanted["case"]], finish, port, **wanted)
        print(json.dumps({**found, "rss": (resident() - before) / 2**20}), flush=True)


def block(run, finish, port: int, *, case: str, calls: int, pause: float) -> dict[str, float]:
    given = [raised() if case == "capture" else None for _ in range(calls)]
    gc.collect()
    clock, waits = time.perf_counter, []
    sent = sink_stats(port)
    cpu = time.process_time()
    for each in given:
        begin = clock()
        run(each)
        waits.append(clock() - begin)
        if pause:
            time.sleep(pause)
    finish()
    cpu = time.process_time() - cpu
    now = sink_stats(port)
    landed = now["events"] - sent["events"]
    waits.sort()
    return {
        "p50": waits[calls // 2] * 1e6,
        "p99": waits[int(calls * 0.99)] * 1e6,
        "cpu": cpu / calls * 1e6,
        "landed": landed / calls,
        "wire": (now["bytes"] - sent["bytes"]) / max(landed, 1),
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


class Worker:
    """The process of one way."""

    def __init__(self, way: str, port: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", way, port],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=HERE,
        )
        self.cases = json.loads(self._line())

    def run(self, case: str, calls: int, pause: float) -> dict[str, float]:
        wanted = json.dumps({"case": case, "calls": calls, "pause": pause})
        self.process.stdin.write(wanted + "\n")
        self.process.stdin.flush()
        return json.loads(self._line())

    def _line(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a measured process ended; its error stands above")
        return line


Rounds = dict[str, list[dict[str, float]]]


def compare(rounds: Rounds) -> list[str]:
    """Say of every target whether it was met, and by how much."""
    lines = []
    for case, way, bound in RATIOS:
        pairs = zip(less_bare(rounds, case, "toolfault"), less_bare(rounds, case, way))  # noqa: B905 - a way may be left out
        ratios = sorted(ours / theirs for ours, theirs in pairs)
        if ratios:
            middle, spread = statistics.median(ratios), f"{ratios[0]:.3f} to {ratios[-1]:.3f}"
            verdict = met(middle <= bound)
            lines.append(f"{verdict} {case}, of {way}: {middle:.3f} ({spread}; <= {bound})")
    for case, most in ADDED:
        added = sorted(less_bare(rounds, case, "toolfault"))
        if added:
            middle, spread = statistics.median(added), f"{added[0]:.1f} to {added[-1]:.1f}"
            lines.append(f"{met(middle <= most)} {case} adds {middle:.1f} us ({spread}; <= {most})")
    return lines


def less_bare(rounds: Rounds, case: str, way: str) -> list[float]:
    pairs = zip(rounds.get(f"{way} {case}", ()), rounds.get(f"bare {case}", ()))  # noqa: B905 - a way may be left out
    return [each["p50"] - bare["p50"] for each, bare in pairs]


def met(is_met: bool) -> str:
    return "met   " if is_met else "MISSED"


def calls_of(case: str, way: str, calls: int, *, paced: bool) -> int:
    """Quick calls in greater numbers, slow ones in smaller: a block should take its 50 ms."""
    if paced:
        return max(calls // 10, 10)
    if way == "sentry":
        return max(calls // 10, 10)
    return (
        calls * 10 if case in ("success", "validated") and way in ("bare", "toolfault") else calls
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=300, help="calls of a block")
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES, metavar="CASE")
    parser.add_argument("--json", type=Path, help="write every round here")
    given = parser.parse_args()
    absent = [package for module, package in NEEDED.items() if not is_there(module)]
    if absent:
        raise SystemExit(f"missing here: pip install {' '.join(absent)}")
    sink = subprocess.Popen([sys.executable, __file__, "--sink"], stdout=subprocess.PIPE, text=True)
    workers: dict[str, Worker] = {}
    try:
        port = sink.stdout.readline().strip()
        workers = {way: Worker(way, port) for way in WAYS}
        rounds = measure(workers, given)
    finally:
        for process in [sink, *(worker.process for worker in workers.values())]:
            process.kill()
            process.wait()
    print("| way and case | p50 us | p99 us | CPU us/call | landed | wire B/event | RSS MiB |")
    print("|---|---|---|---|---|---|---|")
    for label, rows in rounds.items():
        row = {key: statistics.median(each[key] for each in rows) for key in rows[0]}
        cells = f"{row['p99']:.0f} | {row['cpu']:.0f} | {row['landed']:.2f} | {row['wire']:.0f}"
        print(f"| {label} | {row['p50']:.1f} | {cells} | {row['rss']:.1f} |")
    print("\n" + "\n".join(compare(rounds)))
    if given.json:
        given.json.write_text(json.dumps(rounds, indent=1))


def measure(workers: dict[str, Worker], given: argparse.Namespace) -> Rounds:
    wanted = [(case, pause) for case in given.only for pause in (0.0, PAUSE)]
    rounds: Rounds = {}
    for number in range(given.rounds):
        print(f"round {number + 1}", file=sys.stderr)
        for case, pause in wanted:
            for way, worker in workers.items():
                if case in worker.cases:
                    calls = calls_of(case, way, given.calls, paced=bool(pause))
                    label = f"{way} {case} {'paced' if pause else 'burst'}"
                    rounds.setdefault(label, []).append(worker.run(case, calls, pause))
    return rounds


def is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    if sys.argv[1:2] == ["--sink"]:
        serve_sink()
    elif sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2], int(sys.argv[3]))
    else:
        main()
