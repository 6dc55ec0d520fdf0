"""The recorded answers, and those of today."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from fastapi.testclient import TestClient
from tests.golden.filling import COMPARED, files_of
from tests.golden.reading import everything
from typer.testing import CliRunner

from toolfault_collector.settings import Settings
from toolfault_dashboard.app import create_app
from toolfault_dashboard.cli.app import app as command

__all__ = ["answers_about", "differences", "record", "recorded"]

_FOLDER: Final = Path(__file__).parent / "answers"
_ORIGIN: Final = "http://127.0.0.1:8321"
_MOST_SHOWN: Final = 30


def answers_about(
    source: str,
    data: Callable[[], Path],
    folder: Path,
    *,
    template: Path,
    copied_to: Callable[[str], str] | None = None,
) -> dict[str, Any]:
    """Import *source* into a new database and return every answer about it.

    Args:
        source: A set of transcripts, or the demo.
        data: Returns the folder of real transcripts.
        folder: Where the database is made.
        template: A migrated SQLite file.
        copied_to: Copies events of a database URL to ClickHouse and returns the URL there, where
            events are then read; None reads all from SQL.
    """
    files = files_of(source, data, folder)
    database = folder / "toolfault.db"
    shutil.copyfile(template, database)
    url = f"sqlite:///{database}"
    _run("import", "--project", source, "--database-url", url, str(files))
    link = _run("sign-in-link", "--url", _ORIGIN, "--database-url", url).split()[-1]
    settings = Settings(database_url=url, events_url=copied_to(url) if copied_to else "")
    with TestClient(create_app(settings), base_url=_ORIGIN) as client:
        token = link.rpartition("=")[2]
        answer = client.post("/sign-in", data={"token": token}, follow_redirects=False)
        assert answer.status_code == 303, answer.text
        return everything(client, source, compared=COMPARED.get(source, ()))


def _run(*arguments: str) -> str:
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return str(done.stdout)


def recorded(source: str) -> dict[str, Any]:
    """Return the recorded answers about *source*."""
    return dict(json.loads((_FOLDER / f"{source}.json").read_text(encoding="utf-8")))


def record(source: str, answers: dict[str, Any]) -> None:
    """Record *answers* about *source*, a row a line so that a change can be read."""
    _FOLDER.mkdir(exist_ok=True)
    text = "".join(_written(answers, 0)) + "\n"
    (_FOLDER / f"{source}.json").write_text(text, encoding="utf-8")


def _written(value: Any, depth: int) -> Iterator[str]:
    """Yield JSON with a line for each entry, and short things on one line."""
    line = json.dumps(value, ensure_ascii=False)
    flat = isinstance(value, list) and not any(isinstance(each, dict | list) for each in value)
    if not isinstance(value, dict | list) or flat or len(line) <= 100 - depth:
        yield line
        return
    inner = "\n" + " " * (depth + 1)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    entries = value.items() if isinstance(value, dict) else ((None, each) for each in value)
    yield opening
    for number, (key, each) in enumerate(entries):
        yield ("," if number else "") + inner
        if key is not None:
            yield json.dumps(key, ensure_ascii=False) + ": "
        yield from _written(each, depth + 1)
    yield "\n" + " " * depth + closing


def differences(expected: Any, found: Any, place: str = "") -> list[str]:
    """Return where *found* says something else than *expected*, at most some thirty places."""
    return list(_differences(expected, found, place))[:_MOST_SHOWN]


def _differences(expected: Any, found: Any, place: str) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in expected.keys() | found.keys():
            if key not in found:
                yield f"{place}/{key}: missing"
            elif key not in expected:
                yield f"{place}/{key}: new"
            else:
                yield from _differences(expected[key], found[key], f"{place}/{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from _differences(one, other, f"{place}[{number}]")
    elif expected != found:
        yield f"{place}: {expected!r} was recorded, {found!r} is said now"
