"""The import graph shows the rooms and arrows of the design, and no others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("sdk", "collector", "dashboard", "migrations")


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the packages below *root*, wherever else they are installed."""
    search = os.pathsep.join(str(root / room) for room in ROOMS)
    return subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": search, "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the four rooms and their contracts, to break."""
    for room in ROOMS:
        shutil.copytree(
            ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__", "static")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_rooms_keep_to_their_arrows():
    """Every import contract of pyproject.toml holds."""
    done = lint_imports(ROOT)

    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("planted_in", "line"),
    [
        ("collector/toolfault_collector", "import toolfault_dashboard"),
        ("migrations/toolfault_migrations", "import toolfault_collector.tables"),
        ("sdk/toolfault", "import toolfault_collector"),
        ("sdk/toolfault", "import pydantic"),
        ("sdk/toolfault/errors", "import toolfault.telemetry"),
        ("collector/toolfault_collector", "import toolfault"),
        ("dashboard/toolfault_dashboard", "import toolfault"),
        ("dashboard/toolfault_dashboard/demo", "import toolfault.telemetry"),
        ("collector/toolfault_collector", "import pandas"),
        ("collector/toolfault_collector", "import jinja2"),
    ],
)
def test_an_import_against_the_arrows_is_found(copied: Path, planted_in: str, line: str):
    """A module that imports what its room may not breaks exactly one contract or more."""
    (copied / planted_in / "planted.py").write_text(line + "\n", encoding="utf-8")

    done = lint_imports(copied)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "planted" in done.stdout
