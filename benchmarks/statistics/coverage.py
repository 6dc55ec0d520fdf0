"""How often the interval of a rate covers the true rate, when calls of a conversation are alike.

Conversations have a beta-binomial number of failures: the rate of each is drawn from a beta
distribution whose mean is the true rate and whose intra-class correlation (ICC) says how alike the
calls of one conversation are. Printed beside the interval that every page shows is the one that
counts calls as independent.

    python benchmarks/statistics/coverage.py --repetitions 1000
    python benchmarks/statistics/coverage.py --days --repetitions 400
    python benchmarks/statistics/coverage.py --buckets --repetitions 1000

With ``--days`` the conversations go on for days. Each history is a project of a database that the
product reads, as a large window, which it counts day by day; printed beside its interval is that
of conversations whose every day counts as one of its own.

With ``--buckets`` each conversation lies on one of fourteen days, and the intervals are those of
the days, as the chart of failures over time draws them: how alike calls are comes from all days.
Printed beside them are intervals that count the calls of a day as independent.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, insert

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.database.schema import prepare
from toolfault_collector.storage.tables import conversation, quarter_version, tool_call
from toolfault_dashboard.analysis.clusters import Moments
from toolfault_dashboard.analysis.weights import (
    Amount,
    calls_per_trial,
    rate_within,
    weighted_rate,
)
from toolfault_dashboard.queries.counting.segments import is_asked_at_once
from toolfault_dashboard.queries.figures.clusters import calls_of_conversations
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search import parse

_NOW: Final = 20_000 * DAY_US
_DAYS: Final = 14  # of a window with ``--buckets``
_Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Setting:
    """One kind of data.

    Attributes:
        conversations: How many.
        calls: Mean calls of a conversation; their number is geometric, at least 1.
        icc: Intra-class correlation.
        rate: True failure rate.
    """

    conversations: int
    calls: int
    icc: float
    rate: float


def drawn(setting: Setting, rng: np.random.Generator) -> tuple[_Counts, _Counts]:
    """Return the failures and the calls of each conversation."""
    n = rng.geometric(1 / setting.calls, setting.conversations)
    rates = np.full(setting.conversations, setting.rate)
    if setting.icc:
        more = 1 / setting.icc - 1
        rates = rng.beta(setting.rate * more, (1 - setting.rate) * more, setting.conversations)
    return rng.binomial(n, rates), n


def interval(f: _Counts, n: _Counts, moments: Moments | None) -> tuple[float, float]:
    """Return the interval that a page shows for these counts and *moments*."""
    part, whole = (Amount(int(each), int(each), int(each)) for each in (f.sum(), n.sum()))
    found = weighted_rate(part, whole, moments)
    return found.low or 0.0, 1.0 if found.high is None else found.high


def moments_of(f: _Counts, n: _Counts) -> Moments:
    """Return the moments of conversations with *f* failures of *n* calls."""
    f, n = f[n > 0], n[n > 0]
    return Moments(len(n), float(f @ f), float(f @ n), float(n @ n))


def coverage(setting: Setting, repetitions: int, seed: int) -> dict[str, object]:
    """Return the share of intervals, in percent, that cover the true rate."""
    rng = np.random.default_rng(seed)
    covered = independent = 0
    widths = []
    for _ in range(repetitions):
        f, n = drawn(setting, rng)
        low, high = interval(f, n, moments_of(f, n))
        covered += low <= setting.rate <= high
        low_plain, high_plain = interval(f, n, None)
        independent += low_plain <= setting.rate <= high_plain
        widths.append(high - low)
    return {
        **vars(setting),
        "covered_percent": round(100 * covered / repetitions, 1),
        "independent_percent": round(100 * independent / repetitions, 1),
        "mean_width_points": round(100 * float(np.mean(widths)), 1),
    }


def coverage_of_buckets(setting: Setting, repetitions: int, seed: int) -> dict[str, object]:
    """Return the same of the days of a window: their own calls, and what all say of likeness."""
    rng = np.random.default_rng(seed)
    covered = independent = drawn_days = 0
    for _ in range(repetitions):
        f, n = drawn(setting, rng)
        part, whole = (Amount(int(each), int(each), int(each)) for each in (f.sum(), n.sum()))
        per_trial = calls_per_trial(part, whole, moments_of(f, n))
        day = rng.integers(0, _DAYS, len(n))
        failures, calls = (
            np.bincount(day, weights=each, minlength=_DAYS).astype(int) for each in (f, n)
        )
        for failed, called in zip(failures.tolist(), calls.tolist(), strict=True):
            if not called:
                continue
            drawn_days += 1
            of_day, plain = (rate_within(failed, called, each) for each in (per_trial, 1.0))
            covered += (of_day.low or 0.0) <= setting.rate <= (of_day.high or 0.0)
            independent += (plain.low or 0.0) <= setting.rate <= (plain.high or 0.0)
    return {
        **vars(setting),
        "covered_percent": round(100 * covered / drawn_days, 1),
        "independent_percent": round(100 * independent / drawn_days, 1),
    }


@contextmanager
def database() -> Iterator[Engine]:
    """Yield an empty database that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        engine = open_engine(f"sqlite:///{Path(folder) / 'toolfault.db'}", synchronous="OFF")
        prepare(engine, migrate=True)
        yield engine
        engine.dispose()


