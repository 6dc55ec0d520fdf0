"""Whether a fix saves what was predicted: each remedy of the demo's fleet, applied in turn.

    python benchmarks/coding_agent/each_remedy.py [--seeds 20] [--first 1] [--only TOOL ...]
    python benchmarks/coding_agent/each_remedy.py --table LINES ...

For each seed the agents work for two weeks, as the demo tells them, with its three changes. Then
each of ten fixes is predicted (`toolfault_dashboard.predictions`), applied to a copy of the
agents' source, and recorded as a change; two more weeks follow. They are lived once more with the
old tools: by the same agents in the same conversations with the same chances, so that only the
remedy is different.

- *true*: calls spent after failures of the tool in those weeks with the old tools, less those with
  the mended one, a week. Nobody outside a simulation can know it; it has the chance of the weeks.
- *shown*: what the product says was saved since the change, which carries the past forward.

A run counts as held where the figure lies in the interval predicted for two weeks. Beside it the
interval of the average week, which leaves out the chance of the weeks to come. Prints a line of
JSON for each run and a table at the end; nothing is left behind.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from first_five import copied_source, example  # noqa: E402
from sqlalchemy import Engine, select  # noqa: E402

from toolfault_collector.admin.projects import ensure_project  # noqa: E402
from toolfault_collector.clock import format_time  # noqa: E402
from toolfault_collector.storage.database.engine import (  # noqa: E402
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.database.schema import prepare  # noqa: E402
from toolfault_collector.storage.store import store_events  # noqa: E402
from toolfault_collector.storage.tables import tool_call  # noqa: E402
from toolfault_dashboard import queries  # noqa: E402
from toolfault_dashboard.analysis.fixes.fixes import Fix  # noqa: E402
from toolfault_dashboard.analysis.fixes.opportunities import FixKey  # noqa: E402
from toolfault_dashboard.analysis.fixes.patches import patches  # noqa: E402
from toolfault_dashboard.analysis.fixes.prediction import prediction_interval  # noqa: E402
from toolfault_dashboard.predictions import outcomes, predicted  # noqa: E402
from toolfault_dashboard.queries import Scope  # noqa: E402
from toolfault_dashboard.queries.fixes.fix_next import one_fix  # noqa: E402
from toolfault_dashboard.search import parse  # noqa: E402
from toolfault_dashboard.writes.picked_fixes import pick_fix, picked_fixes  # noqa: E402

DAYS: Final = 14
WEEKS: Final = DAYS / 7
DAY: Final = 86_400
SECOND_US: Final = 1_000_000

# With "later" the fleet is as the two weeks left it: last releases, changed tools, no new change.
_LIVE: Final = """
import asyncio, sys
from dataclasses import replace
import fleet.fleet
from fleet import history
from fleet.fleet import FLEET
from fleet.live import quiet_tools
quiet_tools()
history._FLUSH_SECONDS = 600.0  # a busy machine is no lost event
dsn, seed, until, days, when, *agents = sys.argv[1:]
if agents:
    fleet.fleet.FLEET = tuple(post for post in FLEET if post.agent in agents)
if when == "later":
    told, last = history.assignments, {post.agent: post.releases[-1][1] for post in FLEET}
    def settled(**how):
        every = [
            replace(one, after_days=history.HISTORY_DAYS,
                    deployment=replace(one.deployment, release=last[one.deployment.agent]))
            for one in told(**how)
        ]
        return sorted(every, key=lambda one: (one.deployment, one.starts_at))
    history.assignments, history.CHANGES = settled, ()
