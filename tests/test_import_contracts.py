"""The import graph shows the rooms and arrows of the design, and no others."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("sdk", "collector", "dashboard", "migrations", "demo")


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
    """A copy of the rooms and their contracts, to break."""
    for room in ROOMS:
        shutil.copytree(
            ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__", "static")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


PLANTED = (
    ("collector/toolfault_collector", "import toolfault_dashboard"),
    ("migrations/toolfault_migrations", "import toolfault_collector.storage.tables"),
    ("sdk/toolfault", "import toolfault_collector"),
    ("sdk/toolfault", "import pydantic"),
    ("sdk/toolfault/errors", "import toolfault.telemetry"),
    ("collector/toolfault_collector", "import toolfault"),
    ("dashboard/toolfault_dashboard", "import toolfault"),
    ("collector/toolfault_collector", "import toolfault_demo"),
    ("dashboard/toolfault_dashboard", "import toolfault_demo.history"),
    ("sdk/toolfault", "import toolfault_demo"),
    ("demo/toolfault_demo", "import toolfault.telemetry"),
    ("demo/toolfault_demo", "import toolfault_collector.clock"),
    ("demo/toolfault_demo", "import toolfault_dashboard"),
    ("demo/toolfault_demo", "import toolfault_migrations"),
    ("collector/toolfault_collector", "import pandas"),
    ("collector/toolfault_collector", "import jinja2"),
    ("collector/toolfault_collector/pipeline", "import toolfault_collector.http.problems"),
    ("collector/toolfault_collector/storage", "import toolfault_collector.pipeline.writer"),
    ("collector/toolfault_collector/protocol", "import sqlalchemy"),
    ("collector/toolfault_collector/chains", "import toolfault_collector.storage.tables"),
)


@pytest.mark.slow
def test_an_import_against_the_arrows_is_found(copied: Path):
    """Every module that imports what its room may not is named; without them nothing is."""
    for number, (place, line) in enumerate(PLANTED):
        (copied / place / f"planted_{number}.py").write_text(line + "\n", encoding="utf-8")

    done = lint_imports(copied)

    assert done.returncode == 1, done.stdout + done.stderr
    named = set(re.findall(r"\.planted_(\d+) ->", done.stdout))
    assert named == {str(number) for number in range(len(PLANTED))}, done.stdout
    assert not re.findall(r"^- (?!.*planted_).* -> ", done.stdout, re.MULTILINE), done.stdout
