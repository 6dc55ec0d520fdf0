"""One naive recount for each operation of the API, in pandas over rows that were exported."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from tests.dashboard.api.asked import DAY, Asked, counts_of, is_rate, steady
from tests.dashboard.api.comparison_recounts import (
    change_effect,
    changes,
    compare,
    experiment,
    experiment_looks,
    experiments,
    export_comparison,
)
from tests.dashboard.api.fix_recounts import fix_next

__all__ = ["RECOUNTS"]

GROUPS = ("tool", "code", "field", "model", "release", "agent", "variant")
CHAIN_COLUMNS = {"code": "first_code", "field": "first_field"}
OWN_CALLS = ("tool", "model", "agent", "release", "environment")


def summary(asked: Asked, found: dict[str, Any] | None = None) -> None:
    """Calls, failures, chains, outcomes and round trips."""
    found = found or asked.get("/summary")
    chains, failures = asked.chains, asked.failures
    assert found["calls"] == asked.calls["calls"].sum()
    assert found["failures"] == len(failures)
    assert found["failure_rate"] == pytest.approx(len(failures) / found["calls"])
    assert found["chains"] == len(chains)
    for outcome in ("recovered", "switched", "abandoned", "open"):
        assert found[outcome] == (chains["outcome"] == outcome).sum()
    assert found["round_trips"] == chains["round_trips"].sum()
    mean = chains[chains["outcome"] == "recovered"]["failures"].mean()
    assert found["mean_failures_before_recovery"] == pytest.approx(mean)
    calls, failed = asked.calls_by("tool"), counts_of(failures["tool"])
    assert found["tools"] == {
        name: {"calls": n, "failures": failed.get(name, 0)} for name, n in calls.items()
    }
    assert found["codes"] == counts_of(failures["code"])
    talks, counts = asked.stored("conversation"), asked.stored("call_counts")
    folded = int(counts[counts["tool"].isna()]["conversations"].sum())
    ended = int(talks["end_event_id"].notna().sum())
    assert found["conversations"] == len(talks) + max(0, folded - ended)


def overview(asked: Asked) -> None:
    """The summary with its rates."""
    found = asked.get("/overview")
    summary(asked, found["summary"])
    chains, failures, calls = asked.chains, asked.failures, int(asked.calls["calls"].sum())
    closed = (chains["outcome"] != "open").sum()
    is_rate(found["failure_rate"], len(failures), calls)
    is_rate(found["recovery_rate"], int((chains["outcome"] == "recovered").sum()), int(closed))
    operations = calls - int(chains["round_trips"].sum())
    first = operations - len(chains) - int(failures["chain_id"].isna().sum())
    is_rate(found["first_try"], first, operations)
    assert found["round_trips_per_failure"] == pytest.approx(
        chains["round_trips"].sum() / len(failures)
    )
    assert found["untimed_failures"] == (failures["time_source"] == "none").sum()
    assert found["not_restricting_calls"] == []


def _listed(asked: Asked, path: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = asked.get(path, limit=200, cursor=cursor)
        rows += page["rows"]
        if page["next_cursor"] is None:
            assert page["total"] == len(rows)
            return rows
        cursor = page["next_cursor"]


def list_failures(asked: Asked) -> None:
    """The list is the export."""
    rows = _listed(asked, "/failures")
    assert [row["event_id"] for row in rows] == asked.sent_failures["event_id"].tolist()


def list_chains(asked: Asked) -> None:
    """The list is the export."""
    rows = _listed(asked, "/chains")
    chains = asked.sent_chains
    assert [row["chain_id"] for row in rows] == chains["chain_id"].tolist()
    assert [row["round_trips"] for row in rows] == chains["round_trips"].tolist()


def failure(asked: Asked) -> None:
    """Each of some failures has its issues."""
    for event in asked.sent_failures["event_id"].tolist()[::97]:
        found = asked.get(f"/failures/{event}")
        own = asked.issues[asked.issues["event_id"] == event] if len(asked.issues) else []
        assert len(found["issues"]) == len(own)


def chain(asked: Asked) -> None:
    """Each of some chains has its calls."""
    calls = asked.stored("tool_call")
    for row in asked.sent_chains.iloc[::53].to_dict("records"):
        found = asked.get(f"/chains/{row['chain_id']}")
        own = calls[calls["chain_id"] == row["chain_id"]]
        assert len(found["attempts"]) == len(own) == row["calls"]
        failed = [each for each in found["attempts"] if not each["success"]]
        assert len(failed) == row["failures"] == (own["success"] == 0).sum()
        assert found["chain"]["round_trips"] == row["round_trips"]


def failures_over_time(asked: Asked) -> None:
    """Every bucket holds the failures and calls whose time lies in it."""
    found = asked.get("/failures-over-time", bucket="day", top=50)
    timed = asked.failures[asked.failures["time_source"] != "none"]
    assert found["untimed"] == len(asked.failures) - len(timed)
    days = timed["occurred_at"].str[:10] if len(timed) else pd.Series(dtype=str)
    assert found["other"] is None
    shown = {
        (line["name"], start[:10]): count
        for line in found["series"]
        for start, count in zip(found["starts"], line["counts"], strict=True)
        if count
    }
    assert shown == timed.groupby([timed["code"], days]).size().to_dict()
    calls = asked.calls[asked.calls["time_source"].fillna("client") != "none"]
    by_day = calls.groupby(calls["occurred_at"] // DAY)["calls"].sum()
    starts = pd.to_datetime(pd.Series(found["starts"], dtype=str)).dt.strftime("%Y-%m-%d")
    for start, n in zip(starts, found["calls"], strict=True):
        number = pd.Timestamp(start, tz="UTC").value // 1_000 // DAY
        assert n == by_day.get(number, 0)


def _is_group(asked: Asked, group: dict[str, Any], own: pd.DataFrame) -> None:
    assert group["chains"] == len(own)
    for name in ("round_trips", "failures", "identical_repeats"):
        assert group[name] == own[name].sum(), name
    for name in ("first_retry_fix", "serial_discovery", "repeat_confusion"):
        assert group[name] == own[name].astype(bool).sum(), name
    recovered = int((own["outcome"] == "recovered").sum())
    is_rate(group["recovery_rate"], recovered, int((own["outcome"] != "open").sum()))


def _chains_by(asked: Asked, by: str) -> dict[str, pd.DataFrame]:
    names = asked.chains[CHAIN_COLUMNS.get(by, by)].fillna("")
    return {str(name): own for name, own in asked.chains.groupby(names)}


def round_trips(asked: Asked) -> None:
    """Funnel, distribution and groups."""
    found = asked.get("/round-trips")
    chains = asked.chains
    assert found["round_trips"] == chains["round_trips"].sum()
    assert found["funnel"] == {
        "chains": len(chains),
        "retried": (chains["round_trips"] > 0).sum(),
        "first_retry_fix": chains["first_retry_fix"].sum(),
        **{
            outcome: (chains["outcome"] == outcome).sum()
            for outcome in ("recovered", "switched", "abandoned", "open")
        },
    }
    for line in found["distribution"]:
        own = chains[chains["round_trips"] == line["round_trips"]]
        assert line["chains"] == len(own)
        assert line["recovered"] == (own["outcome"] == "recovered").sum()
    for by in ("tool", "code", "model"):
        groups = _chains_by(asked, by)
        assert {group["name"] for group in found[f"by_{by}"]} == groups.keys()
        for group in found[f"by_{by}"]:
            _is_group(asked, group, groups[group["name"]])


def round_trips_by(asked: Asked) -> None:
    """Chains by every dimension."""
    for by in GROUPS:
        groups = _chains_by(asked, by)
        found = asked.get(f"/round-trips/{by}")["groups"]
        assert {group["name"] for group in found} == groups.keys()
        for group in found:
            _is_group(asked, group, groups[group["name"]])


def costs(asked: Asked) -> None:
    """Time and tokens of the chains that know them."""
    for by in GROUPS:
        found = asked.get(f"/costs/{by}")
        groups = _chains_by(asked, by)
        assert {row["name"] for row in found["rows"]} == groups.keys()
        for row, own in [(row, groups[row["name"]]) for row in found["rows"]] + [
            (found["total"], asked.chains)
        ]:
            timed = own[own["time_source"] != "none"]
            assert (row["chains"], row["chains_timed"]) == (len(own), len(timed))
            assert (row["time_lost_ms"] or 0) == pytest.approx(timed["time_lost_ms"].sum())
            assert row["chains_with_tokens"] == own["tokens_lost"].notna().sum()
            assert (row["tokens_lost"] or 0) == own["tokens_lost"].sum()
            assert row["money_lost"] is None


def frequencies(asked: Asked) -> None:
    """Failures of every group, and the calls that its rate is of."""
    per_tool, calls = asked.calls_by("tool"), int(asked.calls["calls"].sum())
    for by in ("code", "category", "tool", "model", "agent", "release", "environment"):
        found = asked.get(f"/frequencies/{by}", limit=10_000)
        expected = counts_of(asked.failures[by])
        assert {row["name"]: row["failures"] for row in found["rows"]} == expected
        own = asked.calls_by(by) if by in OWN_CALLS else {}
        for row in found["rows"]:
            n = own.get(row["name"], 0) if by in OWN_CALLS else calls
            is_rate(row["rate"], row["failures"], n)
            _is_seen(row, asked.failures[asked.failures[by].fillna("") == row["name"]])
    for by, column in (("field", "root_field"), ("field_pattern", "field_pattern")):
        pairs: dict[tuple[str, str], int] = {}
        if len(asked.issues):
            named = asked.issues[asked.issues[column] != ""]
            once = named.drop_duplicates(["tool", column, "event_id"])
            own = once["event_id"].map(asked.weights)
            pairs = own.groupby([once["tool"], once[column]]).sum().to_dict()
        rows = [row for row in asked.get(f"/frequencies/{by}", limit=10_000)["rows"] if row["name"]]
        # Names that models made up share a row: their sum is the sum of theirs.
        assert {(r["tool"], r["name"]) for r in rows} <= {*pairs, *((r["tool"], "*") for r in rows)}
        for row in rows:
            if (row["tool"], row["name"]) in pairs and row["name"] != "*":
                assert row["failures"] <= pairs[row["tool"], row["name"]]
            is_rate(row["rate"], row["failures"], per_tool.get(row["tool"], 0))
            found = asked.get("/failures", q=row["query"], limit=1)["total"]
            assert row["rate"]["count"] == found
            assert row["failures"] == found or row["rate"]["weighed"]
    for by, column in (("message", "message_digest"), ("signature", "signature")):
        rows = asked.get(f"/frequencies/{by}", limit=10_000)["rows"]
        assert sorted(row["failures"] for row in rows) == sorted(
            asked.failures[column].fillna("").value_counts().tolist()
        )


def _is_seen(row: dict[str, Any], own: pd.DataFrame) -> None:
    times = own["occurred_at"].dropna()
    assert (row["first_at"], row["last_at"]) == (
        (min(times), max(times)) if len(times) else (None, None)
    )


def matrix(asked: Asked) -> None:
    """Every cell of tool x code and tool x field."""
    per_tool = asked.calls_by("tool")
    expected: dict[tuple[str, str], int] = asked.failures.groupby(["tool", "code"]).size().to_dict()
    found = asked.get("/matrices/code", tools=200, columns=200)
    assert {(c["tool"], c["column"]): c["failures"] for c in found["cells"]} == expected
    assert found["hidden"] == 0
    for cell in found["cells"]:
        is_rate(cell["rate"], cell["failures"], per_tool.get(cell["tool"], 0))
    found = asked.get("/matrices/field", tools=200, columns=200)
    if len(asked.issues):
        named = asked.issues[asked.issues["root_field"] != ""]
        once = named.drop_duplicates(["tool", "root_field", "event_id"])
        own = once["event_id"].map(asked.weights)
        expected = own.groupby([once["tool"], once["root_field"]]).sum().to_dict()
        shown = {(c["tool"], c["column"]): c["failures"] for c in found["cells"]}
        assert shown.items() <= expected.items()
        assert sum(shown.values()) + found["hidden"] == sum(expected.values())


def facets(asked: Asked) -> None:
    """A facet's count is the total of the list that it leads to."""
    found = asked.get("/facets", limit=1_000)
    assert (found["counted"], found["exact"]) == (len(asked.sent_failures), True)
    for facet in found["facets"]:
        if facet["key"] in asked.sent_failures.columns:
            expected = counts_of(asked.sent_failures[facet["key"]])
            if facet["key"] != "field" and facet["key"] != "variant":
                assert {v["value"]: v["failures"] for v in facet["values"]} == expected
        for value in facet["values"][:5]:
            escaped = value["value"].replace("\\", "\\\\").replace('"', '\\"')
            total = asked.get("/failures", q=f'{facet["key"]}:"{escaped}"', limit=1)["total"]
            assert value["failures"] == total, (facet["key"], value)


