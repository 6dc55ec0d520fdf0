"""Databases that cannot be used: the server says so in one sentence and writes nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.starting import completed

from toolfault_collector.storage.database.engine import open_engine, write_transaction


def _no_database(path: Path) -> None:
    path.write_bytes(b"these are my holiday pictures\n" * 500)


def _truncated(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _newer_schema(path: Path) -> None:
    engine = open_engine(f"sqlite:///{path}")
    with write_transaction(engine) as conn:
        conn.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    engine.dispose()


def _of_another_program(path: Path) -> None:
    path.unlink()
    engine = open_engine(f"sqlite:///{path}")
    with engine.begin() as conn:
        conn.exec_driver_sql("CREATE TABLE tool_call (pictures TEXT)")
    engine.dispose()


def _log_without_its_database(path: Path) -> None:
    """What is left when somebody deletes the file and keeps the write-ahead log."""
    path.with_name(path.name + "-wal").write_bytes(b"\x37\x7f\x06\x82" + b"\0" * 4_096)
    path.write_bytes(b"not a database, whatever its log says" * 200)


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "no database": (_no_database, "database"),
    "truncated": (_truncated, "database"),
    "a folder": (_folder, "database"),
    "a newer schema": (_newer_schema, "newer"),
    "of another program": (_of_another_program, ""),
    "a log without its database": (_log_without_its_database, "database"),
}


# One process for all: each file is served, which must come to its end at once.
SERVE = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from toolfault_dashboard.cli.app import run
said = {}
for name, url in json.loads(sys.argv[1]).items():
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = run(["serve", "--port", "0", "--database-url", url])
    said[name] = code, out.getvalue(), err.getvalue()
print(json.dumps(said))
"""


@dataclass
class _Served:
    """What the server said of a file, and what the file was before."""

    path: Path
    before: bytes
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def served(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, _Served]:
    """Every damaged database, and one of no engine that is known, as the server found it."""
    urls, before = {"no engine": "mysql://root:hunter2@localhost/x"}, {}
    paths = {name: tmp_path_factory.mktemp("damaged") / "toolfault.db" for name in DAMAGE}
    for name, (damage, _) in DAMAGE.items():
        shutil.copyfile(sqlite_template, paths[name])
        damage(paths[name])
        before[name] = _content(paths[name])
        urls[name] = f"sqlite:///{paths[name]}"
    done = completed("-c", SERVE, json.dumps(urls))
    assert done.returncode == 0, done.stderr
    return {
        name: _Served(paths.get(name, Path()), before.get(name, b""), *said)
        for name, said in json.loads(done.stdout).items()
    }


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


@pytest.mark.parametrize("name", DAMAGE)
def test_server_says_what_is_wrong(served: dict[str, _Served], name: str) -> None:
    """The server ends with exit code 1, one sentence, no traceback, and the file as it was."""
    found = served[name]

    assert (found.code, found.out) == (1, ""), found.err
    (sentence,) = found.err.splitlines()
    assert sentence.startswith("toolfault: ")
    assert DAMAGE[name][1] in sentence
    assert _content(found.path) == found.before


def test_address_of_no_engine(served: dict[str, _Served]) -> None:
    """A database URL of an engine that is not supported is a wrong use: exit code 2."""
    found = served["no engine"]

    assert found.code == 2
    assert "hunter2" not in found.err
    assert len(found.err.splitlines()) == 1
