"""How fast transcripts are imported, and whether memory stays flat while a file grows.

    python benchmarks/ingest/transcripts.py [--calls 100000] [--formats openai,anthropic]
        [--packed zst] [--postgresql]

A file of conversations of ten calls each is written, one conversation a line, one call in ten
fails. It is imported into an empty database by a process of its own, as `toolfault import` does it,
at a tenth of the calls and at all of them. One line of JSON for each: calls per second of the clock
and of the processor, and the most memory that the process held. What is in the database afterwards
is counted; a run in which it is not every call fails.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent)]

import zstandard  # noqa: E402
from databases import postgres_database, sqlite_database  # noqa: E402
from machine import loop_ms  # noqa: E402
from sqlalchemy import func, select  # noqa: E402

import toolfault_migrations  # noqa: E402
from toolfault_collector.admin.projects import ensure_project  # noqa: E402
from toolfault_collector.importers import import_paths  # noqa: E402
from toolfault_collector.storage.database.engine import open_engine, write_transaction  # noqa: E402
from toolfault_collector.storage.tables import tool_call  # noqa: E402

TURNS = 10
TOOLS = ("search", "read_file", "write_file", "run_tests", "fetch_url")


def main() -> None:
    """Print one line per format and size."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--formats", default="openai,anthropic,openai-responses,langchain")
    parser.add_argument("--packed", choices=("gz", "zst"), help="compress the file")
    parser.add_argument("--postgresql", action="store_true", help="instead of SQLite")
    parser.add_argument("--import", nargs=2, dest="one", metavar=("URL", "FILE"))
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(_imported(*asked.one)))
        return
    for name in asked.formats.split(","):
        for calls in (asked.calls // 10, asked.calls):
            database = postgres_database if asked.postgresql else sqlite_database
            with database() as (url, folder):
                path = _written(folder, name, calls, asked.packed)
                command = [sys.executable, __file__, "--import", url, str(path)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                row = {"format": name, "packed": asked.packed, "mib": path.stat().st_size >> 20}
                row |= json.loads(done.stdout)
                if row["calls"] != calls:
                    sys.exit(f"{row['calls']} of {calls} calls are stored")
                print(json.dumps({**row, "machine_ms": round(loop_ms())}), flush=True)


def _imported(url: str, path: str) -> dict[str, Any]:
    engine = open_engine(url)
    toolfault_migrations.upgrade(engine)
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "benchmark")
    began, cpu = time.perf_counter(), time.process_time()
    report = import_paths(engine, project, [Path(path)])
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    with engine.connect() as conn:
        stored = conn.execute(select(func.count()).select_from(tool_call)).scalar_one()
    engine.dispose()
    return {
        "calls": int(stored),
        "failures": report.failures,
        "calls_per_s": round(stored / took),
        "calls_per_cpu_s": round(stored / cpu),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def _written(folder: Path, name: str, calls: int, packed: str | None) -> Path:
    path = folder / f"a.jsonl{f'.{packed}' if packed else ''}"
    raw = path.open("wb")
    opened: Any = raw
    if packed == "gz":
        opened = gzip.GzipFile(fileobj=raw)
    elif packed == "zst":
        opened = zstandard.ZstdCompressor().stream_writer(raw)
    with raw, opened:
        for conversation in range(calls // TURNS):
            messages = _MESSAGES[name](range(conversation * TURNS, (conversation + 1) * TURNS))
            opened.write(json.dumps({"messages": messages}).encode() + b"\n")
    return path


def _id(number: int) -> str:
    return f"call_{number:08}aZ4kQ9xW2mB7vL5t"


def _text(number: int) -> str:
    if number % TURNS == 3:
        return f"Error: 'limit' is a required property (attempt {number})"
    return f"result {number}: " + "the quick brown fox jumps over the lazy dog. " * 8


def _tool(number: int) -> str:
    return TOOLS[number // 2 % len(TOOLS)]


def _openai(numbers: range) -> list[Any]:
    found: list[Any] = [{"role": "user", "content": "please do it"}]
    for number in numbers:
        function = {"name": _tool(number), "arguments": json.dumps({"query": number, "limit": 5})}
        call = {"id": _id(number), "type": "function", "function": function}
        found.append({"role": "assistant", "content": None, "tool_calls": [call]})
        found.append({"role": "tool", "tool_call_id": _id(number), "content": _text(number)})
    return found


def _anthropic(numbers: range) -> list[Any]:
    found: list[Any] = [{"role": "user", "content": "please do it"}]
    for number in numbers:
        use = {"type": "tool_use", "id": _id(number), "name": _tool(number), "input": {"q": number}}
        answer = {"type": "tool_result", "tool_use_id": _id(number), "content": _text(number)}
        answer["is_error"] = _text(number).startswith("Error")
        found.append({"role": "assistant", "content": [use]})
        found.append({"role": "user", "content": [answer]})
    return found


def _responses(numbers: range) -> list[Any]:
    found: list[Any] = [{"type": "message", "role": "user", "content": "please do it"}]
    for number in numbers:
        call = {"type": "function_call", "call_id": _id(number), "name": _tool(number)}
        found.append({**call, "arguments": json.dumps({"query": number})})
        kind = "function_call_output"
        found.append({"type": kind, "call_id": _id(number), "output": _text(number)})
    return found


def _langchain(numbers: range) -> list[Any]:
    found: list[Any] = [{"type": "human", "data": {"content": "please do it"}}]
    for number in numbers:
        call = {"name": _tool(number), "args": {"query": number}, "id": _id(number)}
        found.append({"type": "ai", "data": {"content": "", "tool_calls": [call]}})
        answer = {"content": _text(number), "tool_call_id": _id(number), "name": _tool(number)}
        answer["status"] = "error" if _text(number).startswith("Error") else "success"
        found.append({"type": "tool", "data": answer})
    return found


_MESSAGES = {
    "openai": _openai,
    "anthropic": _anthropic,
    "openai-responses": _responses,
    "langchain": _langchain,
}


if __name__ == "__main__":
    main()
