"""Naive recount of Fix next: every fix, what it saves and its place, from exported rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import sqrt
from typing import Any

import pandas as pd
import pytest
from tests.dashboard.api.asked import Asked
from tests.dashboard.fix_rules import Found, Key, fixes, ranked, rewordings

__all__ = ["expected_fixes", "fix_next"]

SURE = 1.959963984540054


def expected_fixes(asked: Asked, query: str = "") -> dict[Key, Found]:
    """The fixes of what *query* finds, by the naive rules."""
    issues: dict[str, list[dict[str, Any]]] = {}
    for row in asked.lines("issues", q=query):
        issues.setdefault(row["event_id"], []).append(row | {"near_miss": row["near_miss"] or []})
    texts = asked.stored("message").set_index("digest")["text"].to_dict()
    rows = [
        row
        | {
            "conversation": row["conversation"] or row["event_id"],
            "at": row["occurred_at"],
            "outcome": row["chain_outcome"],
            "issues": issues.get(row["event_id"], []),
            "message_text": texts.get(row["message_digest"]),
        }
        for row in asked.lines("failures", q=query)
    ]
    parameters = [row for row in rows if row["category"] == "parameter"]
    return fixes(rows, asked.members) | rewordings(parameters, asked.members)


def fix_next(asked: Asked) -> None:
    """Each fix covers, saves and ranks as the naive rules say; a week is the sum by its weeks."""
    for query in ("", "category:parameter"):
        found = asked.get("/fix-next", q=query, limit=10_000)
        listed = asked.lines("failures", q=query)
        assert (found["failures"], found["complete"]) == (len(listed), True)
        times = [row["occurred_at"] for row in listed if row["occurred_at"]]
        if times:
            now = datetime.now().astimezone()
            weeks = (now - datetime.fromisoformat(min(times))) / timedelta(days=7)
            assert found["weeks"] == pytest.approx(weeks, abs=1e-3)
        expected = expected_fixes(asked, query)
        shown = {tuple(row[n] for n in ("tool", "field", "remedy", "detail")): row
                 for row in found["rows"]}  # fmt: skip
        assert len(shown) == len(found["rows"])
        if any(weight > 1 for weight in asked.weights.values()):
            # Which wordings are worse beyond chance is then a question of weights.
            expected = {key: own for key, own in expected.items() if key[2] != "reword"}
            shown = {key: row for key, row in shown.items() if key[2] != "reword"}
        assert shown.keys() == expected.keys()
        for key, own in expected.items():
            _is_fix(shown[key], own, found["weeks"])
        changes = asked.stored("change")
        changed = changes[changes["tool"].notna()].groupby("tool")["occurred_at"].max()
        at = {
            tool: pd.Timestamp(moment, unit="us").isoformat(timespec="microseconds") + "Z"
            for tool, moment in changed.items()
        }
        assert list(shown) == ranked(expected, at)
        for row in found["rows"]:
            total = asked.get("/failures", q=row["query"], limit=1)["total"]
            assert row["remedy"] == "all_at_once" or 0 < row["failures"] <= total


def _is_fix(row: dict[str, Any], own: Found, weeks: float | None) -> None:
    assert (row["failures"], row["chains"]) == (own.failures, len(own.chains)), row
    assert row["round_trips"] == pytest.approx(own.round_trips), row
    assert row["last_at"] == max(own.times, default=None)
    if weeks is None:
        assert row["per_week"] is None
        return
    reach = SURE * sqrt(sum(part * part for part in own.saved.values()))
    assert row["per_week"] == pytest.approx(own.round_trips / weeks)
    assert row["low"] == pytest.approx(max(0.0, own.round_trips - reach) / weeks)
    assert row["high"] == pytest.approx((own.round_trips + reach) / weeks)
