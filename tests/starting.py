"""The product's programs as processes that need not import it anew.

A start takes one or two seconds of computing, nearly all of it for imports, and a run of the tests
starts more than a hundred. So the fork server of ``multiprocessing`` imports the product once for
each worker, and every program is a copy of it, which then does what ``python`` would: it takes its
environment, its folder and its arguments, and runs. It has an id, memory, signals and an end of its
own, like any other process.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import reload
from pathlib import Path

__all__ = ["Program", "completed"]

_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(
    [
        "tests.starting",
        "toolfault_collector.http.app",
        "toolfault_collector.http.server",
        "toolfault_dashboard.app",
        "toolfault_dashboard.cli.serve",
    ]
)


def _become(
    arguments: tuple[str, ...], environ: dict[str, str], folder: Path, outputs: tuple[Path, Path]
) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    for number, log in enumerate(outputs, start=1):
        with log.open("ab") as output:
            os.dup2(output.fileno(), number)
    # The one module that reads its environment as it is imported.
    reload(sys.modules["toolfault_collector.failpoints"])
    kind, *sys.argv = arguments if arguments[0] in ("-c", "-m") else ("", *arguments)
    if kind == "-c":
        source, sys.argv[0] = sys.argv[0], kind
        exec(compile(source, "<string>", "exec"), {"__name__": "__main__"})
    elif kind == "-m":
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


class Program:
    """A started program, with the methods of `subprocess.Popen`.

    Args:
        arguments: What stands behind ``python`` in the command line: ``-m`` and the name of a
            module, ``-c`` and a source, or the path of a script; and the arguments of that.
        environ: All of its environment.
        folder: Its working directory.
        log: What it writes is added to this file.
        errors: What it writes to its standard error, if that is another file.
    """

    def __init__(
        self,
        *arguments: str,
        environ: Mapping[str, str],
        folder: Path,
        log: Path,
        errors: Path | None = None,
    ) -> None:
        outputs = log.absolute(), (errors or log).absolute()
        given = arguments, dict(environ), folder.absolute(), outputs
        self._process = _forking.Process(target=_become, args=given, daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends, so many seconds at most, and return its exit code."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self._process.name, timeout)
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def completed(
    *arguments: str, environ: Mapping[str, str] = os.environ, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, like `subprocess.run`; the arguments are those of `Program`.

    Raises:
        subprocess.TimeoutExpired: It took more than two minutes, and was killed.
    """
    with tempfile.TemporaryDirectory() as outputs:
        out, errors = (Path(outputs, name) for name in ("out", "errors"))
        here = folder or Path.cwd()
        program = Program(*arguments, environ=environ, folder=here, log=out, errors=errors)
        try:
            code = program.wait(120)
        finally:
            program.kill()
        said = (each.read_text("utf-8") if each.exists() else "" for each in (out, errors))
        return subprocess.CompletedProcess(arguments, code, *said)
