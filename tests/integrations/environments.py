"""Make the environments of the frameworks: ``python -m tests.integrations.environments [NAME...]``.

One virtual environment per framework and version, with the exact versions of
``requirements/<name>.txt`` and nothing else; toolfault itself comes from the checkout.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["NAMES", "driver_of", "folder", "python_of"]

_HERE = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in (_HERE / "requirements").glob("*.txt")))
"""``<framework>-new`` is the newest supported version, ``<framework>-old`` the oldest."""


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


def main() -> None:
    """Make the environments that are named and missing; all of them by default."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    for name in parser.parse_args().names or NAMES:
        made = folder() / name / ".made"
        if made.exists():
            continue
        venv.create(folder() / name, with_pip=True, clear=True)
        listed = _HERE / "requirements" / f"{name}.txt"
        install = ["-m", "pip", "install", "--quiet", "--no-deps", "--requirement", str(listed)]
        subprocess.run([str(python_of(name)), *install], check=True)
        made.touch()
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main()
