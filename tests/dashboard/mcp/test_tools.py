"""The tools answer what the queries answer, in few tokens, page by page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine
from tests.dashboard.generated import NOW
from tests.dashboard.mcp.asking import everything, pages, text_of

from toolfault_collector.admin.projects import find_project
from toolfault_collector.storage.database.engine import read_connection
from toolfault_dashboard import queries
from toolfault_dashboard.mcp.answers import estimated_tokens
from toolfault_dashboard.mcp.sdk import definitions
from toolfault_dashboard.mcp.tools import INSTRUCTIONS, Refused, answered
from toolfault_dashboard.queries import CursorError, Scope
from toolfault_dashboard.search import QueryError, parse


@pytest.fixture
def asked(history: Engine) -> Iterator[tuple[Connection, int]]:
    """The generated project."""
    with read_connection(history) as conn:
        project = find_project(conn, "generated")
        assert project is not None
        yield conn, project


def _scope(project: int, text: str = "") -> Scope:
    return Scope(project, parse(text), NOW, "llm")


def test_the_definitions_are_small_and_say_that_they_only_read():
    """All definitions together, with the instructions, take under 3,000 tokens."""
    listed = definitions()
    assert [each.name for each in listed] == [
        "overview", "fix_next", "kinds", "kind", "chain", "compare", "search", "changes",
    ]  # fmt: skip
    written = [each.model_dump_json(by_alias=True, exclude_none=True) for each in listed]
    assert estimated_tokens("".join([*written, INSTRUCTIONS])) < 3_000
    for each in listed:
        assert each.annotations is not None
        assert each.annotations.read_only_hint
        assert each.input_schema["additionalProperties"] is False


def test_figures_are_those_of_the_queries(asked: tuple[Connection, int]):
    """No tool has a formula of its own: overview, kinds, kind, fixes and changes agree."""
    conn, project = asked
    scope = _scope(project, "tool:search")
    found = queries.overview(conn, scope)
    said = json.loads(text_of(conn, project, "overview", query="tool:search"))
    assert said["calls"] == found.summary.calls
    assert said["failures"] == found.summary.failures
    assert said["recovered"] == found.summary.recovered
    assert found.first_try.value is not None
    assert said["first_try_success"]["value"] == pytest.approx(found.first_try.value, rel=1e-3)
    first = queries.kinds(conn, scope, limit=1).rows[0]
    kind = json.loads(text_of(conn, project, "kind", query="tool:search", kind=first.fingerprint))
    own = queries.round_trips(conn, scope.narrowed(f"signature:{first.fingerprint}"))
    assert (kind["failures"], kind["chains"]) == (first.failures, own.funnel.chains)
    states = [
        each["state"]
        for text in pages(conn, project, "kinds", query="tool:search")
        for each in json.loads(text)["kinds"]
    ]
    assert states == [each.state for each in queries.kinds(conn, scope).rows]
    assert len(set(states)) > 1
    fixes = [
        each["calls_spent"]
        for text in pages(conn, project, "fix_next", query="tool:search")
        for each in json.loads(text)["fixes"]
    ]
    expected = [each.cost for each in queries.fix_next(conn, scope).rows]
    assert fixes == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("tool", "name", "total"),
    [("kinds", "kinds", "kinds_in_all"), ("search", "rows", "failures")],
)
def test_pages_give_every_row_once(asked: tuple[Connection, int], tool: str, name: str, total: str):
    """Following the cursor to the end gives as many rows as the first page promises."""
    conn, project = asked
    texts = [json.loads(text) for text in pages(conn, project, tool, query="tool:search")]
    rows = [json.dumps(row) for text in texts for row in text[name]]
    assert len(texts) > 1
    assert len(rows) == texts[0][total]
    if tool == "kinds":
        assert len(set(rows)) == len(rows)


@pytest.mark.parametrize("most", [2, pytest.param(None, marks=pytest.mark.long)])
def test_every_answer_is_within_its_budget(asked: tuple[Connection, int], most: int | None):
    """Each tool keeps to its tokens on a history of some hundred failures."""
    assert sum(1 for _ in everything(*asked, most=most)) > (25 if most is None else 10)


def test_who_may_not_see_what_the_model_saw_is_not_told(asked: tuple[Connection, int]):
    """The audience of the reader caps the tools as it caps pages: no remedies for a viewer."""
    conn, project = asked
    with pytest.raises(QueryError, match="Your role may not see"):
        text_of(conn, project, "fix_next", "user")
    texts = "".join(pages(conn, project, "search", "user"))
    assert '"message_to_model":"Error' not in texts


@pytest.mark.parametrize(
    ("tool", "given", "error", "says"),
    [
        ("delete", {}, Refused, "There is no such tool"),
        ("kind", {"kind": "x"}, Refused, "Fix all of these: kind: "),
        ("kind", {"kind": "0" * 32}, Refused, "kinds lists them"),
        ("chain", {"chain": "x"}, Refused, "no chain of that id"),
        ("compare", {}, Refused, "two cohorts"),
        ("compare", {"change": "x"}, Refused, "no such change"),
        ("overview", {"window": 3}, Refused, "1 argument that it does not have. overview takes"),
        (
            "kinds",
            {"order": "x", "cursor": 5, "a": 1},
            Refused,
            "cursor: .*; order: .*; 1 argument",
        ),
        ("search", {"query": "colour:red"}, QueryError, "colour"),
        ("kinds", {"cursor": "AAAA"}, CursorError, "first page"),
    ],
)
def test_wrong_arguments_get_a_sentence_that_says_what_to_do(
    asked: tuple[Connection, int],
    tool: str,
    given: dict[str, Any],
    error: type[Exception],
    says: str,
):
    """Nothing that an agent may give ends in anything but a sentence."""
    conn, project = asked
    with pytest.raises(error, match=says):
        answered(conn, project, tool, given, now=NOW, audience="llm")
