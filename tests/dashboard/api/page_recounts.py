"""One naive recount for each page: its figures, read out of the HTML, against the exported rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pandas as pd
import pytest
from bs4 import BeautifulSoup, Tag
from tests.dashboard.api.asked import Asked, counts_of
from tests.dashboard.api.comparison_recounts import arms_of, sides_of
from tests.dashboard.api.shown import (
    Shown,
    ids,
    is_shown,
    numbers,
    query_of,
    table,
    text_of,
    tiles,
    whole,
)

from toolfault_dashboard.search import Pattern, parse

__all__ = ["PAGES", "WITHOUT_FIGURES"]

OUTCOMES = ("recovered", "switched", "abandoned", "open")
FIRST = {"tool": "tool", "code": "first_code", "model": "model"}

WITHOUT_FIGURES = ("/views", "/settings", "/help", "/start")
"""Pages that count nothing."""


def _first_try(asked: Asked, chains: pd.DataFrame, failures: pd.DataFrame, calls: int) -> Any:
    operations = calls - int(chains["round_trips"].sum())
    return operations - len(chains) - int(failures["chain_id"].isna().sum()), operations


def _headline(shown: Shown, soup: BeautifulSoup, tool: str | None = None) -> None:
    asked, seen = shown.asked, tiles(soup)
    failures, chains, calls = asked.failures, asked.chains, asked.calls
    if tool is not None:
        failures, chains = failures[failures["tool"] == tool], chains[chains["tool"] == tool]
        calls = calls[calls["tool"] == tool]
    n = int(calls["calls"].sum())
    assert _value(seen["Calls"]) == n
    assert _value(seen["Failures"]) == len(failures)
    assert _value(seen["Round trips"]) == chains["round_trips"].sum()
    is_shown(seen["Failure rate"], len(failures), n, weighed=shown.weighed)
    closed = int((chains["outcome"] != "open").sum())
    recovered = int((chains["outcome"] == "recovered").sum())
    is_shown(seen["Recovered"], recovered, closed, weighed=shown.weighed)
    first, operations = _first_try(asked, chains, failures, n)
    if operations >= first >= 0:
        is_shown(seen["First-try success"], first, operations, weighed=shown.weighed)
    per = chains["round_trips"].sum() / len(failures)
    assert numbers(seen["Round trips"].get_text())[1] == pytest.approx(per, abs=0.00501)


def _value(tile: Tag) -> int:
    return whole(tile.select_one(".value"))


def _over_time(soup: BeautifulSoup, failures: pd.DataFrame, calls: pd.DataFrame) -> None:
    """Each row holds what lies in its bucket; no failure is outside of all."""
    rows = table(soup, "time-title").rows
    timed = failures[failures["time_source"] != "none"]
    assert sum(whole(row["Failures"]) for row in rows) == len(timed)
    if not rows:
        return
    begins = [pd.Timestamp(next(iter(row.values())).time["datetime"]) for row in rows]
    step = min((b - a for a, b in pairwise(begins)), default=pd.Timedelta(days=1))
    at = pd.to_datetime(timed["occurred_at"], format="ISO8601")
    own = calls[calls["time_source"].fillna("client") != "none"]
    called = pd.to_datetime(own["occurred_at"], unit="us", utc=True)
    for row, begin in zip(rows, begins, strict=True):
        end = begin + step
        inside = timed[(at >= begin) & (at < end)]
        assert whole(row["Failures"]) == len(inside)
        assert whole(row["Calls"]) == own[(called >= begin) & (called < end)]["calls"].sum()
        codes = counts_of(inside["code"])
        for name, cell in list(row.items())[1:-2]:
            assert name == "other" or whole(cell) == codes.get(name, 0)


def _names(row: dict[str, Tag], key: str) -> str:
    """The value of *key* in the query that the first cell of a row leads to."""
    link = next(iter(row.values())).find("a")
    for clause in parse(query_of(link)).clauses:
        if clause.key == key and not clause.negated:
            (value,) = clause.values
            assert isinstance(value, Pattern)
            return value.exact or ""
    raise AssertionError(f"{link} does not filter by {key}")


def _codes(shown: Shown, soup: BeautifulSoup, failures: pd.DataFrame) -> None:
    rows = table(soup, "codes-title").rows
    expected = counts_of(failures["code"])
    assert {_names(row, "code"): whole(row["Failures"]) for row in rows}.items() <= expected.items()
    assert len(rows) == min(len(expected), len(rows) if len(rows) in (8, 10, 50, 100) else 10**6)
    for row in rows:
        n = expected[_names(row, "code")]
        assert numbers(row["Share"].get_text())[0] == pytest.approx(
            100 * n / len(failures), abs=0.0501
        )
        if "95% interval" in row:
            calls = int(shown.asked.calls["calls"].sum())
            is_shown(row["95% interval"], n, calls, weighed=shown.weighed)


def overview(shown: Shown) -> None:
    """Headline, chart, worst tools, codes and the newest failures."""
    asked, soup = shown.asked, shown.page("/")
    _headline(shown, soup)
    _over_time(soup, asked.failures, asked.calls)
    _codes(shown, soup, asked.failures)
    calls, failed = asked.calls_by("tool"), counts_of(asked.failures["tool"])
    trips = asked.chains.groupby("tool")["round_trips"].sum().to_dict()
    rows = table(soup, "tools-title").rows
    assert rows
    for row in rows:
        name = text_of(row["Tool"])
        assert whole(row["Failures"]) == failed.get(name, 0)
        assert whole(row["Round trips"]) == trips.get(name, 0)
        is_shown(row["Failure rate"], failed.get(name, 0), calls[name], weighed=shown.weighed)
    newest = ids(soup, "[aria-labelledby=newest-title]", "failures")
    assert newest == asked.sent_failures["event_id"].tolist()[: len(newest)]
    assert newest


def failures(shown: Shown) -> None:
    """The list, its total and its kinds."""
    sent = shown.asked.sent_failures
    soup = shown.page("/failures")
    assert whole(soup.select_one(".lede")) == len(sent)
    listed = ids(soup, "main", "failures")
    assert listed == sent["event_id"].tolist()[: len(listed)]
    assert len(listed) == min(50, len(sent))
    for facet in soup.select(".facet li a"):
        if "aria-current" in facet.attrs:
            continue
        found = shown.asked.exported("failures", q=query_of(facet))
        assert whole(facet.select_one(".n")) == len(found), query_of(facet)
        break  # the API's facets are recounted one by one
    kinds = shown.page("/failures", group="kind")
    counts = sent["signature"].fillna("").value_counts()
    assert numbers(text_of(kinds.select_one(".lede")))[-1] == len(counts)
    rows = [row.select_one("td.num") for row in kinds.select("main table tbody tr")]
    assert [whole(cell) for cell in rows] == counts.tolist()[: len(rows)]


def round_trips(shown: Shown) -> None:
    """Tiles, funnel, distribution, groups and the list of chains."""
    asked, chains = shown.asked, shown.asked.chains
    soup = shown.page("/round-trips")
    seen = tiles(soup)
    assert _value(seen["Round trips"]) == chains["round_trips"].sum()
    recovered = int((chains["outcome"] == "recovered").sum())
    closed = int((chains["outcome"] != "open").sum())
    is_shown(seen["Recovered"], recovered, closed, weighed=shown.weighed)
    retried = int((chains["round_trips"] > 0).sum())
    fixed = int(chains["first_retry_fix"].astype(bool).sum())
    is_shown(seen["First-retry fixes"], fixed, retried, weighed=shown.weighed)
    assert _value(seen["Same again"]) == chains["identical_repeats"].sum()
    assert _value(seen["Serial discovery"]) == chains["serial_discovery"].astype(bool).sum()
    funnel = {text_of(row["Chains"]).lower(): whole(row["Number"])
              for row in table(soup, "funnel-title").rows}  # fmt: skip
    assert (funnel["chains"], funnel["retried"]) == (len(chains), retried)
    for outcome in OUTCOMES:
        if outcome in funnel:
            assert funnel[outcome] == (chains["outcome"] == outcome).sum()
    distribution = table(soup, "distribution-title").rows
    assert sum(whole(row["Chains"]) for row in distribution) == len(chains)
    for row in distribution:
        name = text_of(row["Round trips"])
        least = int(numbers(name)[0])
        own = chains[
            (chains["round_trips"] == least) if name.isdigit() else (chains["round_trips"] >= least)
        ]
        for outcome in OUTCOMES:
            assert whole(row[outcome]) == (own["outcome"] == outcome).sum()
    for by, column in FIRST.items():
        _groups(shown, shown.page("/round-trips", by=by), chains, by, column)
    listed = ids(soup, "#chains", "chains")
    assert listed == asked.sent_chains["chain_id"].tolist()[: len(listed)]


def _groups(shown: Shown, soup: BeautifulSoup, chains: pd.DataFrame, by: str, column: str) -> None:
    rows = table(soup, "tools-title").rows
    assert rows
    for row in rows:
        name = _names(row, by)
        own = chains[chains[column].fillna("") == name]
        assert whole(row["Chains"]) == len(own) > 0
        assert whole(row["Round trips"]) == own["round_trips"].sum()
        for outcome in OUTCOMES:
            assert whole(row[outcome.capitalize()]) == (own["outcome"] == outcome).sum()
        closed = int((own["outcome"] != "open").sum())
        recovered = int((own["outcome"] == "recovered").sum())
        is_shown(row["Recovery rate"], recovered, closed, weighed=shown.weighed)
        assert whole(row["First retry"]) == own["first_retry_fix"].astype(bool).sum()
        assert whole(row["Same again"]) == own["identical_repeats"].sum()


def codes(shown: Shown) -> None:
    """Chart, codes, fields and both maps."""
    asked, soup = shown.asked, shown.page("/codes")
    _over_time(soup, asked.failures, asked.calls)
    _codes(shown, soup, asked.failures)
    by_code = asked.failures.groupby(["tool", "code"]).size().to_dict()
    by_field: dict[tuple[str, str], int] = {}
    if len(asked.issues):
        named = asked.issues[asked.issues["root_field"] != ""]
        once = named.drop_duplicates(["tool", "root_field", "event_id"])
        own = once["event_id"].map(asked.weights)
        by_field = own.groupby([once["tool"], once["root_field"]]).sum().to_dict()
    for section, key, expected in (
        ("heat-code", "code", by_code),
        ("heat-field", "field", by_field),
    ):
        for row in table(soup, section).rows:
            tool = text_of(row["Tool"])
            for name, cell in list(row.items())[1:]:
                link = cell.find("a")
                if link is not None:
                    assert whole(cell) == expected[tool, _clause(query_of(link), key)], (tool, name)
    for row in table(soup, "fields-title").rows:
        query = query_of(next(iter(row.values())).find("a"))
        found = asked.repeated(asked.exported("failures", q=query), "event_id")
        assert whole(row["Failures"]) == len(found), query


def _clause(query: str, key: str) -> str:
    (value,) = next(each for each in parse(query).clauses if each.key == key).values
    assert isinstance(value, Pattern)
    return value.exact or ""


def tools(shown: Shown) -> None:
    """Every tool that was called, and what its calls came to."""
    asked, rows = shown.asked, table_of_page(shown.page("/tools"))
    calls = asked.calls_by("tool")
    assert {text_of(row["Tool"]): whole(row["Calls"]) for row in rows} == calls
    for row in rows:
        name = text_of(row["Tool"])
        failed = asked.failures[asked.failures["tool"] == name]
        own = asked.chains[asked.chains["tool"] == name]
        assert whole(row["Failures"]) == len(failed)
        is_shown(row["Failure rate"], len(failed), calls[name], weighed=shown.weighed)
        assert whole(row["Round trips"]) == own["round_trips"].sum()
        first, operations = _first_try(asked, own, failed, calls[name])
        if operations >= first >= 0:
            is_shown(row["First-try success"], first, operations, weighed=shown.weighed)
        closed = int((own["outcome"] != "open").sum())
        recovered = int((own["outcome"] == "recovered").sum())
        is_shown(row["Recovered"], recovered, closed, weighed=shown.weighed)


def table_of_page(soup: BeautifulSoup) -> list[dict[str, Tag]]:
    """The rows of the one table of a page."""
    (found,) = soup.select("main table")
    headings = [text_of(each) for each in found.select("thead th")]
    return [
        dict(zip(headings, row.find_all(["th", "td"], recursive=False), strict=True))
        for row in found.select("tbody tr")
    ]


def tool(shown: Shown) -> None:
    """The same of one tool."""
    asked = shown.asked
    (name, *_) = counts_of(asked.failures["tool"])
    soup = shown.page("/tool", name=name)
    _headline(shown, soup, name)
    own = asked.failures[asked.failures["tool"] == name]
    _over_time(soup, own, asked.calls[asked.calls["tool"] == name])
    _codes(shown, soup, own)
    newest = ids(soup, "[aria-labelledby=newest-title]", "failures")
    sent = asked.sent_failures
    assert newest == sent[sent["tool"] == name]["event_id"].tolist()[: len(newest)]


def messages(shown: Shown) -> None:
    """Failures of each wording and how many of their next calls succeeded."""
    asked = shown.asked
    calls = asked.stored("tool_call")
    chained = calls[calls["chain_id"].notna()].sort_values(["chain_id", "attempt"])
    by_chain = chained.groupby("chain_id")
    fixed = (
        (chained["success"] == 0)
        & (by_chain["success"].shift(-1) == 1)
        & ~by_chain["turn"].shift(-1).eq(chained["turn"])
    )
    fixing = set(chained[fixed]["event_id"])
    rows = shown.page("/messages").select("table.wordings tbody tr")
    for row in rows:
        query = query_of(row.th.a)
        own = asked.failures
        for key, column in (("tool", "tool"), ("code", "code"), ("message", "message_digest")):
            own = own[own[column].fillna("") == _clause(query, key)]
        number, rate = row.select("td")[:2]
        assert whole(number) == len(own) > 0
        shown_n = numbers(text_of(rate))
        if rate.find("title") and not shown.weighed:
            n = shown_n[-1]
            assert n * shown_n[0] / 100 == pytest.approx(
                own["event_id"].isin(fixing).sum(), abs=0.1
            )
    assert rows or asked.failures["message_digest"].isna().all()


def fix_next(shown: Shown) -> None:
    """Each fix is of failures that its link finds, and saves what the API says."""
    asked, soup = shown.asked, shown.page("/fix-next")
    assert whole(soup.select_one(".lede")) == len(asked.sent_failures)
    answers = asked.get("/fix-next", limit=10_000)["rows"]
    for card, answer in zip(soup.select("ol.fixes > li"), answers, strict=False):
        hints = card.select(".fix-saved .hint")
        said = numbers(text_of(hints[-1]))
        assert said[:2] == [answer["failures"], answer["chains"]]
        link = hints[-1].find("a")
        found = asked.exported("failures", q=query_of(link)) if link else asked.sent_failures
        assert said[0] <= len(found)
        assert said[1] <= found["chain_id"].nunique() or answer["remedy"] == "all_at_once"
        if answer["per_week"] is not None:
            shown_saving = numbers(text_of(card.select_one(".fix-saved strong")))[0]
            assert shown_saving == pytest.approx(answer["per_week"], rel=0.02, abs=0.0501)
    assert bool(soup.select("ol.fixes > li")) == bool(answers)


def live(shown: Shown) -> None:
    """The newest failures."""
    listed = ids(shown.page("/live"), "#live", "failures")
    assert listed == shown.asked.sent_failures["event_id"].tolist()[: len(listed)]
    assert listed


def rejected(shown: Shown) -> None:
    """As many refused events as are kept, by the code of their refusal."""
    soup, kept = shown.page("/rejected"), shown.asked.stored("rejected_event")
    assert len(soup.select("main table tbody tr")) == min(50, len(kept))
    badges = [text_of(each).rsplit(" ", 1) for each in soup.select("main .badges .badge")]
    assert {code: int(numbers(n)[0]) for code, n in badges} == counts_of(kept["code"])
    assert len(kept) or shown.asked.project != "demo"


def _metrics(shown: Shown, soup: BeautifulSoup, queries: tuple[str, str]) -> None:
    asked = shown.asked
    counts: list[dict[str, int]] = []
    row = table(soup, "metrics-title").rows[0]
    assert text_of(row["Metric"]).startswith("Failure rate")
    for name, query in zip(("Before", "After"), queries, strict=True):
        failed = asked.repeated(asked.exported("failures", q=query), "event_id")
        calls = asked.get("/summary", q=query)["calls"]
        if calls:
            said = numbers(text_of(row[name]))
            assert said[0] == pytest.approx(100 * len(failed) / calls, abs=0.0501)
            assert said[-1] == calls or shown.weighed
        counts.append(counts_of(asked.exported("failures", q=query)["code"]) if len(failed) else {})
    for line in table(soup, "codes-title").rows:
        code = text_of(line["Code"])
        for name, own in zip(("Before", "After"), counts, strict=True):
            assert whole(line[name]) == own.get(code, 0)


def compare(shown: Shown) -> None:
    """Both sides of two queries are their rows."""
    before, after = sides_of(shown.asked)
    _metrics(shown, shown.page("/compare", before=before, after=after), (before, after))


def changes(shown: Shown) -> None:
    """The list of changes, and both sides of each."""
    asked, soup = shown.asked, shown.page("/changes")
    links = {
        str(a["href"]).partition("?")[0].rpartition("/")[2]
        for a in soup.select("main table th a.row-link[href^='/changes/']")
    }
    assert set(asked.stored("change")["event_id"]) <= {each.replace("%3A", ":") for each in links}
    for change in asked.get("/changes", detected=True)["changes"][:3]:
        page = shown.page(f"/changes/{quote(change['event_id'])}", sides="30d")
        link = page.select_one("main a[href^='/compare?']")
        assert link is not None
        sides = parse_qs(urlsplit(str(link["href"])).query)
        _metrics(shown, page, (sides["before"][0], sides["after"][0]))


def experiments(shown: Shown) -> None:
    """The trials that calls carry, with their arms' calls and failures."""
    arms = arms_of(shown.asked)
    rows = shown.page("/experiments").select("main table tbody tr")
    assert {text_of(row.th) for row in rows} == set(arms)
    carried = shown.asked.calls["variant"].fillna("").str.split(",")
    for name, own in arms.items():
        soup = shown.page("/experiment", name=name)
        assert {text_of(row["Arm"]).split()[0] for row in table(soup, "arms-title").rows} == own
        if len(own) != 2:
            continue
        control = next(
            text_of(row["Arm"]).split()[0]
            for row in table(soup, "arms-title").rows
            if "control" in text_of(row["Arm"])
        )
        rate = table(soup, "effect-title").rows[0]
        for arm in own:
            calls = shown.asked.calls[[f"{name}={arm}" in each for each in carried]]
            failed, n = calls[calls["success"] == 0]["calls"].sum(), calls["calls"].sum()
            said = numbers(text_of(rate["Control" if arm == control else arm]))
            assert said[0] == pytest.approx(100 * failed / n, abs=0.0501)
            assert said[-1] == calls["sent"].sum()
            line = next(
                row
                for row in table(soup, "arms-title").rows
                if text_of(row["Arm"]).split()[0] == arm
            )
            summary = shown.asked.get("/summary", q=f"variant:{name}={arm}")
            assert whole(line["Conversations"]) == summary["conversations"]


def failure(shown: Shown) -> None:
    """Each of some failures shows its issues, one row each."""
    issues = shown.asked.issues
    for event in shown.asked.sent_failures["event_id"].tolist()[::197]:
        own = issues[issues["event_id"] == event] if len(issues) else []
        rows = table(shown.page(f"/failures/{event}"), "issues-title").rows
        assert len(rows) == len(own)


def chain(shown: Shown) -> None:
    """Each of some chains says its failures and round trips."""
    for row in shown.asked.sent_chains.iloc[::101].to_dict("records"):
        lede = shown.page(f"/chains/{row['chain_id']}").select_one(".lede")
        assert numbers(text_of(lede))[:2] == [row["failures"], row["round_trips"]]


PAGES: dict[str, Callable[[Shown], None]] = {
    "/": overview,
    "/failures": failures,
    "/failures/ID": failure,
    "/round-trips": round_trips,
    "/chains/ID": chain,
    "/codes": codes,
    "/tools": tools,
    "/tool": tool,
    "/messages": messages,
    "/fix-next": fix_next,
    "/changes": changes,
    "/compare": compare,
    "/experiments": experiments,
    "/live": live,
    "/rejected": rejected,
}
"""Page -> its recount. A page of the navigation without one fails a test."""
