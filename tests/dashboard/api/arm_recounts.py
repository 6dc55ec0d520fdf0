"""Naive recount of the arms of a trial: numerator and denominator of every metric, from rows."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from tests.dashboard.api.asked import Asked

__all__ = ["arm_figures", "arms_are_rows"]

CELL = ["conversation", "tool", "model", "agent"]


def _carrying(rows: pd.DataFrame, entry: str) -> pd.DataFrame:
    entries = rows["variant"].fillna("").str.split(",")
    return rows[[entry in each for each in entries]]


def _by_cell(rows: pd.DataFrame) -> Any:
    return rows.assign(**{name: rows[name].fillna("") for name in CELL}).groupby(CELL)


def arm_figures(asked: Asked, entry: str, *, rows: bool) -> dict[str, tuple[float, float]]:
    """Numerator and denominator of each metric of the arm *entry* (``trial=arm``).

    Args:
        asked: The project.
        entry: The arm.
        rows: Count rows as they are, not what they stand for.
    """
    calls, own = _carrying(asked.calls, entry), "sent" if rows else "calls"
    chains = _carrying(asked.sent_chains if rows else asked.chains, entry)
    retries = _carrying(asked.retries, entry)
    called, failed = calls[own].sum(), calls[calls["success"] == 0]
    alone = failed[failed["chain_id"].isna()]
    folded = calls["session_id"].isna() & calls["event_type"].isna()
    reported = calls[~folded].assign(conversation=calls["session_id"].fillna(calls["event_id"]))
    retries = retries.assign(conversation=retries["session_id"])
    retries = retries.assign(stands=1 if rows else retries["stands"])
    cells = pd.DataFrame(
        {
            "calls": _by_cell(reported)[own].sum(),
            "timed": _by_cell(reported.assign(timed=reported["time_source"] != "none"))[
                "timed"
            ].sum(),
            "trips": _by_cell(retries)["stands"].sum(),
            "chains": _by_cell(chains).size(),
            "alone": _by_cell(reported[reported.index.isin(alone.index)])[own].sum(),
            "lost": _by_cell(chains)["time_lost_ms"].sum(),
        }
    ).fillna(0)
    # An operation that failed is one, whatever its retries stand for.
    failing = cells["chains"] + cells["alone"]
    operations = (cells["calls"] - cells["trips"]).clip(lower=failing)
    counted, timed = calls[folded][own].sum(), cells["timed"] > 0
    every = operations.sum() + counted
    trips = chains["round_trips"].sum()
    closed = chains[chains["outcome"] != "open"]
    tokens = chains["tokens_lost"].dropna()
    return {
        "failure_rate": (failed[own].sum(), called),
        "first_try_success": (every - failing.sum(), every),
        "recovery_rate": ((closed["outcome"] == "recovered").sum(), len(closed)),
        "round_trips_per_operation": (trips, every),
        "round_trips_per_failure": (trips, failed[own].sum()),
        "seconds_lost_per_operation": (
            cells["lost"][timed].sum() / 1_000,
            operations[timed].sum() + counted,
        ),
        "tokens_lost_per_chain": (tokens.sum(), len(tokens)),
    }


def arms_are_rows(asked: Asked, name: str, found: dict[str, Any]) -> None:
    """Every metric of every arm of the trial *name* is that of the rows that carry it."""
    for arm in found["arms"]:
        entry = f"{name}={arm}"
        figures = arm_figures(asked, entry, rows=False)
        sent = arm_figures(asked, entry, rows=True)
        side = "control" if arm == found["control"] else "treatment"
        effects = [each for each in found["effects"] if arm in (found["control"], each["arm"])]
        assert {each["metric"] for each in effects} == figures.keys()
        for each in effects:
            count, n = figures[each["metric"]]
            assert each[f"n_{side}"] == sent[each["metric"]][1], (entry, each["metric"])
            assert each[side] == (pytest.approx(count / n) if n else None), (entry, each["metric"])
            if each["control"] is not None and each["treatment"] is not None:
                difference = each["treatment"] - each["control"]
                assert each["difference"] == pytest.approx(difference, abs=1e-12)