def messages(asked: Asked) -> None:
    """Failures of each wording, and whether their next call succeeded."""
    calls = asked.stored("tool_call")
    worded = calls[(calls["success"] == 0) & calls["message_id"].notna()]
    own = worded["event_id"].map(asked.weights)
    expected = own.groupby([worded[name] for name in ("tool", "code", "message_id")]).sum()
    rows = [row for group in asked.get("/messages")["groups"] for row in group["rows"]]
    assert sorted(row["failures"] for row in rows) == sorted(expected.tolist())
    for row in rows:
        assert row["fixed"] <= row["answered"] <= row["asked"] <= row["failures"]
        is_rate(row["recovery"], row["fixed"], row["asked"])
        is_rate(row["when_answered"], row["fixed"], row["answered"])
    # A call that follows in the chain and succeeds is a fix of the failure before it.
    chained = calls[calls["chain_id"].notna()].sort_values(["chain_id", "attempt"])
    following = chained.groupby("chain_id")["success"].shift(-1)
    beside = chained.groupby("chain_id")["turn"].shift(-1).eq(chained["turn"])
    fixed = (chained["success"] == 0) & (following == 1) & ~beside & chained["message_id"].notna()
    weights = chained["event_id"].map(asked.weights)
    assert sum(row["fixed"] for row in rows) == weights[fixed].sum()


