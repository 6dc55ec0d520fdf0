"""Where the tests of pages look: the generated project, and one page of each kind in it."""

from __future__ import annotations

from urllib.parse import urlencode

from sqlalchemy import Engine
from tests.dashboard.addresses import COMPARED, LISTS
from tests.dashboard.generated import NOW

from toolfault_collector.storage.database.engine import read_connection
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse

__all__ = ["GENERATED", "details", "generated", "scope_of", "variants"]

GENERATED = "project=generated&window=all"


def scope_of(engine: Engine, query: str = "") -> Scope:
    with read_connection(engine) as conn:
        row = queries.project_by_name(conn, "generated")
    assert row is not None
    return Scope(row.id, parse(query), NOW)


def details(engine: Engine) -> list[str]:
    """Addresses of one failure, one chain, one conversation, one tool and one change."""
    scope = scope_of(engine)
    with read_connection(engine) as conn:
        failure = next(
            row for row in queries.failure_list(conn, scope, limit=200).rows if row.chain_id
        )
        chain = queries.chain_list(conn, scope, limit=1).rows[0]
        changes = queries.changes(conn, scope)
    found = [
        f"/failures/{failure.event_id}",
        f"/chains/{chain.chain_id}",
        "/conversation?" + urlencode({"name": chain.conversation}),
        "/tool?name=http_request",
        "/experiment?name=b",
        COMPARED,
        "/docs/api",
    ]
    return found + [f"/changes/{each.event_id}" for each in changes[:1]]


_SIDES = (
    ("tool:search", "tool:http_request"),
    ("variant:b=2", "variant:b=3"),  # arms of a trial
    ("release:1.0", "-release:1.0"),
    ("model:claude*", "model:gpt*"),
    ("conversation:*", "agent:*"),
    ("since:14d until:7d", "since:7d"),
    ("chain:recovered", "chain:abandoned"),
    ("field:port", "message:*"),
    ("", "has:issue"),
    ("code:wrong_type", ""),
)


def variants(engine: Engine) -> list[str]:
    """Addresses of pages that ask for something beyond what the page shows first."""
    scope = scope_of(engine)
    with read_connection(engine) as conn:
        chain = queries.chain_list(conn, scope, limit=1).rows[0]
        event = queries.changes(conn, scope)[0].event_id
    kinds = (f"/failures?group=kind&sort={sort}" for sort in ("failures", "first", "last"))
    every = ("columns", "model,agent,release,environment,variant,conversation")
    names = ("tool", "argument", "code", "model")
    metrics = ("failure_rate", "recovery_rate", "tokens_lost_per_chain")
    queried = "tool:search -model:claude* has:issue since:20d code:wrong_type,missing_field"
    chains = {"cols": "recovery,tokens,money", "chain-cols": "field,model,release,tokens_lost"}
    return [
        *kinds,
        *(f"{path}{'&' if '?' in path else '?'}{urlencode({'q': queried})}" for path in _LISTS),
        *(f"{path}?q=chain:abandoned,open&window=7d" for path in LISTS if path != "/start"),
        f"/failures?{urlencode([every])}",
        "/failures?q=message:*+field:*&window=90d&refresh=30",
        *(f"/round-trips?by={by}&{urlencode(chains)}" for by in names),
        "/round-trips?q=-chain:recovered&by=argument",
        "/codes?q=category:parameter&cols=first,last,seen",
        *(f"/tools?sort={sort}" for sort in ("name", "calls", "failures", "rate")),
        "/tool?name=http_request&q=model:claude*&window=7d",
        "/messages?q=tool:search",
        "/fix-next?q=model:claude*&done=added",
        f"/chains/{chain.chain_id}?told=diff",
        *(f"/changes/{event}?sides={sides}" for sides in ("7d", "30d")),
        f"/changes?recorded={event}&tool=search",
        *("/compare?" + urlencode({"before": a, "after": b}) for a, b in _SIDES),
        "/compare?" + urlencode({"before": "variant:b=2", "after": "variant:b=3", "q": queried}),
        *(f"/experiment?name=b&days=1&metric={metric}" for metric in metrics),
        "/experiment?name=b&control=3&days=1&q=tool:search",
        "/experiment?name=a&days=1",
        "/settings?done=saved",
    ]


_LISTS = tuple(
    path for path in LISTS if path not in {"/start", "/settings", "/help", "/views", "/docs"}
)


def generated(path: str) -> str:
    given = GENERATED if "window=" not in path else "project=generated"
    return f"{path}{'&' if '?' in path else '?'}{given}"
