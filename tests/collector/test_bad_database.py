"""Databases that cannot be used: the server says so in one sentence and writes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from toolfault_collector.engine import open_engine, write_transaction


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


@pytest.mark.parametrize("name", DAMAGE)
def test_server_says_what_is_wrong(sqlite_template: Path, tmp_path: Path, name: str) -> None:
    """The server ends with exit code 1, one sentence, no traceback, and the file as it was."""
    damage, word = DAMAGE[name]
    path = tmp_path / "toolfault.db"
    shutil.copyfile(sqlite_template, path)
    damage(path)
    before = path.read_bytes() if path.is_file() else b""

    done = subprocess.run(
        [Path(sys.executable).with_name("toolfault"), "serve", "--port", "0"],
        env={**os.environ, "TOOLFAULT_DATABASE_URL": f"sqlite:///{path}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout == ""
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("toolfault: ")
    assert word in sentence
    assert "Traceback" not in done.stderr
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_address_of_no_engine(tmp_path: Path) -> None:
    """A database URL of an engine that is not supported is a wrong use: exit code 2."""
    done = subprocess.run(
        [Path(sys.executable).with_name("toolfault"), "serve", "--port", "0"],
        env={**os.environ, "TOOLFAULT_DATABASE_URL": "mysql://root:hunter2@localhost/x"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 2
    assert "hunter2" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
