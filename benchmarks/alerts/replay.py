"""Rules over 90 days with known incidents: which are found, how late, and how many false alarms.

    python benchmarks/alerts/replay.py [--projects 5] [--days 90] [--seed 1]

Each project is a history of conversations on an SQLite file: calls of one conversation are alike
(its failure rate is drawn from a beta distribution), traffic falls at night and at weekends, and
eight incidents lie on days that chance chooses, each of which one condition is made for. Every rule
has the defaults and the threshold that its form suggests after 20 days in which nothing happens.
The 90 days that follow are replayed by the state machine of the server, at the moments that a
preview looks at.

An alarm is false if it begins while no incident goes on and none ended within its rule's window.
Prints a table; nothing is left behind.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, MINUTE_US, SECOND_US, format_time
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.database.schema import prepare
from toolfault_collector.storage.drops import count_drops
from toolfault_collector.storage.store import store_events
from toolfault_dashboard.alerts.preview import Firing, preview, suggested
from toolfault_dashboard.alerts.rules import CONDITIONS, Rule, read_rule

HOUR_US: Final = 60 * MINUTE_US
BEGIN: Final = 20_500 * DAY_US
CALM_DAYS: Final = 20  # thresholds come from these
TOOLS: Final = (
    ("search", 0.06), ("http_request", 0.10), ("book_table", 0.04), ("read_file", 0.03),
    ("send_mail", 0.05), ("run_query", 0.12),
)  # fmt: skip
CODES: Final = ("wrong_type", "missing_field")
SPREAD: Final = 12.0  # the larger, the more alike the failure rates of conversations


@dataclass(frozen=True)
class Incident:
    """Something that goes wrong for a while, and the condition that is made for it."""

    condition: str
    hours: int
    words: str
    begin: int = 0

    @property
    def end(self) -> int:
        return self.begin + self.hours * HOUR_US


INCIDENTS: Final = (
    Incident("failure_rate", 12, "a tool fails 7 times in 10 for 12 hours"),
    Incident("first_try_success", 24, "a third of first calls fails, and the next one succeeds"),
    Incident("recovery_rate", 24, "models give up after 8 of 10 failures"),
    Incident("round_trips_per_operation", 24, "every failure is retried six times"),
    Incident("new_kind", 6, "a code never seen before, 2 % of calls"),
    Incident("user_failures", 6, "a login runs out, for 2 % of calls"),
    Incident("no_data", 12, "no call for 12 hours"),
    Incident("sender_drops", 1, "a sender loses 400 events"),
)


def main() -> None:
    """Replay the rules over each project and print what became of the incidents."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--projects", type=int, default=5)
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--per-day", type=int, default=70, help="conversations a day")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    delays: dict[str, list[float]] = {name: [] for name in CONDITIONS}
    false: list[list[str]] = []
    for number in range(given.projects):
        rng = random.Random(f"{given.seed}:{number}")
        with tempfile.TemporaryDirectory() as folder:
            engine = open_engine(f"sqlite:///{Path(folder) / 'replay.db'}", synchronous="NORMAL")
            prepare(engine, migrate=True)
            incidents = placed(rng, given.days)
            project = fill(engine, rng, incidents, CALM_DAYS + given.days, given.per_day)
            alarms = replayed(engine, project, given.days)
            engine.dispose()
        false.append(judge(incidents, alarms, delays))
        print(f"project {number + 1}: false alarms {false[-1] or 'none'}", file=sys.stderr)
    report(delays, false, given)


def placed(rng: random.Random, days: int) -> list[Incident]:
    """Put the incidents on days of their own, at least four days apart, some in working hours."""
    apart = (days - 6) // len(INCIDENTS)
    order = rng.sample(INCIDENTS, len(INCIDENTS))
    found = []
    for place, each in enumerate(order):
        day = CALM_DAYS + 3 + place * apart + rng.randrange(max(1, apart - 4))
        found.append(replace(each, begin=BEGIN + day * DAY_US + rng.randrange(6, 12) * HOUR_US))
    return found


def fill(
    engine: Engine, rng: random.Random, incidents: list[Incident], days: int, per_day: int
) -> int:
    """Store the history and return its project."""
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "replay")
    for day in range(days):
        begin = BEGIN + day * DAY_US
        weekend = (day % 7) >= 5
        events: list[dict[str, Any]] = []
        for conversation in range(int(per_day * (0.5 if weekend else 1.0))):
            hour = rng.choices(range(24), [1] * 7 + [3] * 13 + [2] * 4)[0]
            at = begin + hour * HOUR_US + rng.randrange(HOUR_US)
            events += talk(rng, f"{day}-{conversation}", at, incidents)
        events.sort(key=lambda each: each["occurred_at"])
        for place in range(0, len(events), 1_000):
            with write_transaction(engine) as conn:
                store_events(
                    conn, project, events[place : place + 1_000],
                    received_at=begin + DAY_US, time_policy="import",
                )  # fmt: skip
    for each in incidents:
        if each.condition == "sender_drops":
            with write_transaction(engine) as conn:
                count_drops(conn, [(project, each.begin, {"queue_overflow": 400})])
    return project


