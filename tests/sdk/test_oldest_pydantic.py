"""The oldest pydantic that is supported, 2.0, from a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SDK = Path(__file__).resolve().parents[2] / "sdk"
SMOKE = """
from typing import Annotated
from pydantic import BaseModel, Field, SecretStr
import pydantic
import toolfault
from toolfault.coerce import LLMBool
from toolfault.validators import Check, validate_bounded_int

assert pydantic.VERSION.startswith("2.0."), pydantic.VERSION

class Login(BaseModel, strict=True):
    pin: SecretStr = Field(min_length=8)
    port: Annotated[int, Check(validate_bounded_int, min=1, max=9)] = 3
    verify: LLMBool = False

@toolfault.tool(model=Login)
def login(**fields):
    return fields

sent = {"pin": "hunter2", "port": 70, "verify": "maybe", "more": 1}
error = login.call(sent).error
shown = {issue.field: (issue.code.value, issue.received) for issue in error.issues}
assert shown == {
    "pin": ("field_too_small", "[REDACTED]"),
    "port": ("field_too_large", "70"),
    "verify": ("wrong_type", "'maybe'"),
}, shown
assert "hunter2" not in str([error.render(name) for name in ("user", "llm", "system")])
value = login.call(pin="hunter2hunter2", verify="yes").value
assert (value["port"], value["verify"]) == (3, True), value
"""


@pytest.mark.long
def test_the_oldest_pydantic_works(tmp_path: Path) -> None:
    """Models with validators, coercers, defaults and secrets work, without a warning."""
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--only-binary=:all:"]
    install += ["--target", str(tmp_path), "pydantic==2.0.*"]
    try:
        installed = subprocess.run(install, capture_output=True, text=True, timeout=240)
    except subprocess.TimeoutExpired:
        pytest.skip("pydantic 2.0 cannot be installed here within four minutes")
    if installed.returncode:
        pytest.skip(f"pydantic 2.0 cannot be installed here: {installed.stderr[-200:]}")
    done = subprocess.run(
        [sys.executable, "-S", "-W", "error", "-c", SMOKE],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(SDK)])},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
