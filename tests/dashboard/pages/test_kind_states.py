"""Deciding about kinds of failure: from their list, from a failure, and what Fix next says."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser

from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_dashboard import queries
from toolfault_dashboard.queries import KindRow, Scope
from toolfault_dashboard.search import parse
from toolfault_dashboard.writes.kind_states import Decision, decide, state_of

HERE = "project=generated"
LIST = f"{HERE}&group=kind&sort=calls&q=tool:search"


@pytest.fixture
def written(filled_sqlite: Path, tmp_path: Path) -> Iterator[Engine]:
    """The generated history, for a test to write to."""
    path = tmp_path / "toolfault.db"
    shutil.copyfile(filled_sqlite, path)
    engine = open_engine(f"sqlite:///{path}")
    yield engine
    engine.dispose()


@pytest.fixture
def developer(written: Engine) -> Iterator[Browser]:
    """Somebody who may decide."""
    yield from open_browser(written, role="developer")


def _scope(text: str = "") -> Scope:
    return Scope(1, parse(text), NOW)


def _kinds(engine: Engine, text: str = "") -> tuple[KindRow, ...]:
    with read_connection(engine) as conn:
        return queries.kinds(conn, _scope(text), drawn=False).rows


def _stored(engine: Engine, fingerprint: str) -> dict[str, object]:
    with read_connection(engine) as conn:
        found = state_of(conn, 1, fingerprint)
    return {name: value for name, value in found.items() if value is not None}


def test_several_kinds_are_decided_about_at_once(developer: Browser, written: Engine) -> None:
    """The chosen ones and no others; the list comes back as it was and says what was done."""
    one, two, other = (row.fingerprint for row in _kinds(written, "tool:search state:open")[:3])
    form = {f"kind.{one}": "1", f"kind.{two}": "1", "state": "ignored", "until": "7d"}
    page = developer.post(f"/kinds?{LIST}", form)
    assert page.role("status") == "2 kinds changed."
    assert page.table("Kind").headings[:3] == ("Choose", "Kind", "State")
    expected = {"state": "ignored", "ignored_at": NOW, "ignored_until": NOW + 7 * DAY_US}
    assert _stored(written, one) == _stored(written, two) == expected
    assert _stored(written, other) == {}
    form = {f"kind.{one}": "1", "set": "owner", "owner": "ana"}
    developer.post(f"/kinds?{LIST}", form)
    assert _stored(written, one) == expected | {"owner": "ana"}


def test_a_fix_names_a_change(developer: Browser, written: Engine) -> None:
    """Its moment is that of the change; the kind regressed if it was seen since."""
    with read_connection(written) as conn:
        change = queries.changes(conn, _scope())[0]
    row = next(each for each in _kinds(written) if (each.last_at or 0) > change.occurred_at)
    form = {f"kind.{row.fingerprint}": "1", "state": "fixed", "change": change.event_id}
    developer.post(f"/kinds?{LIST}", form)
    stored = _stored(written, row.fingerprint)
    assert (stored["fixed_at"], stored["fixed_by"], stored["fixed_label"]) == (
        change.occurred_at, change.event_id, change.label,
    )  # fmt: skip
    (now,) = _kinds(written, f"signature:{row.fingerprint}")
    assert (now.state, now.fixed_by) == ("regressed", change.label)


def test_what_makes_no_sense_is_refused(developer: Browser, written: Engine) -> None:
    """With a page that says why; nothing is stored."""
    kind = _kinds(written, "state:open")[0].fingerprint
    refused: list[tuple[dict[str, str], int]] = [
        ({"state": "ignored", "until": "1"}, 422),
        ({"state": "regressed"}, 422),
        ({"state": "fixed", "change": "x"}, 404),
        ({"set": "owner", "owner": " "}, 422),
        ({}, 422),
    ]
    for form, status in refused:
        developer.post(f"/kinds?{LIST}", {f"kind.{kind}": "1"} | form, status=status)
    developer.post(f"/kinds?{LIST}", {"state": "open"}, status=422)
    developer.post(f"/kinds?{LIST}", {"kind.nothing": "1", "state": "open"}, status=404)
    assert _stored(written, kind) == {}


def test_the_page_of_a_failure_shows_and_changes_its_kind(
    developer: Browser, written: Engine
) -> None:
    """State, owner, note and history; a viewer sees the first three and no form."""
    row = _kinds(written, "owner:ana")[0]
    with read_connection(written) as conn:
        page = queries.failure_list(conn, _scope(row.query), limit=1)
    event = page.rows[0].event_id
    address = f"/failures/{event}?{HERE}"
    card = developer.page(address).section("Its kind")
    assert "acknowledged" in card.text
    assert "Owner: ana." in card.text
    form = {f"kind.{row.fingerprint}": "1", "set": "words", "owner": "", "note": "Later."}
    after = developer.post(f"/kinds?{HERE}&event={event}", form).section("Its kind")
    assert "1 kind changed." in after.text
    assert "Nobody owns it." in after.text
    assert "developer: note Later., owner removed" in after.text.replace("\n", " ") or (
        "developer: owner removed, note Later." in after.text.replace("\n", " ")
    )
    with contextmanager(open_browser)(written, role="viewer") as viewer:
        seen = viewer.page(address).section("Its kind")
        assert "Later." in seen.text
        assert "developer" not in seen.text
        assert "Acknowledge" not in seen.text
        assert viewer.page(f"/failures?{LIST}").table("Kind").headings[:2] == ("Kind", "State")


def test_the_file_has_the_states_of_the_page(developer: Browser) -> None:
    """Row for row, under the same filter."""
    page = developer.page(f"/failures?{HERE}&group=kind&q=-state:new&kcols=owner,calls,note")
    file = next(link for link in page.files if link.startswith("/kinds.csv"))
    rows = list(csv.DictReader(io.StringIO(developer.get(file).text)))
    shown = page.table("Kind")
    assert {"acknowledged", "fixed", "regressed", "open"} == {row["state"] for row in rows}
    for heading, name in (("State", "state"), ("Owner", "owner"), ("Note", "note")):
        assert shown.column(heading) == [row[name] or "–" for row in rows[: len(shown.rows)]]


def test_fix_next_sets_ignored_kinds_apart_and_still_adds_up(
    developer: Browser, written: Engine
) -> None:
    """What is listed and what is ignored are together what there was; a link leads to it."""
    with read_connection(written) as conn:
        before = queries.fix_next(conn, _scope())
    chosen = [row.fingerprint for row in sorted(_kinds(written), key=lambda row: -row.failures)[:3]]
    decide(written, 1, chosen, Decision(state="ignored"), actor="ana", now=NOW)
    with read_connection(written) as conn:
        after = queries.fix_next(conn, _scope())
        alone = queries.fix_next(conn, _scope("state:ignored"))
        failures = queries.count_failures(conn, _scope("state:ignored"))
    assert (after.cost, after.failures) == (before.cost, before.failures)
    assert (after.ignored_kinds, after.ignored_failures) == (3, failures)
    assert after.ignored_cost > 0
    # A wording is counted beside, and has its cost in other rows.
    assert sum(row.cost or 0 for row in after.rows) + after.ignored_cost == after.cost
    assert all("ignored" not in row.states for row in after.rows)
    assert {row.states.split()[-1] for row in alone.rows} == {"ignored"}
    page = developer.page(f"/fix-next?{HERE}&window=all")
    link = page.link(
        f"Left out: 3 kinds that somebody ignores, with {failures} failures and"
        f" {round(after.ignored_cost)} calls spent after them"
    )
    assert developer.page(link).lead.startswith("What cost most calls")
