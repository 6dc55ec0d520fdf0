"""A database from before the first release: every command says what it is, and leaves it alone."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect, text
from tests.engines import POSTGRESQL_IS_LONG
from tests.starting import completed

import toolfault_migrations as migrations
from toolfault_collector.admin.backup import restore
from toolfault_collector.doctor import checks as doctor
from toolfault_collector.errors import SchemaTooOld
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import is_sqlite, open_engine, sqlite_path
from toolfault_collector.storage.database.schema import is_at_head

COMMANDS = (
    "serve --port 0",
    "doctor --recount --repair",
    "db upgrade",
    "db upgrade --sql",
    "db downgrade base",
    "db current",
    "db check",
    "db backup copy.db",
    "prune --days 1 --force",
    "summary",
    "errors",
    "table failures",
    "import transcript.json",
    "keys create --project demo --kind ingest",
    "sign-in-link",
    "rejects retry",
)

# One process for all commands.
RUN = """
import json, shlex, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from toolfault_dashboard.cli.app import run
said = {}
for command in json.loads(sys.argv[1]):
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = run(shlex.split(command))
    said[command] = code, out.getvalue(), err.getvalue()
print(json.dumps(said))
"""


@pytest.fixture
def unreleased(engine: Engine) -> Engine:
    """A database whose schema is the last one before the first release."""
    with engine.begin() as conn:
        conn.exec_driver_sql("UPDATE alembic_version SET version_num = '0013'")
        conn.exec_driver_sql("INSERT INTO project (name, created_at) VALUES ('demo', 1)")
    return engine


def _run(engine: Engine, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    url = engine.url.render_as_string(hide_password=False)
    environ = {**os.environ, "TOOLFAULT_DATABASE_URL": url, "TOOLFAULT_PORT": "0"}
    return completed(*arguments, environ=environ, folder=folder)


def _state(engine: Engine) -> object:
    """The bytes of a file, without its log; the tables and projects of a server."""
    engine.dispose()
    if is_sqlite(engine):
        files = sqlite_path(engine).parent.glob("toolfault.db*")
        return {each.name: each.read_bytes() for each in files if "-" not in each.suffix}
    with engine.connect() as conn:
        projects = conn.execute(text("SELECT name FROM project")).all()
    return sorted(inspect(engine).get_table_names()), projects, migrations.current(engine)


def _is_clear(sentence: str) -> bool:
    said = ("schema 0013", "before its first release", "left as it is", "toolfault import")
    return all(each in sentence for each in said)


@POSTGRESQL_IS_LONG
def test_every_command_refuses_it(unreleased: Engine, tmp_path: Path) -> None:
    """Exit code 1 and one sentence that says what it is and what to do, and nothing is changed."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "transcript.json").write_text("[]", encoding="utf-8")
    before = _state(unreleased)

    done = _run(unreleased, folder, "-c", RUN, json.dumps(COMMANDS))

    assert done.returncode == 0, done.stderr
    for command, (code, out, err) in json.loads(done.stdout).items():
        assert (code, out) == (1, ""), f"{command}: {out}{err}"
        assert len(err.splitlines()) == 1, err
        assert _is_clear(err), f"{command}: {err}"
    assert [each.name for each in folder.iterdir()] == ["transcript.json"]
    assert _state(unreleased) == before
    assert not is_at_head(unreleased)


@POSTGRESQL_IS_LONG
def test_a_collector_without_pages_refuses_it(unreleased: Engine, tmp_path: Path) -> None:
    """It ends at once, with exit code 1 and the same sentence."""
    before = _state(unreleased)

    done = _run(unreleased, tmp_path, "-m", "toolfault_collector")

    assert done.returncode == 1
    assert _is_clear(done.stderr.splitlines()[-1])
    assert _state(unreleased) == before


def test_the_doctor_says_what_it_is(unreleased: Engine) -> None:
    """Whoever examines it through the package finds a problem with the same sentence."""
    (first, *_) = doctor.examine(Settings(), unreleased)

    assert (first.name, first.level) == ("schema", "problem")
    assert _is_clear(first.text)


def test_a_backup_of_it_is_not_restored(sqlite_url: str, tmp_path: Path) -> None:
    """The database that is there stays."""
    engine = open_engine(sqlite_url)
    old = tmp_path / "old.db"
    old.write_bytes(sqlite_path(engine).read_bytes())
    other = open_engine(f"sqlite:///{old}")
    with other.begin() as conn:
        conn.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    other.dispose()

    with pytest.raises(SchemaTooOld, match=r"old\.db has schema 0001"):
        restore(old, sqlite_url)

    assert is_at_head(engine)
    engine.dispose()
