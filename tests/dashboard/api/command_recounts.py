"""Naive recounts of what the command line alone says: the report of a week, and comparisons."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from tests.dashboard.api.asked import Asked, counts_of
from tests.dashboard.api.comparison_recounts import arms_of, is_comparison
from tests.live_server import LiveServer

__all__ = ["compared_changes", "compared_variants", "weekly"]

TOP = 10

Parts = dict[str, dict[str, dict[str, str]]]
"""Part -> row -> column -> what stands there."""


def _last_moment(asked: Asked) -> datetime:
    """The end of the last whole week: the day after the newest failure with a time."""
    timed = asked.failures[asked.failures["time_source"] != "none"]["occurred_at"]
    newest = max(timed) if len(timed) else "2026-11-20T00:00:00Z"
    return datetime.fromisoformat(newest).replace(hour=0, minute=0, second=0, microsecond=0)


def _reported(server: LiveServer, asked: Asked, until: str) -> Parts:
    def run(form: str) -> str:
        return server.run(
            "report", "weekly", "--project", asked.project, "--until", until, "--format", form
        )

    parts: Parts = defaultdict(lambda: defaultdict(dict))
    cells = defaultdict(list)
    for row in csv.DictReader(io.StringIO(run("csv"), newline="")):
        assert row["column"] not in parts[row["part"]][row["row"]], row  # every name is there once
        parts[row["part"]][row["row"]][row["column"]] = row["value"]
        cells[row["part"]].append(row["value"].removeprefix("'"))
    soup = BeautifulSoup(run("html"), "html.parser")
    assert {each.caption.get_text() for each in soup.select("table")} == set(cells)
    for each in soup.select("table"):
        assert [
            cell.get_text() for row in each.select("tbody tr") for cell in row.select("td")[1:]
        ] == cells[each.caption.get_text()]
    markdown = re.sub(r"\\(.)", r"\1", run("markdown"))
    for values in cells.values():
        for value in values:
            assert " ".join(value.split()) in markdown
    return parts


def _share(count: float, n: float, digits: int) -> str:
    return f"{count / n:.{digits}%}" if n else "–"


def weekly(server: LiveServer, asked: Asked) -> None:
    """Each figure of the report, in each format, is counted again from exported rows."""
    end = _last_moment(asked)
    until = f"{end:%Y-%m-%dT%H:%M:%SZ}"
    parts = _reported(server, asked, until)
    week = timedelta(days=7)
    columns = {"this week": (end - week, end), "the week before": (end - 2 * week, end - week)}
    for column, (begin, over) in columns.items():
        failures, chains, calls = _between(asked, begin, over)
        seen = {name: row[column] for name, row in parts["This week"].items()}
        n = int(calls["calls"].sum())
        assert (int(seen["calls"]), int(seen["failures"])) == (n, len(failures))
        assert (int(seen["chains"]), int(seen["round trips"])) == (
            len(chains),
            chains["round_trips"].sum(),
        )
        recovered = int((chains["outcome"] == "recovered").sum())
        assert int(seen["recovered"]) == recovered
        assert seen["failure rate"] == _share(len(failures), n, 1)
        closed = int((chains["outcome"] != "open").sum())
        assert seen["recovery rate"] == _share(recovered, closed, 1)
        retried = pd.to_datetime(asked.retries["occurred_at"], unit="us", utc=True)
        within = asked.retries[(retried >= begin) & (retried < over)]
        operations = n - int(within[within["time_source"] != "none"]["stands"].sum())
        first = operations - len(chains) - int(failures["chain_id"].isna().sum())
        if operations >= first >= 0:
            assert seen["first try"] == _share(first, operations, 1)
    failures, _, calls = _between(asked, end - week, end)
    per_tool = calls.groupby("tool")["calls"].sum().to_dict()
    total = int(calls["calls"].sum())
    for part, by in (("Codes", "code"), ("Tools", "tool")):
        expected = counts_of(failures[by])
        seen_rows = {_plain(name): row for name, row in parts[part].items()}
        # A tool that did not fail may stand there, too.
        assert len([r for r in seen_rows.values() if r["failures"] != "0"]) == min(
            TOP, len(expected)
        )
        for name, row in seen_rows.items():
            own = expected.get(name, 0)
            assert int(row["failures"]) == own
            assert row["of calls"] == _share(own, per_tool[name] if by == "tool" else total, 2)
    earlier = asked.failures[
        (asked.failures["time_source"] != "none")
        & (pd.to_datetime(asked.failures["occurred_at"], format="ISO8601", utc=True) < end - week)
    ]
    before = set(earlier["signature"].dropna())
    new = {name[:12] for name in set(failures["signature"].dropna()) - before}
    rows = parts["New this week"]
    assert len(rows) == min(TOP, len(new))
    assert {_plain(name) for name in rows} <= new
    counts = counts_of(failures["signature"].str[:12])
    for name, row in rows.items():
        assert int(row["failures"]) == counts[_plain(name)]
    query = f"since:{end - week:%Y-%m-%dT%H:%M:%SZ} until:{until} -time:none"
    fixes = asked.get("/fix-next", q=query, limit=TOP)["rows"]
    titled = {
        f"{each['title']}: {each['detail']}" if each["remedy"] == "reword" else each["title"]:
        each["failures"] for each in fixes
    }  # fmt: skip
    assert len(titled) == len(fixes)
    assert {_plain(name): int(row["failures"]) for name, row in parts["Fix next"].items()} == titled
    changes = asked.stored("change")
    at = pd.to_datetime(changes["occurred_at"], unit="us", utc=True)
    labels = changes[(at >= end - week) & (at < end)]["label"].tolist()
    assert len(parts["Changes"]) == len(labels)
    assert {re.sub(r" \(\d+\)$", "", _plain(name)) for name in parts["Changes"]} == set(labels)


def _plain(name: str) -> str:
    return name.removeprefix("'")


def _between(
    asked: Asked, begin: datetime, end: datetime
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Failures, the chains that they opened, and calls of a stretch of time."""
    timed = asked.failures[asked.failures["time_source"] != "none"]
    at = pd.to_datetime(timed["occurred_at"], format="ISO8601", utc=True)
    failures = timed[(at >= begin) & (at < end)]
    chains = asked.chains[asked.chains["chain_id"].isin(set(failures["event_id"]))]
    calls = asked.calls[asked.calls["time_source"].fillna("client") != "none"]
    called = pd.to_datetime(calls["occurred_at"], unit="us", utc=True)
    return failures, chains, calls[(called >= begin) & (called < end)]


