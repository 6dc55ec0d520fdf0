"""A server that was asked, and the rows behind its answers as pandas tables.

Failures, chains and issues are what the server exports; calls, which no export has, are read from
the tables. Nothing of the product's counting is used.

A row of a sender that sampled stands for several calls: it is repeated as often, and everything is
counted as if all of them had been sent. Lists, facets and fixes are of rows as they are.
"""

from __future__ import annotations

import json
import sqlite3
import urllib.request
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pandas as pd
import pytest
from scipy.stats import binomtest
from tests.dashboard.naive import beside

__all__ = ["DAY", "Asked", "counts_of", "is_rate", "steady"]

DAY = 86_400_000_000


@dataclass(frozen=True)
class Asked:
    """One project of a running server: its API, its exported rows, its tables."""

    address: str
    key: str
    project: str
    database: Path

    def get(self, path: str, **parameters: Any) -> Any:
        """The answer to a question."""
        return json.loads(self.text(path, **parameters))

    def text(self, path: str, **parameters: Any) -> str:
        """The same, as it is."""
        url = f"{self.address}/api/v1{path}?{urlencode(parameters)}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {self.key}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.read().decode())

    def exported(self, table: str, **parameters: Any) -> pd.DataFrame:
        """A table as exported."""
        return pd.DataFrame(self.lines(table, **parameters))

    def lines(self, table: str, **parameters: Any) -> list[dict[str, Any]]:
        """The same as plain rows."""
        lines = self.text(f"/exports/{table}.ndjson", **parameters).splitlines()
        return [json.loads(line) for line in lines]

    def stored(self, table: str) -> pd.DataFrame:
        """The rows of a table of the database that belong to the project."""
        connection = sqlite3.connect(self.database)
        try:
            return pd.read_sql_query(
                f"SELECT * FROM {table} WHERE project_id = (SELECT id FROM project WHERE name = ?)",
                connection,
                params=(self.project,),
            )
        finally:
            connection.close()

    @cached_property
    def weights(self) -> dict[str, int]:
        """How many calls each call stands for, by event id."""
        calls = self.stored("tool_call")
        return (1 / calls.set_index("event_id")["sample_rate"]).round().astype(int).to_dict()

    def repeated(self, rows: pd.DataFrame, key: str) -> pd.DataFrame:
        """*rows* as often as each stands for; *key* names the column of its (first) failure."""
        if not len(rows):
            return rows
        return rows.loc[rows.index.repeat(rows[key].map(self.weights))].reset_index(drop=True)

    @cached_property
    def sent_failures(self) -> pd.DataFrame:
        """All failures that are there, newest first."""
        return self.exported("failures")

    @cached_property
    def failures(self) -> pd.DataFrame:
        """All failures, newest first, each as often as it stands for."""
        return self.repeated(self.sent_failures, "event_id")

    @cached_property
    def sent_chains(self) -> pd.DataFrame:
        """All chains that are there, newest first."""
        return self.exported("chains")

    @cached_property
    def chains(self) -> pd.DataFrame:
        """All chains, newest first, each as often as it stands for."""
        return self.repeated(self.sent_chains, "chain_id")

    @cached_property
    def issues(self) -> pd.DataFrame:
        """All issues."""
        return self.exported("issues")

    @cached_property
    def calls(self) -> pd.DataFrame:
        """All calls: reported ones with ``calls`` 1, and folded successes."""
        reported = self.stored("tool_call")
        reported["calls"] = reported["event_id"].map(self.weights)
        folded = self.stored("call_counts").assign(success=1)
        folded["occurred_at"] = folded["minute"] + 30_000_000
        reported["sent"], folded["sent"] = 1, folded["calls"]
        both = pd.concat([reported, folded[folded["tool"].notna()]], ignore_index=True)
        return both.astype({"calls": int, "sent": int})

    @cached_property
    def members(self) -> dict[str, list[dict[str, Any]]]:
        """All calls of each chain, in order."""
        calls = self.stored("tool_call").astype(object)
        calls = calls.where(calls.notna(), None)
        found: dict[str, list[dict[str, Any]]] = {}
        for row in calls[calls["chain_id"].notna()].sort_values("attempt").to_dict("records"):
            found.setdefault(row["chain_id"], []).append(row)
        return found

    @cached_property
    def retries(self) -> pd.DataFrame:
        """The calls that are round trips, each with what its chain stands for."""
        rows = [
            call | {"stands": self.weights[chain_id]}
            for chain_id, members in self.members.items()
            for place, call in enumerate(members)
            if place and not any(beside(call, each) for each in members[:place])
        ]
        return pd.DataFrame(rows, columns=[*self.stored("tool_call").columns, "stands"])

    def calls_by(self, column: str) -> dict[str, int]:
        """Calls by a column, "" where they carry nothing."""
        return self.calls.groupby(self.calls[column].fillna(""))["calls"].sum().to_dict()


def counts_of(values: pd.Series) -> dict[str, int]:
    return values.fillna("").value_counts().to_dict()


def is_rate(rate: dict[str, Any], count: int, n: int) -> None:
    if rate["weighed"]:
        # What is there is less than what it stands for; the interval has a test of its own.
        assert rate["count"] <= count
        assert 0 < rate["n"] <= max(n, count)
        assert rate["value"] == pytest.approx(count / max(n, count))
        assert rate["low"] - 1e-9 <= rate["value"] <= rate["high"] + 1e-9
        return
    assert (rate["count"], rate["n"]) == (count, max(n, count))
    if rate["n"]:
        assert rate["value"] == pytest.approx(count / rate["n"])
        interval = binomtest(count, rate["n"]).proportion_ci(method="wilson")
        assert (rate["low"], rate["high"]) == pytest.approx((interval.low, interval.high), abs=1e-9)


def steady(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what grows smaller with every second: savings a week, up to this moment."""
    return {name: value for name, value in row.items() if name not in {"per_week", "low", "high"}}