def talk(
    rng: random.Random, session: str, at: int, incidents: list[Incident]
) -> Iterator[dict[str, Any]]:
    """Return the calls of one conversation that begins at *at*."""
    mood = rng.betavariate(SPREAD * 0.5, SPREAD * 0.5) * 2  # around 1: luck of the conversation
    for number in range(rng.randrange(3, 9)):
        tool, usual = rng.choice(TOOLS)
        now = next((each for each in incidents if each.begin <= at < each.end), None)
        going_on = now.condition if now else ""
        if going_on == "no_data":
            return
        fails, code, audience = min(0.9, usual * mood), rng.choice(CODES), "llm"
        recovers, retries = 0.8, 2
        if going_on == "failure_rate" and tool == "search":
            fails, code = 0.7, "timeout"
        elif going_on == "failure_rate":
            fails = max(fails, 0.35)  # what depends on it fails as well
        elif going_on == "first_try_success":
            fails, recovers = 0.45, 0.99
        elif going_on == "recovery_rate":
            fails, recovers, retries = max(fails, 0.15), 0.1, 1
        elif going_on == "round_trips_per_operation":
            fails, recovers, retries = max(fails, 0.2), 0.05, 6
        elif going_on in ("new_kind", "user_failures") and rng.random() < 0.02 * 6:
            fails = 1.0
            code = "quota_exceeded" if going_on == "new_kind" else "login_required"
            audience = "llm" if going_on == "new_kind" else "user"
        failed = rng.random() < fails
        yield call(rng, session, tool, at, code if failed else None, audience)
        for _ in range(retries if failed else 0):
            at += rng.randrange(2, 20) * SECOND_US
            again = rng.random() >= recovers
            yield call(rng, session, tool, at, code if again else None, audience)
            if not again:
                break
        at += rng.randrange(5, 120) * SECOND_US
        del number


def call(
    rng: random.Random, session: str, tool: str, at: int, code: str | None, audience: str
) -> dict[str, Any]:
    """Return one call as a sender would write it."""
    event: dict[str, Any] = {
        "type": "tool_call",
        "event_id": f"{rng.getrandbits(32):08x}-0000-4000-8000-{rng.getrandbits(48):012x}",
        "occurred_at": format_time(at),
        "session_id": session,
        "tool": tool,
        "duration_ms": 200.0,
        "success": code is None,
    }
    if code is not None:
        issue = {"field": "query", "code": code, "message": "not accepted"}
        event["error"] = {
            "code": code, "category": "parameter", "audience": audience, "field": "query",
            "issues": [issue], "renderings": {"llm": "not accepted"},
        }  # fmt: skip
    return event


def replayed(engine: Engine, project: int, days: int) -> dict[str, tuple[Rule, list[Firing]]]:
    """Return what every rule says over the days after the calm ones."""
    now = BEGIN + (CALM_DAYS + days) * DAY_US
    found: dict[str, tuple[Rule, list[Firing]]] = {}
    for condition in CONDITIONS.values():
        if condition.kind == "digest":
            continue
        rule = read_rule(
            {"condition": condition.name}, project_id=project, audience="system", now=now
        )
        with read_connection(engine) as conn:
            _, threshold = suggested(conn, rule, BEGIN + CALM_DAYS * DAY_US)
            rule = replace(rule, threshold=threshold)
            seen = preview(conn, rule, now, days=days, seconds=float("inf"))
        found[condition.name] = (rule, list(seen.firings))
    return found


def judge(
    incidents: list[Incident],
    alarms: dict[str, tuple[Rule, list[Firing]]],
    delays: dict[str, list[float]],
) -> list[str]:
    """Add the delay of each incident that was found (in hours), and return the false alarms."""
    false: list[str] = []
    for each in incidents:
        rule, firings = alarms[each.condition]
        first = [
            firing.began_at
            for firing in firings
            if each.begin <= firing.began_at <= each.end + rule.window_us
        ]
        delays[each.condition].append((first[0] - each.begin) / HOUR_US if first else float("inf"))
    for name, (rule, firings) in alarms.items():
        for firing in firings:
            if not any(
                each.begin <= firing.began_at <= each.end + rule.window_us for each in incidents
            ):
                false.append(f"{name} on day {(firing.began_at - BEGIN) / DAY_US:.1f}")
    return false


def report(
    delays: dict[str, list[float]], false: list[list[str]], given: argparse.Namespace
) -> None:
    """Print the table of `docs/alerts.md`."""
    print("| incident | condition | found | hours until it fired: median, longest |")
    print("|---|---|---|---|")
    for each in INCIDENTS:
        own = delays[each.condition]
        known = [hours for hours in own if hours != float("inf")]
        late = f"{statistics.median(known):.0f}, {max(known):.0f}" if known else "–"
        print(f"| {each.words} | `{each.condition}` | {len(known)} of {len(own)} | {late} |")
    most = max(len(each) for each in false)
    total = sum(len(each) for each in false)
    print(
        f"\nFalse alarms of all rules together: {total} in {given.projects} projects of "
        f"{given.days} days, at most {most} in one."
    )


if __name__ == "__main__":
    main()