def stored(engine: Engine, name: str, at: list[_Counts], failed: list[_Counts]) -> int:
    """Store a history as a large project, and return the project.

    Args:
        engine: The database.
        name: Name of the project.
        at: When the calls of each conversation ended, in microseconds.
        failed: Whether each of them failed.
    """
    with write_transaction(engine) as conn:
        project = ensure_project(conn, name)
        rows: list[dict[str, Any]] = []
        for talk, (times, outcomes) in enumerate(zip(at, failed, strict=True)):
            for number, (time, failure) in enumerate(zip(times, outcomes, strict=True)):
                rows.append(
                    {
                        "project_id": project,
                        "event_id": f"{name}.{talk}.{number}",
                        "event_type": "tool_call",
                        "session_id": f"c{talk}",
                        "tool": "t",
                        "started_at": int(time),
                        "occurred_at": int(time),
                        "received_at": _NOW,
                        "success": not failure,
                        "code": "wrong_type" if failure else None,
                    }
                )
        conn.execute(insert(tool_call), rows)
        talks = [
            {
                "project_id": project,
                "session_id": f"c{talk}",
                "first_at": int(times.min()),
                "last_at": int(times.max()),
            }
            for talk, times in enumerate(at)
        ]
        conn.execute(insert(conversation), talks)
        days = sorted({int(time) // DAY_US * DAY_US for times in at for time in times})
        versions = [{"project_id": project, "starts_at": day, "version": 10**6} for day in days]
        conn.execute(insert(quarter_version), versions)
    return project


def coverage_of_days(
    engine: Engine, setting: Setting, days: int, repetitions: int, seed: int
) -> dict[str, object]:
    """Return the same of conversations that go on for some *days*, as the product counts them."""
    rng = np.random.default_rng(seed)
    covered = apart = 0
    for repetition in range(repetitions):
        f, n = drawn(setting, rng)
        begin = _NOW - rng.integers(days + 1, 10, len(n)) * DAY_US
        day_of = [rng.integers(0, days, calls) for calls in n]
        failed = [rng.permutation(np.arange(calls) < k) for calls, k in zip(n, f, strict=True)]
        at = [first + own * DAY_US for first, own in zip(begin, day_of, strict=True)]
        name = f"{days}.{setting.icc}.{repetition}"
        scope = Scope(stored(engine, name, at, failed), parse("since:14d"), _NOW + DAY_US // 2)
        with read_connection(engine) as conn:
            assert not is_asked_at_once(conn, scope)
            moments = calls_of_conversations(conn, scope).failures
        low, high = interval(f, n, moments)
        covered += low <= setting.rate <= high
        by_day = [np.bincount(own, minlength=days) for own in day_of]
        failed_by_day = [
            np.bincount(own, weights=each, minlength=days).astype(np.int64)
            for own, each in zip(day_of, failed, strict=True)
        ]
        low, high = interval(f, n, moments_of(*map(np.concatenate, (failed_by_day, by_day))))
        apart += low <= setting.rate <= high
    return {
        **vars(setting),
        "days": days,
        "covered_percent": round(100 * covered / repetitions, 1),
        "days_apart_percent": round(100 * apart / repetitions, 1),
    }


def main() -> None:
    """Print one line of JSON for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--days", action="store_true", help="conversations of several days")
    parser.add_argument("--buckets", action="store_true", help="the days of a window")
    asked = parser.parse_args()
    if asked.buckets:
        grid_of_days = itertools.product((200, 1000, 5000), (10,), (0.0, 0.2, 0.5), (0.03, 0.2))
        for setting in itertools.starmap(Setting, grid_of_days):
            found = coverage_of_buckets(setting, asked.repetitions, asked.seed)
            print(json.dumps(found), flush=True)
        return
    if asked.days:
        with database() as engine:
            for icc, days in itertools.product((0.2, 0.5), (1, 2, 7)):
                of_days = Setting(conversations=200, calls=10, icc=icc, rate=0.2)
                found = coverage_of_days(engine, of_days, days, asked.repetitions, asked.seed)
                print(json.dumps(found), flush=True)
        return
    grid = itertools.product((40, 200, 1000), (5, 10, 20), (0.0, 0.2, 0.5), (0.005, 0.03, 0.2))
    for setting in itertools.starmap(Setting, grid):
        print(json.dumps(coverage(setting, asked.repetitions, asked.seed)), flush=True)


if __name__ == "__main__":
    main()
