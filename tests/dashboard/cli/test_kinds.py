"""``toolfault kinds``: what a query finds is listed and decided about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.dashboard.generated import NOW

from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_dashboard import queries
from toolfault_dashboard.cli.app import run
from toolfault_dashboard.queries import KindRow, Scope
from toolfault_dashboard.search import parse


@pytest.fixture
def url(tmp_path: Path, filled_sqlite: Path) -> str:
    """A copy of the generated history."""
    path = tmp_path / "toolfault.db"
    path.write_bytes(filled_sqlite.read_bytes())
    path.chmod(0o600)
    return f"sqlite:///{path}"


def _kinds(url: str, text: str) -> tuple[KindRow, ...]:
    engine = open_engine(url)
    with read_connection(engine) as conn:
        found = queries.kinds(conn, Scope(1, parse(text), NOW)).rows
    engine.dispose()
    return found


def test_kinds_are_listed_and_set(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    """All that a query finds get state, owner and note; the list and the table show them."""
    where = ["--project", "generated", "--database-url", url]
    before = _kinds(url, "tool:search code:timeout")
    assert run(
        ["kinds", "set", "tool:search", "code:timeout", "--state", "ignored", "--failures", "5",
         "--owner", "ana", "--note", "Later.", *where]
    ) == 0  # fmt: skip
    assert capfd.readouterr().out == f"{len(before)} of {len(before)} kinds changed.\n"
    after = _kinds(url, "tool:search code:timeout")
    assert {(row.state, row.owner, row.note, row.ignore_ends_after) for row in after} == {
        ("ignored", "ana", "Later.", 5)
    }
    assert run(["kinds", "list", "state:ignored", *where]) == 0
    shown = capfd.readouterr().out
    assert all(row.fingerprint in shown for row in after)
    assert run(["table", "kinds", "state:ignored", "--format", "json", *where]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert {row["fingerprint"] for row in rows} == {row.fingerprint for row in after}

    with read_connection(open_engine(url)) as conn:
        change = queries.changes(conn, Scope(1, parse(""), NOW))[0]
    one = before[0].fingerprint
    fixed = ["--state", "fixed", "--change", change.event_id, "--release", "9.9"]
    assert run(["kinds", "set", f"signature:{one}", *fixed, *where]) == 0
    (row,) = _kinds(url, f"signature:{one}")
    assert (row.state, row.fixed_at, row.fixed_by) == ("fixed", change.occurred_at, change.label)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--state", "open"], 2, "which kinds"),
        (["tool:search"], 2, "Say what to change"),
        (["tool:search", "--state", "regressed"], 2, "one of open, acknowledged"),
        (["tool:search", "--state", "ignored", "--until", "soon"], 2, "--until as a date"),
        (["tool:search", "--state", "fixed", "--change", "x"], 1, "no change with this id"),
        (["tool:nothing_like_it", "--state", "open"], 1, "finds no kind"),
    ],
)
def test_what_makes_no_sense_is_refused(
    url: str, capfd: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    """With a sentence that says what to write."""
    where = ["--project", "generated", "--database-url", url]
    assert run(["kinds", "set", *arguments, *where]) == code
    assert said in capfd.readouterr().err