asyncio.run(history.live_through(dsn=dsn, seed=int(seed), until=float(until), days=int(days)))
"""

coding_agent = example()
Envelopes = list[dict[str, Any]]


@dataclass(frozen=True)
class Remedy:
    """A fix and how it is applied to the source of the agents."""

    tool: str
    field: str
    remedy: str
    apply: Callable[[Path], None]
    detail: str = ""

    @property
    def name(self) -> str:
        """What a line of the table begins with."""
        return f"{self.tool}{'.' if self.field else ''}{self.field}: {self.remedy}"


def _by_patch(tool: str, field: str, remedy: str, detail: str = "") -> Remedy:
    """Apply the patch for pydantic that Fix next shows, as the scripted coding agent does."""
    found = patches(FixKey(tool, field, remedy, detail))
    text = next(each.text for each in found if each.kind == "pydantic")
    return Remedy(
        tool, field, remedy, lambda source: coding_agent.accept(source, tool, field, text)
    )


def _by_hand(tool: str, field: str, remedy: str, *, file: str, old: str, new: str) -> Remedy:
    """Apply what a patch leaves to the author of the tool, its words and numbers."""

    def apply(source: Path) -> None:
        path = source / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, (file, old)
        path.write_text(text.replace(old, new), encoding="utf-8")

    return Remedy(tool, field, remedy, apply)


_CALL: Final = "__import__('pydantic').BeforeValidator(lambda value: {})"
REMEDIES: Final = (
    _by_patch("send_email", "to", "wrap_in_list"),
    _by_patch("create_calendar_event", "attendees", "json_from_string"),
    _by_patch("book_hotel", "refundable", "bool_from_string"),
    _by_patch("search_flights", "origin", "alias", "origin_airport"),
    _by_hand(
        "convert_currency", "to_currency", "fold_case", file="parameters.py",
        old="    to_currency: Currency\n",
        new=f"    to_currency: Annotated[Currency, {_CALL.format('str(value).upper()')}]\n",
    ),
    _by_hand(
        "run_sql", "limit", "clamp", file="parameters.py",
        old="    limit: int = Field(100, ge=1, le=500)\n",
        new=f"    limit: Annotated[int, {_CALL.format('min(max(value, 1), 500)')},"
        " Field(ge=1, le=500)] = 100\n",
    ),
    # Simulated models read no description: that a better one works is assumed.
    _by_hand(
        "get_weather", "country", "describe", file="problems.py",
        old='Slip("get_weather", "country", "leave_out", 0.08',
        new='Slip("get_weather", "country", "leave_out", 0.0',
    ),
    Remedy("web_search", "", "expose", lambda source: coding_agent.offer(source, "web_search")),
    _by_hand(
        "create_ticket", "", "all_at_once", file="toolkit.py",
        old='all_at_once=arm == "treatment"', new="all_at_once=True",
    ),
    _by_hand(
        "apply_patch", "", "reword", file="code_tools.py",
        old='"The patch does not apply"',
        new='"`diff` must remove lines that are in the file"',
    ),
)  # fmt: skip


class _Sink(BaseHTTPRequestHandler):
    """Takes what agents send, as a collector does, and keeps it."""

    received: Envelopes = []  # noqa: RUF012 - one recording at a time

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        envelope = json.loads(body)
        self.received.append(envelope)
        said = {"accepted": len(envelope["events"]), "duplicate": 0, "rejected": []}
        answer = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def sink() -> Iterator[str]:
    """Run a sink while the block lasts; yield where to send to."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://key@127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def record(
    folder: Path, dsn: str, *, seed: int, until: int, later: bool, agents: Sequence[str] = ()
) -> Envelopes:
    """Let agents of the copy in *folder* work for two weeks; return what they sent.

    Args:
        folder: Where the copy is.
        dsn: Where to send to: a `sink`.
        seed: Of the agents.
        until: End of the two weeks, seconds since the epoch.
        later: Whether the fleet is as the two weeks before left it.
        agents: Only these; what one agent does depends on no other.
    """
    _Sink.received.clear()
    when = "later" if later else "first"
    arguments = [sys.executable, "-c", _LIVE, dsn, str(seed), str(until), str(DAYS), when, *agents]
    subprocess.run(arguments, cwd=folder, check=True)
    return list(_Sink.received)


def of_tool(envelopes: Envelopes, tool: str) -> Envelopes:
    """Return the conversations that call *tool* and the counts of it: all that it is judged by."""
    every = [each for envelope in envelopes for each in envelope["events"]]
    talks = {each.get("session_id") for each in every if each.get("tool") == tool}
    ends = (each for each in every if each["type"] == "conversation_end")
    talks |= {each["session_id"] for each in ends if tool in each["calls"]}

    def is_wanted(event: dict[str, Any]) -> bool:
        talk = event.get("session_id")
        return event.get("tool") == tool if talk is None else talk in talks

    return [
        {**envelope, "events": [each for each in envelope["events"] if is_wanted(each)]}
        for envelope in envelopes
    ]


def store(engine: Engine, envelopes: Envelopes, *, now: int) -> int:
    """Store what was sent in the only project of *engine*, and return the project."""
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "fleet")
        for envelope in envelopes:
            receipt = store_events(
                conn, project, envelope["events"], received_at=now, resource=envelope["resource"]
            )
            assert not receipt.rejected
    return project


def spent(engine: Engine, scope: Scope) -> Counter[str]:
    """Return the calls spent after the failures of each tool in *scope*."""
    with read_connection(engine) as conn:
        rows = queries.fix_next(conn, scope).rows
    found: Counter[str] = Counter()
    for row in rows:
        if row.cost is not None:  # a better wording has its cost in other rows
            found[row.tool] += row.cost
    return found


def agents_of(engine: Engine, tool: str) -> list[str]:
    """Return the agents that call *tool*."""
    with read_connection(engine) as conn:
        rows = conn.execute(select(tool_call.c.agent).where(tool_call.c.tool == tool).distinct())
        return sorted(rows.scalars())


