"""A terminal of a reader: what a page tells him to type is run line by line, as it is printed."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.starting import Program

__all__ = ["Terminal"]

# What stands in for programs that are not here, or would take too long. All else is the real one.
_STAND_INS = """
python3() { "$THIS_PYTHON" "$@" --without-pip; }  # unpacking pip takes seconds
make() { command make --dry-run "$@"; }           # it installs everything and goes on until Ctrl-C
ssh() { shift; "$@"; }                            # the other machine is this one
"""


class Terminal:
    """A shell that keeps what is exported, and which environment of Python is activated.

    Lines that begin with ``toolfault`` run the command that is first on the path, as a copy of a
    process that has imported it (`tests.starting`). ``pip install`` does not install: it sees that
    what is named is there, with these extras, and puts its commands where pip would. Every other
    line is run by bash.

    Args:
        folder: Where it is opened.
        environ: All of its environment.

    Attributes:
        log: File with what the last block has written so far.
    """

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.folder = folder
        self.environ = {"THIS_PYTHON": sys.executable, **environ}
        self.log = Path(environ["HOME"]) / f"said-{id(self):x}"

    def run(self, block: str) -> str:
        """Run the lines of *block* and return what stood in the terminal afterwards.

        A line that fails ends it, and the test.
        """
        self.log.write_bytes(b"")
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if not words:
                continue
            if words[0] == "toolfault":
                code = self.start(line).wait(120)
            elif words[:2] == ["pip", "install"]:
                code = self._install(words[2])
            else:
                code = self._bash(line)
            assert code == 0, f"{line}\n{self.said()}"
        return self.said()

    def said(self) -> str:
        """What the last block has written so far."""
        return self.log.read_text("utf-8")

    def start(self, line: str) -> Program:
        """Start the ``toolfault`` command of *line*, and do not wait for its end."""
        first, *others = shlex.split(line, comments=True)
        command = shutil.which(first, path=self.environ["PATH"])
        assert command is not None, f"there is no {first} on {self.environ['PATH']}"
        home = self.environ["HOME"]
        arguments = [home + word[1:] if word.startswith("~/") else word for word in others]
        return Program(command, *arguments, environ=self.environ, folder=self.folder, log=self.log)

    def _bash(self, line: str) -> int:
        after = self.log.with_suffix(".environment")
        with self.log.open("ab") as said:
            done = subprocess.run(
                ["/bin/bash", "-euo", "pipefail", "-c", f"{_STAND_INS}\n{line}\nenv -0 > {after}"],
                cwd=self.folder,
                env=self.environ,
                stdout=said,
                stderr=subprocess.STDOUT,
                timeout=120,
                check=False,
            )
        if done.returncode == 0:
            pairs = (pair.partition("=") for pair in after.read_text("utf-8").split("\0") if pair)
            self.environ = {name: value for name, _, value in pairs}
        return done.returncode

    def _install(self, what: str) -> int:
        path, _, extras = what.partition("[")
        project = tomllib.loads((self.folder / path / "pyproject.toml").read_text("utf-8"))
        project = project["project"]
        assert set(filter(None, extras.rstrip("]").split(","))) <= set(
            project.get("optional-dependencies", {})
        ), what
        if "VIRTUAL_ENV" in self.environ:
            for name in project.get("scripts", {}):
                here = Path(self.environ["VIRTUAL_ENV"], "bin", name)
                here.unlink(missing_ok=True)
                here.symlink_to(Path(sys.executable).with_name(name))
        return 0


def without_settings() -> dict[str, str]:
    """The environment of this process without the settings of toolfault."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TOOLFAULT_")}
