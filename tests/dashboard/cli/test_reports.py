"""Weekly report, doctor, prune, backup and restore on the command line."""

from __future__ import annotations

import csv
import gc
import io
import re
from pathlib import Path

import pytest
from sqlalchemy import Engine
from tests.dashboard.generated import NOW
from tests.factories import failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, MINUTE_US, SECOND_US, format_time, now_us
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.cli.app import run
from toolfault_dashboard.exports.weekly import weekly_report
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, filled_sqlite: Path) -> str:
    """A database with the generated history; nobody removes anything from it."""
    path = tmp_path_factory.mktemp("reports") / "toolfault.db"
    path.write_bytes(filled_sqlite.read_bytes())
    path.chmod(0o600)
    return f"sqlite:///{path}"


def _run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(arguments)
    captured = capfd.readouterr()
    return code, captured.out, captured.err


def test_weekly(url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The report of a week is written in every format, to standard output and to a file."""
    arguments = [
        "report", "weekly", "--project", "generated", "--until", "2026-11-20T12:00:00Z",
        "--database-url", url,
    ]  # fmt: skip
    code, out, _ = _run(capfd, *arguments)
    assert code == 0
    assert "## Fix next" in out
    # What is not after - before says so.
    assert "| before | after | difference at the same mix |" in out
    code, out, _ = _run(capfd, *arguments, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out, newline="")))
    assert code == 0
    assert {row["part"] for row in rows} >= {"This week", "Codes", "Tools"}
    with read_connection(open_engine(url)) as conn:
        project = queries.project_by_name(conn, "generated")
        assert project is not None
        week = queries.weekly(conn, Scope(project.id, parse(""), NOW))
    expected = weekly_report(week, "generated", "csv")
    assert rows == list(csv.DictReader(io.StringIO(expected, newline="")))
    target = tmp_path / "week.html"
    code, out, _ = _run(capfd, *arguments, "--format", "html", "-o", str(target))
    assert (code, out) == (0, "")
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert _run(capfd, *arguments, "--format", "pdf")[0] == 2
    assert _run(capfd, *arguments, "--until", "soon")[0] == 2


def test_a_week_of_minutes_says_what_its_problems_cost(empty_sqlite: Engine) -> None:
    """Calls spent this week are known from the first minute, calls a week only after a day."""
    now = now_us()
    calls = [
        make("book", session_id=f"c{talk}", at=now - MINUTE_US + place * SECOND_US)
        for talk in range(3)
        for place, make in enumerate((failure, failure, success))
    ]
    with write_transaction(empty_sqlite) as conn:
        project = ensure_project(conn, "young")
        store_events(conn, project, calls, received_at=now)
    with read_connection(empty_sqlite) as conn:
        week = queries.weekly(conn, Scope(project, parse(""), now))
    (line,) = re.findall("^.*no known remedy.*$", weekly_report(week, "young", "markdown"), re.M)
    assert [each.strip() for each in line.split("|")[3:6]] == ["–", "6", "6"]


def test_a_week_without_data_says_where_the_data_is(
    url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The command that it names reports the week that ends with the day of the newest failure."""
    arguments = ["report", "weekly", "--project", "generated", "--database-url", url]
    later = _run(capfd, *arguments, "--until", "2030-01-01")[1]
    assert "Nothing was called in these days." in later
    (until,) = re.findall(r"toolfault report weekly --until (\S+)", later)
    with read_connection(open_engine(url)) as conn:
        project = queries.project_by_name(conn, "generated")
    assert project is not None
    assert project.last_failure_at is not None
    assert until == format_time(project.last_failure_at + DAY_US)[:10]
    assert until in _run(capfd, *arguments, "--until", "2030-01-01", "--format", "csv")[2]
    code, out, _ = _run(capfd, *arguments, "--until", until)
    assert code == 0
    assert "Nothing was called" not in out
    assert not re.search(r"^\| failures +\| 0 ", out, re.MULTILINE)


def test_a_filter_that_nothing_meets_is_no_week_without_data(
    url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where the filter found nothing, the report does not say that nothing was called."""
    arguments = ["report", "weekly", "--project", "generated", "--database-url", url]
    until = format_time(NOW)[:10]
    code, out, _ = _run(capfd, *arguments, "--until", until, "tool:no_such_tool")
    assert code == 0
    assert re.search(r"^\| calls +\| 0 ", out, re.MULTILINE)
    assert "Nothing was called" not in out


def test_a_week_before_all_time_is_refused(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A week that would begin before 1970, when no call was, is no week."""
    arguments = ["report", "weekly", "--project", "generated", "--database-url", url]
    code, _, err = _run(capfd, *arguments, "--until", "0001-01-01")
    assert (code, "Write --until as a date" in err) == (2, True)


def test_doctor(sqlite_url: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A sound database passes; a recount finds everything as it was counted."""
    url, engine = sqlite_url, open_engine(sqlite_url)
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "demo")
        store_events(conn, project, [failure(), success()], received_at=now_us())
    engine.dispose()
    code, out, err = _run(capfd, "doctor", "--recount", "--database-url", url)
    assert "recount" in out
    assert " wrong" not in out
    assert (code == 0) == ("problem" not in out), err
    assert _run(capfd, "doctor", "--repair", "--database-url", url)[0] == 2


def test_prune_says_before_it_does(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A dry run removes nothing; without a limit there is nothing to do."""
    question = ["summary", "--project", "generated", "--json", "--database-url", url]
    before = _run(capfd, *question)
    code, _, err = _run(capfd, "prune", "--days", "1", "--dry-run", "--database-url", url)
    assert code == 0
    assert err.startswith("Would remove")
    assert _run(capfd, "db", "prune", "--database-url", url)[0] == 2
    assert before == _run(capfd, *question)


def test_backup_and_restore(url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A backup put back in another place answers the same."""
    copy = tmp_path / "copy.db"
    assert _run(capfd, "db", "backup", str(copy), "--database-url", url)[0] == 0
    assert _run(capfd, "db", "backup", str(copy), "--database-url", url)[0] == 1
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert _run(capfd, "db", "restore", str(copy), "--database-url", other)[0] == 0
    question = ["summary", "--project", "generated", "--json", "--database-url"]
    assert _run(capfd, *question, url)[1] == _run(capfd, *question, other)[1]


def test_commands_close_the_database(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A backup is put back after other commands of the same process, collected or not."""
    url, copy = f"sqlite:///{tmp_path / 'toolfault.db'}", tmp_path / "copy.db"
    gc.disable()
    try:
        for command in ("upgrade", "current", "check"):
            assert _run(capfd, "db", command, "--database-url", url)[0] == 0
        assert _run(capfd, "db", "backup", str(copy), "--database-url", url)[0] == 0
        assert _run(capfd, "db", "restore", str(copy), "--database-url", url)[0] == 0
    finally:
        gc.enable()


def test_sign_in_links(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A link is printed alone, for the address at which the dashboard is reached."""
    code, out, _ = _run(capfd, "sign-in-link", "--url", "https://t.example/", "--database-url", url)
    assert code == 0
    assert out.startswith("https://t.example/sign-in?token=")
    assert out.count("\n") == 1
