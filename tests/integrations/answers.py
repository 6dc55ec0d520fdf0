"""What the modules of this folder print in the environment of a framework."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.environments import QUICK, is_made, python_of

ROOT = Path(__file__).parents[2]


@functools.cache
def answer(environment: str, module: str, *arguments: str) -> dict[str, Any]:
    """Run a module of this folder once and return the JSON object that it prints.

    Skips the test where the environment was not made; in CI one that ``make test`` makes fails it.

    Args:
        environment: One of ``environments.NAMES``.
        module: Name of the module.
        arguments: Its command line.
    """
    if not is_made(environment):
        why = f"not made: python -m tests.integrations.environments {environment}"
        if environment in QUICK and os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    done = subprocess.run(
        [str(python_of(environment)), "-m", f"tests.integrations.{module}", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "sdk")},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed
