"""What failures cost: sums over the rows, money by model, and no zero for what nobody reported."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from sqlalchemy import Connection
from tests.dashboard.conftest import on_engines
from tests.dashboard.generated import NOW
from tests.dashboard.naive import Tables

from toolfault_dashboard import queries
from toolfault_dashboard.analysis.prices import PricesError, configured_prices, parse_prices
from toolfault_dashboard.queries import CHAIN_GROUPS, Scope

PRICES = parse_prices("claude*=3, gpt-5=1.25")


def _money(rows: list[dict[str, Any]]) -> float:
    price = {True: 3.0, False: 1.25}
    return sum(
        row["tokens_lost"] * price[row["model"].startswith("claude")] / 1e6
        for row in rows
        if row["tokens_lost"] is not None and (row["model"] or "").startswith(("claude", "gpt-5"))
    )


@on_engines(
    "by,text",
    [
        (by, text)
        for place, by in enumerate(queries.COST_GROUPS)
        for text in ("", ("tool:search", "time:none")[place % 2])
    ],
    [(by, "since:21d") for by in queries.COST_GROUPS[::3]],
)
def test_costs_are_those_of_the_chains(
    conn: Connection, scope: Scope, stored: Tables, by: queries.CostGroup, text: str
) -> None:
    """Every sum is over the chains that know it; what none knows is None."""
    asked = scope.narrowed(text)
    found = queries.costs(conn, asked, by, PRICES)
    groups: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for opened in stored.opened(asked.query, NOW):
        groups[opened[CHAIN_GROUPS[by]] or ""].append(opened)
    assert {row.name for row in found.rows} == groups.keys()
    everything = [row for rows in groups.values() for row in rows]
    pairs = [(row, groups[row.name]) for row in found.rows] + [(found.total, everything)]
    for row, rows in pairs:
        told = [each["tokens_lost"] for each in rows if each["tokens_lost"] is not None]
        timed = [each["time_lost_ms"] for each in rows if each["time_source"] != "none"]
        assert (row.chains, row.round_trips) == (len(rows), sum(r["round_trips"] for r in rows))
        given_up = [each for each in rows if each["outcome_now"] == "abandoned"]
        assert (row.calls_spent, row.abandoned) == (sum(r["spent"] for r in rows), len(given_up))
        assert (row.chains_with_tokens, row.tokens_lost) == (
            len(told), sum(told) if told else None,
        )  # fmt: skip
        assert row.chains_timed == len(timed)
        assert row.time_lost_ms == (pytest.approx(sum(timed)) if timed else None)
        assert (row.money_lost or 0.0) == pytest.approx(_money(rows))
        assert (row.money_lost is None) == (row.chains_priced == 0)
    assert found.priced
    without = queries.costs(conn, asked, by, parse_prices(""))
    assert not without.priced
    assert {row.money_lost for row in without.rows} <= {None}


def test_prices_are_read_as_written() -> None:
    """The first pattern that fits counts; a model without a price has no cost."""
    prices = configured_prices({"TOOLFAULT_TOKEN_PRICES": "a-large=10,a-*=2,=-free*=0"})
    assert prices.cost("a-large", 500_000) == 5.0
    assert prices.cost("a-small", 500_000) == 1.0
    assert prices.cost("b", 500_000) is None
    assert prices.cost(None, 1) is None
    assert parse_prices("*=1").cost(None, 1_000_000) == 1.0
    assert configured_prices({}).by_model == ()


@pytest.mark.parametrize("text", ["a", "a=", "=3", "a=x", "a=-1", "a=nan", "a=inf"])
def test_prices_that_are_none_are_refused(text: str) -> None:
    """A price that cannot be read is an error that says how to write one."""
    with pytest.raises(PricesError, match="claude-x=3"):
        parse_prices(text)
