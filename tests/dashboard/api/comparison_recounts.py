"""Naive recounts of what compares: changes, any two queries, and trials."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from tests.dashboard.api.arm_recounts import arms_are_rows
from tests.dashboard.api.asked import Asked, counts_of, is_rate

__all__ = [
    "arms_of",
    "change_effect",
    "changes",
    "compare",
    "experiment",
    "experiment_looks",
    "experiments",
    "export_comparison",
    "is_comparison",
    "sides_of",
]


def changes(asked: Asked) -> None:
    """The recorded changes are the rows of the table."""
    rows = asked.get("/changes")["changes"]
    assert sorted(row["label"] for row in rows) == sorted(asked.stored("change")["label"])


def _is_side(asked: Asked, side: dict[str, Any], metric: float | None) -> None:
    failures = asked.repeated(asked.exported("failures", q=side["query"]), "event_id")
    chains = asked.repeated(asked.exported("chains", q=side["query"]), "chain_id")
    assert (side["failures"], side["chains"]) == (len(failures), len(chains))
    assert side["calls"] == asked.get("/summary", q=side["query"])["calls"]
    is_rate(side["failure_rate"], len(failures), side["calls"])
    if side["calls"]:
        assert metric == pytest.approx(len(failures) / side["calls"])


def is_comparison(asked: Asked, found: dict[str, Any]) -> None:
    """Counts and rates of both sides of *found* are those of the rows that its queries find."""
    effect = found["effect"]
    rate = effect["metrics"][0]
    assert rate["metric"] == "failure_rate"
    for name in ("before", "after"):
        _is_side(asked, effect[name], rate[name])
    if rate["before"] is not None and rate["after"] is not None:
        assert rate["crude_difference"] == pytest.approx(rate["after"] - rate["before"])
    for side in ("before", "after"):
        codes = asked.exported("failures", q=effect[side]["query"])
        expected = counts_of(codes["code"]) if len(codes) else {}  # rows, as a rate has them
        assert {c["code"]: c[side]["count"] for c in found["codes"] if c[side]["count"]} == expected


def sides_of(asked: Asked) -> tuple[str, str]:
    """Two queries that share no failure: one tool, and all others."""
    tools = sorted(counts_of(asked.failures["tool"]))
    return f'tool:"{tools[0]}"', f'-tool:"{tools[0]}"'


def compare(asked: Asked) -> None:
    """Both sides of a comparison are their rows."""
    before, after = sides_of(asked)
    is_comparison(asked, asked.get("/compare", before=before, after=after))


def export_comparison(asked: Asked) -> None:
    """The exported comparison is the comparison."""
    before, after = sides_of(asked)
    shown = asked.get("/compare", before=before, after=after)["effect"]["metrics"]
    rows = asked.get("/exports/comparison.json", before=before, after=after)
    assert [row["difference"] for row in rows] == [each["difference"] for each in shown]


def change_effect(asked: Asked) -> None:
    """Both sides of every change are their rows."""
    for change in asked.get("/changes", detected=True)["changes"][:4]:
        found = asked.get(f"/changes/{quote(change['event_id'])}/effect")
        is_comparison(asked, found)


def arms_of(asked: Asked) -> dict[str, set[str]]:
    """Experiment -> its arms, as calls carry them."""
    found: dict[str, set[str]] = {}
    for variant in asked.calls["variant"].dropna().unique():
        for entry in variant.split(","):
            name, equals, arm = entry.partition("=")
            if equals:
                found.setdefault(name, set()).add(arm)
    return found


def experiments(asked: Asked) -> None:
    """The trials are those that calls carry."""
    rows = asked.get("/experiments")["experiments"]
    assert {row["name"]: set(row["arms"]) for row in rows} == arms_of(asked)


def experiment(asked: Asked) -> None:
    """Calls, failures and conversations of each arm are those of its rows."""
    for name, arms in arms_of(asked).items():
        found = asked.get(f"/experiments/{quote(name)}")
        if len(arms) < 2:
            assert found["effects"] == []
            continue
        arms_are_rows(asked, name, found)
        carried = asked.calls["variant"].fillna("").str.split(",")
        for arm in arms:
            own = asked.calls[[f"{name}={arm}" in entries for entries in carried]]
            failed = own[own["success"] == 0]["calls"].sum()
            n, sent = own["calls"].sum(), own["sent"].sum()
            summary = asked.get("/summary", q=f"variant:{name}={arm}")
            assert found["balance"]["conversations"][arm] == summary["conversations"]
            rates = [e for e in found["effects"] if e["metric"] == "failure_rate"]
            if arm == found["control"]:
                assert {(e["n_control"], round(e["control"], 9)) for e in rates} == {
                    (sent, round(failed / n, 9))
                }
            else:
                (own_rate,) = (e for e in rates if e["arm"] == arm)
                assert own_rate["n_treatment"] == sent
                assert own_rate["treatment"] == pytest.approx(failed / n)


def experiment_looks(asked: Asked) -> None:
    """The last look at a trial is the trial, and calls only grow."""
    for name, arms in arms_of(asked).items():
        if len(arms) < 2:
            continue
        whole = asked.get(f"/experiments/{quote(name)}")
        looks = asked.get(f"/experiments/{quote(name)}/looks")["looks"]
        counts = [look["n_control"] for look in looks]
        assert counts == sorted(counts)
        (effect, *_) = whole["effects"]
        last = [look for look in looks if look["arm"] == effect["arm"]][-1]
        assert last["difference"] == pytest.approx(effect["difference"])
