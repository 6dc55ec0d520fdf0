"""The command itself: its parts, and the one boundary at which errors become sentences.

Exit codes: 0 done, 1 failed, 2 used wrongly (or, for ``compare``, its gate refused), 130
interrupted. What a program reads goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated

import typer.main

from toolfault_dashboard.cli import (
    alerts,
    care,
    changes,
    coding_agents,
    compare,
    database,
    demo,
    figures,
    fix_next,
    imports,
    keys,
    kinds,
    projects,
    rejects,
    report,
    reports,
    serve,
)
from toolfault_dashboard.cli.options import HELP_DATABASE, Failed, Settings, WronglyUsed

__all__ = ["app", "main", "run"]

# "-code:timeout" is a condition of a query, not options; "!code:timeout" means the same.
_NEGATED = re.compile(r"^-(?=[A-Za-z_][\w.]+:)")

app = typer.Typer(
    name="toolfault",
    help="Record the failed tool calls of LLM agents, and show what they cost and what to fix.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(*, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"toolfault {version('toolfault-server')}")
        raise typer.Exit


@app.callback()
def _common(
    context: typer.Context,
    database_url: Annotated[
        str | None,
        typer.Option("--database-url", envvar="TOOLFAULT_DATABASE_URL", help=HELP_DATABASE),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version.",
            is_eager=True,
            callback=lambda value: _version(wanted=value),
        ),
    ] = False,
) -> None:
    del version  # handled by its callback
    source = context.get_parameter_source("database_url")
    explicit = source is not None and source.name == "COMMANDLINE"
    context.obj = Settings(database_url=database_url, explicit=explicit)


serve.register(app)
demo.register(app)
imports.register(app)
reports.register(app)
figures.register(app)
report.register(app)
keys.register(app)
projects.register(app)
rejects.register(app)
changes.register(app)
alerts.register(app)
kinds.register(app)
compare.register(app)
coding_agents.register(app)
fix_next.register(app)
database.register(app)
care.register(app)


def run(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code; errors are one sentence on standard error."""
    given = [_NEGATED.sub("!", word) for word in arguments]
    try:
        code = _command()(args=given, prog_name="toolfault", standalone_mode=False)
    except Exception as error:  # the boundary: nothing of a traceback reaches the user
        if os.environ.get("TOOLFAULT_DEBUG"):
            raise
        return _say(error)
    except KeyboardInterrupt:
        return 130
    except SystemExit as exit_:  # typer's own answer to a reader that has gone
        return exit_.code if isinstance(exit_.code, int) else 1
    return code if isinstance(code, int) else 0


@cache
def _command() -> Callable[..., object]:
    """The tree of all commands: typer would make it anew for every call."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line of this process."""
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader (head, less) has gone: that is no error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _say(error: Exception) -> int:
    if isinstance(error, BrokenPipeError):
        return 0
    if isinstance(error, typer.TyperException) and error.format_message().startswith("Usage:"):
        sys.stderr.write(f"{error.format_message()}\n")  # no subcommand: the help, as it is
        return 2
    sentence, code = _sentence(error)
    sys.stderr.write(f"toolfault: {sentence}\n")
    return code


def _sentence(error: Exception) -> tuple[str, int]:
    """Return what to tell the user, and the exit code."""
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

    from toolfault_collector.errors import CollectorError, DatabaseUrlError
    from toolfault_dashboard.exports import MissingParquet
    from toolfault_dashboard.search import QueryError

    if isinstance(error, typer.Abort):
        return "stopped.", 1
    if isinstance(error, typer.TyperException):
        return f"{error.format_message().rstrip('.')}. Try --help.", 2
    if isinstance(error, WronglyUsed | QueryError | DatabaseUrlError):
        return str(error), 2
    if isinstance(error, Failed | CollectorError | MissingParquet):
        return str(error), 1
    if isinstance(error, DBAPIError):
        first = str(error.orig).strip().splitlines()
        reason = first[0] if first else type(error.orig).__name__
        return f"the database refused: {reason}. Check --database-url and `toolfault db check`.", 1
    if isinstance(error, SQLAlchemyError):
        return f"the database cannot be used ({type(error).__name__}); check --database-url.", 1
    if isinstance(error, OSError):
        name = f" {error.filename}" if error.filename else ""
        return f"cannot use{name}: {error.strerror or type(error).__name__}.", 1
    return (
        f"unexpected {type(error).__name__}; set TOOLFAULT_DEBUG=1 to see where, and report it.",
        1,
    )