def runs(seed: int, remedies: tuple[Remedy, ...], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what came of each remedy for one seed."""
    now = int(time.time())
    changed, now_us = (now - DAYS * DAY) * SECOND_US, now * SECOND_US
    with sink() as dsn:
        plain = folder / "plain"
        copied_source(plain)
        engine = _database(folder / "first.db")
        project = store(
            engine,
            record(plain, dsn, seed=seed, until=now - DAYS * DAY, later=False),
            now=now_us,
        )
        engine.dispose()
        old = _copied(folder / "first.db", folder / "old.db")
        store(old, record(plain, dsn, seed=seed + 1000, until=now, later=True), now=now_us)
        after = Scope(project, parse(""), now_us).narrowed(f"since:{format_time(changed)}")
        cost = spent(old, after)
        for remedy in remedies:
            source = folder / f"{remedy.tool}-{remedy.remedy}"
            remedy.apply(copied_source(source))
            new = _copied(folder / "first.db", folder / f"{source.name}.db")
            promise = _pick(new, Scope(project, parse(""), changed), remedy)
            if promise is None:
                yield {"seed": seed, "remedy": remedy.name, "predicted": None}
                continue
            sent = record(
                source, dsn, seed=seed + 1000, until=now, later=True,
                agents=agents_of(old, remedy.tool),
            )  # fmt: skip
            store(new, of_tool(sent, remedy.tool), now=now_us)
            of_its_own = after.narrowed(f"tool:{remedy.tool}")
            true = (cost[remedy.tool] - spent(new, of_its_own)[remedy.tool]) / WEEKS
            yield {"seed": seed, "remedy": remedy.name, **promise, "true": round(true, 2)} | _shown(
                new, project, now_us
            )
            new.dispose()
        old.dispose()


def _pick(engine: Engine, scope: Scope, remedy: Remedy) -> dict[str, Any] | None:
    """Predict a fix, pick it, and record the change that carries it out."""
    which = {"tool": remedy.tool, "field": remedy.field, "remedy": remedy.remedy}
    with read_connection(engine) as conn:
        found = predicted(conn, scope, **which)
        usual = one_fix(conn, scope.narrowed("since:28d"), **which)
    if found is None or usual is None:
        return None
    pick_fix(
        engine, scope.project_id, **which, event_id="x", actor="ada", now=scope.now,
        prediction=found,
    )  # fmt: skip
    change = {
        "type": "change", "event_id": f"00000000-0000-7000-8000-{scope.now % 10**12:012}",
        "occurred_at": format_time(scope.now), "label": remedy.remedy, "tool": remedy.tool,
    }  # fmt: skip
    with write_transaction(engine) as conn:
        store_events(conn, scope.project_id, [change], received_at=scope.now, time_policy="import")
    low, high = prediction_interval(
        found.per_week * found.weeks, found.squares, found.weeks, ahead=WEEKS
    )
    fix: Fix = usual[0]
    return {
        "predicted": round(found.per_week, 2),
        "low": round(low, 2),
        "high": round(high, 2),
        "n": found.n,
        "average_week": [round(fix.low or 0.0, 2), round(fix.high or 0.0, 2)],
    }


def _shown(engine: Engine, project: int, now: int) -> dict[str, Any]:
    """Return what the product says of the fix that was picked."""
    with read_connection(engine) as conn:
        (found,) = outcomes(conn, Scope(project, parse(""), now), picked_fixes(conn, project))
    saved = None if found.saved is None else round(found.saved, 2)
    return {"shown": saved, "verdict": found.verdict}


def _database(path: Path) -> Engine:
    engine = open_engine(f"sqlite:///{path}")
    prepare(engine, migrate=True)
    return engine


def _copied(path: Path, copy: Path) -> Engine:
    shutil.copyfile(path, copy)
    return open_engine(f"sqlite:///{copy}")


def table(found: list[dict[str, Any]]) -> str:
    """Return the runs by remedy as a Markdown table."""
    groups: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in found:
        groups[each["remedy"]].append(each)
    groups["all"] = list(found)
    lines = [
        "| remedy | runs | predicted | true | true held | shown held | true in the average's |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, own in groups.items():
        known = [each for each in own if each["predicted"] is not None]
        shown = [each for each in known if each["shown"] is not None]
        means = [
            sum(each[figure] for each in known) / len(known) if known else 0.0
            for figure in ("predicted", "true")
        ]
        within = sum(each["low"] <= each["true"] <= each["high"] for each in known)
        average = sum(
            each["average_week"][0] <= each["true"] <= each["average_week"][1] for each in known
        )
        held = sum(each["verdict"] == "held" for each in shown)
        lines.append(
            f"| {name} | {len(known)} | {means[0]:.1f} | {means[1]:.1f} | {within} of {len(known)}"
            f" | {held} of {len(shown)} | {average} of {len(known)} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="Tools.")
    parser.add_argument("--table", nargs="+", type=Path, help="Lines of runs: print their table.")
    arguments = parser.parse_args()
    if arguments.table:
        lines = [line for path in arguments.table for line in path.read_text().splitlines()]
        print(table([json.loads(line) for line in lines if line.startswith("{")]))
        return
    remedies = tuple(each for each in REMEDIES if not arguments.only or each.tool in arguments.only)
    found: list[dict[str, Any]] = []
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        with tempfile.TemporaryDirectory() as name:
            for each in runs(seed, remedies, Path(name)):
                found.append(each)
                print(json.dumps(each), flush=True)
    print(table(found))


if __name__ == "__main__":
    main()
