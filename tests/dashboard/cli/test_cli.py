"""The command line as scripts use it: answers on standard output, one sentence on errors."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.factories import failure
from tests.starting import Program, completed

from toolfault_dashboard.cli.app import run

CHAT = [
    {
        "task_id": 1,
        "traj": [
            {"role": "user", "content": "Book it"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function",
                     "function": {"name": "book", "arguments": '{"day": "31"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "name": "book", "content": "Error: no such day"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c2", "type": "function",
                     "function": {"name": "book", "arguments": '{"day": "30"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c2", "name": "book", "content": "booked"},
        ],
    }
]  # fmt: skip


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database that does not exist yet."""
    return f"sqlite:///{tmp_path / 'data' / 'toolfault.db'}"


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """A transcript of one failed call and its repair."""
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(CHAT), encoding="utf-8")
    return path


@pytest.fixture
def filled(url: str, chat: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """A database with that transcript."""
    assert run(["import", str(chat), "--database-url", url]) == 0
    capfd.readouterr()
    return url


def _out(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = run(arguments)
    captured = capfd.readouterr()
    assert code == 0, captured.err
    return captured.out


def test_an_imported_failure_names_the_rule_of_its_code(
    filled: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """What an importer chose is told from what a sender said."""
    (row,) = json.loads(_out(capfd, "errors", "--format", "json", "--database-url", filled))
    assert (row["text"], row["derived_by"]) == ("Error: no such day", "unclassified")


def test_a_code_finds_failures_by_their_issues(
    url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The quickstart's failure has two issues: each of their codes finds it and its chain."""
    issues = [
        {"field": "people", "code": "wrong_type"},
        {"field": "terrace", "code": "unknown_field"},
    ]
    failed = failure("book_table", error={"code": "invalid_input", "issues": issues})
    sent = tmp_path / "sent.ndjson"
    sent.write_text(json.dumps(failed), encoding="utf-8")
    own = ["--database-url", url]
    assert run(["import", str(sent), *own]) == 0
    capfd.readouterr()
    for code in ("wrong_type", "unknown_field", "invalid_input"):
        (row,) = json.loads(_out(capfd, "errors", f"code:{code}", "--format", "json", *own))
        assert (row["event_id"], row["code"]) == (failed["event_id"], "invalid_input")
        (chain,) = json.loads(_out(capfd, "chains", f"code:{code}", "--format", "json", *own))
        assert chain["first_code"] == "invalid_input"
    assert json.loads(_out(capfd, "errors", "-code:wrong_type", "--format", "json", *own)) == []
    assert json.loads(_out(capfd, "errors", "own_code:wrong_type", "--format", "json", *own)) == []
    codes = json.loads(_out(capfd, "summary", "--json", *own))["codes"]
    assert codes == {"invalid_input": 1, "unknown_field": 1, "wrong_type": 1}


def test_summary_is_one_json_object(filled: str, capfd: pytest.CaptureFixture[str]) -> None:
    """``summary --json`` prints exactly the keys that scripts rely on."""
    found = json.loads(_out(capfd, "summary", "--json", "--database-url", filled))
    assert found == {
        "conversations": 1,
        "calls": 2,
        "failures": 1,
        "failure_rate": 0.5,
        "chains": 1,
        "recovered": 1,
        "switched": 0,
        "abandoned": 0,
        "open": 0,
        "round_trips": 1,
        "calls_spent": 1,
        "mean_failures_before_recovery": 1.0,
        "tools": {"book": {"calls": 2, "failures": 1}},
        "codes": found["codes"],
    }
    assert sum(found["codes"].values()) == 1


def test_an_empty_database_is_made_ready(
    empty_database_url: str, chat: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """``import`` and ``keys create`` make schema and project, on SQLite and on PostgreSQL."""
    assert run(["import", str(chat), "--project", "x", "--database-url", empty_database_url]) == 0
    capfd.readouterr()
    found = _out(capfd, "summary", "--json", "--database-url", empty_database_url)
    assert json.loads(found)["calls"] == 2
    key = _out(
        capfd, "keys", "create", "--project", "y", "--kind", "read",
        "--database-url", empty_database_url,
    )  # fmt: skip
    assert key.startswith("tf_read_")
    rows = _out(
        capfd, "errors", "--project", "x", "--format", "ndjson",
        "--database-url", empty_database_url,
    )  # fmt: skip
    assert len(rows.splitlines()) == 1


def test_importing_again_changes_nothing(
    filled: str, chat: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A second import of the same file leaves every answer as it was."""
    before = _out(capfd, "summary", "--json", "--database-url", filled)
    assert run(["--database-url", filled, "import", str(chat)]) == 0
    capfd.readouterr()
    assert _out(capfd, "summary", "--json", "--database-url", filled) == before


@pytest.mark.parametrize("place", ["before", "after", "environment"])
def test_the_database_can_be_named_in_three_places(
    filled: str, place: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option works before and after the subcommand, and as an environment variable."""
    arguments = ["summary", "--json"]
    if place == "before":
        arguments = ["--database-url", filled, *arguments]
    elif place == "after":
        arguments += ["--database-url", filled]
    else:
        monkeypatch.setenv("TOOLFAULT_DATABASE_URL", filled)
    assert json.loads(_out(capfd, *arguments))["calls"] == 2


def test_the_option_after_the_subcommand_wins(
    filled: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands nearest to the command is what is used."""
    monkeypatch.setenv("TOOLFAULT_DATABASE_URL", f"sqlite:///{tmp_path / 'other.db'}")
    assert json.loads(_out(capfd, "summary", "--json", "--database-url", filled))["calls"] == 2


def test_errors_and_chains(filled: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Rows carry their ids, in every format, to standard output and to a file alike."""
    text = _out(capfd, "errors", "--format", "csv", "--database-url", filled)
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert row["tool"] == "book"
    assert len(row["event_id"]) == 36
    target = tmp_path / "errors.csv"
    _out(capfd, "errors", "--format", "csv", "-o", str(target), "--database-url", filled)
    assert target.read_bytes().decode() == text
    assert list(tmp_path.glob("*.partial")) == []
    (line,) = _out(
        capfd, "chains", "tool:book", "--format", "ndjson", "--database-url", filled
    ).splitlines()
    chain = json.loads(line)
    assert (chain["outcome"], chain["failures"], chain["round_trips"]) == ("recovered", 1, 1)
    assert chain["chain_id"] == row["event_id"]
    nothing = _out(capfd, "errors", "tool:other", "--format", "json", "--database-url", filled)
    assert json.loads(nothing) == []


def test_a_query_may_be_several_words(filled: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Words of a query need no quoting for the shell."""
    found = _out(capfd, "summary", "tool:book", "-code:timeout", "--json", "--database-url", filled)
    assert json.loads(found)["failures"] == 1


def test_keys(filled: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A key is alone on the last line, listed by its beginning only, and can be revoked."""
    out = _out(
        capfd, "keys", "create", "--project", "new", "--kind", "ingest", "--database-url", filled
    )
    key = out.splitlines()[-1]
    assert key.startswith("tf_ingest_")
    assert key not in (listed := _out(capfd, "keys", "list", "--database-url", filled))
    assert key[:14] in listed
    assert run(["keys", "revoke", key, "--database-url", filled]) == 0
    assert run(["keys", "revoke", "999", "--database-url", filled]) == 1


def test_projects(filled: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The only project is used; of several, ``default``; an unknown one is refused by name."""
    _out(capfd, "keys", "create", "--project", "second", "--kind", "read", "--database-url", filled)
    assert json.loads(_out(capfd, "summary", "--json", "--database-url", filled))["calls"] == 2
    empty = _out(capfd, "summary", "--json", "--project", "second", "--database-url", filled)
    assert json.loads(empty)["calls"] == 0
    assert json.loads(empty)["failure_rate"] is None
    assert run(["summary", "--project", "third", "--database-url", filled]) == 1
    assert "default, second" in capfd.readouterr().err


def test_changes(filled: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A change is recorded with its moment, and its id is printed; the list has it."""
    out = _out(
        capfd, "change", "record", "coerce booleans", "--tool", "book", "--at", "2026-11-01T10:00",
        "--database-url", filled,
    )  # fmt: skip
    assert len(out.strip()) == 36
    assert "coerce" in _out(capfd, "change", "list", "--database-url", filled)
    recorded = _out(capfd, "change", "list", "--recorded", "--database-url", filled)
    assert "coerce" in recorded
    assert "detected-" not in recorded


def test_db(filled: str, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The schema can be made, named and checked."""
    assert _out(capfd, "db", "current", "--database-url", filled)
    assert run(["db", "check", "--database-url", filled]) == 0
    new = f"sqlite:///{tmp_path / 'new.db'}"
    assert run(["db", "check", "--database-url", new]) == 1
    assert run(["db", "upgrade", "--database-url", new]) == 0
    assert run(["db", "check", "--database-url", new]) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["summary"], 1, "There is no database"),
        (["summary", "tol:x"], 2, "Did you mean 'tool'?"),
        (["errors", "--format", "xml"], 2, "csv, ndjson, json"),
        (["import", "missing.json"], 1, "missing.json"),
        (["import", ".", "--format", "word"], 2, "auto, "),
        (["keys", "create", "--project", "x", "--kind", "admin"], 2, "ingest"),
        (["keys", "create", "--kind", "ingest"], 2, "--project"),
        (["change", "record", "x", "--at", "soon"], 2, "--at"),
        (["import", "."], 1, "recognises"),
        (["sign-in-link", "--role", "king"], 2, "viewer"),
        (["sign-in-link"], 1, "There is no database"),
        (["serve", "--port", "99999999"], 2, "port"),
        (["nonsense"], 2, "nonsense"),
        (["summary", "--nonsense"], 2, "--nonsense"),
        (["--database-url", "mysql://u:secret@h/db", "summary"], 2, "sqlite"),
        (["--database-url", "postgresql://u:secret@127.0.0.1:1/db", "summary"], 1, "database"),
    ],
)
def test_errors_are_one_sentence(
    arguments: list[str],
    code: int,
    said: str,
    url: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Every mistake is answered by one line on standard error that says what to do."""
    monkeypatch.setenv("TOOLFAULT_DATABASE_URL", url)
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == code
    captured = capfd.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    assert "secret" not in captured.err


def test_an_import_says_what_it_recognised(
    url: str,
    chat: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Each file with its format and the sign; standard input too, packed or not."""
    said = 'recognised as OpenAI chat messages, also the legacy function_call: "role"'
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(chat.read_bytes()))
    assert run(["import", str(packed), "--database-url", url]) == 0
    assert f"packed.gz: {said}" in capfd.readouterr().err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(chat.read_bytes())))
    assert run(["import", "-", "--database-url", url]) == 0
    told = capfd.readouterr().err
    assert f"-: {said}" in told
    assert "0 new events, 2 stored before" in told


def test_an_import_of_what_is_no_transcript(
    filled: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The closest formats are said, an export is told from a transcript, and no project is made."""
    unknown = tmp_path / "unknown.json"
    unknown.write_text('[{"sessionId": "s", "message": {}}]')
    before = _out(capfd, "projects", "list", "--database-url", filled)
    assert run(["import", str(unknown), "--project", "new", "--database-url", filled]) == 1
    assert _out(capfd, "projects", "list", "--database-url", filled) == before
    assert run(["import", str(unknown), "--database-url", filled]) == 1
    told = capfd.readouterr().err
    assert 'closest: claude-code (has "sessionId", "message"; lacks "type")' in told
    assert "toolfault import --format NAME PATH" in told
    for command, format_ in (("errors", "ndjson"), ("errors", "csv"), ("chains", "json")):
        export = tmp_path / f"export.{format_}"
        export.write_text(_out(capfd, command, "--format", format_, "--database-url", filled))
        assert run(["import", str(export), "--database-url", filled]) == 1
        assert "an export of toolfault" in capfd.readouterr().err


def test_a_public_address_needs_an_account_or_a_word(url: str) -> None:
    """The refusal names both ways on, the help says the rule, and nothing says that it listens."""
    serve = ("-c", "from toolfault_dashboard.cli import main; main()", "serve")
    done = completed(*serve, "--host", "0.0.0.0", "--port", "0", "--database-url", url)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "toolfault sign-in-link" in done.stderr
    assert "--allow-public" in done.stderr
    assert '"listening"' not in done.stderr

    told = completed(*serve, "--help").stdout
    rule = " ".join(told.replace("│", " ").split())
    assert "refused as long as nobody has an account or an unused sign-in link" in rule


def test_help_is_quick_and_complete() -> None:
    """``--help`` names every command and loads neither pandas, scipy, FastAPI nor SQLAlchemy."""
    script = (
        "import sys; from toolfault_dashboard.cli.app import run; code = run(['--help']);"
        "heavy = {'pandas', 'scipy', 'fastapi', 'sqlalchemy', 'numpy'} & set(sys.modules);"
        "sys.exit(code or (f'loaded {heavy}' if heavy else 0))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for command in ("serve", "demo", "import", "summary", "errors", "chains", "keys", "db"):
        assert command in done.stdout


def test_without_a_command_the_help_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    """``toolfault`` and ``toolfault keys`` alone show their help, as it is."""
    for arguments in ([], ["keys"]):
        assert run(arguments) == 2
        assert capfd.readouterr().err.startswith("Usage: toolfault")


def test_a_closed_pipe_is_no_error(filled: str, tmp_path: Path) -> None:
    """``toolfault errors | head -0`` ends quietly."""
    script = "from toolfault_dashboard.cli import main; main()"
    pipe, errors = tmp_path / "pipe", tmp_path / "errors"
    os.mkfifo(pipe)
    asked = ("-c", script, "errors", "--database-url", filled)
    program = Program(*asked, environ=os.environ, folder=tmp_path, log=pipe, errors=errors)
    pipe.open("rb").close()
    code = program.wait(60)
    said = errors.read_text("utf-8")
    assert "Traceback" not in said
    assert code == 0, said