def silent_successes(asked: Asked) -> None:
    """Successes that were recognised as errors only by their text."""
    calls = asked.stored("tool_call")
    soft = calls[(calls["success"] == 1) & calls["detection"].str.startswith("soft:")]
    own = soft["event_id"].map(asked.weights)
    rows = asked.get("/silent-successes")["rows"]
    assert {(row["tool"], f"soft:{row['rule']}"): row["calls"] for row in rows} == (
        own.groupby([soft["tool"], soft["detection"]]).sum().to_dict()
    )
    for row in rows:
        is_rate(row["rate"], row["calls"], asked.calls_by("tool")[row["tool"]])


def export(asked: Asked) -> None:
    """Every format of an export has the same rows."""
    for table in ("failures", "chains", "issues", "codes", "fixes"):
        lines = asked.text(f"/exports/{table}.ndjson").splitlines()
        assert [steady(json.loads(line)) for line in lines] == [
            steady(row) for row in asked.get(f"/exports/{table}.json")
        ]


RECOUNTS: dict[str, Callable[[Asked], None]] = {
    "compare": compare,
    "export": export,
    "export_comparison": export_comparison,
    "get_chain": chain,
    "get_change_effect": change_effect,
    "get_costs": costs,
    "get_experiment": experiment,
    "get_experiment_looks": experiment_looks,
    "get_facets": facets,
    "get_failure": failure,
    "get_failures_over_time": failures_over_time,
    "get_fix_next": fix_next,
    "get_frequencies": frequencies,
    "get_matrix": matrix,
    "get_messages": messages,
    "get_overview": overview,
    "get_round_trips": round_trips,
    "get_round_trips_by": round_trips_by,
    "get_silent_successes": silent_successes,
    "get_summary": summary,
    "list_chains": list_chains,
    "list_changes": changes,
    "list_experiments": experiments,
    "list_failures": list_failures,
}
"""Operation id -> its recount. A new operation without one fails a test."""
