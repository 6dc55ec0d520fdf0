"""The example of a coding agent: it applies five fixes, and they do what was predicted."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from tests.live_server import live_server

ROOT = Path(__file__).resolve().parents[2]


def _program() -> Any:
    path = ROOT / "benchmarks" / "coding_agent" / "first_five.py"
    spec = importlib.util.spec_from_file_location("first_five", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.long
def test_the_first_five_fixes_do_what_was_predicted(tmp_path: Path):
    """With the MCP tools and the source alone, first-try success rises as the fixes promised."""
    program = _program()
    with live_server(tmp_path) as server:
        said = asyncio.run(program.run(server, tmp_path, seed=7))
    assert len(said["applied"]) == 5
    assert said["first_try_after"] - said["first_try_before"] > said["predicted_rise"] / 2
    assert said["within"]
