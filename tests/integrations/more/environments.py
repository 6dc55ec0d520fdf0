"""Make the environments of these frameworks: ``python -m tests.integrations.more.environments``.

One virtual environment for each list in ``requirements``, in ``TOOLFAULT_ENVIRONMENTS`` or in
``.venv-integrations``; toolfault itself comes from the checkout.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["ENVIRONMENTS", "python_of"]

_HERE = Path(__file__).parent
ENVIRONMENTS = Path(
    os.environ.get("TOOLFAULT_ENVIRONMENTS") or _HERE.parents[2] / ".venv-integrations"
)


def python_of(name: str) -> Path:
    """Return the interpreter of an environment, whether it was made or not."""
    return ENVIRONMENTS / name / "bin" / "python"


def main() -> None:
    """Make the environments that are named, or all; those that are there stay."""
    listed = {path.stem: path for path in sorted((_HERE / "requirements").glob("*.txt"))}
    for name in sys.argv[1:] or listed:
        if python_of(name).exists():
            continue
        venv.create(ENVIRONMENTS / name, with_pip=True)
        install = ["-m", "pip", "install", "--quiet", "--no-deps", "-r", str(listed[name])]
        subprocess.run([str(python_of(name)), *install], check=True)


if __name__ == "__main__":
    main()
