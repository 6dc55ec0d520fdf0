"""What a capture costs its caller while the collector is broken, and how long the exit takes (S2).

    python benchmarks/sdk/faults.py [--captures 100000] [--only FAULT ...]

Each fault gets a process of its own, which captures failures back to back without a pause, so that
the sender works (or waits) all the time and the queue overflows. Printed per fault, one line of
JSON: median, p99 and maximum of the caller's time in microseconds, seconds from the last capture to
the end of the process, and what became of the records. A run whose books do not balance fails.
Promised: p99 <= 1 ms, maximum <= 20 ms, exit <= 2.5 s.

A maximum is that of the machine too: ``idle_max_us`` is the longest that a loop of the same length
took without the SDK for a turn of some microseconds, ``max_cpu_us`` the most that a capture itself
used of the processor, garbage collections of the host that it set off included.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

SDK = Path(__file__).resolve().parents[2] / "sdk"

AGENT = """
import atexit, gc, json, sys, time
atexit.register(lambda: print(json.dumps([figures, idle, began, client.stats()])))  # called last
idle, until = 0.0, time.monotonic() + 2
while time.monotonic() < until:
    start = time.perf_counter()
    sum(range(500))
    idle = max(idle, time.perf_counter() - start)
import toolfault
from toolfault.errors import Issue, ToolError
client = toolfault.init(sys.argv[1])
def failure(number):
    issue = Issue("port", "wrong_type", "no", expected="integer", received=f"'{number}'")
    return ToolError.from_issues("t", [issue])
for number in range(200):
    toolfault.capture_failure(failure(number))
count = int(sys.argv[2])
prepared = [failure(number) for number in range(1_000)]
gc.collect(); gc.freeze()
clock, used, waits, cpu = time.perf_counter, time.thread_time, [], []
for number in range(count):
    error, arguments = prepared[number % 1_000], {"port": number}
    before, start = used(), clock()
    toolfault.capture_failure(error, arguments=arguments)
    waits.append(clock() - start)
    cpu.append(used() - before)
waits.sort()
figures = [waits[count // 2], waits[int(count * 0.99)], waits[-1], max(cpu)]
began = time.monotonic()
"""


def refused(peer: socket.socket) -> None:
    """Hang up."""
    peer.close()


def mute(peer: socket.socket) -> None:
    """Read everything, answer nothing: a black hole, and a server that never says 100 Continue."""
    while peer.recv(65_536):
        pass


def deaf(peer: socket.socket) -> None:
    """Neither read nor answer."""
    threading.Event().wait()


def dripping(peer: socket.socket) -> None:
    """Answer one byte a second."""
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b" " * 1_000:
        peer.sendall(bytes([byte]))
        time.sleep(1.0)


FAULTS: dict[str, tuple[str, Callable[[socket.socket], None] | None]] = {
    "port refused": ("http://KEY@127.0.0.1:1", None),
    "no such host": ("http://KEY@no-such-host.invalid", None),
    "hangs up": ("http://KEY@127.0.0.1:{port}", refused),
    "black hole": ("http://KEY@127.0.0.1:{port}", mute),
    "reads nothing": ("http://KEY@127.0.0.1:{port}", deaf),
    "one byte a second": ("http://KEY@127.0.0.1:{port}", dripping),
    "TLS handshake stalls": ("https://KEY@127.0.0.1:{port}", deaf),
}


def serve(behave: Callable[[socket.socket], None]) -> int:
    """Listen on a free port, behave to every connection, and return the port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(peer: socket.socket) -> None:
        try:
            behave(peer)
        except OSError:
            peer.close()

    def accept() -> None:
        while True:
            peer = listener.accept()[0]
            threading.Thread(target=answer, args=(peer,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return int(listener.getsockname()[1])


def run(fault: str, captures: int) -> dict[str, object]:
    """Capture against one fault."""
    dsn, behave = FAULTS[fault]
    port = 0 if behave is None else serve(behave)
    agent = subprocess.run(
        [sys.executable, "-c", AGENT, dsn.format(port=port), str(captures)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SDK)},
    )
    ended = time.monotonic()
    figures, idle, began, stats = json.loads(agent.stdout)
    p50, p99, longest, cpu = (round(seconds * 1e6, 1) for seconds in figures)
    captured, acked, rejected, dropped, pending = stats
    if captured != acked + rejected + sum(dropped.values()) + pending:
        raise SystemExit(f"{fault}: the books do not balance: {stats}")
    return {
        "fault": fault,
        "captured": captured,
        "p50_us": p50,
        "p99_us": p99,
        "max_us": longest,
        "max_cpu_us": cpu,
        "idle_max_us": round(idle * 1e6, 1),
        "exit_s": round(ended - began, 2),
        "dropped": dropped,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--captures", type=int, default=100_000)
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS))
    given = parser.parse_args()
    for fault in given.only:
        print(json.dumps(run(fault, given.captures)), flush=True)


if __name__ == "__main__":
    main()
