"""How long one project's single event waits while another's request is made to be expensive.

    python benchmarks/ingest/attack.py [--postgresql]

Each attack is one request of a few hundred KB that unpacks to some 20 MiB: texts full of what looks
like secrets, or values without number. It is sent once; meanwhile a second project sends single
events, one after another. Each attack prints one line of JSON.

The promise (C8, D4): an attack costs a second or two of the processor, and others wait for parts of
it only.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from durable import Target, on_postgres, on_sqlite, show  # noqa: E402
from events import bodies, failures  # noqa: E402
from processes import new_key  # noqa: E402

# What is over and over in every text of an attack.
UNITS = {
    "logins": "http://u:p@h/",
    "cards": "4111 1111 1111 1112 ",
    "passwords": "password=x ",
    "base64": "QUtJQUFBQUFBQUFBQUFBQUFB ",
    "addresses": "://aaaa",
}
# The texts of a failure, at their limits.
TEXTS = {"received": 16_000, "snippet": 16_000, "retry_hint": 8_000}
ALONE = 50


def _event(**error: Any) -> dict[str, Any]:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {
        "event_id": str(uuid4()),
        "type": "tool_call",
        "occurred_at": now,
        "tool": "attack",
        "success": False,
        "error": {"code": "wrong_type", "audience": "llm", **error},
    }


def attacks() -> dict[str, list[dict[str, Any]]]:
    """Return each attack by its name."""
    found = {}
    for name, unit in UNITS.items():
        text = unit * (65_536 // len(unit))
        error: dict[str, Any] = {member: text[:limit] for member, limit in TEXTS.items()}
        error["renderings"] = dict.fromkeys(("user", "llm", "system"), text[:8_000])
        error["exception"] = {"type": "E", "message": text[:8_000], "traceback": text[:65_000]}
        found[name] = [_event(**error) for _ in range(148)]
    nested = {"a": [[[[[[1]]]]]] * 18_000}
    found["values"] = [_event(retry_context=nested) for _ in range(80)]
    return found


def _packed(events: list[dict[str, Any]]) -> bytes:
    """Return a body that the server unpacks: not a hundred times as small as what is in it."""
    noise = "".join(uuid4().hex for _ in range(8_000))
    body = json.dumps({"noise": noise, "events": events}, separators=(",", ":")).encode()
    return gzip.compress(body, 6)


def _post(port: int, key: str, body: bytes) -> int:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    headers["Content-Encoding"] = "gzip"
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/events", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def _single(port: int, key: str, body: bytes) -> float:
    """Send one event and return how many milliseconds its answer took."""
    began = time.perf_counter()
    status = _post(port, key, body)
    if status != 200:
        message = f"a single event was answered with {status}"
        raise RuntimeError(message)
    return (time.perf_counter() - began) * 1_000


def measure(target: Target, name: str, events: list[dict[str, Any]]) -> None:
    """Send one attack, and single events of another project before and meanwhile."""
    server = target.servers[0]
    attacker = new_key(target.url, project="attacker")
    singles = bodies(failures(100_000, generator=random.Random(name)), batch=1)
    alone = sorted(_single(server.port, target.key, next(singles)) for _ in range(ALONE))
    body, statuses = _packed(events), list[int]()
    cpu, began = server.cpu_seconds(), time.perf_counter()
    attack = threading.Thread(
        target=lambda: statuses.append(_post(server.port, attacker, body)), daemon=True
    )
    attack.start()
    waits: list[float] = []
    while attack.is_alive():
        waits.append(_single(server.port, target.key, next(singles)))
    show(
        benchmark="ingest attack",
        engine=target.url.partition(":")[0],
        attack=name,
        sent_kb=round(len(body) / 1_000),
        status=statuses[0],
        attack_seconds=round(time.perf_counter() - began, 2),
        server_cpu_seconds=round(server.cpu_seconds() - cpu, 2),
        single_alone_ms=round(alone[ALONE // 2], 1),
        single_meanwhile_p50_ms=round(sorted(waits)[len(waits) // 2], 1),
        single_meanwhile_max_ms=round(max(waits), 1),
        singles_meanwhile=len(waits),
    )


def main() -> None:
    """Run every attack on a new database."""
    parser = argparse.ArgumentParser(description="What others wait while one request is expensive.")
    parser.add_argument("--postgresql", action="store_true")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        target = on_postgres(stack, processes=1) if arguments.postgresql else on_sqlite(stack)
        for name, events in attacks().items():
            measure(target, name, events)


if __name__ == "__main__":
    main()
