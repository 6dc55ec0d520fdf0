"""Make the environments of the frameworks: ``python -m tests.integrations.environments [NAME...]``.

One virtual environment per framework and version, with the exact versions and hashes of
``requirements/<name>.txt`` and nothing else; toolfault itself comes from the checkout. One that was
made from the same list stays. ``--quick`` makes those that ``make test`` runs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["NAMES", "PLAYED", "QUICK", "driver_of", "folder", "is_made", "python_of"]

_HERE = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in (_HERE / "requirements").glob("*.txt")))
"""``<framework>-new`` is the newest supported version, ``<framework>-old`` the oldest.

``<framework>-observed`` is the newest with the instrumentations of others, see ``observe.py``.
"""
PLAYED = ("langchain-new", "mcp-new", "openai-agents-new", "pydantic-ai-new")
"""Whose whole table ``make test`` plays: those of README.md, and each way of hooking calls.

The methods of each tool, the session of a protocol, and the framework's own check of arguments.
"""
QUICK = (*PLAYED, "fastmcp-new")
"""What ``make test`` makes: of FastMCP's server it plays a few scenarios."""


def folder() -> Path:
    """Return where the environments are: ``TOOLFAULT_ENVIRONMENTS``, else inside the checkout."""
    named = os.environ.get("TOOLFAULT_ENVIRONMENTS")
    return Path(named) if named else _HERE.parents[1] / ".venv-integrations"


def python_of(name: str) -> Path:
    """Return the interpreter of an environment, whether it was made or not."""
    return folder() / name / "bin" / "python"


def driver_of(name: str) -> str:
    """Return the name of the driver: ``pydantic_ai`` for ``pydantic-ai-old``."""
    return name.rpartition("-")[0].replace("-", "_")


def is_made(name: str) -> bool:
    """Whether the environment was made, and from the list that is there now."""
    stamp = folder() / name / ".made"
    return stamp.exists() and stamp.read_text() == _wanted(name)


def _lists(name: str) -> list[Path]:
    """Return the lists of an environment; that of observers only has what is added to the new."""
    framework, _, kind = name.rpartition("-")
    names = [f"{framework}-new", name] if kind == "observed" else [name]
    return [_HERE / "requirements" / f"{each}.txt" for each in names]


def _wanted(name: str) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in _lists(name))).hexdigest()


def _make(name: str) -> str | None:
    """Make one environment; return why it could not be made, or None."""
    where = folder() / name
    shutil.rmtree(where, ignore_errors=True)
    uv = [sys.executable, "-m", "uv"]
    install = ["pip", "install", "--python", str(python_of(name)), "--no-deps", "--require-hashes"]
    for step in (
        ["venv", "--python", sys.executable, str(where)],
        *([*install, "--requirement", str(listed)] for listed in _lists(name)),
    ):
        done = subprocess.run([*uv, *step], capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr.strip()
    (where / ".made").write_text(_wanted(name))
    return None


def main() -> int:
    """Make the environments that are named, all by default; 1 if one could not be made."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="those that `make test` runs")
    given = parser.parse_args()
    failed = False
    for name in given.names or (QUICK if given.quick else NAMES):
        if is_made(name):
            continue
        why = _make(name)
        failed = failed or why is not None
        sys.stdout.write(f"{name}: {'made' if why is None else f'not made: {why}'}\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
