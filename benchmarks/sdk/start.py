"""What `import` and `init` cost an agent at start: toolfault beside sentry-sdk and OpenTelemetry.

    python benchmarks/sdk/start.py [--rounds 7] [--environment DIR]

Makes a virtual environment of its own with the peers (bytecode compiled in a first, uncounted
round) and starts a fresh interpreter per measurement, the cases in turns. Printed are medians over
the bare interpreter, and over one that has loaded what every client of a model loads (``agent``),
one JSON line per case: wall milliseconds and resident MiB.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
SDK = HERE.parents[1] / "sdk"
PEERS = ["opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http", "sentry-sdk"]
AGENT = "import asyncio, hashlib, http.client, json, logging, ssl, urllib.request\n"
INIT = "import toolfault; toolfault.init('http://KEY@127.0.0.1:1', agent='a')\n"
TOOL = "toolfault.tool(lambda n: 1 / n, name='divide').call(n=0)\n"
CASES = {
    "bare": "",
    "agent": AGENT,
    "toolfault + init": INIT,
    "agent, toolfault + init": AGENT + INIT,
    "agent, toolfault + init + a tool that fails": AGENT + INIT + TOOL,
    "sentry_sdk + init": "import sentry_sdk; sentry_sdk.init('http://key@127.0.0.1:1/1')",
    "opentelemetry sdk + batch + otlp": (
        "from opentelemetry import trace\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "from opentelemetry.sdk.trace.export import BatchSpanProcessor\n"
        "from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter\n"
        "provider = TracerProvider()\n"
        "exporter = OTLPSpanExporter('http://127.0.0.1:1/v1/traces')\n"
        "provider.add_span_processor(BatchSpanProcessor(exporter))\n"
        "trace.set_tracer_provider(provider)\n"
    ),
}
# os._exit: what a client does at exit is not part of what it costs at start.
REPORT = """
import os
with open("/proc/self/statm") as file:
    pages = int(file.read().split()[1])
os.write(1, str(pages * os.sysconf("SC_PAGE_SIZE")).encode())
os._exit(0)
"""


def environment(folder: Path) -> Path:
    """Return the interpreter of an environment with the SDK and its peers."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS, SDK], check=True)
    return python


def measure(python: Path, code: str) -> tuple[float, float]:
    """Return wall milliseconds and resident MiB of one fresh interpreter running *code*."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE",)}
    began = time.perf_counter()
    done = subprocess.run(
        [python, "-c", code + REPORT], capture_output=True, check=True, env=clean, cwd="/"
    )
    return (time.perf_counter() - began) * 1_000, int(done.stdout) / 2**20


def main() -> None:
    """Measure every case in turns and print medians over the bare interpreter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--environment", type=Path, default=HERE / "build-start")
    chosen = parser.parse_args()
    python = environment(chosen.environment)
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in CASES}
    for number in range(chosen.rounds + 1):
        for name, code in CASES.items():
            found = measure(python, code)
            if number:
                seen[name].append(found)
    middle = {
        name: (statistics.median(w for w, _ in rows), statistics.median(m for _, m in rows))
        for name, rows in seen.items()
    }
    bases = {name: middle.pop(name) for name in ("bare", "agent")}
    for name, (milliseconds, mebibytes) in middle.items():
        base = "agent" if name.startswith("agent") else "bare"
        wall, memory = bases[base]
        line = {
            "benchmark": "import",
            "case": name,
            "over": base,
            "ms": round(milliseconds - wall, 1),
            "mib": round(mebibytes - memory, 1),
            "rounds": chosen.rounds,
        }
        sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
