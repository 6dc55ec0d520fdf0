"""The built wheel of the SDK on every interpreter that can be found."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.wheels import build_wheel

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
SMOKE = """
import toolfault

@toolfault.tool
def book(seats: int, flexible: bool = False) -> int:
    return seats

assert book.call('{"seats": 2}').value == 2
told = book.call('{"seats": "two", "flexible": "yes"}').content
assert told.startswith("Error: Invalid parameters - 2 errors:"), told
for name in toolfault.__all__:
    getattr(toolfault, name)
assert ".whl" in toolfault.__file__
"""


def interpreter(version: str) -> str | None:
    """Return an interpreter of *version*, from the path or from pyenv."""
    named = shutil.which(f"python{version}")
    if named is not None and "shims" not in named:
        return named
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = sorted(root.glob(f"{version}.*/bin/python"))
    return str(found[-1]) if found else None


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, which Python can import from as it is."""
    return build_wheel(Path(__file__).resolve().parents[2] / "sdk", tmp_path_factory.mktemp("sdk"))


# What the oldest and the newest can do, those between them can.
BETWEEN = [version for version in VERSIONS if interpreter(version)][1:-1]


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(version, marks=[pytest.mark.long] if version in BETWEEN else [])
        for version in VERSIONS
    ],
)
def test_the_wheel_works_without_anything_else(version: str, wheel: Path) -> None:
    """A tool validates and every public name loads, with the standard library alone."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    done = subprocess.run(
        [python, "-S", "-W", "error", "-c", SMOKE],
        env={"PYTHONPATH": str(wheel), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
