"""What failures cost in time, tokens and money, and of how many chains that is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from sqlalchemy import ColumnElement, Connection, Row, Select, case, func, select

from toolfault_collector.storage.tables import chain
from toolfault_dashboard.analysis.prices import Prices
from toolfault_dashboard.analysis.weights import whole
from toolfault_dashboard.queries.chains.round_trips import CHAIN_GROUPS
from toolfault_dashboard.queries.chains.spent import calls_spent
from toolfault_dashboard.queries.conditions import chains_of
from toolfault_dashboard.queries.counting.sampling_weights import (
    chain_weight,
    sampling,
    weighted_chains,
)
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search import arms_of
from toolfault_dashboard.search.outcomes import outcome_in

__all__ = ["COST_GROUPS", "CostGroup", "CostRow", "Costs", "arm_costs", "costs"]

CostGroup = Literal["tool", "code", "field", "model", "release", "agent", "variant"]

COST_GROUPS: Final[tuple[CostGroup, ...]] = get_args(CostGroup)


@dataclass(frozen=True, slots=True)
class CostRow:
    """What the chains of one group cost after their first failure.

    Each sum is over the chains that know it, whose number stands beside it; None where none does:
    what nobody reported is not free.
    """

    name: str  # "" where the chains carry none
    chains: int
    calls_spent: int
    abandoned: int
    round_trips: int
    time_lost_ms: float | None
    chains_timed: int
    tokens_lost: int | None
    chains_with_tokens: int
    money_lost: float | None  # in the unit of the configured prices
    chains_priced: int


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs by one dimension, most calls spent first, and in all."""

    by: CostGroup
    rows: tuple[CostRow, ...]
    total: CostRow
    priced: bool  # prices are configured; without them money is None


def costs(conn: Connection, scope: Scope, by: CostGroup, prices: Prices) -> Costs:
    """Add up what the chains of the scope cost.

    Args:
        conn: Open connection.
        scope: Chains that a failure of the query opened.
        by: What they are grouped by.
        prices: Prices of a million tokens by model.
    """
    rows = conn.execute(_sums(conn, scope, chain.c[CHAIN_GROUPS[by]])).all()
    groups: defaultdict[str, list[Row[Any]]] = defaultdict(list)
    for row in rows:
        groups[row.name or ""].append(row)
    found = [_row(name, members, prices) for name, members in groups.items()]
    return Costs(
        by=by,
        rows=tuple(sorted(found, key=_rank)),
        total=_row("", rows, prices),
        priced=bool(prices.by_model),
    )


def _rank(row: CostRow) -> tuple[int, int, int, str]:
    return (-row.calls_spent, -row.abandoned, -row.chains, row.name)


def arm_costs(conn: Connection, scope: Scope, name: str, prices: Prices) -> dict[str, CostRow]:
    """Return what the chains of each arm of the trial *name* cost; see `costs`."""
    groups: defaultdict[str, list[Row[Any]]] = defaultdict(list)
    for row in conn.execute(_sums(conn, scope, chain.c.variant)):
        for entry in arms_of(row.name or ""):
            trial, separator, arm = entry.partition("=")
            if separator and trial == name:
                groups[arm].append(row)
    return {arm: _row(arm, rows, prices) for arm, rows in groups.items()}


def _sums(conn: Connection, scope: Scope, group: ColumnElement[Any]) -> Select[Any]:
    """Return the sums of the chains of the scope by *group* and model."""
    key, model = group.label("name"), chain.c.model.label("model")
    timed = chain.c.time_source != "none"
    with_tokens = chain.c.tokens_lost.is_not(None)
    given_up = outcome_in(scope.now, ("abandoned",))
    numbers = {
        "calls_spent": func.sum(calls_spent()),
        "abandoned": func.count(case((given_up, 1))),
        "round_trips": func.sum(chain.c.round_trips),
        "time_lost_ms": func.sum(case((timed, chain.c.time_lost_ms))),
        "tokens_lost": func.sum(chain.c.tokens_lost),
        "chains": func.count(),
        "chains_timed": func.count(case((timed, 1))),
        "chains_with_tokens": func.count(case((with_tokens, 1))),
    }
    sampled = sampling(conn, scope.project_id).failures
    if sampled:
        each = chain_weight()
        numbers = {
            "calls_spent": func.sum(each * calls_spent()),
            "abandoned": func.sum(case((given_up, each), else_=0.0)),
            "round_trips": func.sum(each * chain.c.round_trips),
            "time_lost_ms": func.sum(case((timed, each * chain.c.time_lost_ms))),
            "tokens_lost": func.sum(each * chain.c.tokens_lost),
            "chains": func.sum(each),
            "chains_timed": func.sum(case((timed, each), else_=0.0)),
            "chains_with_tokens": func.sum(case((with_tokens, each), else_=0.0)),
        }
    return (
        select(key, model, *(number.label(name) for name, number in numbers.items()))
        .select_from(weighted_chains(sampled=sampled))
        .where(chains_of(scope))
        .group_by(key, model)
    )


def _row(name: str, members: Iterable[Row[Any]], prices: Prices) -> CostRow:
    chains = spent = given_up = trips = timed = counted = priced = tokens = time_lost = money = 0.0
    for row in members:
        chains += float(row.chains)
        spent += float(row.calls_spent)
        given_up += float(row.abandoned)
        trips += float(row.round_trips)
        timed += float(row.chains_timed)
        time_lost += float(row.time_lost_ms or 0)
        counted += float(row.chains_with_tokens)
        tokens += float(row.tokens_lost or 0)
        cost = prices.cost(row.model, whole(float(row.tokens_lost or 0)))
        if cost is not None:
            priced += float(row.chains_with_tokens)
            money += cost
    return CostRow(
        name=name,
        chains=whole(chains),
        calls_spent=whole(spent),
        abandoned=whole(given_up),
        round_trips=whole(trips),
        time_lost_ms=time_lost if timed else None,
        chains_timed=whole(timed),
        tokens_lost=whole(tokens) if counted else None,
        chains_with_tokens=whole(counted),
        money_lost=money if priced else None,
        chains_priced=whole(priced),
    )