def _compared(server: LiveServer, asked: Asked, *sides: str) -> dict[str, Any]:
    """What ``toolfault compare`` says, in each of its formats the same."""
    arguments = ("compare", *sides, "--project", asked.project, "--format")
    found: dict[str, Any] = json.loads(server.run(*arguments, "json"))
    rows = list(csv.DictReader(io.StringIO(server.run(*arguments, "csv"), newline="")))
    metrics = found["effect"]["metrics"]
    assert [row["metric"] for row in rows] == [each["metric"] for each in metrics]
    for row, each in zip(rows, metrics, strict=True):
        for name in ("before", "after", "difference", "low", "high"):
            assert row[name] == ("" if each[name] is None else repr(each[name]))
        assert (row["n_before"], row["n_after"]) == (str(each["n_before"]), str(each["n_after"]))
    markdown = server.run(*arguments, "markdown")
    rate = metrics[0]
    for side in ("before", "after"):
        assert rate[side] is None or f"| {rate[side]:.1%} |" in markdown
        calls = found["effect"][side]["calls"]
        assert f"({calls} calls, " in markdown
    return found


def compared_changes(server: LiveServer, asked: Asked) -> None:
    """Both sides of each recorded change are their rows."""
    for change in asked.get("/changes")["changes"][:2]:
        found = _compared(server, asked, "--change", change["event_id"])
        is_comparison(asked, found)
        answer = asked.get(f"/changes/{change['event_id']}/effect")
        assert found["effect"]["metrics"] == answer["effect"]["metrics"]


def compared_variants(server: LiveServer, asked: Asked) -> None:
    """Both arms of each trial are the rows that carry them."""
    for name, arms in arms_of(asked).items():
        if len(arms) < 2:
            continue
        first, second, *_ = sorted(arms)
        found = _compared(server, asked, "--variants", f"{name}={first}", f"{name}={second}")
        is_comparison(asked, found)
        for side, arm in (("before", first), ("after", second)):
            carried = asked.calls["variant"].fillna("").str.split(",")
            own = asked.calls[[f"{name}={arm}" in entries for entries in carried]]
            failed = own[own["success"] == 0]["calls"].sum()
            (rate,) = [m for m in found["effect"]["metrics"] if m["metric"] == "failure_rate"]
            assert found["effect"][side]["calls"] == own["calls"].sum()
            assert rate[side] == pytest.approx(failed / own["calls"].sum())
