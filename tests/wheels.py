"""Wheels of this checkout, and environments made of wheels alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

__all__ = ["build_wheel", "install_wheels"]


def build_wheel(source: Path, into: Path) -> Path:
    """Build the distribution at *source* with the backend of this environment."""
    before = set(into.glob("*.whl"))
    command = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(into)]
    subprocess.run([sys.executable, "-m", "pip", *command, str(source)], check=True, timeout=120)
    (built,) = set(into.glob("*.whl")) - before
    return built


def install_wheels(wheels: Iterable[Path], home: Path, *, dependencies: bool = True) -> Path:
    """Make an environment at *home* with *wheels*.

    Args:
        wheels: What to install.
        home: Where.
        dependencies: Whether it also sees the packages of this environment.
    """
    # Not pip, which takes seconds to compile what is never imported.
    uv = [sys.executable, "-m", "uv", "--quiet", "--no-cache", "--offline"]
    subprocess.run([*uv, "venv", "--python", sys.executable, str(home)], check=True)
    install = ["pip", "install", "--python", str(home / "bin" / "python"), "--no-deps"]
    subprocess.run([*uv, *install, "--no-index", *map(str, wheels)], check=True, timeout=120)
    if not dependencies:
        return home
    packages = next((home / "lib").glob("python*/site-packages"))
    theirs = next(path for path in sys.path if path.endswith("site-packages"))
    # A plain path line adds the folder without running the .pth files in it: the dependencies of
    # this environment are seen, its editable installs are not.
    (packages / "dependencies.pth").write_text(theirs + "\n", encoding="utf-8")
    return home
