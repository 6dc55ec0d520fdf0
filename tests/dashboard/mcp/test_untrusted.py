"""Recorded texts come out of the tools as marked data, whatever they say."""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection
from tests.dashboard.generated import NOW
from tests.dashboard.hostile import hostile_events
from tests.dashboard.mcp.asking import everything, pages
from tests.dashboard.mcp.injections import injections

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.mcp.tools import refusal
from toolfault_dashboard.mcp.untrusted import LONGEST, NOTE, bounded, encoded, row
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import QueryError, parse

OURS = re.compile(
    r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # hashes and ids
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    # Outcomes, states, verdicts, remedies, metrics.
    r"|[a-z_]{4,30}|new|not enough data|no detectable change"
)
KEYS = re.compile(r"[a-z_]{1,30}")


@pytest.fixture(scope="module", params=[12, pytest.param(1, marks=pytest.mark.long)])
def attacked(
    request: pytest.FixtureRequest, sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Connection, int]]:
    """A project in which each of the injections, or a part, stands wherever a text can stand."""
    path = tmp_path_factory.mktemp("attacked") / "toolfault.db"
    shutil.copyfile(sqlite_template, path)
    engine = open_engine(f"sqlite:///{path}")
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "attacked")
        for text in injections()[:: request.param]:
            events = hostile_events(text[:400])
            store_events(conn, project, events, received_at=NOW, time_policy="import")
    with read_connection(engine) as conn:
        yield conn, project
    engine.dispose()


def _strings(value: Any, *, marked: bool = False) -> Iterator[tuple[str, bool]]:
    """Every string of an answer but its cursor, and whether it is marked as untrusted."""
    if isinstance(value, str):
        yield value, marked
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each, marked=marked)
    elif isinstance(value, dict):
        for name, each in value.items():
            assert marked or KEYS.fullmatch(name), name
            if name != "next_cursor":
                yield from _strings(each, marked=marked or name == "untrusted")


def test_three_hundred_injections_come_out_as_marked_data(
    attacked: tuple[Connection, int], request: pytest.FixtureRequest
):
    """Outside the marks stand words, numbers and ids of ours; inside, nothing can end its mark."""
    conn, project = attacked
    assert len(injections()) == 300
    seen: set[str] = set()
    for text in everything(conn, project):
        assert not re.search(r"[<>&`]", text)
        assert all(unicodedata.category(each)[0] != "C" for each in text)
        for string, marked in _strings(json.loads(text)):
            if marked:
                seen.add(string)
            else:
                assert string == NOTE or OURS.fullmatch(string), string
    scope = Scope(project, parse(""), NOW, "llm")
    recorded = queries.failure_list(conn, scope, limit=500).rows
    told = {each.text for each in recorded if each.text}
    assert len(told) >= 250 // request.node.callspec.params["attacked"]
    assert {bounded(each, LONGEST["message_to_model"]) for each in told} <= seen


def test_a_page_names_the_origin_of_each_text(attacked: tuple[Connection, int]):
    """The name of a marked text says where it was recorded."""
    origins: set[str] = set()
    for text in pages(*attacked, "search"):
        for each in json.loads(text)["rows"]:
            origins |= each["untrusted"].keys()
    assert origins <= {"tool", "code", "argument", "model", "message_to_model", "chain"}
    assert {"tool", "model", "message_to_model"} <= origins


@given(st.text(max_size=120), st.integers(0, 120))
@settings(max_examples=60)
def test_a_text_takes_no_more_than_its_bytes_and_stays_json(text: str, longest: int):
    """No choice of characters makes a text longer than its bound, but for the words about that."""
    shown = bounded(text.encode("utf-8", "replace").decode(), longest)
    kept = shown.removesuffix(f"[cut; {len(text)} characters]")
    assert len(encoded(kept).encode()) <= longest + 2
    assert json.loads(encoded(shown)) == shown
    assert all(unicodedata.category(each) not in {"Cc", "Cf"} or each in "\n\t" for each in shown)


def test_an_id_that_is_a_sentence_is_marked():
    """A sender chooses ids: only a hash or a UUID stands outside the marks."""
    plain = "0190163d-8694-739b-aea5-966c26f8ad91"
    assert row({}, ids={"chain": plain}) == {"chain": plain}
    assert row({}, ids={"chain": "run rm"}) == {"untrusted": {"chain": "run rm"}}


def test_a_refusal_marks_what_it_quotes_of_the_query():
    """An agent may search for a recorded name; what is said of the query is marked like it."""
    text = refusal(QueryError("There is no key 'ignore</x>'.", 3))
    assert json.loads(text)["untrusted"]["detail"].startswith("There is no key")
    assert "<" not in text
