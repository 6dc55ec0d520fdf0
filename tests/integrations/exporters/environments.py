"""Make the environments of the senders: ``python -m tests.integrations.exporters.environments``.

One virtual environment with the exact versions of ``requirements.txt``, one for each exporter that
does not fit in with the others, and one folder of ``node/package.json``, in
``TOOLFAULT_ENVIRONMENTS`` or in ``.venv-integrations``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from pathlib import Path
from typing import Final

__all__ = ["NODE_FOLDER", "SHARED", "node_modules", "node_of", "python_of", "requirements_of"]

_HERE: Final = Path(__file__).parent
NODE_FOLDER: Final = _HERE / "node"
_ENVIRONMENTS: Final = Path(
    os.environ.get("TOOLFAULT_ENVIRONMENTS") or _HERE.parents[2] / ".venv-integrations"
)
SHARED: Final = "exporters"
_REQUIREMENTS: Final = {SHARED: "requirements.txt", "strands": "requirements-strands.txt"}
_NODE: Final = _ENVIRONMENTS / "exporters-node"


def python_of(name: str = SHARED) -> Path:
    """Return the interpreter of an environment, whether it was made or not."""
    return _folder(name) / "bin" / "python"


def requirements_of(name: str = SHARED) -> Path:
    """Return the file with the exact versions of an environment."""
    return _HERE / _REQUIREMENTS[name]


def _folder(name: str) -> Path:
    return _ENVIRONMENTS / (name if name == SHARED else f"{SHARED}-{name}")


def node_of() -> str:
    """Return the command that runs JavaScript; empty where there is none."""
    return shutil.which("node") or ""


def node_modules() -> Path:
    """Return the folder of the packages, whether it was made or not."""
    return _NODE / "node_modules"


def main() -> None:
    """Make what is missing; without node and npm, no packages of theirs."""
    for name in _REQUIREMENTS:
        if not python_of(name).exists():
            venv.create(_folder(name), with_pip=True)
            install = ["-m", "pip", "install", "--quiet", "--no-deps", "-r"]
            command = [str(python_of(name)), *install, str(requirements_of(name))]
            subprocess.run(command, check=True)
    npm = shutil.which("npm")
    if npm is not None and not node_modules().exists():
        _NODE.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(NODE_FOLDER / "package.json", _NODE / "package.json")
        quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--silent"]
        subprocess.run([npm, "install", *quiet], cwd=_NODE, check=True)


if __name__ == "__main__":
    main()
